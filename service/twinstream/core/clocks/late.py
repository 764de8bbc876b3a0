"""The rows that each version dropped as late, by the input that it had consumed.

A query with state drops a row whose time its watermark has passed. That depends on how the watermark is
declared, and on the cut of the input into batches. So two versions that treat each row alike may still
differ. Then the counts of dropped rows show it: they differ at the same input.

A version counts by batches, and the batches of two versions end in different places. But where a count stays
the same from one place of the input to another, it holds anywhere between these: a *level* is such a stretch.
The counts of two versions are compared where levels overlap, that is, where both are known exactly: what each
has dropped between the first such place and the last. It is a hint at a cause and no proof of anything, so
whatever cannot be compared is left out: a run that begins anew begins without a past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from twinstream.core.clocks.input import DroppedRows, Finished, InputPartition, offsets_of, rows_of
from twinstream.core.events import Side

LEVELS_LIMIT = 32
"""Levels of a version that are kept; above it every second is dropped: counts are cumulative."""
MEMORY = 10_000
"""Batches after which a level is forgotten: what was dropped long ago is no cause of a difference now."""

Consumed = Mapping[InputPartition, int]
"""By input partition, the offset of the next record; a partition that is not named begins at 0."""


class DroppedUnevenly(NamedTuple):
    """The rows that the left and the right dropped as late of the same input.

    `input` has, for each input partition, its topic and number, the first offset and the one behind the last.
    """

    input: tuple[tuple[str, int, int, int], ...]
    left: int
    right: int


class _Level(NamedTuple):
    """A count that holds from one place of the input to another; `batch` is the last that told it."""

    rows: int
    first: Consumed
    last: Consumed
    batch: int

    def grows_to(self, late: DroppedRows) -> bool:
        """Whether a count may come after this one; one that changes has to be about further input."""
        behind = _at_least(late.consumed, self.last)
        return behind and (late.rows == self.rows or (late.rows > self.rows and late.consumed != self.last))


class LateCounts:
    """The counts of both versions.

    >>> counts = LateCounts()
    >>> def tell(side: Side, batch: int, rows: int) -> None:
    ...     late = DroppedRows(rows, 0, {("clicks", 0): 10 * batch})
    ...     counts.note(side, Finished("q", "r", batch, {}, None, {}, late=late))
    >>> for batch, rows in ((1, 0), (2, 3)):
    ...     tell(Side.LEFT, batch, rows)
    ...     tell(Side.RIGHT, batch, 0)
    >>> counts.uneven()
    DroppedUnevenly(input=(('clicks', 0, 10, 20),), left=3, right=0)
    """

    def __init__(self) -> None:
        self._sides = _Levels(), _Levels()

    def note(self, side: Side, fact: Finished) -> None:
        """Note a control record of a version. Complexity: O(p) in the input partitions."""
        self._sides[side].note(fact)

    def uneven(self) -> DroppedUnevenly | None:
        """What both dropped of the input that can be compared; None if it is the same, or none can be.

        Complexity: O(p · l²) in the input partitions and in the levels, which are few.
        """
        left, right = (side.levels for side in self._sides)
        begin, end = _overlap(left, right), _overlap(left[::-1], right[::-1])
        if begin is None or end is None:
            return None
        dropped = [last.rows - first.rows for first, last in zip(begin, end, strict=True)]
        if dropped[Side.LEFT] == dropped[Side.RIGHT]:
            return None
        since = _largest(begin[0].first, begin[1].first)
        until = _smallest(end[0].last, end[1].last)
        stretches = ((*place, since.get(place, 0), until[place]) for place in sorted(until))
        told = tuple(stretch for stretch in stretches if stretch[2] < stretch[3])
        return DroppedUnevenly(told, dropped[Side.LEFT], dropped[Side.RIGHT])

    def state(self) -> list[Any]:
        """The state as plain data."""
        return [side.state() for side in self._sides]

    def restore(self, state: list[Any]) -> None:
        """Take over the `state`."""
        for side, row in zip(self._sides, state, strict=True):
            side.restore(row)


class _Levels:
    """The levels of one version, in the order of the input.

    They are of one `series`: one run of one query, from the batch on at which it began to count. Two queries
    of a version take turns, so no level becomes longer than a place, and nothing is compared.
    """

    def __init__(self) -> None:
        self.series: tuple[str, str, int] | None = None
        self.levels: list[_Level] = []

    def note(self, fact: Finished) -> None:
        late = fact.late
        if late is None or not late.consumed or fact.written is None:
            return
        series = (fact.query, fact.run, late.since)
        if series != self.series or not self.levels[-1].grows_to(late):
            self.series, self.levels = series, []
        first = late.consumed
        if self.levels and self.levels[-1].rows == late.rows:
            first = self.levels.pop().first
        self.levels.append(_Level(late.rows, first, late.consumed, fact.batch))
        self.levels = [level for level in self.levels if level.batch > fact.batch - MEMORY]
        if len(self.levels) > LEVELS_LIMIT:
            del self.levels[1:-1:2]

    def state(self) -> list[Any]:
        levels = [[one.rows, rows_of(one.first), rows_of(one.last), one.batch] for one in self.levels]
        return [None if self.series is None else list(self.series), levels]

    def restore(self, state: list[Any]) -> None:
        series, levels = state
        self.series = None if series is None else tuple(series)
        self.levels = [
            _Level(rows, offsets_of(first), offsets_of(last), batch) for rows, first, last, batch in levels
        ]


def _overlap(left: Sequence[_Level], right: Sequence[_Level]) -> tuple[_Level, _Level] | None:
    """The first pair of levels that hold at the same input. There are at most `LEVELS_LIMIT` on each side."""
    return next((pair for pair in product(left, right) if _hold_together(*pair)), None)


def _hold_together(one: _Level, other: _Level) -> bool:
    return _at_least(one.last, other.first) and _at_least(other.last, one.first)


def _at_least(one: Consumed, other: Consumed) -> bool:
    return all(one.get(place, 0) >= offset for place, offset in other.items())


def _largest(one: Consumed, other: Consumed) -> dict[InputPartition, int]:
    return {place: max(one.get(place, 0), other.get(place, 0)) for place in one.keys() | other.keys()}


def _smallest(one: Consumed, other: Consumed) -> dict[InputPartition, int]:
    return {place: min(one[place], other[place]) for place in one.keys() & other.keys()}
