"""The scope of a gate request: an answer about something else does not count.

A scope only ever takes permission away. If it is not met, ``pass`` becomes ``undecided``; if the gate is
about another candidate or another comparison file, so does ``fail``, which is about something else. A proven
difference needs no minimum of evidence, and it stands until a reset, whenever it was found.

`since` asks for a pass that rests on events written from a moment on: all the evidence that the comparison
file asks for, and `min_matched` pairs, must come from events of which both are from that moment or later, and
no earlier event may be open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, ConfigDict, Field

from twinstream.api.gate.freshness import said
from twinstream.api.gate.gate import GateAnswer, so_far
from twinstream.api.gate.gate_hints import more_evidence
from twinstream.core.accounting.match_timeline import united
from twinstream.explain.coverage import asked_of
from twinstream.settings import time_of
from twinstream.spec.file.evidence import Wanted, lacking
from twinstream.status.common import Frozen
from twinstream.status.comparison import ComparisonStatus, Coverage


def _moment(text: str) -> datetime | None:
    """The requested moment; None for an empty text. Raises ValueError."""
    moment = time_of(text)
    if text and moment is None:
        raise ValueError(f"{text!r} is not a time with a zone; write it like 2026-03-01T14:02:00Z")
    try:
        return None if moment is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} lies outside of the calendar") from None


def _since(text: str) -> str:
    _moment(text)
    return text


MOST_MATCHED = 2**63 - 1
"""No topic has more records in a partition."""


class GateScope(Frozen):
    """The scope of the question; a misspelled parameter is refused rather than ignored."""

    model_config = ConfigDict(extra="forbid")

    min_matched: int = Field(
        0, ge=0, le=MOST_MATCHED, description="A pass needs at least so many matched pairs."
    )
    candidate: str = Field("", max_length=200, description="The version of the candidate that it must be of.")
    spec_digest: str = Field("", max_length=200, description="The comparison file that it must be of.")
    since: Annotated[str, AfterValidator(_since)] = Field(
        "",
        max_length=40,
        description="A pass must rest on events written from then on, like 2026-03-01T14:02:00Z.",
    )


class ScopedAnswer(GateAnswer):
    """The gate's answer with the requested scope; members of the scope are empty or 0 if not requested.

    `matched_in_scope` and `seconds_in_scope` are the evidence from `scope_since` on, else all of it.
    """

    scope_min_matched: int
    scope_candidate: str
    scope_spec_digest: str
    scope_since: str
    matched_in_scope: int
    seconds_in_scope: float


class Evidence(NamedTuple):
    """The evidence within a scope: pairs, Kafka time, and pairs by kind."""

    matched: int
    seconds: float
    by_kind: dict[str, int]


def evidence(coverage: Coverage, since: datetime | None) -> Evidence:
    """A lower bound of the evidence from events since a moment; all evidence if none is given."""
    if since is None:
        return Evidence(coverage.matched, coverage.seconds, coverage.matched_by_kind)
    timeline = united([coverage.matched_since.model_dump()])
    pairs, first = timeline.since(since.timestamp()), timeline.first_since(since.timestamp())
    after = 0.0 if coverage.until is None or first is None else coverage.until.timestamp() - (first + 1)
    return Evidence(pairs.total(), max(0.0, min(after, coverage.seconds)), dict(pairs))


class Lack(NamedTuple):
    """Why an answer does not hold for a scope, and what would have to happen before it can."""

    reason: str
    steps: Sequence[str]


def scoped(answer: GateAnswer, scope: GateScope, status: ComparisonStatus, pace: float = 0.0) -> ScopedAnswer:
    """The answer for this scope; `status` is the one it was made from, `pace` is in pairs a second."""
    since = _moment(scope.since)
    found = evidence(status.coverage, since)
    lack = _foreign(answer, scope)
    changed = {} if lack is None else _undecided(answer, lack)
    if lack is None and (lack := _too_little(scope, found, status, since, pace)) is not None:
        changed = _undecided(answer, lack) if answer.passed else _also(answer, lack)
    return ScopedAnswer(
        **{**answer.model_dump(), **changed},
        **{f"scope_{name}": value for name, value in scope.model_dump().items()},
        matched_in_scope=found.matched,
        seconds_in_scope=found.seconds,
    )


def _foreign(answer: GateAnswer, scope: GateScope) -> Lack | None:
    if scope.candidate and scope.candidate != answer.candidate_version:
        version = answer.candidate_version
        compared = f"it compares {version}" if version else "the comparison file has no `candidate.version`"
        reason = f"You asked about candidate {scope.candidate}, but {compared}."
        step = f"Write `candidate.version: {scope.candidate}` in the comparison file once that version runs"
        return Lack(reason, [f"{step}, or ask about {version or 'no version'}."])
    if scope.spec_digest and scope.spec_digest != answer.spec_digest:
        reason = f"You asked about comparison file {scope.spec_digest}, but it runs {answer.spec_digest}."
        step = "Start the service with that comparison file"
        return Lack(reason, [f"{step}, or ask about {answer.spec_digest}."])
    return None


def _too_little(
    scope: GateScope, found: Evidence, status: ComparisonStatus, since: datetime | None, pace: float
) -> Lack | None:
    """Why a pass does not rest on enough evidence within the scope."""
    if since is None:
        if found.matched >= scope.min_matched:
            return None
        told = f"only {found.matched:,} of {scope.min_matched:,} required pairs are confirmed"
        return _lack(status, told, more_evidence(Wanted(scope.min_matched, 0), found.matched, 0, {}, pace))
    through = status.verified_through
    if through is None or through < since:
        until = (
            "nothing is verified" if through is None else f"events are verified only through {said(through)}"
        )
        step = f"All events before {said(since)} must be verified, and then enough of what follows."
        return _lack(status, f"{until}; you asked about {said(since)} and later", [step])
    asked = asked_of(status.coverage)
    needed = asked._replace(matched=max(1, scope.min_matched, asked.matched))
    if lacks := lacking(needed, *found):
        told = f"not enough compared since {said(since)}: {'; '.join(lacks)}"
        return _lack(status, told, more_evidence(needed, *found, pace))
    return None


def _lack(status: ComparisonStatus, told: str, steps: Iterable[str]) -> Lack:
    return Lack(f"{so_far(status)}, but {told}.", list(steps))


def _also(answer: GateAnswer, lack: Lack) -> dict[str, object]:
    """Add the scope's requirements to an undecided answer, if its status can be trusted."""
    if answer.failed or answer.stale:
        return {}
    return {"to_decide": "\n".join([*answer.to_decide.splitlines(), *lack.steps])}


def _undecided(answer: GateAnswer, lack: Lack) -> dict[str, object]:
    """An undecided answer, with its own reason and hints after those of the scope."""
    told = {
        "reason": f"{lack.reason} {answer.reason}" if answer.undecided else lack.reason,
        "to_decide": "\n".join([*lack.steps, *answer.to_decide.splitlines()]),
    }
    return {"answer": "undecided", "pass": False, "fail": False, "undecided": True, **told}
