"""Keeps suspicions while a side has unread records.

Among these may be the partner of any event that was read since, so nothing new is suspected then. But an
event that was overdue when both sides had been read to their ends is so until its partner comes. Otherwise
each burst, and each restart, would let a comparison pass for a moment in which nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from twinstream.core.accounting.unmatched import UnmatchedEvents
from twinstream.core.clocks.arrival import ArrivalClock

NOTHING = ((0, 0), (0, 0))
"""The state where nothing is suspected."""


class _AtEnds(NamedTuple):
    """The suspicions of a side when both were read to their ends, and its newest arrival then."""

    number: int = 0
    newest_ms: int = 0


class Suspected:
    """The suspicions of both sides when they were last read to their ends.

    Which events these are is not kept: the number bounds how many are left of all that had come by then.
    """

    def __init__(self, held: Sequence[UnmatchedEvents], arrival: ArrivalClock) -> None:
        self._held, self._arrival = held, arrival
        self._at_ends = [_AtEnds(), _AtEnds()]

    def note(self, numbers: Iterable[int]) -> None:
        """Note the suspicions of both sides, which are read to their ends."""
        newest = self._arrival.newest_ms
        self._at_ends = [_AtEnds(n, at or 0) for n, at in zip(numbers, newest, strict=True)]

    def left(self) -> list[int]:
        """By side, how many of those may be left.

        Complexity: as `UnmatchedEvents.until` where there were any.
        """
        sides = zip(self._held, self._at_ends, strict=True)
        return [min(number, held.until(newest)) if number else 0 for held, (number, newest) in sides]

    def state(self) -> list[list[int]]:
        """The state as plain data."""
        return list(map(list, self._at_ends))

    def restore(self, state: Iterable[Sequence[int]]) -> None:
        """Take over the `state`."""
        self._at_ends = [_AtEnds(*row) for row in state]


def joined(states: Sequence[Sequence[Sequence[int]]]) -> list[list[int]]:
    """The states of several shards as that of one comparison."""
    sides = zip(*states, strict=True)
    return [[sum(number for number, _ in rows), max(newest for _, newest in rows)] for rows in sides]
