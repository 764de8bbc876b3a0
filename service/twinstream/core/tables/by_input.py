"""Settles keys by the clock of the input: both sides' rows speak of the same prefix of the input.

The argument. A version reads the input in batches. C(b) are the offsets, by input partition, below which it
has consumed all when batch b is finished; C never decreases. A row of key k that batch b wrote shows k after
C(b), and it stays valid until a newer row of k: batches that wrote no row of k did not change it. So if r is
the latest row of k of a side, written by batch b, and the side has finished a batch that consumed up to Q,
all of whose output was read, then r shows k after every prefix P with C(b) <= P <= Q.

Let r and s be the latest rows of k on both sides, and P the larger of their C in each input partition. If
both sides have finished a batch that consumed P or more, and everything they wrote until then was read
without a newer row of k, then r and s both show k after P. So they must be equal, and if they differ, that is
proven. A side without a pending row of k shows what its settled table holds (see `settled`): once it has
consumed C of the other side's row, the same holds for that.

**The batch of a row** is the first one that is reported as finished behind the row: its control record says
that all of its output stands below `written`. Rows come before their control records, and have no batch until
then. If a control record is lost, the row is given to a later batch. Nothing goes wrong: no newer row of k
came until then, so the row shows k after the later batch, too. The same holds for a batch that is written
again after a crash: its rows replace themselves, or say what the settled table says.

This takes that one query writes a side: of two, the record of one says nothing about rows of the other. A
second query is a hole.

**The limit.** A key of which a newer row comes before the other side has caught up stays pending. One that
changes in every batch may never be compared; it holds back the moment up to which all is verified.

Rows are asked for in groups: those of one batch have one C. A group *passes* when the other side has consumed
its C. A key is settled when its rows on both sides have passed. So the work is O(1) for each row and step.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Final

from twinstream.core.clocks.input import Effect, InputPartition, offsets_of, rows_of
from twinstream.core.events import OFFSET, PARTITION, Side, place_in_side
from twinstream.core.tables.declared import Step
from twinstream.core.tables.judging import judge, value_now
from twinstream.core.tables.rows import PendingRows, Row
from twinstream.core.tables.settled import ABSENT, Settled, Value

Consumed = Mapping[InputPartition, int]
PASSED: Final = "passed"
"""The stage of a row whose C the other side has consumed. Before, it is a group, or None without a batch."""
SLACK = 1000
"""The groups are rebuilt when they list twice as many rows as are pending, and so many more."""
ValueOf = Callable[[Row], Value]
_New = dict[int, OrderedDict[Hashable, Row]]
"""Rows that have no batch yet, by partition: the lowest offset first."""


class _Group:
    """The rows of one batch: the input consumed when it was finished, and the rows with their keys."""

    __slots__ = ("consumed", "rows")

    def __init__(self, consumed: Consumed) -> None:
        self.consumed = consumed
        self.rows: list[tuple[Hashable, Row]] = []

    def is_passed(self, by: Consumed) -> bool:
        """Whether a side that has consumed so much has consumed all that this batch shows.

        A side that has not said anything of an input partition yet may still write rows for its beginning.
        """
        return all(by.get(place, -1) >= offset for place, offset in self.consumed.items())


class ByInput:
    """Settles the pending `rows` of both sides. `value_of` is what the table of a row's side holds now."""

    def __init__(
        self, rows: tuple[PendingRows, PendingRows], settled: Settled, value_of: ValueOf,
        key_digest: Callable[[Hashable], bytes],
    ) -> None:  # fmt: skip
        self._rows, self._settled, self._value_of, self._digest = rows, settled, value_of, key_digest
        self._new: tuple[_New, _New] = ({}, {})
        self._groups: list[deque[_Group]] = [deque(), deque()]
        self._consumed: list[Consumed] = [{}, {}]
        self._listed = [0, 0]

    def came(self, side: Side, key: Hashable, row: Row) -> None:
        """Note a row that has just come; it has no batch yet. Complexity: O(1)."""
        new, partition = self._new[side], row.event[PARTITION]
        if row.last and (before := row.last[-1][0]) != partition and before in new:
            new[before].pop(key, None)  # The key is spread over two partitions.
        rows = new.setdefault(partition, OrderedDict())
        rows[key] = row
        rows.move_to_end(key)

    def finish(self, side: Side, effect: Effect, step: Step) -> None:
        """A side has finished a batch, and all it wrote until then was read.

        Complexity: O(p) in partitions, and O(1) for each row of the batch and each that passes.
        """
        group = _Group(effect.consumed)
        for key, row in self._written(side, effect.written):
            row.stage = group
            group.rows.append((key, row))
        if group.rows:
            self._groups[side].append(group)
            self._listed[side] += len(group.rows)
            if self._listed[side] > 2 * len(self._rows[side]) + SLACK:
                self._forget(side)
        self._consumed[side] = group.consumed
        for of in Side:
            self._pass(of, step)

    def _written(self, side: Side, ends: Mapping[int, int]) -> Iterator[tuple[Hashable, Row]]:
        """Take those of the rows without a batch that stand below the ends, by partition, of its output."""
        for partition, rows in self._new[side].items():
            end = ends.get(partition, 0)
            while rows and rows[key := next(iter(rows))].event[OFFSET] < end:
                yield key, rows.pop(key)

    def _pass(self, side: Side, step: Step) -> None:
        groups = self._groups[side]
        while groups and groups[0].is_passed(self._consumed[side.other]):
            group = groups.popleft()
            self._listed[side] -= len(group.rows)
            for key, row in group.rows:
                if row.stage is group:  # Else a newer row has replaced it.
                    row.stage = PASSED
                    self._settle(key, step)

    def _forget(self, side: Side) -> None:
        """Drop rows that newer ones have replaced, and groups without any other."""
        for group in self._groups[side]:
            group.rows = [(key, row) for key, row in group.rows if row.stage is group]
        self._groups[side] = deque(group for group in self._groups[side] if group.rows)
        self._listed[side] = sum(len(group.rows) for group in self._groups[side])

    def _settle(self, key: Hashable, step: Step) -> None:
        """Settle a key if all of its pending rows have passed."""
        found = {side: row for side in Side if (row := self._rows[side].get(key)) is not None}
        if not found or any(row.stage is not PASSED for row in found.values()):
            return
        name = self._digest(key)
        known = self._settled.get(name)
        for side in found:
            self._rows[side].pop(key)
        if known is None and len(found) == 1:
            for side, row in found.items():
                step.superseded[side].append(row.event)
                step.unclear.append((side, row.event))
            return
        values = {side: self._value_of(row) for side, row in found.items()}
        now = value_now(found, values, ABSENT if known is None else known)
        self._settled.put(name, now)
        judge(found, known, now, step)

    # -- state ---------------------------------------------------------------------------------------------

    def stage_of(self, side: Side) -> Callable[[Row], int]:
        """The stages of the rows of a side as numbers: that of a group is its place in `state`."""
        places = {id(group): n for n, group in enumerate(self._groups[side])}

        def number(row: Row) -> int:
            return places[id(row.stage)] if isinstance(row.stage, _Group) else _NUMBERS[row.stage]

        return number

    def state(self) -> list[Any]:
        """By side, the input consumed, and that of each group that has not passed, as plain data."""
        return [
            [rows_of(consumed), [rows_of(group.consumed) for group in groups]]
            for consumed, groups in zip(self._consumed, self._groups, strict=True)
        ]

    def restore(self, state: list[Any]) -> None:
        """Take over the `state`, without rows."""
        for side, (consumed, groups) in zip(Side, state, strict=True):
            self._consumed[side] = offsets_of(consumed)
            self._groups[side].extend(_Group(offsets_of(group)) for group in groups)

    def put_back(self, side: Side, rows: Iterable[tuple[Hashable, Row, int]]) -> None:
        """Take over restored rows of a side, each with its key and stage."""
        for key, row, stage in sorted(rows, key=lambda found: place_in_side(found[1].event)):
            if stage >= 0:
                row.stage = self._groups[side][stage]
                row.stage.rows.append((key, row))
                self._listed[side] += 1
            elif stage == _NUMBERS[PASSED]:
                row.stage = PASSED
            else:
                self.came(side, key, row)


_NUMBERS = {None: -1, PASSED: -2}
"""The stages that are no groups, as numbers."""
