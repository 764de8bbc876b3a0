"""Events by time: finds the one that arrived first within a range of times.

The rules `within` and `before` need the smallest arrival number in a range of times. A sorted list can only
scan the range, which costs O(events in the range), and a wide range holds all events (measured in
docs/speed.md). So the times are kept in order in a tree of blocks, and each block knows its smallest number.
The answer is the minimum over the blocks that lie inside the range, which ``min`` takes over a list at the
speed of C, and over the two blocks at its ends, which are searched only if they hold a smaller number than
the one found so far.

It is a B-tree: a `_Leaf` has entries, a `_Node` children, `MOST` at most of either.

Rules of this file:

- Order is by time, then number. Numbers grow, so a new entry goes behind all entries of its time.
- The child at index i of a node holds the entries from bound i on and before bound i + 1; bounds stay
  when entries leave. The first bound counts as minus infinity. No child is empty.
- A block that is too long is cut in half, or at its end if it grew there: times that come sorted fill their
  blocks. Two neighbours that together need only half a block are joined.
- Times are only compared, so any exact number will do. With fractions an operation takes about five times as
  long as with integers.
- A single event is kept without a tree, in 130 bytes: there can be a `Times` for each key.

Source: Bayer, McCreight, "Organization and Maintenance of Large Ordered Indexes", Acta Informatica 1 (1972);
the minimum in each node is the augmentation of Cormen et al., "Introduction to Algorithms", chapter 14.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from twinstream.core.order import Time

E = TypeVar("E")

MOST = 64
"""The most entries of a leaf, and children of a node; 32 and 128 are as quick within a tenth."""
FEW = MOST // 4
"""A block with fewer than this tries to join a neighbour."""
NONE = sys.maxsize
"""Stands for no number; larger than all numbers."""


class Times(Generic[E]):
    """Events by time and arrival number, with the oldest event of a range, and deletion of any event.

    n is the number of events. Durations are for ten and for a million events at random integer times.

    >>> times = Times[str]()
    >>> for time, number, event in (10, 1, "a"), (20, 2, "b"), (15, 3, "c"):
    ...     times.add(time, number, event)
    >>> times.oldest(10, 21)
    (2, 'b')
    >>> times.discard(20, 2)
    True
    >>> times.oldest(10, None), times.oldest(None, None), times.oldest(15, 15)
    ((3, 'c'), (1, 'a'), None)
    """

    __slots__ = ("_events", "_only", "_root")

    def __init__(self) -> None:
        self._only: tuple[Time, int, E] | None = None
        self._root: _Leaf | _Node | None = None
        self._events: dict[int, E] = _NO_EVENTS

    def add(self, time: Time, number: int, event: E) -> None:
        """Add an event that arrived after all events added before: `number` is larger than theirs.

        Complexity: O(log n); 0.4 to 2 µs.
        """
        root = self._root
        if root is None:
            if self._only is None:
                self._only = (time, number, event)
                return
            first_time, first_number, first = self._only
            self._only, self._events = None, {first_number: first}
            root = self._root = _Leaf([first_time], [first_number])
        self._events[number] = event
        root.add(time, number)
        if len(root.times) > MOST:
            self._root = _Node([root.times[0]], [root.numbers[0]], [root])
            self._root.cut_child(0, number)

    def discard(self, time: Time, number: int) -> bool:
        """Delete the event of that number and time, if there is one; return whether any event is left.

        Complexity: O(log n); 0.4 to 4 µs.
        """
        root = self._root
        if root is None:
            if self._only is not None and self._only[1] == number:
                self._only = None
            return self._only is not None
        if self._events.pop(number, _GONE) is _GONE:
            return True
        if not self._events:
            self._root = None
            return False
        root.discard(time, number)
        while type(root) is _Node and len(root.children) == 1:
            root = self._root = root.children[0]
        return True

    def oldest(self, low: Time | None, high: Time | None) -> tuple[int, E] | None:
        """The event with the smallest number in ``low < time < high``; None stands for no bound.

        Complexity: O(log n), however wide the range; 0.7 to 2 µs, 6 where the range is not in cache.
        """
        if self._root is None:
            only = self._only
            if only is None or (low is not None and only[0] <= low) or (high is not None and only[0] >= high):
                return None
            return only[1:]
        number = self._root.oldest(low, high, NONE)
        return None if number == NONE else (number, self._events[number])

    def __len__(self) -> int:
        """The number of events. Complexity: O(1)."""
        return (self._only is not None) if self._root is None else len(self._events)

    def __iter__(self) -> Iterator[tuple[Time, int, E]]:
        """Time, number and event of each, by time; no event may come or go meanwhile. Complexity: O(n)."""
        if self._only is not None:
            yield self._only
        elif self._root is not None:
            for time, number in self._root.entries():
                yield time, number, self._events[number]


_NO_EVENTS: dict[int, Any] = {}
_GONE: Any = object()


class _Leaf:
    """A block of entries: times and numbers in two lists, and the smallest number."""

    __slots__ = ("least", "numbers", "times")

    def __init__(self, times: list[Time], numbers: list[int]) -> None:
        self.times = times
        self.numbers = numbers
        self.least = min(numbers)

    def add(self, time: Time, number: int) -> None:
        """Insert an entry whose number is larger than all others."""
        times = self.times
        if time >= times[-1]:
            times.append(time)
            self.numbers.append(number)
        else:
            place = bisect_right(times, time)
            times.insert(place, time)
            self.numbers.insert(place, number)

    def discard(self, time: Time, number: int) -> None:
        """Remove an entry."""
        place = bisect_left(self.times, time)
        if self.numbers[place] != number:
            place = bisect_left(self.numbers, number, place, bisect_right(self.times, time, place))
        del self.times[place], self.numbers[place]
        if number == self.least:
            self.least = min(self.numbers, default=NONE)

    def oldest(self, low: Time | None, high: Time | None, best: int) -> int:
        """The smallest number within the range, or `best` if that is smaller."""
        first = 0 if low is None else bisect_right(self.times, low)
        behind = len(self.times) if high is None else bisect_left(self.times, high, first)
        return min(best, min(self.numbers[first:behind], default=NONE))

    def cut(self, place: int) -> _Leaf:
        """Keep the entries before an index, and return the rest."""
        rest = _Leaf(self.times[place:], self.numbers[place:])
        del self.times[place:], self.numbers[place:]
        self.least = min(self.numbers)
        return rest

    def join(self, right: _Leaf) -> None:
        """Take over the entries of the right neighbour."""
        self.times += right.times
        self.numbers += right.numbers
        self.least = min(self.least, right.least)

    def entries(self) -> Iterator[tuple[Time, int]]:
        """Time and number of each, in order."""
        return zip(self.times, self.numbers, strict=True)


class _Node:
    """A block of children: the time and number at which each begins, and the smallest number in each."""

    __slots__ = ("children", "least", "leasts", "numbers", "times")

    def __init__(self, times: list[Time], numbers: list[int], children: list[Any]) -> None:
        self.times = times
        self.numbers = numbers
        self.children = children
        self.leasts = [child.least for child in children]
        self.least = min(self.leasts)

    def add(self, time: Time, number: int) -> None:
        """Insert an entry whose number is larger than all others."""
        index = bisect_right(self.times, time) - 1
        if index < 0:
            index = 0
            self.times[0] = time
            self.numbers[0] = number
        child = self.children[index]
        child.add(time, number)
        if len(child.times) > MOST:
            self.cut_child(index, number)

    def cut_child(self, index: int, added: int) -> None:
        """Divide a child that is too long: in half, or before the added number if that is at its end."""
        child = self.children[index]
        rest = child.cut(MOST if child.numbers[-1] == added else MOST // 2)
        self.leasts[index] = child.least
        behind = index + 1
        self.times.insert(behind, rest.times[0])
        self.numbers.insert(behind, rest.numbers[0])
        self.leasts.insert(behind, rest.least)
        self.children.insert(behind, rest)

    def discard(self, time: Time, number: int) -> None:
        """Remove an entry."""
        index = self._index(time, number)
        child = self.children[index]
        child.discard(time, number)
        length = len(child.times)
        if not length:
            self._drop(index)
        else:
            self.leasts[index] = child.least
            if length < FEW:
                self._join_child(index)
        if number == self.least:
            self.least = min(self.leasts, default=NONE)

    def _index(self, time: Time, number: int) -> int:
        """The index of the child that has an entry: the last one that begins at or before it."""
        times = self.times
        index = bisect_right(times, time) - 1
        if times[index] == time:
            index = bisect_right(self.numbers, number, bisect_left(times, time), index + 1) - 1
        return index

    def _drop(self, index: int) -> None:
        del self.times[index], self.numbers[index], self.leasts[index], self.children[index]

    def _join_child(self, index: int) -> None:
        """Join a short child with a neighbour, if together they need only half a block."""
        children = self.children
        for left, right in ((index, index + 1), (index - 1, index)):
            if left < 0 or right == len(children):
                continue
            if len(children[left].times) + len(children[right].times) <= MOST // 2:
                children[left].join(children[right])
                self.leasts[left] = children[left].least
                self._drop(right)
                return

    def oldest(self, low: Time | None, high: Time | None, best: int) -> int:
        """The smallest number within the range, or `best` if that is smaller."""
        children, leasts = self.children, self.leasts
        first = -1 if low is None else bisect_right(self.times, low) - 1
        last = len(children) if high is None else bisect_left(self.times, high) - 1
        if first >= last:
            inside = 0 <= first == last and leasts[first] < best
            return children[first].oldest(low, high, best) if inside else best
        if first + 1 < last:
            whole = min(leasts[first + 1 : last])
            best = min(best, whole)
        if first >= 0 and leasts[first] < best:
            best = children[first].oldest(low, None, best)
        if last < len(children) and leasts[last] < best:
            best = children[last].oldest(None, high, best)
        return best

    def cut(self, place: int) -> _Node:
        """Keep the children before an index, and return the rest."""
        rest = _Node(self.times[place:], self.numbers[place:], self.children[place:])
        del self.times[place:], self.numbers[place:], self.children[place:], self.leasts[place:]
        self.least = min(self.leasts)
        return rest

    def join(self, right: _Node) -> None:
        """Take over the children of the right neighbour."""
        self.times += right.times
        self.numbers += right.numbers
        self.children += right.children
        self.leasts += right.leasts
        self.least = min(self.least, right.least)

    def entries(self) -> Iterator[tuple[Time, int]]:
        """Time and number of each entry, in order."""
        for child in self.children:
            yield from child.entries()
