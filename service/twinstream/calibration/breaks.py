"""Finds the fewest events that changed places between two runs against an order.

In a sequence, the events of the longest increasing subsequence kept their order; the others have moved. So
one late event counts as one, not as all that overtook it. With barriers, an event that changed epochs has
moved. Rules and functions only say of two events whether they may change places; there the events common to
most of the broken pairs have moved.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from twinstream.core.events import Form
from twinstream.core.order import BARRIER, Branches, Epochs, Keyed, Lanes, Order, dependent

MOST_PASSED = 32
"""Dependence is asked for at most so many of the events that an event has overtaken."""


class Broken(NamedTuple):
    """Two dependent events that changed places, by number: the one that moved, and one that it passed."""

    moved: int
    passed: int


Reached = Sequence[tuple[int, Any]]
"""The events that reach a node of an order, by number, with their routes."""


def broken(order: Order, forms: Sequence[Form], places: Sequence[int]) -> list[Broken]:
    """The events that moved against an order; `places` are those of the partners, event by event."""
    return list(_Breaks(forms, places).of(order, [(number, form[0]) for number, form in enumerate(forms)]))


def out_of_sequence(numbers: Sequence[int], places: Sequence[int]) -> Iterator[Broken]:
    """The fewest events whose removal leaves the others in one sequence. O(n log n)."""
    kept = _longest(numbers, places)
    if len(kept) == len(numbers):
        return
    stays = set(kept)
    for number in numbers:
        if number not in stays:
            at = bisect_left(kept, number)
            before = kept[at - 1] if at and places[kept[at - 1]] > places[number] else None
            yield Broken(number, kept[at] if before is None else before)


def _longest(numbers: Sequence[int], places: Sequence[int]) -> list[int]:
    """The longest subsequence of numbers whose places ascend."""
    ends: list[int] = []
    tails: list[int] = []
    before: dict[int, int | None] = {}
    for number in numbers:
        at = bisect_left(ends, places[number])
        before[number] = tails[at - 1] if at else None
        ends[at:at + 1], tails[at:at + 1] = [places[number]], [number]  # fmt: skip
    found: list[int] = []
    last = tails[-1] if tails else None
    while last is not None:
        found.append(last)
        last = before[last]
    return found[::-1]


class _Breaks:
    def __init__(self, forms: Sequence[Form], places: Sequence[int]) -> None:
        self._forms, self._places = forms, places

    def of(self, order: Order, reached: Reached) -> Iterator[Broken]:
        match order:
            case Lanes():
                lanes = _divided((route, number) for number, route in reached if type(route) is not bytes)
                for numbers in lanes.values():
                    yield from out_of_sequence(numbers, self._places)
            case Keyed() | Branches():
                for own, part in _divided((route[0], (n, route[1])) for n, route in reached).items():
                    inner = order.inner if isinstance(order, Keyed) else order.orders[own]
                    yield from self.of(inner, part)
            case Epochs(inner, copies=True):  # each partition counts its own barriers, and no event tells its
                yield from self.of(inner, [one for one in reached if one[1] is not BARRIER])
            case Epochs(inner):
                yield from self._epochs(inner, reached)
            case _:
                yield from self._overtaken(order, [number for number, _ in reached])

    def _epochs(self, inner: Order, reached: Reached) -> Iterator[Broken]:
        barriers = [number for number, route in reached if route is BARRIER]
        yield from out_of_sequence(barriers, self._places)
        kept = _longest(barriers, self._places)
        ends = [self._places[number] for number in kept]
        stays = []
        for number, route in reached:
            if route is not BARRIER:
                epoch, other = bisect_left(kept, number), bisect_left(ends, self._places[number])
                if epoch == other:
                    stays.append((epoch, (number, route)))
                else:
                    yield Broken(number, kept[min(epoch, other)])
        for part in _divided(stays).values():
            yield from self.of(inner, part)

    def _overtaken(self, order: Order, numbers: Sequence[int]) -> Iterator[Broken]:
        """Events that cover all broken pairs, each time the one in most of them. Asks for O(n) pairs."""
        pairs: defaultdict[int, set[int]] = defaultdict(set)
        for later, earlier in self._passing(numbers):
            if dependent(order, self._forms[earlier], self._forms[later]):
                pairs[later].add(earlier)
                pairs[earlier].add(later)
        most = [(-len(others), number) for number, others in pairs.items()]
        heapify(most)
        while most:
            count, number = heappop(most)
            others = pairs[number]
            if len(others) != -count:
                heappush(most, (-len(others), number))
            elif others:
                yield Broken(number, min(others))
                for other in pairs.pop(number):
                    pairs[other].discard(number)

    def _passing(self, numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Pairs of an event and an earlier one that it overtook: the nearest and the farthest."""
        waiting: list[int] = []
        seen = 0
        place_of = {number: at for at, number in enumerate(numbers)}
        for number in sorted(numbers, key=lambda number: self._places[number]):
            at = place_of[number]
            for late in numbers[seen:at]:
                insort(waiting, late)
            if at < seen:
                waiting.pop(bisect_left(waiting, number))
            seen = max(seen, at + 1)
            end, half = bisect_left(waiting, number), MOST_PASSED // 2
            passed = {*waiting[: min(half, end)], *waiting[max(0, end - half) : end]}
            yield from ((number, late) for late in passed)


def _divided(pairs: Any) -> dict[Any, list[Any]]:
    found: defaultdict[Any, list[Any]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found
