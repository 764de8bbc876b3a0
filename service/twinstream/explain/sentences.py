"""Describes a divergence in a few sentences for an engineer on call: only observations, no theory.

The first sentence is the answer, the second says where the events are. Then come the two events that prove
it, and why the declared order forbids what happened to them (`twinstream.spec.lint.relations`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Literal

from twinstream.core.accounting.halves import Divergence
from twinstream.core.clocks.late import DroppedUnevenly
from twinstream.core.diagnosis.findings import Finding
from twinstream.core.events import CONTENT, FORM, KIND, MARK, OFFSET, PARTITION, Event, Side, in_kafka
from twinstream.explain.masking import HIDDEN, json_text
from twinstream.explain.picture import from_difference, told_apart
from twinstream.explain.title import first_on_reference
from twinstream.explain.visible import Change, Visible, is_withheld, sees
from twinstream.spec.codec.rows import DELETED
from twinstream.spec.decode.headers import input_position
from twinstream.spec.file.orders import Order
from twinstream.spec.file.paths import ABSENT
from twinstream.spec.lint.relations import Reason, one_of, why

NAMES: dict[Side, Literal["reference", "candidate"]] = {Side.LEFT: "reference", Side.RIGHT: "candidate"}
TEXT_LIMIT = 300
"""The most characters of a value in a sentence."""
PARTITIONS_NAMED = 3
"""The most partitions of the input that are named in a sentence, besides how many more there are."""
FIELDS_NAMED = 3
"""The most fields of a changed event that are named with both values; beyond that only names are given."""

_WHAT = {
    "missing": "Missing from the candidate: {event}.",
    "extra": "Only in the candidate: {event}.",
    "duplicate": "One copy too many in the candidate: {event}.",
    "reordered": "Both sides wrote {event}, but in a different order.",
}
UNSEEN = "One event changed. Its fields cannot be compared without both records."
TAINTED = "It comes after input that was not checked, so it does not count towards the verdict."


def text_of(divergence: Divergence, order: Order, visible: Visible) -> str:
    """The sentences of a divergence."""
    finding = divergence.finding
    if not finding.is_whole:
        sentences = [_of_one_row(finding, visible), _where(finding)]
    elif finding.kind == "changed":
        sentences = [_changed(finding, visible), _where(finding)]
    elif finding.kind == "reordered" and finding.witness:
        sentences = [*_moved(finding, visible), _matters(_why(finding, order, visible))]
    else:
        sentences = [_what(finding, visible), _where(finding)]
        if finding.kind != "reordered":
            sentences += [*_proof(finding, order, visible), *_input(finding.event)]
    sentences += _replaced(finding)
    if divergence.uneven is not None:
        sentences.append(_likely_cause(divergence.uneven))
    if divergence.late is not None:
        sentences.append(f"An equal event came {divergence.late:g} s later, which is too late to count.")
    if divergence.tainted:
        sentences.append(TAINTED)
    return " ".join(sentences)


def _what(finding: Finding, visible: Visible) -> str:
    deletes = "the deletion of " if finding.event[FORM][CONTENT].startswith(DELETED) else ""
    return _WHAT[finding.kind].format(event=f"{deletes}{_brief(finding.event, visible)}")


def _of_one_row(finding: Finding, visible: Visible) -> str:
    """What a row has made of a table, where the row that the other one has held for longer is not kept."""
    row, own, other = _brief(finding.event, visible), NAMES[finding.side], NAMES[finding.side.other]
    if finding.kind == "missing":
        return f"Missing from the candidate: the row that it has deleted with {row}."
    if finding.kind == "extra":
        return f"Only in the candidate: the row that the reference has deleted with {row}."
    new = f"Only the {own} has a new row of a key: {row}."
    return f"{new} The table of the {other} holds another one, which is not kept."


def _brief(event: Event, visible: Visible) -> str:
    """What of an event may be shown, as a short text, and how many fields are hidden."""
    part, hidden = visible.part(event)
    if is_withheld(event):
        return f"an event ({part.strip('‹›')})"
    fields = f"{hidden:,} hidden field{'s' * (hidden != 1)}"
    if part is HIDDEN:
        return f"{one_of(event[FORM][KIND])} with {fields}"
    text = _cut(json_text(part))
    return f"{text} and {fields}" if hidden else text


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…"


def _where(finding: Finding) -> str:
    places = [f"{NAMES[side]} {_place(event)}" for side, event in finding.events if event is not None]
    return f"{', '.join(places).capitalize()}."


def _place(event: Event) -> str:
    return f"p{event[PARTITION]}:{in_kafka(event[OFFSET])}"


def _replaced(finding: Finding) -> Iterator[str]:
    """How many rows of its key each row has replaced, and where the last of these are."""
    for side, event in finding.events:
        if event is None or not isinstance(event[MARK], list):
            continue
        count, *places = event[MARK]
        offsets = [f"{in_kafka(offset)}" for _, offset in places]
        last = " and ".join([", ".join(offsets[:-1]), offsets[-1]] if offsets[1:] else offsets)
        where = f"offset{'s' if offsets[1:] else ''} {last}"
        yield (
            f"The {NAMES[side]} had written 1 row of this key before ({where})."
            if count == 1
            else f"The {NAMES[side]} had written {count:,} rows of this key before (the last at {where})."
        )


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
    where = _joined(named)
    rows = "1 row" if uneven.left == 1 else f"{uneven.left:,} rows"
    return (
        f"Of the input in {where}, the reference dropped {rows} as late and the candidate {uneven.right:,}: "
        "a different watermark or trigger is the likely cause."
    )


def _stretch(first: int, end: int) -> str:
    """Offsets from the first up to the end, which is not one of them."""
    return f"offset {first}" if end == first + 1 else f"offsets {first} to {end - 1}"


# -- changed -----------------------------------------------------------------------------------------------


WITHIN = "nothing changed beyond its tolerance"
"""What differs in an event that moved to where another one of its identity was expected."""


def _changed(finding: Finding, visible: Visible) -> str:
    """Where two events differ, and what they are about."""
    if not sees(finding):
        return UNSEEN
    event, changes = finding.event, list(visible.changes(finding))
    named = visible.named(event, visible.identity_fields or visible.key_fields(event)).fields
    about = ", ".join(f"{field} {_cut(json_text(value))}" for field, value in named)
    of = f" in {about}" if about else ""
    if len(changes) > FIELDS_NAMED:
        return f"{len(changes):,} fields changed{of}: {', '.join(map(_field, changes))}."
    shown = [change for change in changes if change.shown]
    hidden = [change for change in changes if not change.shown]
    parts = [*map(_became, shown)]
    if hidden:
        values = "hidden values" if len(hidden) > 1 else "hidden value"
        parts.append(f"{_joined([_field(change) for change in hidden])} changed ({values})")
    text = _joined(parts) if parts else WITHIN
    return f"{text[0].upper()}{text[1:]}{of}."


def _field(change: Change) -> str:
    return f"`{change.place}`" if change.place else "the whole value"


def _became(change: Change) -> str:
    """Both values; long ones start where they differ."""
    both = change.before, change.after
    texts = ("absent" if value is ABSENT else json_text(value) for value in both)
    one, other = from_difference(*told_apart(*texts), TEXT_LIMIT)
    return f"{_field(change)} changed from {_cut(one)} to {_cut(other)}"


def _joined(parts: Sequence[str]) -> str:
    return " and ".join([*filter(None, (", ".join(parts[:-1]),)), *parts[-1:]])


# -- reordered ---------------------------------------------------------------------------------------------


def _moved(finding: Finding, visible: Visible) -> Iterator[str]:
    """Which of two events came first on which side, if offsets tell that, and where they are."""
    (_, left), (_, right) = finding.witness
    assert finding.left is not None, "what changed places is on both sides"
    assert finding.right is not None, "what changed places is on both sides"
    pairs = [(finding.left, left), (finding.right, right)]
    earlier, later = first_on_reference(finding) or pairs[0]
    one, other = _brief(earlier, visible), _brief(later, visible)
    if one == other:
        yield f"The candidate wrote two events in the opposite order, each {one}."
    elif first_on_reference(finding) is None:
        yield f"One side has {one} before {other}, the other has it after."
    else:
        yield f"The reference wrote {one} before {other}; the candidate wrote them in the opposite order."
    reference, candidate = (" and ".join(map(_place, sorted(pair, key=itemgetter(OFFSET)))) for pair in pairs)
    yield f"Reference {reference}, candidate {candidate}."


def _matters(reason: Reason) -> str:
    return f"{reason.text}." if reason.is_law else reason.so("their order matters")


# -- proofs ------------------------------------------------------------------------------------------------


def _proof(finding: Finding, order: Order, visible: Visible) -> Iterator[str]:
    """Why the event has no partner, and can no longer have one."""
    lacking = "reference" if finding.left is None else "candidate"
    if not finding.witness:
        yield f"The {lacking} has ended, or is long past this point."
        return
    seen = _brief(finding.witness[0][1], visible)
    places = ", ".join(f"{NAMES[side]} {_place(event)}" for side, event in finding.witness)
    yield f"Both sides have since written {seen} ({places})."
    again = "another copy" if finding.kind == "duplicate" else "it"
    yield _why(finding, order, visible).so(f"the {lacking} can no longer write {again}")


def _why(finding: Finding, order: Order, visible: Visible) -> Reason:
    """Why the event and its witness must keep their order."""
    event, (_, other) = finding.event, finding.witness[0]
    kinds = event[FORM][KIND], other[FORM][KIND]
    shown = {field: _cut(json_text(value)) for field, value in visible.shown_order_fields(event).items()}
    return why(order, *kinds, visible.order_fields(event), visible.order_fields(other), shown)
