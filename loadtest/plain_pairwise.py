"""The matcher as the paper states it: three steps over two lists, each a scan. To compare ours with.

It knows no index: what two events are to each other it asks a function, pair by pair. So an event costs as
much as there are unmatched ones, and a matcher that is worth its code must not.

Source: DiffStream (OOPSLA 2020), section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Item(NamedTuple):
    """What a pairwise matcher reads of an event."""

    content: bytes
    kind: str
    key: int
    time: int


Dependent = Callable[[Item, Item], bool]


class Pairwise:
    """The unmatched events of both sides, in two lists.

    >>> one, another = Item(b"1", "ride", 7, 1), Item(b"2", "ride", 7, 2)
    >>> matcher = Pairwise(lambda one, another: one.key == another.key)
    >>> matcher.feed(0, one), matcher.feed(0, another), matcher.feed(1, one)
    (False, False, True)
    >>> matcher.unmatched
    ([Item(content=b'2', kind='ride', key=7, time=2)], [])
    """

    def __init__(self, dependent: Dependent) -> None:
        self._dependent = dependent
        self.unmatched: tuple[list[Item], list[Item]] = ([], [])
        self.diverged = False

    def feed(self, side: int, event: Item) -> bool:
        """Take an event of side 0 or 1; return whether it found its partner.

        Complexity: O(n) in the unmatched events, O(n²) where many unmatched ones equal it.
        """
        mine, theirs = self.unmatched[side], self.unmatched[1 - side]
        place = -1 if self._depends(mine, event) else self._partner(theirs, event)
        if place >= 0:
            del theirs[place]
            return True
        if self._depends(theirs, event):
            self.diverged = True
        else:
            mine.append(event)
        return False

    def _depends(self, events: list[Item], event: Item) -> bool:
        dependent = self._dependent
        for other in events:  # noqa: SIM110 - `any` over a generator takes a third longer
            if dependent(other, event):
                return True
        return False

    def _partner(self, theirs: list[Item], event: Item) -> int:
        """The place of the first minimal event that equals this one, -1 without one."""
        for place, other in enumerate(theirs):
            if other.content == event.content and not self._depends(theirs[:place], other):
                return place
        return -1
