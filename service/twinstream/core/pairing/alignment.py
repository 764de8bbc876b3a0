"""Aligns two sequences that may still grow, by a longest common subsequence.

Both sequences are finite pieces of streams. While the streams go on, the alignment ends where one of the
pieces ends: the events of the other beyond that point may still get partners, and are left over as *tail*,
not as differences. Once the streams have ended, the pieces are aligned whole.

The algorithm is the greedy one of Myers ("An O(ND) Difference Algorithm and Its Variations", 1986, section
2), stopped as soon as a diagonal reaches the end of either sequence, or of both; of several that do, the one
with the most pairs is taken. Its cost is the product of the length and the number of differences, so a bound
on the differences is a bound on the work.

When the budget is used up, the copies of each value are paired in order, the first with the first, and a
longest increasing sequence of these pairs is taken. If no value occurs twice, that is a longest common
subsequence, too; else it is a possible explanation, not always the smallest: ``exhausted`` says so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Alignment(NamedTuple):
    """Pairs of positions of equal events, in increasing order, and the end of the alignment in each sequence.

    Positions below `left_end` and `right_end` that are in no pair are differences; those from there on are
    the tail. `exhausted`: the budget ended the search.
    """

    pairs: list[tuple[int, int]]
    left_end: int
    right_end: int
    exhausted: bool


def align(left: Sequence[object], right: Sequence[object], budget: int, *, whole: bool = False) -> Alignment:
    """Align two sequences with the fewest differences: the `whole` of them, or up to the end of one.

    `budget` is the most differences to search for, 0 or more.

    Complexity: O((n + d) * d) time and O(d * d) memory for d differences, d <= budget; O(n log n) more where
    the budget is used up.

    >>> align("axay", "xay", 10)
    Alignment(pairs=[(1, 0), (2, 1), (3, 2)], left_end=4, right_end=3, exhausted=False)
    >>> align("abcde", "b", 10)
    Alignment(pairs=[(1, 0)], left_end=2, right_end=1, exhausted=False)
    >>> align("abcde", "b", 10, whole=True)
    Alignment(pairs=[(1, 0)], left_end=5, right_end=1, exhausted=False)
    """
    furthest: dict[int, int] = {}
    history: list[dict[int, int]] = []
    arrived = (-1, 0, 0)
    for differences in range(budget + 1):
        history.append(furthest)
        reached: dict[int, int] = {}
        for diagonal in range(-differences, differences + 1, 2):
            x = _step(furthest, diagonal, differences)
            y = x - diagonal
            while x < len(left) and y < len(right) and left[x] == right[y]:
                x, y = x + 1, y + 1
            reached[diagonal] = x
            ends = (x == len(left)) + (y == len(right))
            if ends == 2 or (ends and not whole):
                arrived = max(arrived, (x + y, x, y))
        if arrived[0] >= 0:
            _, x, y = arrived
            return Alignment(_walk_back(history, x, y), x, y, exhausted=False)
        furthest = reached
    pairs = ascending(copies(left, right))
    if whole or not pairs:
        return Alignment(pairs, len(left), len(right), exhausted=True)
    return Alignment(pairs, pairs[-1][0] + 1, pairs[-1][1] + 1, exhausted=True)


def copies(left: Sequence[object], right: Sequence[object]) -> list[tuple[int, int]]:
    """The pairs of n-th copies of a value, as far as both sides have them, in the order of `left`."""
    places: defaultdict[object, deque[int]] = defaultdict(deque)
    for place, value in enumerate(right):
        places[value].append(place)
    return [(place, places[value].popleft()) for place, value in enumerate(left) if places.get(value)]


def ascending(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most of some pairs, which ascend in their first members, that ascend in both. O(n log n).

    A longest increasing subsequence by patience sorting: a pile's top ends the best sequence of that length.
    """
    tops: list[int] = []
    piles: list[tuple[int, int]] = []
    before: dict[tuple[int, int], tuple[int, int] | None] = {}
    for pair in pairs:
        pile = bisect_left(tops, pair[1])
        before[pair] = piles[pile - 1] if pile else None
        tops[pile : pile + 1] = [pair[1]]
        piles[pile : pile + 1] = [pair]
    found: list[tuple[int, int]] = []
    last = piles[-1] if piles else None
    while last is not None:
        found.append(last)
        last = before[last]
    return found[::-1]


def _step(furthest: dict[int, int], diagonal: int, differences: int) -> int:
    """The furthest start on `diagonal`: down from the one above, or right from the one below."""
    if differences == 0:
        return 0
    down = furthest.get(diagonal + 1, -1)
    right = furthest.get(diagonal - 1, -2) + 1
    return max(down, right)


def _walk_back(history: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    """Follow the path from (x, y) to the start, collecting the equal pairs.

    `history[d]` holds the furthest points reached with d - 1 differences.
    """
    pairs: list[tuple[int, int]] = []
    for differences in range(len(history) - 1, 0, -1):
        diagonal = x - y
        start = _step(history[differences], diagonal, differences)
        while x > start:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        if history[differences].get(diagonal + 1, -1) == start:
            y -= 1
        else:
            x -= 1
    while x > 0 and y > 0:
        x, y = x - 1, y - 1
        pairs.append((x, y))
    pairs.reverse()
    return pairs
