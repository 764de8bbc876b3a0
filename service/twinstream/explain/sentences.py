"""Describes a divergence in two or three sentences for an engineer on call: only observations, no theory.

The first sentence says what each side wrote. The second names the two events that prove it, and why the
declared order forbids what happened to them (`twinstream.spec.lint.relations`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from twinstream.core.accounting.halves import Divergence
from twinstream.core.clocks.late import DroppedUnevenly
from twinstream.core.diagnosis.findings import Finding
from twinstream.core.events import CONTENT, FORM, KIND, MARK, OFFSET, PARTITION, RECORD, Event, Side
from twinstream.explain.picture import from_difference, json_text, told_apart
from twinstream.spec.codec.digests import WithheldRecord
from twinstream.spec.codec.rows import DELETED
from twinstream.spec.decode.headers import input_position
from twinstream.spec.file.orders import Order
from twinstream.spec.lint.relations import why

NAMES: dict[Side, Literal["reference", "candidate"]] = {Side.LEFT: "reference", Side.RIGHT: "candidate"}
ABSENCE = "‹absent›"
"""Stands for an absent member, which differs from null."""
TEXT_LIMIT = 300
"""The most characters of a value in a sentence."""
PARTITIONS_NAMED = 3
"""The most partitions of the input that are named in a sentence, besides how many more there are."""
FIELDS_NAMED = 3
"""The most fields of a changed event that are named with both values; beyond that only names are given."""

_WHAT = {
    "missing": "The reference wrote {left}, and the candidate did not.",
    "extra": "The candidate wrote {right}, and the reference did not.",
    "duplicate": "The candidate wrote {right} once more than the reference.",
    "changed": "The reference wrote {left}, and the candidate {right} instead.",
    "reordered": "Both sides wrote {value}, but not in the same order ({places}).",
}


class Sight(NamedTuple):
    """Gives the values of events that may be shown, and the fields that the order reads.

    `value` gives an event's value, `fields` the deciding fields with their real values, `shown` those of them
    that may be shown.
    """

    value: Callable[[Event], Any]
    fields: Callable[[Event], Mapping[str, Any]]
    shown: Callable[[Event], Mapping[str, Any]]

    def sees(self, finding: Finding) -> bool:
        """Whether the records of a finding's own events are at hand."""
        return not any(
            event and isinstance(event[FORM][RECORD], WithheldRecord) for _, event in finding.events
        )

    def brief(self, event: Event) -> str:
        """The value of an event as a short text."""
        return brief(self.value(event))


def brief(value: Any) -> str:
    """The JSON text of a value, cut if it is too long; a stand-in stays as it is.

    >>> brief({"taxi": 7}), brief(ABSENCE)
    ('{"taxi":7}', '‹absent›')
    """
    return _cut(_text(value))


def _text(value: Any) -> str:
    return str(value) if is_stand_in(value) else json_text(value)


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…"


def is_stand_in(value: Any) -> bool:
    """Whether a value is a stand-in for a hidden or an absent value."""
    return isinstance(value, str) and value.startswith("‹") and value.endswith("›")


UNSEEN = "They are about the same thing; in which fields they differ cannot be told without both records."
TAINTED = "It lies behind a part of the input that was not checked, so it decides nothing."


def text_of(
    divergence: Divergence,
    order: Order,
    sight: Sight,
    changes: Mapping[str, Mapping[str, Any]],
    identity: Mapping[str, Any],
) -> str:
    """The sentences of a divergence.

    `changes` are the differing fields of a changed event, `identity` its identity, both as they may be shown.
    """
    finding = divergence.finding
    if finding.kind == "changed":
        sentences = [_what(finding, sight), _changed(changes, identity) if sight.sees(finding) else UNSEEN]
    elif finding.kind == "reordered" and finding.witness:
        sentences = [_moved(finding, sight), f"Their order counts: {_why(finding, order, sight)}."]
    elif finding.kind == "reordered":
        sentences = [_what(finding, sight)]
    else:
        sentences = [_what(finding, sight), _proof(finding, order, sight), *_input(finding.event)]
    sentences += _replaced(finding)
    if divergence.uneven is not None:
        sentences.append(_likely_cause(divergence.uneven))
    if divergence.late is not None:
        sentences.append(f"One came after all, {divergence.late:g} s later than this; that was too late.")
    if divergence.tainted:
        sentences.append(TAINTED)
    return " ".join(sentences)


def _what(finding: Finding, sight: Sight) -> str:
    return _WHAT[finding.kind].format(
        left=_at(finding.left, sight),
        right=_at(finding.right, sight),
        value=sight.brief(finding.event),
        places=_both_places(finding.left, finding.right),
    )


def _at(event: Event | None, sight: Sight) -> str:
    if event is None:
        return ""
    deletes = "the deletion of " if event[FORM][CONTENT].startswith(DELETED) else ""
    return f"{deletes}{sight.brief(event)} ({_place(event)})"


def _replaced(finding: Finding) -> Iterator[str]:
    """How many rows of its key each row has replaced, and where the last of these are."""
    for side, event in finding.events:
        if event is None or not isinstance(event[MARK], list):
            continue
        count, *places = event[MARK]
        offsets = [f"{offset}" for _, offset in places]
        last = " and ".join([", ".join(offsets[:-1]), offsets[-1]] if offsets[1:] else offsets)
        where = f"offset{'s' if offsets[1:] else ''} {last}"
        yield (
            f"The {NAMES[side]} had written 1 row of this key before ({where})."
            if count == 1
            else f"The {NAMES[side]} had written {count:,} rows of this key before (the last at {where})."
        )


def _place(event: Event) -> str:
    return f"partition {event[PARTITION]} offset {event[OFFSET]}"


def _both_places(left: Event | None, right: Event | None) -> str:
    events = zip(Side, (left, right), strict=True)
    return ", ".join(f"{NAMES[side]} {_place(event)}" for side, event in events if event is not None)


def _input(event: Event) -> Iterator[str]:
    """The input record that an event without a partner comes from, if the event names one."""
    mark = event[MARK]
    if isinstance(mark, str) and mark:
        topic, partition, offset = input_position(mark)
        yield f"It comes from the input record in {topic} partition {partition} offset {offset}."


def _likely_cause(uneven: DroppedUnevenly) -> str:
    """What the versions dropped as late of the same input."""
    named = [f"{topic} partition {partition} {_stretch(*ends)}" for topic, partition, *ends in uneven.input]
    if len(named) > PARTITIONS_NAMED:
        named[PARTITIONS_NAMED:] = [f"{len(named) - PARTITIONS_NAMED} more partitions"]
    where = " and ".join([*filter(None, [", ".join(named[:-1])]), named[-1]])
    rows = "1 row" if uneven.left == 1 else f"{uneven.left:,} rows"
    return (
        f"Of the input in {where}, the reference dropped {rows} as late and the candidate {uneven.right:,}: "
        "a different watermark or trigger is the likely cause."
    )


def _stretch(first: int, end: int) -> str:
    """Offsets from the first up to the end, which is not one of them."""
    return f"offset {first}" if end == first + 1 else f"offsets {first} to {end - 1}"


# -- changed -----------------------------------------------------------------------------------------------


def _changed(changes: Mapping[str, Mapping[str, Any]], identity: Mapping[str, Any]) -> str:
    """The identity of both events, and where they differ."""
    about = " and ".join(f"{field} {brief(value)}" for field, value in identity.items())
    differ = f"They differ in {_named(changes)}."
    return f"Both are about {about}, and {differ[0].lower()}{differ[1:]}" if about else differ


def _named(changes: Mapping[str, Mapping[str, Any]]) -> str:
    if list(changes) == [""] or not changes:
        return "the whole value"
    if len(changes) > FIELDS_NAMED:
        return ", ".join(changes)
    return ", ".join(
        f"{field}{_became(values['reference'], values['candidate'])}" for field, values in changes.items()
    )


def _became(before: Any, after: Any) -> str:
    """Both values, unless neither may be shown; long ones start where they differ."""
    if ABSENCE not in (before, after) and is_stand_in(before) and is_stand_in(after):
        return ""
    one, other = from_difference(*told_apart(_text(before), _text(after)), TEXT_LIMIT)
    return f" ({_cut(one)} became {_cut(other)})"


# -- reordered ---------------------------------------------------------------------------------------------


def _moved(finding: Finding, sight: Sight) -> str:
    """Which of two events came first on which side, if offsets tell that."""
    (_, left), (_, right) = finding.witness
    assert finding.left is not None, "what changed places is on both sides"
    assert finding.right is not None, "what changed places is on both sides"
    pairs = (finding.left, left), (finding.right, right)
    moved, other = sight.brief(finding.event), sight.brief(left)
    first, first_on_right = (one[OFFSET] < another[OFFSET] for one, another in pairs)
    if first == first_on_right or any(one[PARTITION] != another[PARTITION] for one, another in pairs):
        reference, candidate = (_pair_places(*pair) for pair in pairs)
        return (
            f"On one side {moved} comes before {other}, on the other behind it "
            f"(reference {reference}, candidate {candidate})."
        )
    reference, candidate = (_pair_places(*sorted(pair, key=itemgetter(OFFSET))) for pair in pairs)
    earlier, later = (moved, other) if first else (other, moved)
    return (
        f"The reference wrote {earlier} before {later} ({reference}), "
        f"the candidate the other way round ({candidate})."
    )


def _pair_places(one: Event, other: Event) -> str:
    if one[1] == other[1]:
        return f"partition {one[1]} offsets {one[2]} and {other[2]}"
    return f"{_place(one)} and {_place(other)}"


# -- proofs ------------------------------------------------------------------------------------------------


def _proof(finding: Finding, order: Order, sight: Sight) -> str:
    """Why the event has no partner, and can no longer have one."""
    lacking = "reference" if finding.left is None else "candidate"
    equal = "further equal one" if finding.kind == "duplicate" else "equal one"
    if not finding.witness:
        return f"No {equal} came before the {lacking} ended or was long past it."
    witness = dict(finding.witness)
    seen = sight.brief(next(iter(witness.values())))
    places = _both_places(witness.get(Side.LEFT), witness.get(Side.RIGHT))
    return (
        f"Both sides have gone on to {seen} ({places}), and in the {lacking} no {equal} came before it: "
        f"{_why(finding, order, sight)}."
    )


def _why(finding: Finding, order: Order, sight: Sight) -> str:
    """Why the event and its witness may not change places."""
    event, (_, other) = finding.event, finding.witness[0]
    kinds = event[FORM][KIND], other[FORM][KIND]
    return why(order, *kinds, sight.fields(event), sight.fields(other), sight.shown(event))
