"""What is true of both topics, by the definitions alone (`tests.support.oracle`, `tests.support.orders`)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence

from tests.simulation.topics import Row
from tests.support.oracle import PlainMatcher
from tests.support.orders import Event, Order, dependent
from twinstream.core.events import Side

Positions = Mapping[Side, Mapping[int, int]]


class Truth:
    """What is true of both topics, whatever any process says: read from the definitions."""

    def __init__(self, order: Order, events: Sequence[Event], rows: tuple[list[Row], list[Row]]) -> None:
        self._order, self._events, self.rows = order, events, rows
        self._dependent: dict[tuple[int, int], bool] = {}
        self._differ: dict[object, bool] = {}
        self._offsets = [
            {
                partition: [row.offset for row in side_rows if row.partition == partition]
                for partition in {row.partition for row in side_rows}
            }
            for side_rows in rows
        ]

    def of(self, rows: tuple[list[Row], list[Row]]) -> Truth:
        """What is true where these are the rows, of the same events."""
        return Truth(self._order, self._events, rows)

    def written(self, side: Side, positions: Mapping[int, int]) -> int:
        """How many records stand below these positions."""
        return sum(
            bisect_left(self._offsets[side].get(partition, []), offset)
            for partition, offset in positions.items()
        )

    def between(self, side: Side, partition: int, first: int, last: int) -> int:
        """How many records stand from one offset to another, both included."""
        return self.written(side, {partition: last + 1}) - self.written(side, {partition: first})

    def letters_below(self, side: Side, positions: Mapping[int, int]) -> Counter[int]:
        """The events below these positions."""
        return Counter(row.letter for row in self._below(side, positions) if row.letter is not None)

    def differ(self, positions: Positions) -> bool:
        """Whether what stands below these positions can never become equivalent, whatever follows."""
        key = tuple(tuple(sorted(positions[side].items())) for side in Side)
        if key not in self._differ:
            self._differ[key] = self._decide(*(self._below(side, positions[side]) for side in Side))
        return self._differ[key]

    def _below(self, side: Side, positions: Mapping[int, int]) -> list[Row]:
        return [row for row in self.rows[side] if row.offset < positions.get(row.partition, 0)]

    def _decide(self, left: Sequence[Row], right: Sequence[Row]) -> bool:
        matcher = PlainMatcher[int](self._depend, int.__eq__)
        for place in range(max(len(left), len(right))):
            for side, rows in enumerate((left, right)):
                if place < len(rows) and (letter := rows[place].letter) is not None:
                    matcher.feed(side, letter)
        return matcher.diverged

    def _depend(self, one: int, other: int) -> bool:
        key = (one, other)
        if key not in self._dependent:
            self._dependent[key] = dependent(self._order, self._events[one], self._events[other])
        return self._dependent[key]
