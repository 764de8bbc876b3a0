"""Settles keys by the watermark of their side: no row comes any more for a window that it has passed.

A version writes the rows of a batch, then its control record. The record says where its output ends, and the
watermark that had passed in the batches before. So in the order of the batches:

- the rows of a batch fold: each takes the place of the pending row of its key;
- then the windows close that the watermark had passed, and the pending row of each goes to matching.

A row of a later batch for a closed window is *late*: the version has broken what its watermark said. It must
not replace a row, since that was settled, right or wrong. And it must not be matched: an equal row of the
other side is overdue if it is not there yet, so the pace would decide. So a late row is a difference at once.

**The batch of a row** is the first one that is reported as finished behind the row. A row waits until that
record takes effect, and all rows of its key with it. So rows, records and their order decide what is settled;
how far a side was read when it was looked at does not. A lost record joins the rows of two batches.

**The limit.** At most `WAITING_LIMIT` rows of a partition wait; beyond, the first of them folds before its
batch is known. If an earlier batch turns out to have closed the window of its key, it may have replaced the
row that was the last one: a hole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any

from twinstream.core.clocks.event_time import TimeOf
from twinstream.core.clocks.input import Effect
from twinstream.core.diagnosis.findings import Finding
from twinstream.core.events import FORM, OFFSET, PARTITION, RECORD, Event, Side
from twinstream.core.tables.declared import Step
from twinstream.core.tables.rows import PendingRows, Row

WAITING_LIMIT = 100_000
"""Rows of a partition that wait for their batch."""
EARLY = (
    f"more than {WAITING_LIMIT:,} rows of a partition waited for the control record of their batch, and one "
    "of a closed window was among them, so nobody knows which row of its key was the last one"
)
Put = Callable[[Side, Event, Step], Hashable]
HandOn = Callable[[Side, Hashable, Row, Step], None]


class ByWatermark:
    """Settles the pending `rows` of both sides, whose windows end at `window_end_of` them.

    `put` puts an event in the place of the row of its key, and returns the key. `hand_on` takes a row that is
    final. A key is looked at when its first end has passed: its latest row may name a later one.
    """

    def __init__(
        self, rows: tuple[PendingRows, PendingRows], window_end_of: TimeOf | None, put: Put, hand_on: HandOn
    ) -> None:
        self._rows, self._window_end_of, self._put, self._hand_on = rows, window_end_of, put, hand_on
        self._ends: tuple[list[Any], list[Any]] = ([], [])
        self._serial = count()
        self._passed_ms: list[int | None] = [None, None]

    def take(self, side: Side, event: Event, step: Step) -> None:
        """Take a row, which waits for its batch."""
        rows = self._rows[side]
        rows.wait(event)
        if rows.waiting(event[PARTITION]) > WAITING_LIMIT:
            self._fold(side, [rows.take_first(event[PARTITION])], step)

    def finish(self, side: Side, effect: Effect, step: Step) -> None:
        """A side has finished a batch, and all it wrote until then was read.

        Complexity: O(log n) in the open windows for each row of the batch and each window that closes.
        """
        self._fold(side, self._rows[side].take_below(effect.written), step)
        if effect.passed_ms is not None:
            self._passed_ms[side] = effect.passed_ms
            self._close_windows(side, effect.passed_ms, effect.written, step)

    def flush(self, side: Side, step: Step) -> None:
        """A side has ended: no record of the batches of its last rows will come."""
        self._fold(side, self._rows[side].take_rest(), step)

    def _fold(self, side: Side, events: Iterable[Event], step: Step) -> None:
        passed_ms = self._passed_ms[side]
        for event in events:
            end_ms = self._end_of(event)
            if passed_ms is not None and end_ms <= passed_ms:
                step.differing.append(_late(side, event))
                continue
            key = self._put(side, event, step)
            row = self._rows[side].get(key)
            assert row is not None, "it was put there"
            if row.first_end_ms is None or end_ms < row.first_end_ms:
                self._await_end(side, end_ms, key, row)

    def _await_end(self, side: Side, end_ms: int, key: Hashable, row: Row) -> None:
        row.first_end_ms = end_ms
        heappush(self._ends[side], (end_ms, next(self._serial), key))

    def _end_of(self, event: Event) -> int:
        assert self._window_end_of is not None, "the watermark settles windows"
        end_ms = self._window_end_of(event[FORM][RECORD])
        assert end_ms is not None, "a row without one is no event"
        return end_ms

    def _close_windows(self, side: Side, passed_ms: int, written: Mapping[int, int], step: Step) -> None:
        rows, ends = self._rows[side], self._ends[side]
        while ends and ends[0][0] <= passed_ms:
            first, _, key = heappop(ends)
            row = rows.get(key)
            if row is None or row.first_end_ms != first:
                continue
            if row.event[OFFSET] >= written.get(row.event[PARTITION], math.inf):
                step.holes.append((side, row.event, EARLY))
            if (end_ms := self._end_of(row.event)) > passed_ms:
                self._await_end(side, end_ms, key, row)
            else:
                self._hand_on(side, key, rows.pop(key), step)

    # -- state ---------------------------------------------------------------------------------------------

    def state(self) -> list[int | None]:
        """By side, the watermark that has passed."""
        return list(self._passed_ms)

    def restore(self, state: Sequence[int | None]) -> None:
        """Take over the `state`, without rows."""
        self._passed_ms = list(state)

    def put_back(self, side: Side, rows: Iterable[tuple[Hashable, Row, int]]) -> None:
        """Take over restored rows of a side, each with its key."""
        for key, row, _ in rows:
            end_ms = self._end_of(row.event) if row.first_end_ms is None else row.first_end_ms
            self._await_end(side, end_ms, key, row)


def _late(side: Side, event: Event) -> Finding:
    """The difference that a late row is."""
    if side is Side.LEFT:
        return Finding("missing", event, None, ())
    return Finding("extra", None, event, ())
