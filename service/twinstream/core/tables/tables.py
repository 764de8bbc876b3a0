"""Folds the rows of both sides into tables, in front of matching.

A topic in update mode has rows that replace each other. How many there are, and what they say before the
last, depends on when a version triggers. So a row of each key waits, a newer one takes its place, and only
the row that is final goes to matching. When a row is final is declared (`SettledBy`):

- `barrier`: the side has written a barrier. The latest row of each key since the last one, then the barrier.
- `watermark`: the watermark of the side has passed the window of the key, by its control records (see
  `by_watermark`). A row of a later batch for such a window is a difference.
- `input`: both sides have consumed the same input (see `by_input`), or written whole tables (`snapshots`).

What is pending at the end of a side is final there.

A *deletion* is the last word on a key, too. A key that was deleted before it was ever settled was never in
the settled table: nothing is handed on. Else the deletion is compared like a row, as an event that stands for
it.

What is handed on is an ordinary event whose identity is its key. So if it differs it is `changed`, and if
only one side has the key it is `missing` or `extra`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from twinstream.core.clocks.input import Effect
from twinstream.core.events import (
    CONTENT,
    FORM,
    ROUTE,
    TIMESTAMP_MS,
    Canonical,
    Event,
    PartitionOffset,
    Side,
)
from twinstream.core.order import BARRIER, stable
from twinstream.core.tables.by_input import ByInput
from twinstream.core.tables.by_watermark import ByWatermark
from twinstream.core.tables.declared import Fold, SettledBy, Step
from twinstream.core.tables.rows import PendingRows, Row
from twinstream.core.tables.settled import SETTLED_LIMIT, UNKNOWN, Settled, Value, digest
from twinstream.core.tables.snapshots import Snapshots

SPREAD = "a key stands in two partitions of one side, so nobody knows which of its rows is the latest"
FORGOTTEN = (
    f"a key is deleted, and more than {SETTLED_LIMIT:,} other keys were settled since it may have been there"
)
UNCLEAR = (
    "a row has come on one side only, and its key is not among the last "
    f"{SETTLED_LIMIT:,} that were settled: it may say what the table held already"
)


class Tables:
    """The pending rows of one comparison. Each method that settles something returns a `Step`."""

    def __init__(self, fold: Fold, canonical: Canonical, settled: Settled | None = None) -> None:
        self._fold, self._canonical = fold, canonical
        self.rows = PendingRows(fold.key_of), PendingRows(fold.key_of)
        self._settled = Settled() if settled is None else settled
        self._by_input = ByInput(self.rows, self._settled, self._value, _digest_of)
        self._snapshots = Snapshots(self.rows, self._settled, self._value, _digest_of)
        self._by_watermark = ByWatermark(self.rows, fold.window_end_of, self._put, self._hand_on)

    # -- rows come -----------------------------------------------------------------------------------------

    def take(self, side: Side, events: Sequence[Event]) -> Step:
        """Take rows and barriers of a side. Complexity: O(1) a row, plus reading its key."""
        step, settled_by = Step(), self._fold.settled_by
        for event in events:
            if settled_by is SettledBy.BARRIER and event[FORM][ROUTE] is BARRIER:
                self._flush(side, step, event[TIMESTAMP_MS])
                step.ready[side].append(event)
            elif settled_by is SettledBy.WATERMARK:
                self._by_watermark.take(side, event, step)
            else:
                self._put(side, event, step)
        return step

    def _put(self, side: Side, event: Event, step: Step) -> Hashable:
        """Put a row in the place of the one before it; returns its key."""
        rows = self.rows[side]
        key = rows.key(event)
        replaced = rows.put(key, event)
        if replaced is not None:
            step.superseded[side].append(replaced)
        step.holes += ((side, one, SPREAD) for one in rows.spread)
        rows.spread.clear()
        row = rows.get(key)
        assert row is not None, "it was put there"
        if self._fold.settled_by is SettledBy.SNAPSHOT:
            self._snapshots.came(side, event)
        elif self._fold.settled_by is SettledBy.INPUT:
            self._by_input.came(side, key, row)
        return key

    # -- progress ------------------------------------------------------------------------------------------

    def finish(self, side: Side, effect: Effect) -> Step:
        """Note a batch that a side has finished; all of its output was read."""
        step = Step()
        if self._fold.settled_by is SettledBy.INPUT:
            self._by_input.finish(side, effect, step)
        elif self._fold.settled_by is SettledBy.SNAPSHOT:
            self._snapshots.finish(side, effect, step)
        elif self._fold.settled_by is SettledBy.WATERMARK:
            self._by_watermark.finish(side, effect, step)
        return step

    def flush(self, side: Side) -> Step:
        """Hand on all pending rows of a side, which has ended."""
        step = Step()
        if self._fold.settled_by is SettledBy.SNAPSHOT:
            self._snapshots.close(side, step)
        elif self._fold.settled_by is SettledBy.WATERMARK:
            self._by_watermark.flush(side, step)
        self._flush(side, step)
        return step

    def _flush(self, side: Side, step: Step, timestamp_ms: int | None = None) -> None:
        for key in self.rows[side].in_order():
            self._hand_on(side, key, self.rows[side].pop(key), step, timestamp_ms)

    def _hand_on(
        self, side: Side, key: Hashable, row: Row, step: Step, timestamp_ms: int | None = None
    ) -> None:
        """Hand on a row that is final on its side, unless it deletes what was never there."""
        if self._fold.settled_by is SettledBy.WATERMARK:
            there = False
        else:
            value = self._value(row)
            before = self._settled.put_side(_digest_of(key), side, value)
            if value is None and before == UNKNOWN:
                step.holes.append((side, row.event, FORGOTTEN))
            there = before is not None
        if self._fold.deletes(row.event[FORM][CONTENT]) and not there:
            step.superseded[side].append(row.event)
            return
        event = row.handed_on(timestamp_ms)
        if event is not row.event:
            step.renewed.append((side, row.event, event))
        step.ready[side].append(event)

    def _value(self, row: Row) -> Value:
        """The digest of what a table holds after a row; None after a deletion."""
        content = row.event[FORM][CONTENT]
        return None if self._fold.deletes(content) else digest(self._canonical(content))

    # -- reading -------------------------------------------------------------------------------------------

    def first_open(self, side: Side) -> dict[int, int]:
        """By partition, the offset of the first row of a side that is not settled."""
        return self.rows[side].first_open()

    def oldest_ms(self) -> int | None:
        """The time of the first row of both sides that is not settled."""
        times = [at for rows in self.rows if (at := rows.oldest_ms()) is not None]
        return min(times, default=None)

    def state(self, *, whole: bool) -> dict[str, Any]:
        """The state as plain data; unless `whole`, settled keys only as far as they have changed."""
        return {
            "rows": [self.rows[side].state(self._by_input.stage_of(side)) for side in Side],
            "batches": self._by_input.state(),
            "snapshots": self._snapshots.state(),
            "watermarks": self._by_watermark.state(),
            "settled": self._settled.state(whole=whole),
        }

    def restore(self, state: Mapping[str, Any], held: Sequence[Mapping[PartitionOffset, Event]]) -> None:
        """Take over the `state`; `held` are the unsettled events of each side, by place."""
        self._settled.restore(state["settled"])
        self._by_input.restore(state["batches"])
        self._snapshots.restore(state["snapshots"])
        self._by_watermark.restore(state["watermarks"])
        for side in Side:
            rows = self.rows[side].restore(state["rows"][side], held[side])
            if self._fold.settled_by is SettledBy.INPUT:
                self._by_input.put_back(side, rows)
            elif self._fold.settled_by is SettledBy.WATERMARK:
                self._by_watermark.put_back(side, rows)


def _digest_of(key: Hashable) -> bytes:
    return digest(stable(key))
