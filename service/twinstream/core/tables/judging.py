"""Judges the rows of a key that is settled: equal, different, or nothing new."""

from __future__ import annotations

from collections.abc import Mapping

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

    `known` are the values from before, None if nobody knows them; `now` those that both tables hold.
    """
    before = ABSENT if known is None else known
    gone = [side for side in found if known is not None and now[side] is None and before[side] is None]
    equal = now[Side.LEFT] == now[Side.RIGHT]
    if (equal and (len(found) == 1 or gone)) or (now == before and not equal):
        gone = list(found)  # Equal tables, with no row for a row to match, or a difference that was told.
    for side, row in found.items():
        if side in gone:
            step.superseded[side].append(row.event)
            continue
        event = row.handed_on()
        if event is not row.event:
            step.renewed.append((side, row.event, event))
        (step.ready if equal else step.differing)[side].append(event)
