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
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

T = TypeVar("T")


def matching(left: Sequence[T], right: Sequence[T], equal: Callable[[T, T], bool]) -> list[tuple[int, int]]:
    """A largest matching of two lists, as index pairs in the order of the left; first come, first served.

    Complexity: O(n) calls of `equal` where the lists are equal, O(n²) at most; O(n³) steps.

    >>> matching([10, 10.6], [10.3, 9.6], lambda one, other: abs(one - other) <= 0.5)
    [(0, 1), (1, 0)]
    """
    fits = cache(lambda i, j: equal(left[i], right[j]))
    free = dict.fromkeys(range(len(right)))
    of_left: dict[int, int] = {}
    of_right: dict[int, int] = {}
    for start in range(len(left)):
        came_from: dict[int, int] = {}
        waiting = deque([start])
        while waiting and free:
            i = waiting.popleft()
            place = next((j for j in free if fits(i, j)), None)
            if place is None:
                reached = [j for j in of_right if j not in came_from and fits(i, j)]
                came_from.update(dict.fromkeys(reached, i))
                waiting.extend(of_right[j] for j in reached)
                continue
            # Pair along the path that ends at this free place.
            del free[place]
            came_from[place] = i
            while place is not None:
                i = came_from[place]
                left_behind = of_left.get(i)
                of_left[i], of_right[place] = place, i
                place = left_behind
            break
    return sorted(of_left.items())
