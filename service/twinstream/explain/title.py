"""Writes the title of a divergence: the answer in one line, without positions.

    changed    campaign_id 39 → 40 · ad_id ad-017
    missing    ride a · taxi 7
    reordered  a before c → c before a · taxi 7

The kind is not part of it, since every reader shows it beside the title. Values that may not be shown are
left out and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from twinstream.core.diagnosis.findings import Finding
from twinstream.core.events import CONTENT, FORM, KIND, OFFSET, PARTITION, Event
from twinstream.explain.masking import json_text
from twinstream.explain.picture import from_difference, printable, told_apart
from twinstream.explain.visible import Change, Named, Visible, is_withheld, sees
from twinstream.spec.codec.rows import DELETED
from twinstream.spec.file.model import DEFAULT_KIND
from twinstream.spec.file.paths import ABSENT

LONGEST = 120
"""Characters of a title: one row of a page."""
FIELDS_NAMED = 3
"""The most fields that are named: more do not fit in one row."""
_VALUE_LENGTHS = (40, 30, 20, 10)
"""Characters of one value: the first of these with which the title is not too long."""


class Swap(NamedTuple):
    """Tells apart two events that changed places: by the values of a field, or by their kinds (no field).

    The reference wrote the `earlier` one first; if `known` is false, offsets do not tell that.
    """

    field: str
    earlier: Any
    later: Any
    known: bool


def title(finding: Finding, visible: Visible) -> str:
    """The title of a finding; empty where its records are not at hand."""
    if not sees(finding):
        return ""
    event = finding.event
    key = visible.key_fields(event)
    if finding.kind == "changed" and finding.is_whole:
        return title_of_change(
            list(visible.changes(finding)),
            visible.named(event, visible.identity_fields or key),
        )
    swap = _swap(finding, visible) if finding.kind == "reordered" else None
    if swap is not None:
        return title_of_swap(swap, visible.named(event, key))
    named = _full_name(event, key, visible)
    kind = event[FORM][KIND]
    # What one side has deleted is a row on the other; else the deletion itself is missing or extra.
    deletes = finding.is_whole and event[FORM][CONTENT].startswith(DELETED)
    what = "deletion" if deletes else ""
    return title_of_event(named, what or ("" if named.fields or kind == DEFAULT_KIND else kind))


def _full_name(event: Event, key: Sequence[str], visible: Visible) -> Named:
    """Identity and key; without a visible identity the key and the first fields that may be shown."""
    named = visible.named(event, dict.fromkeys((*visible.identity_fields, *key)))
    if visible.identity_fields and named.fields:
        return named
    fields = {**dict(named.fields), **visible.shown_fields(event)}
    if fields:
        return Named(tuple(fields.items())[:FIELDS_NAMED], named.hidden)
    _, hidden = visible.part(event)
    return Named((), hidden)


def _swap(finding: Finding, visible: Visible) -> Swap | None:
    """What tells the two events of an order apart; None if nothing that may be shown does."""
    if not finding.witness or is_withheld(finding.witness[0][1]):
        return None
    first = first_on_reference(finding)
    earlier, later = first or (finding.event, finding.witness[0][1])
    one, other = map(visible.shown_fields, (earlier, later))
    for field in dict.fromkeys((*visible.identity_fields, *one)):
        if field in one and field in other and one[field] != other[field]:
            return Swap(field, one[field], other[field], first is not None)
    kinds = earlier[FORM][KIND], later[FORM][KIND]
    return Swap("", *kinds, first is not None) if kinds[0] != kinds[1] else None


def first_on_reference(finding: Finding) -> tuple[Event, Event] | None:
    """The two events of an order, the one first that the reference wrote first; None if offsets do not tell.

    The candidate wrote them in the opposite order.
    """
    (_, left), (_, right) = finding.witness
    assert finding.left is not None, "what changed places is on both sides"
    assert finding.right is not None, "what changed places is on both sides"
    pairs = (finding.left, left), (finding.right, right)
    first, first_on_right = (one[OFFSET] < another[OFFSET] for one, another in pairs)
    if first == first_on_right or any(one[PARTITION] != another[PARTITION] for one, another in pairs):
        return None
    return (finding.left, left) if first else (left, finding.left)


def title_of_change(changes: Sequence[Change], named: Named) -> str:
    """The fields that changed, those with shown values first, then what names the event.

    >>> title_of_change([Change("campaign_id", "campaign_id", 39, 40, True)], Named((("ad_id", "ad-017"),)))
    'campaign_id 39 → 40 · ad_id ad-017'
    >>> title_of_change([Change("fare", "fare", 1, 2, False)], Named((), 1))
    'fare · 2 hidden fields'
    """
    ranked = sorted(changes, key=lambda change: not change.shown)
    first, more = ranked[:FIELDS_NAMED], len(ranked) - FIELDS_NAMED
    hidden = named.hidden + sum(not change.shown for change in changes)

    def parts(room: int) -> Iterator[str]:
        what = ", ".join(_changed(change, room) for change in first)
        yield f"{what} and {more} more field{'s' * (more > 1)}" if more > 0 else what
        yield from _names(named, room)

    return _fitted(parts, hidden)


def title_of_event(named: Named, what: str = "") -> str:
    """What names an event; `what` tells what it is, if it is not just an event.

    >>> title_of_event(Named((("ride", "a"), ("taxi", 7)))), title_of_event(Named((), 3), "deletion")
    ('ride a · taxi 7', 'deletion · 3 hidden fields')
    """
    return _fitted(lambda room: filter(None, (what, *_names(named, room))), named.hidden)


def title_of_swap(swap: Swap, named: Named) -> str:
    """What changed places, then what names both events. Numbers are shown with their field.

    >>> title_of_swap(Swap("ride", "a", "c", True), Named((("taxi", 7),)))
    'a before c → c before a · taxi 7'
    >>> title_of_swap(Swap("seq", 3, 5, False), Named())
    'seq 3 and 5'
    """

    def parts(room: int) -> Iterator[str]:
        one, other = (_cut(value_text(value), room) for value in (swap.earlier, swap.later))
        text = f"{one} before {other} → {other} before {one}" if swap.known else f"{one} and {other}"
        yield f"{swap.field} {text}" if swap.field and not isinstance(swap.earlier, str) else text
        yield from _names(named, room)

    return _fitted(parts, named.hidden)


def value_text(value: Any) -> str:
    """A value without quotes around a text, unless they are needed to see it.

    >>> [value_text(value) for value in ("ad-017", 7, None, "", "a ", ABSENT)]
    ['ad-017', '7', 'null', '""', '"a "', 'absent']
    """
    if value is ABSENT:
        return "absent"
    bare = isinstance(value, str) and value == value.strip() != ""
    return printable(value if bare else json_text(value))


def _changed(change: Change, room: int) -> str:
    name = printable(change.place)
    if not change.shown:
        return name or "the whole value"
    before, after = change.before, change.after
    alike = type(before) is type(after) or ABSENT in (before, after) or None in (before, after)
    texts = [value_text(value) if alike else printable(json_text(value)) for value in (before, after)]
    one, other = (_cut(text, room) for text in from_difference(*told_apart(*texts), room))
    return f"{name} {one} → {other}".strip()


def _names(named: Named, room: int) -> Iterator[str]:
    for field, value in named.fields:
        yield f"{printable(field)} {_cut(value_text(value), room)}".strip()


def _fitted(parts: Callable[[int], Iterable[str]], hidden: int) -> str:
    """The parts and the number of hidden fields, with values as long as there is room for."""
    end = f"{hidden:,} hidden field{'s' * (hidden != 1)}" if hidden else ""
    for room in _VALUE_LENGTHS:
        title = " · ".join(filter(None, (*parts(room), end)))
        if len(title) <= LONGEST:
            return title
    rest = f" · {end}" if end else ""
    return _cut(" · ".join(parts(_VALUE_LENGTHS[-1])), LONGEST - len(rest)) + rest


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"
