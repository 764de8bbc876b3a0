"""Settles whole tables: in complete mode each batch writes all rows of its table.

The rows of batch b are the table after C(b), the input consumed when it was finished (see `by_input`). A key
that is not among them is not in the table. The next batch writes the table anew. So a table is known at one
moment, and those of both sides can be compared when the last finished batches of both have consumed the same
input, and no later batch has begun to write. Versions with different triggers come to that when they have
consumed all there is. Until then all is pending.

The batch of a row is told by its header, in the mark of the event: a key is missed only by who knows which
rows are those of the last batch. An empty table writes no row; it is told by the control record of a batch
that has consumed something.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from twinstream.core.clocks.input import Effect, offsets_of, rows_of
from twinstream.core.events import MARK, OFFSET, PARTITION, Event, Side
from twinstream.core.tables.by_input import Consumed, ValueOf
from twinstream.core.tables.declared import Step
from twinstream.core.tables.judging import judge, value_now
from twinstream.core.tables.rows import PendingRows, Row
from twinstream.core.tables.settled import ABSENT, Settled, Values

GONE = (
    "a table was written anew for the same input, without a key that both tables held: "
    "the row of the other side is not kept, so the difference cannot be shown"
)


class Snapshots:
    """Settles the pending `rows` of both sides, which are tables. See `ByInput` for the parameters.

    By side: the last batch of which rows have come, the input consumed, whether rows have come since the last
    comparison, and whether some are of a batch that is not finished.
    """

    def __init__(
        self,
        rows: tuple[PendingRows, PendingRows],
        settled: Settled,
        value_of: ValueOf,
        key_digest: Callable[[Hashable], bytes],
    ) -> None:
        self._rows, self._settled, self._value_of, self._digest = rows, settled, value_of, key_digest
        self._batch = [-1, -1]
        self._consumed: list[Consumed] = [{}, {}]
        self._fresh = [False, False]
        self._writing = [False, False]

    def came(self, side: Side, event: Event) -> None:
        """Note a row that comes. Partitions are read apart, so batches may come in any order."""
        self._batch[side] = max(self._batch[side], event[MARK])
        self._fresh[side] = self._writing[side] = True

    def close(self, side: Side, step: Step) -> None:
        """Drop the rows of batches before the last one: their keys are not in the table any more.

        All rows of the last one have come. Complexity: O(n log n) in the rows.
        """
        rows = self._rows[side]
        for key in rows.in_order():
            row = rows.get(key)
            if row is not None and row.event[MARK] < self._batch[side]:
                step.superseded[side].append(rows.pop(key).event)

    def finish(self, side: Side, effect: Effect, step: Step) -> None:
        """A side has finished a batch, and all it wrote until then was read.

        Complexity: O(n log n) in the rows of both tables.
        """
        written = effect.written
        self._writing[side] = any(
            event[OFFSET] >= written.get(event[PARTITION], 0) for event in self._rows[side]
        )
        if effect.consumed != self._consumed[side] and effect.batch > self._batch[side]:
            # It has consumed something and written no row: the table is empty.
            self._batch[side], self._fresh[side] = effect.batch, True
        self._consumed[side] = effect.consumed
        if not self._writing[side]:
            self.close(side, step)
        left, right = self._consumed
        if left and left == right and any(self._fresh) and not any(self._writing):
            self._settle(step)

    def _settle(self, step: Step) -> None:
        """Compare both tables. One that was not written anew is what it was."""
        tables = [{key: rows.pop(key) for key in rows.in_order()} for rows in self._rows]
        if all(self._fresh):
            self._settled.forget({self._digest(key) for table in tables for key in table})
        for key in dict.fromkeys([*tables[0], *tables[1]]):
            found = {side: tables[side][key] for side in Side if key in tables[side]}
            known = self._settled.get(self._digest(key))
            lacking = [side for side in Side if side not in found and not self._fresh[side]]
            if known is None and lacking:
                for side, row in found.items():
                    step.superseded[side].append(row.event)
                    step.unclear.append((side, row.event))
                continue
            values = {side: self._value_of(row) for side, row in found.items()}
            now = value_now(found, values, self._before(known))
            self._settled.put(self._digest(key), now)
            judge(found, known, now, step)
        if not all(self._fresh):
            self._miss(Side.LEFT if self._fresh[Side.LEFT] else Side.RIGHT, tables, step)
        self._fresh = [False, False]

    def _miss(self, side: Side, tables: Sequence[Mapping[Hashable, Row]], step: Step) -> None:
        """Note that a table, written anew alone, lacks a key; no row waits that could be told as missing."""
        there = {self._digest(key) for table in tables for key in table}
        if self._settled.has_equal(there):
            step.holes.append((side, next(iter(tables[side].values())).event, GONE))

    def _before(self, known: Values | None) -> Values:
        """What the tables hold of a key without a row: nothing, where the table was written anew."""
        left, right = known or ABSENT
        return None if self._fresh[Side.LEFT] else left, None if self._fresh[Side.RIGHT] else right

    def state(self) -> list[Any]:
        """The state as plain data."""
        consumed = list(map(rows_of, self._consumed))
        return [list(self._batch), consumed, list(self._fresh), list(self._writing)]

    def restore(self, state: list[Any]) -> None:
        """Take over the `state`."""
        batch, consumed, fresh, writing = state
        self._batch, self._consumed = list(batch), list(map(offsets_of, consumed))
        self._fresh, self._writing = list(fresh), list(writing)
