"""Resets: where a comparison may be asked to begin anew, and what is true of it from there on.

Only cuts are drawn that both sides share: what is written behind one on one side has its partners behind it
on the other. So the end of a comparison that was reset is that of one which has never begun elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import le
from typing import Any, Literal, NamedTuple

import orjson

from tests.simulation.beginnings import behind_the_input
from tests.simulation.comparisons import COPIED
from tests.simulation.inputs import Input
from tests.simulation.saying import Spoken, tells_all
from tests.simulation.scheduler import Scheduler
from tests.simulation.topics import Row
from twinstream.core.events import Side
from twinstream.explain.divergence import NAMES
from twinstream.spec.file.start import Start
from twinstream.spec.load import begun_at

Asked = dict[str, Any] | Literal["now"] | None
Sides = tuple[list[Row], list[Row]]


class Topics(NamedTuple):
    """What may be asked for of the topics: so many rows of each side are `written`.

    Where they do not `stay` one may be created anew, where they are not `whole` one may lose its beginning.
    """

    written: Sequence[int]
    stay: bool
    whole: bool


def start(scheduler: Scheduler, given: Input, topics: Topics) -> Asked:
    """A start to ask for."""
    found = scheduler.one_of([None, *_starts(scheduler, given, topics)])
    scheduler.note(f"a reset is asked for, to {found or 'the start of the file'}")
    return found


def _starts(scheduler: Scheduler, given: Input, topics: Topics) -> Iterator[Asked]:
    """Starts that can be asked for, and lie on a cut of both sides, or are refused.

    Where events of before are told by their times, or by what versions said, an offset is no cut. Where the
    clock is that of events, a partition may hold none behind an offset, and when an empty one is idle is a
    matter of the reader's time. And where several events of one form are within a tolerance, who is paired
    behind a cut depends on who was before it.
    """
    file, clock = given.spec.start.at, given.spec.overdue.clock
    refused = given.order in COPIED or given.spec.duplicates.policy == "replays"
    by_place = file in ("earliest", "barrier", "offsets") and clock != "event_time" and topics.stay
    by_place = by_place and not given.ambiguous
    if by_place or (refused and file == "earliest" and not given.ambiguous):
        yield "now"
    if by_place and not refused and file != "barrier":
        cuts = _drawn(scheduler, list(_places(given)), topics.written)
        yield from (_offsets(given, *places) for places in cuts)
    if file == "earliest":
        yield {"at": "earliest"}
    if file == "earliest" and topics.stay and topics.whole and given.order not in COPIED:
        yield from _told(scheduler, given)


def _told(scheduler: Scheduler, given: Input) -> Iterator[Asked]:
    """Starts that are told by what the records say."""
    if given.spec.overdue.clock != "event_time":
        yield {"at": "event_time", "field": "n", "from": scheduler.number(0, len(given.rows[0]))}
    if _first_barrier(given) is not None and not given.limited:
        yield {"at": "barrier"}
    if all(given.said) and all(map(_tells_all, given.rows, given.said)):
        yield {"at": "input"}


def _tells_all(rows: Sequence[Row], said: Sequence[Spoken]) -> bool:
    """Whether a version says all that it has consumed, and each of its events says of what it comes."""
    records = [row.record for row in rows]
    return all(record[:1] == b"{" for record in records) and tells_all(records, said)


def _drawn(
    scheduler: Scheduler, cuts: Sequence[tuple[int, int]], written: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Any of the cuts, and one that can be taken by now."""
    there = [cut for cut in cuts if all(map(le, cut, written))]
    for some in (cuts, there):
        if some:
            yield scheduler.one_of(some)


def _places(given: Input) -> Iterator[tuple[int, int]]:
    """How many rows of each side lie before a cut: both sides have the same before it, or behind it."""
    left, right = ([row.letter for row in rows] for rows in given.truth.rows)
    more = len(right) - len(left)
    for here, there in [(place, place) for place in range(min(len(left), len(right)) + 1)] + [
        (place, place + more) for place in range(max(0, -more), len(left) + 1) if more
    ]:
        before = Counter(left[:here]) == Counter(right[:there])
        if before or Counter(left[here:]) == Counter(right[there:]):
            yield here, there


def _offsets(given: Input, *places: int) -> dict[str, Any]:
    """The offsets behind so many rows of each side, which may not be written yet."""
    found: dict[str, Any] = {"at": "offsets"}
    for side in Side:
        least = getattr(given.spec.start, NAMES[side]) or {}
        offsets = {partition: least.get(partition, 0) for partition in range(given.partitions[side])}
        offsets.update({row.partition: row.offset + 1 for row in given.truth.rows[side][: places[side]]})
        found[NAMES[side]] = {str(partition): offset for partition, offset in offsets.items()}
    return found


def _first_barrier(given: Input) -> int | None:
    """The letter of the barrier with which a comparison begins that is told to begin with one."""
    order = given.order
    if not (isinstance(order, dict) and "barrier" in order):
        return None
    if any(fault.fault in ("reorder", "move", "duplicate") for fault in given.faults):
        return None
    left, right = (
        [row.letter for row in rows if row.letter is not None and b'"type":"e"' in row.record]
        for rows in given.truth.rows
    )
    if len(set(left)) < len(left):
        return None
    return next((letter for letter in left if letter in right), None)


def begun(given: Input, start: Mapping[str, Any]) -> Input:
    """The input of a comparison that begins at this start, as a reset records it."""
    if start == given.spec.start.as_written():
        return given
    spec = begun_at(given.spec, Start.model_validate(start))
    return replace(given, spec=spec, truth=given.truth.of(_compared(given, start)))


def _compared(given: Input, start: Mapping[str, Any]) -> Sides:
    """The rows that are compared; others are left out, or are no events."""
    rows = given.truth.rows
    if start["at"] == "offsets":
        left, right = (
            [row for row in rows[side] if row.offset >= start[NAMES[side]][str(row.partition)]]
            for side in Side
        )
        return left, right
    if start["at"] == "input":
        return behind_the_input(rows, given.said)
    if start["at"] == "barrier":
        return _from_letter(rows[0], _first_barrier(given)), _from_letter(rows[1], _first_barrier(given))
    assert start["at"] == "event_time", start
    first = start["from"]
    left, right = ([_unless_before(row, first) for row in rows[side]] for side in Side)
    return left, right


def _unless_before(row: Row, first: int) -> Row:
    if row.letter is None or orjson.loads(row.record)["n"] >= first:
        return row
    return row._replace(letter=None)


def _from_letter(rows: Sequence[Row], letter: int | None) -> list[Row]:
    first = [row.letter for row in rows].index(letter)
    return [row._replace(letter=None) for row in rows[:first]] + list(rows[first:])
