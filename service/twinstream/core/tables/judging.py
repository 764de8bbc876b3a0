"""Judges the rows of a key that is settled: equal, different, or nothing new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twinstream.core.diagnosis.findings import Finding, Kind
from twinstream.core.events import Side
from twinstream.core.tables.declared import Step
from twinstream.core.tables.rows import Row
from twinstream.core.tables.settled import ABSENT, Value, Values


def value_now(found: Mapping[Side, Row], values: Mapping[Side, Value], before: Values) -> Values:
    """What the tables hold of a key: the values of the rows that were found, else those from before."""
    left, right = (values[side] if side in found else before[side] for side in Side)
    return left, right


def judge(found: Mapping[Side, Row], known: Values | None, now: Values, step: Step) -> None:
    """Hand on the rows of a settled key: to matching, as a difference, or not, if they say nothing new.

    `known` are the values from before, None if nobody knows them; `now` those that both tables hold. What the
    tables hold names the difference, since the pace decides which of its rows are new.
    """
    equal = now[Side.LEFT] == now[Side.RIGHT]
    idle = _idle_in_equal(found, known, now) if equal else _idle_in_different(found, known, now)
    events = {}
    for side, row in found.items():
        if side in idle:
            step.superseded[side].append(row.event)
            continue
        event = events[side] = row.handed_on()
        if event is not row.event:
            step.renewed.append((side, row.event, event))
        if equal:
            step.ready[side].append(event)
    if events and not equal:
        kind = difference_of(now)
        step.differing.append(Finding(kind, events.get(Side.LEFT), events.get(Side.RIGHT), ()))


def difference_of(values: Values) -> Kind:
    """The kind of the difference of two tables that hold these values of a key."""
    left, right = values
    if left is None:
        return "extra"
    return "missing" if right is None else "changed"


def _idle_in_equal(found: Iterable[Side], known: Values | None, now: Values) -> list[Side]:
    """The sides whose row matches none, although the tables are equal now."""
    sides = list(found)
    gone = known is not None and any(now[side] is None and known[side] is None for side in sides)
    return sides if gone or len(sides) == 1 else []


def _idle_in_different(found: Iterable[Side], known: Values | None, now: Values) -> list[Side]:
    """The sides whose row tells nothing: the difference was told, or the other side's row tells it.

    So a deletion tells one only if the row that is left on the other side is not new.
    """
    sides = list(found)
    if now == (ABSENT if known is None else known):
        return sides
    deleted = [side for side in sides if now[side] is None]
    return deleted if len(deleted) < len(sides) else []
