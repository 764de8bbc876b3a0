"""A largest matching: the most pairs of equal things where equality is not transitive.

Without a tolerance any two events of one form are equal, and counting gives the number of pairs. With one the
choice of partners matters. Take 10 and 10.6 on the left, 10.3 and 9.6 on the right, within 0.5: taking the
first that is close pairs 10 with 10.3, and leaves 10.6 and 9.6 over. But these do not differ: 10.6 can be
paired with 10.3, and 10 with 9.6.

Sources: C. Berge, "Two theorems in graph theory" (1957): a matching is a largest one where no path between
two that are left over augments it. H. W. Kuhn, "The Hungarian method for the assignment problem" (1955).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


def matching(left: Sequence[T], right: Sequence[T], equal: Callable[[T, T], bool]) -> list[tuple[int, int]]:
    """A largest matching of two lists, as index pairs in the order of the left; first come, first served.

    Complexity: O(n) calls of `equal` where the lists are equal, O(n²) at most; O(n³) steps.

    >>> matching([10, 10.6], [10.3, 9.6], lambda one, other: abs(one - other) <= 0.5)
    [(0, 1), (1, 0)]
    """
    return _Graph(left, right, equal).matching()


class _Graph(Generic[T]):
    """Two lists, and the pairs of their indices so far."""

    def __init__(self, left: Sequence[T], right: Sequence[T], equal: Callable[[T, T], bool]) -> None:
        self._left, self._right, self._equal = left, right, equal
        self._known: dict[tuple[int, int], bool] = {}
        self._free = dict.fromkeys(range(len(right)))
        self._of_left: dict[int, int] = {}
        self._of_right: dict[int, int] = {}

    def matching(self) -> list[tuple[int, int]]:
        for start in range(len(self._left)):
            self._find_place(start)
        return sorted(self._of_left.items())

    def _fits(self, i: int, j: int) -> bool:
        if (i, j) not in self._known:
            self._known[i, j] = self._equal(self._left[i], self._right[j])
        return self._known[i, j]

    def _find_place(self, start: int) -> None:
        """Pair one more item of the left, if others can make room for it."""
        came_from: dict[int, int] = {}
        waiting = deque([start])
        while waiting and self._free:
            i = waiting.popleft()
            free = next((j for j in self._free if self._fits(i, j)), None)
            if free is not None:
                came_from[free] = i
                self._shift(free, came_from)
                return
            for j, other in self._of_right.items():
                if j not in came_from and self._fits(i, j):
                    came_from[j] = i
                    waiting.append(other)

    def _shift(self, free: int, came_from: Mapping[int, int]) -> None:
        """Pair along the path that ends at a free index of the right."""
        del self._free[free]
        place: int | None = free
        while place is not None:
            i = came_from[place]
            left_behind = self._of_left.get(i)
            self._of_left[i], self._of_right[place] = place, i
            place = left_behind
