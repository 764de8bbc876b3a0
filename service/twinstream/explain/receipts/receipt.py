"""Makes a verdict receipt for a change ticket: the verdict, all that it rests on, and all that it leaves out.

A receipt is data first (`Receipt`, whose JSON Schema is kept in ``docs/receipt.schema.json``); a text is made
from that (`twinstream.explain.receipts.markdown`). It holds no value of any event.

``python -m twinstream.explain.receipts.receipt`` prints the schema.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal

from twinstream.explain.masking import Mask
from twinstream.explain.receipts.exclusions import Exclusion, exclusions
from twinstream.grouping.wording import without_values
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import parse_path, path_text
from twinstream.status.common import Accounts, DivergenceCounts, Frozen, Sides, Verdict
from twinstream.status.comparison import (
    CheckStatus,
    ComparisonStatus,
    Coverage,
    Health,
    Position,
    Reset,
)
from twinstream.status.groups import Group

DIALECT = "https://json-schema.org/draft/2020-12/schema"
HOLES_SHOWN = 20
UNPROVEN = (
    "anything that either version does besides the two outputs: other sinks, databases, calls",
    "inputs that did not occur in this comparison",
    "events that both versions drop, or get wrong in the same way",
    "anything listed as not compared",
    "anything that either version wrote before the first or after the last offset named here",
    "speed and cost of the candidate",
)


class Stretch(Frozen):
    """Of a partition: the first offset that was compared, if it is known, and the one behind the last.

    Up to `verified_up_to` all is settled; None where the verdict is about the stretch as a whole.
    """

    first: int | None = None
    end: int
    verified_up_to: int | None = None


class Compared(Frozen):
    """What of a side was compared; `partitions` is empty where it was no topic but a file.

    `beside` counts the records around a range of times that were read for partners.
    """

    topic: str
    version: str | None
    partitions: dict[str, Stretch]
    beside: int = 0
    events: int
    unmatched: int
    accounts: Accounts


class Gate(Frozen):
    """What the gate said when the receipt was made."""

    answer: Literal["pass", "fail", "undecided"]
    reason: str


class Range(Frozen):
    """Which stretch of the topics was asked for; `undecided` differences may have a partner beyond it."""

    begin: str
    end: str
    slack_seconds: float
    undecided: int


class KnownUse(Frozen):
    """A known difference, and what it has explained: `hits` differences, as a `share` of the pairs.

    `share` is None where no pair has matched.
    """

    id: str
    owner: str
    ticket: str | None = None
    expires: date
    ceiling: str
    hits: int
    share: float | None = None


class Unchecked(Frozen):
    """A hole; of recorded outputs it is not told when it was seen."""

    reason: str
    side: Literal["reference", "candidate"] | None = None
    position: Position | None = None
    seen_at: datetime | None = None


class Receipt(Frozen):
    """One verdict. `since` is how long it held when the receipt was made, of a running comparison.

    Of the `divergences` of a running comparison those that are closed are final, and the others provisional;
    of recorded outputs all are final. `groups` sum up the final ones, without values.
    """

    format: Literal["twinstream-receipt/1"] = "twinstream-receipt/1"
    made_at: datetime
    made_by: str
    comparison: str
    spec_digest: str
    order: str
    source: Literal["service", "check"]
    verdict: Verdict
    reason: str
    since: datetime | None = None
    gate: Gate | None = None
    health: Health | None = None
    started_at: datetime | None = None
    verified_through: datetime | None = None
    range: Range | None = None
    sides: Sides[Compared]
    matched: int
    divergences: DivergenceCounts
    closed_divergences: DivergenceCounts = DivergenceCounts()
    groups: tuple[Group, ...] = ()
    known_differences: tuple[KnownUse, ...] = ()
    checks: tuple[CheckStatus, ...] = ()
    suspicions: int = 0
    coverage: Coverage
    exclusions: tuple[Exclusion, ...]
    hole_count: int = 0
    holes: tuple[Unchecked, ...] = ()
    reset_count: int = 0
    resets: tuple[Reset, ...] = ()
    unproven: tuple[str, ...] = UNPROVEN


# -- of a running comparison -------------------------------------------------------------------------------

_OF_STATUS = (
    *("spec_digest", "order", "verdict", "reason", "since", "health", "started_at", "verified_through"),
    *("matched", "divergences", "closed_divergences", "suspicions", "coverage", "hole_count", "reset_count"),
)
"""The members that a receipt repeats from a status."""


def receipt_of_status(
    status: ComparisonStatus,
    gate: Gate | None,
    left_out: Sequence[Exclusion],
    made_at: datetime,
    made_by: str,
) -> Receipt:
    """The receipt of a comparison as a service shows it."""
    return Receipt(
        made_at=made_at,
        made_by=made_by,
        comparison=status.name,
        source="service",
        gate=gate,
        groups=without_values(status.groups),
        sides=Sides[Compared](reference=_side(status, "reference"), candidate=_side(status, "candidate")),
        known_differences=_uses(left_out, status.explained_by_rule, status.matched),
        checks=tuple(status.checks),
        exclusions=tuple(left_out),
        holes=tuple(Unchecked(**hole.model_dump()) for hole in status.holes),
        resets=tuple(status.resets),
        **{name: getattr(status, name) for name in _OF_STATUS},
    )


def _side(status: ComparisonStatus, side: str) -> Compared:
    verified = getattr(status.verified_up_to, side)
    version = getattr(status, side)
    return Compared(
        topic=version.topic,
        version=version.version,
        partitions={
            str(one.partition): Stretch(
                end=one.position, verified_up_to=verified.get(str(one.partition))
            )
            for one in getattr(status.progress, side)
        },
        events=getattr(status.events, side),
        unmatched=getattr(status.unmatched, side),
        accounts=getattr(status.accounts, side),
    )  # fmt: skip


# -- of recorded outputs -----------------------------------------------------------------------------------


def receipt_of_answer(answer: Mapping[str, Any], spec: Spec, made_at: datetime, made_by: str) -> Receipt:
    """The receipt for an answer of `check`."""
    left_out = exclusions(spec)
    asked = {"matched_required": spec.evidence.matched, "seconds_required": 0.0, "missing": []}
    evidence = {"matched": answer["matched"], "seconds": 0.0, **asked}
    return Receipt(
        made_at=made_at,
        made_by=made_by,
        comparison=spec.name,
        order=spec.order_text,
        source="check",
        **{name: answer[name] for name in ("spec_digest", "verdict", "reason", "matched", "divergences")},
        closed_divergences=answer["divergences"],
        groups=without_values(
            _without_names(Group.model_validate(group), spec) for group in answer["groups"]
        ),
        range=_range(answer["ranges"]) if "ranges" in answer else None,
        sides=Sides[Compared](
            reference=_recorded(answer, spec, "reference"), candidate=_recorded(answer, spec, "candidate")
        ),
        known_differences=_uses(
            left_out, answer["explained_by_rule"], answer.get("ranges", answer)["matched"]
        ),
        checks=tuple(map(CheckStatus.model_validate, answer.get("checks", ()))),
        coverage=Coverage.model_validate({**answer["coverage"], **evidence}),
        exclusions=left_out,
        hole_count=len(answer["holes"]),
        holes=tuple(Unchecked.model_validate(hole) for hole in answer["holes"][:HOLES_SHOWN]),
    )


def _without_names(group: Group, spec: Spec) -> Group:
    """A group without the names of members that are data: those of `maps`."""
    mask = Mask((), spec.maps)
    places = {name: path_text(mask.place(parse_path(name))) for name in group.fields or ()}
    if all(name == place for name, place in places.items()):
        return group
    patterns = [one.model_copy(update={"field": places[one.field]}) for one in group.patterns]
    return group.model_copy(update={"fields": list(places.values()), "patterns": patterns, "cause": None})


def _range(ranges: Mapping[str, Any]) -> Range:
    return Range(
        begin=ranges["from"],
        end=ranges["to"],
        slack_seconds=ranges["slack_seconds"],
        undecided=ranges["undecided"]["total"],
    )


def _recorded(answer: Mapping[str, Any], spec: Spec, side: Literal["reference", "candidate"]) -> Compared:
    read = answer.get("ranges", {}).get(side, {})
    parts = read.get("partitions", {})
    version = spec.reference if side == "reference" else spec.candidate
    return Compared(
        topic=version.topic,
        version=version.version,
        partitions={number: Stretch(first=part["from"], end=part["to"]) for number, part in parts.items()},
        beside=read.get("records_beside", 0),
        **{name: answer[name][side] for name in ("events", "unmatched", "accounts")},
    )


def _uses(left_out: Sequence[Exclusion], hits: Mapping[str, int], matched: int) -> tuple[KnownUse, ...]:
    """The known differences among the exclusions, with the number of differences each has explained."""
    return tuple(
        KnownUse(
            id=one.name,
            **one.model_dump(include={"owner", "ticket", "expires", "ceiling"}),
            hits=hits.get(one.name, 0),
            share=hits.get(one.name, 0) / matched if matched else None,
        )
        for one in left_out
        if one.key == "known_differences"
    )


def schema_text() -> str:
    """The text of the JSON Schema of a receipt, as in the file."""
    schema = Receipt.model_json_schema(mode="serialization")
    return json.dumps({"$schema": DIALECT, **schema}, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
