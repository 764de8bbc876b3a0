"""Whole runs: pairs equal runs of both sides as columns, without a step for each event.

Where both versions write the same events to a partition in the same order, a new run of one side equals the
oldest unmatched events of the other, one by one. So the run that comes first waits *ahead* of the index, as
columns: no event is made of it. If the other side brings the same contents, the `algorithm` pairs the first
with the first, the second with the second, and so on, provided that no lane of theirs has another unmatched
event: then each is minimal when its turn comes. So that is all that is checked.

Events that are ahead are unmatched, as those in the index are. They *enter* it, in their order, as soon as

- the other side brings something else in their partition;
- at a look or before a hole, the other side has unmatched events, too, which may be their partners;
- a clock judges events one by one, or a side ends.

A run waits ahead only if no lane of it has an unmatched event of the other side in the index. So no
difference within a partition is found later than it would be without.

Where runs differ, waiting is of no use, so it is left off for a while, longer each time.

Source: DiffStream (OOPSLA 2020), section 4.2, for equal beginnings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import compress, count
from operator import itemgetter, ne
from typing import NamedTuple

from twinstream.core.arrivals.ahead import RunsAhead
from twinstream.core.arrivals.run import Run
from twinstream.core.events import CONTENT, RECORD, ROUTE, Form, Side
from twinstream.core.matching.lanes import LanesIndex

LEAST = 8
"""The fewest events that begin to wait ahead: the index matches fewer as soon, and in less memory."""
LEAST_IN_THE_MEAN = 3
"""The fewest events a run, in the mean of a partition, that wait over a look: 196 bytes each, beyond their
forms, where the index takes 208, and fewer take more."""
MOST = 1 << 20
"""The most events of a side ahead: if the sides differ they enter the index at once, which takes seconds."""
MOST_OF_A_LOOK = 32_768
"""The same where all enter at each look, which then takes some tens of milliseconds."""
PIECE = 100
"""The events that enter at once where it is unknown how many of them have partners in the index."""
LONGEST_PAUSE = 1000


class Booking(NamedTuple):
    """What a comparison does with runs.

    `enter` lets a run into the index, `enter_seen` the oldest run ahead in a partition that was there at a
    look; both book it, and return the number of pairs. `pair` books a run of a side, and one of the other
    side that was ahead and equals it.
    """

    enter: Callable[[Side, Run], int]
    enter_seen: Callable[[Side, int], int]
    pair: Callable[[Side, Run, Run], None]


class WholeRuns:
    """The runs of both sides that are `ahead` of an index: at most about so many events of each."""

    def __init__(
        self, index: LanesIndex, ahead: tuple[RunsAhead, RunsAhead], booking: Booking, most: int = MOST
    ) -> None:
        self._index, self._ahead, self._booking, self._most = index, ahead, booking, most
        self._entered: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
        self._pause = self._left_alone = 0

    def known(self, side: Side, partition: int, records: Sequence[bytes | None]) -> list[Form | None] | None:
        """For new records of a side the forms of the events ahead with the same bytes; None if there is none.

        Complexity: about 40 ns each.
        """
        oldest = self._ahead[side.other].first(partition)
        if oldest is None or (first := oldest.forms[0][RECORD]) not in records:
            return None
        found: list[Form | None] = [None] * records.index(first)
        for run in self._ahead[side.other].runs(partition):
            faced = records[len(found) : len(found) + len(run.forms)]
            same = _equal(faced, list(map(_RECORD, run.forms[: len(faced)])))
            found += run.forms[:same]
            if same < len(run.forms):
                break
        return found + [None] * (len(records) - len(found))

    def feed(self, side: Side, run: Run) -> None:
        """Take a run of one side. Complexity: about 0.1 µs an event that is paired as one of a run."""
        if self._ahead[side.other].waiting(run.partition):
            run = self._meet(side, run)
        if run.forms:
            self._wait(side, run)

    def enter_side(self, side: Side, *, unsuited: bool = False) -> None:
        """Let all events of a side enter the index, or those that may not wait over a look."""
        ahead, partitions = self._ahead[side], self._ahead[side].partitions()
        if unsuited:
            partitions = [one for one in partitions if not ahead.suits(one, LEAST_IN_THE_MEAN)]
        if sum(self._enter_part(side, partition) for partition in partitions):
            self._leave_alone()  # They had partners in other partitions.

    def _first(self, side: Side, partition: int) -> Sequence[Form]:
        oldest = self._ahead[side].first(partition)
        return () if oldest is None else oldest.forms

    def _meet(self, side: Side, run: Run) -> Run:
        """Pair a run with those that are ahead in its partition; returns the rest of it, which faces none."""
        partition, ahead = run.partition, self._ahead[side.other]
        before = _place(self._first(side.other, partition)[0][CONTENT], run.forms)
        if before:
            if self._enter(side, run.first(before)) < before:
                return self._differ(side, run.behind(before))
            run = run.behind(before)
        while run.forms and (forms := self._first(side.other, partition)):
            same = _common(run.forms, forms)
            if same < min(len(run.forms), len(forms)) or not self._are_minimal(forms[:same]):
                return self._differ(side, run)
            self._booking.pair(side, run.first(same), ahead.take(partition, same))
            run = run.behind(same)
            self._pause = 0
        return run

    def _are_minimal(self, forms: Sequence[Form]) -> bool:
        return all(self._index.is_free(side, map(_ROUTE, forms)) for side in Side)

    def _differ(self, side: Side, run: Run) -> Run:
        """Let the events of the other side enter, since this run of a side differs from them; returns it."""
        self._leave_alone()
        self._enter_part(side.other, run.partition)
        return run

    def _leave_alone(self) -> None:
        self._left_alone = self._pause = min(2 * self._pause + 1, LONGEST_PAUSE)

    def _wait(self, side: Side, run: Run) -> None:
        """Let a run wait ahead, or enter if that is of no use."""
        if self._left_alone:
            self._left_alone -= 1
            self._enter_behind(side, run)
            return
        while run.forms and not self._index.is_free(side.other, map(_ROUTE, run.forms)):
            faced = self._entered[side.other][run.partition] - self._entered[side][run.partition]
            piece = faced if faced > 0 else PIECE
            self._enter_behind(side, run.first(piece))
            run = run.behind(piece)
        if not run.forms:
            return
        ahead = self._ahead[side]
        if len(ahead) >= self._most or (len(run.forms) < LEAST and not ahead.waiting(run.partition)):
            self._enter_behind(side, run)
        else:
            ahead.append(run)

    def _enter(self, side: Side, run: Run) -> int:
        self._entered[side][run.partition] += len(run.forms)
        return self._booking.enter(side, run)

    def _enter_behind(self, side: Side, run: Run) -> None:
        """Let a run enter behind the earlier ones of its partition."""
        self._enter_part(side, run.partition)
        self._enter(side, run)

    def _enter_part(self, side: Side, partition: int) -> int:
        """Let the events of a partition enter in their order; returns the number of pairs."""
        pairs = 0
        while self._ahead[side].waiting(partition):
            pairs += self._enter_oldest(side, partition)
        return pairs

    def _enter_oldest(self, side: Side, partition: int) -> int:
        """Let the oldest run of a partition enter; returns the number of pairs."""
        ahead = self._ahead[side]
        if ahead.is_new(partition):
            return self._enter(side, ahead.take(partition, len(self._first(side, partition))))
        self._entered[side][partition] += len(self._first(side, partition))
        return self._booking.enter_seen(side, partition)


def _place(content: bytes, forms: Sequence[Form]) -> int:
    """The index of the first form with this content; their number if there is none."""
    if forms[0][CONTENT] == content:
        return 0
    contents = list(map(_CONTENT, forms))
    return contents.index(content) if content in contents else len(contents)


def _common(one: Sequence[Form], other: Sequence[Form]) -> int:
    """The number of first forms with equal contents. Complexity: 5 ns for each that is the same object."""
    number = min(len(one), len(other))
    one, other = one[:number], other[:number]
    return number if one == other else _equal(list(map(_CONTENT, one)), list(map(_CONTENT, other)))


def _equal(one: Sequence[bytes | None], other: Sequence[bytes]) -> int:
    """The number of first texts that are equal. Complexity: about 20 ns each."""
    number = min(len(one), len(other))
    if one[:number] == other[:number]:
        return number
    return next(compress(count(), map(ne, one, other)), number)


_CONTENT = itemgetter(CONTENT)
_RECORD = itemgetter(RECORD)
_ROUTE = itemgetter(ROUTE)
