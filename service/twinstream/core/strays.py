"""Strays: events that were settled without a partner, in case one turns up at another place.

An event that moved further than a scope reaches is settled as missing where it is lacking, and comes up as a
surplus elsewhere. Both are one difference: an event that changed places. So what was settled on one side is
remembered for a while, and a later leftover of the other side that equals it completes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from twinstream.core.events import Side

T = TypeVar("T")

STRAYS_LIMIT = 1000
"""Remembered on each side: enough for what moves, bounded in a flood."""
STRAYS_BYTES = 16 * 2**20
"""The same in bytes: 16 KB for each of them, so it bounds only what large records take."""


class Strays(Generic[T]):
    """The latest settled leftovers of both sides by canonical form, oldest first.

    Of each side so many that neither their number nor their bytes, as `weigh` tells, are above the limits.
    Complexity: O(1), but for `claim`, O(limit).
    """

    def __init__(
        self, weigh: Callable[[T], int], limit: int = STRAYS_LIMIT, limit_bytes: int = STRAYS_BYTES
    ) -> None:
        self._weigh, self._limit, self._limit_bytes = weigh, limit, limit_bytes
        self._bytes = [0, 0]
        self._waiting: tuple[dict[Hashable, deque[T]], dict[Hashable, deque[T]]] = ({}, {})
        self._order: tuple[deque[Hashable], deque[Hashable]] = (deque(), deque())
        self._changed = False

    def note(self, side: Side, letter: Hashable, stray: T) -> None:
        """Remember a leftover of a side."""
        self._changed = True
        self._waiting[side].setdefault(letter, deque()).append(stray)
        self._bytes[side] += self._weigh(stray)
        order = self._order[side]
        order.append(letter)
        while len(order) > self._limit or (order and self._bytes[side] > self._limit_bytes):
            self.claim(side, order[0])

    def claim(self, side: Side, letter: Hashable) -> T | None:
        """The oldest leftover of a side with this letter, which is then forgotten; None where none is."""
        strays = self._waiting[side].get(letter)
        if not strays:
            return None
        self._changed = True
        stray = strays.popleft()
        self._bytes[side] -= self._weigh(stray)
        if not strays:
            del self._waiting[side][letter]
        self._order[side].remove(letter)
        return stray

    def amend(self, known: Callable[[T], T]) -> None:
        """Replace each leftover by what is known of it by now. Complexity: O(limit)."""
        for strays in self._waiting:
            for letter, waiting in strays.items():
                strays[letter] = deque(map(known, waiting))
        self._changed = True

    def take_changed(self) -> bool:
        """Whether anything was noted or claimed since the last call."""
        changed, self._changed = self._changed, False
        return changed

    def all(self, side: Side) -> Iterable[T]:
        """What is remembered of a side, oldest first."""
        seen: dict[Hashable, int] = {}
        for letter in self._order[side]:
            yield self._waiting[side][letter][seen.get(letter, 0)]
            seen[letter] = seen.get(letter, 0) + 1
