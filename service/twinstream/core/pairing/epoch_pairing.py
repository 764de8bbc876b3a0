"""Pairs two pieces with barriers: first the barriers of both sides, then the events between them.

Barriers cut a piece into epochs. Once the barriers are paired, the events between two such pairs are compared
by themselves; a barrier without a partner is a difference, and the epochs around it count as one. So one
barrier too many or too few shifts nothing behind it.

Barriers may be equal, so the events between them decide: of all ways to pair barriers in order the cheapest
is taken, where a barrier without a partner and an event without a partner in its epochs cost one each (the
barrier slightly more: an event that moved over a barrier is preferred to a barrier that moved over an event).
That is a shortest path, found by a best-first search: equal epochs cost nothing, so the work grows with the
differences and not with the epochs.

Three things limit the search. While sides are open, events behind the last pair may still find partners, so
only some of them have a cost: the path is the cheapest for the events so far, and more events may make
another one cheaper. Between two pairs at most `LONGEST_GAP` barriers of a side lack a partner. And above
`STEPS_LIMIT` or `WORK_LIMIT` barriers are paired by their own content alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import chain, count
from typing import NamedTuple

from twinstream.core.order import BARRIER
from twinstream.core.pairing.alignment import align
from twinstream.core.pairing.pieces import ALIGNMENT_BUDGET, Item, Items, Pairing

EVENT_COST, BARRIER_COST = 1000, 1001
LONGEST_GAP = 64
"""Barriers in a row that may lack a partner before the barriers are paired by their own content alone."""
STEPS_LIMIT = 2000
WORK_LIMIT = 1_000_000
"""Events that the search for the cheapest path may count: about half a second."""

Inside = Callable[[Items, Items, bool], Pairing]


class _Piece(NamedTuple):
    """The epochs of a side, and the barriers between them, one fewer."""

    epochs: list[list[Item]]
    barriers: list[Item]

    def stretch(self, start: int, end: int) -> list[Item]:
        """The events of the epochs from `start` below `end`."""
        return list(chain.from_iterable(self.epochs[start:end]))

    def size(self, start: int, end: int) -> int:
        return sum(map(len, self.epochs[start:end]))


def pair_epochs(inside: Inside, left: Items, right: Items, *, whole: bool) -> Pairing:
    """Pair two pieces with barriers; `inside` pairs the events between two barriers.

    Complexity: O(n) for equal pieces, more for each difference, bounded by `WORK_LIMIT`.
    """
    search = _Search(_cut(left), _cut(right), whole)
    return search.pairing(inside)


def _cut(items: Items) -> _Piece:
    piece = _Piece([[]], [])
    for item in items:
        if item.route is BARRIER:
            piece.barriers.append(item)
            piece.epochs.append([])
        else:
            piece.epochs[-1].append(item)
    return piece


EpochPlace = tuple[int, int]
"""The number of barriers of each side before a place."""


class _Search:
    def __init__(self, left: _Piece, right: _Piece, whole: bool) -> None:
        self.left, self.right, self.whole = left, right, whole
        self.end = (len(left.barriers), len(right.barriers))
        self._work = WORK_LIMIT

    # -- the cheapest path ---------------------------------------------------------------------------------

    def path(self) -> list[EpochPlace]:
        """The pairs of barriers on the cheapest path, each by the place behind it."""
        serial = count()
        heap: list[tuple[int, int, int, EpochPlace, EpochPlace | None, bool]] = [
            (0, 0, next(serial), (0, 0), None, True)
        ]
        came_from: dict[EpochPlace, EpochPlace | None] = {}
        for _ in range(STEPS_LIMIT):
            if not heap or self._work < 0:
                break
            cost, _, _, place, before, exact = heappop(heap)
            if place == _FINISH:
                assert before is not None
                return _way(came_from, before)
            if not exact:
                assert before is not None
                cost += self._difference(before, place) - self._at_least(before, place)
                heappush(heap, (cost, -sum(place), next(serial), place, before, True))
            elif place not in came_from:
                came_from[place] = before
                for step, following, known in self._steps(place):
                    heappush(heap, (cost + step, -sum(following), next(serial), following, place, known))
        return self._by_content()

    def _steps(self, place: EpochPlace) -> Iterator[tuple[int, EpochPlace, bool]]:
        """The next pairs of barriers with their cost, exact or a lower bound; and the step that ends here."""
        i, j = place
        if i < self.end[0] and j < self.end[1] and self._alike((i + 1, j + 1)):
            straight = self._difference(place, (i + 1, j + 1))
            yield straight, (i + 1, j + 1), True
            if not straight:
                return
        yield self._finish_cost(place), _FINISH, True
        for following in self._gaps(place):
            if self._alike(following):
                yield _skipped(place, following) + self._at_least(place, following), following, False

    def _gaps(self, place: EpochPlace) -> Iterator[EpochPlace]:
        i, j = place
        for gap in range(2, LONGEST_GAP + 1):
            for skip_left, skip_right in ((gap, 1), (1, gap), (gap, gap)):
                if i + skip_left <= self.end[0] and j + skip_right <= self.end[1]:
                    yield i + skip_left, j + skip_right

    def _alike(self, place: EpochPlace) -> bool:
        return self.left.barriers[place[0] - 1].letter == self.right.barriers[place[1] - 1].letter

    def _at_least(self, start: EpochPlace, end: EpochPlace) -> int:
        return EVENT_COST * abs(self.left.size(start[0], end[0]) - self.right.size(start[1], end[1]))

    def _difference(self, start: EpochPlace, end: EpochPlace) -> int:
        lacking, surplus = self._unlike(start, end)
        return EVENT_COST * (lacking + surplus)

    def _unlike(self, start: EpochPlace, end: EpochPlace) -> tuple[int, int]:
        """The number of events between two places that each side has more than the other."""
        left, right = (
            Counter(item.letter for item in piece.stretch(a, b))
            for piece, a, b in ((self.left, start[0], end[0]), (self.right, start[1], end[1]))
        )
        self._work -= left.total() + right.total()
        return (left - right).total(), (right - left).total()

    def _finish_cost(self, place: EpochPlace) -> int:
        """The cost of the rest behind the last pair of barriers."""
        ahead = self.end[0] - place[0], self.end[1] - place[1]
        if self.whole or all(ahead):
            following = (self.end[0] + 1, self.end[1] + 1)
            return BARRIER_COST * sum(ahead) + self._difference(place, following)
        lacking, surplus = self._unlike(place, (place[0] + 1, place[1] + 1))
        if ahead[0]:
            return EVENT_COST * surplus
        return EVENT_COST * (lacking if ahead[1] else min(lacking, surplus))

    def _by_content(self) -> list[EpochPlace]:
        letters = [[item.letter for item in piece.barriers] for piece in (self.left, self.right)]
        return [
            (i + 1, j + 1) for i, j in align(letters[0], letters[1], ALIGNMENT_BUDGET, whole=self.whole).pairs
        ]

    # -- the pairing along it ------------------------------------------------------------------------------

    def pairing(self, inside: Inside) -> Pairing:
        """The pairing along the cheapest path."""
        result = Pairing()
        place = (0, 0)
        for following in self.path():
            self._include_stretch(result, inside, place, following)
            place = following
        self._include_rest(result, inside, place)
        return result

    def _include_stretch(self, result: Pairing, inside: Inside, start: EpochPlace, end: EpochPlace) -> None:
        part = inside(self.left.stretch(start[0], end[0]), self.right.stretch(start[1], end[1]), True)
        *lost_left, barrier_left = self.left.barriers[start[0] : end[0]]
        *lost_right, barrier_right = self.right.barriers[start[1] : end[1]]
        part.left_rest += [item.place for item in lost_left]
        part.right_rest += [item.place for item in lost_right]
        if part.different:
            result.clean = result.epochs = 0
        else:
            result.clean += len(part.pairs)
            result.epochs += bool(part.pairs) and start != (0, 0)
        result.include(part)
        result.pairs.append((barrier_left.place, barrier_right.place))
        result.clean += 1

    def _include_rest(self, result: Pairing, inside: Inside, place: EpochPlace) -> None:
        """Include the events behind the last pair of barriers."""
        ahead = self.end[0] > place[0], self.end[1] > place[1]
        if self.whole or all(ahead):
            part = self._all_that_is_left(inside, place)
            clean = len(part.pairs)
        else:
            part = inside(self.left.epochs[place[0]], self.right.epochs[place[1]], False)
            clean = max(0, len(part.pairs) - 2 * min(len(part.left_tail), len(part.right_tail)))
            self._refuse_stragglers(part, ahead)
            part.left_tail += _places(self.left, place[0])
            part.right_tail += _places(self.right, place[1])
        if part.different:
            result.clean, result.epochs = part.clean, 0
        else:
            result.clean += clean
        result.include(part)

    @staticmethod
    def _refuse_stragglers(part: Pairing, ahead: tuple[bool, bool]) -> None:
        """Make differences of the tail of the side behind in an epoch that the other side is past."""
        if ahead[0] and part.right_tail:
            part.right_rest, part.right_tail, part.clean = part.right_rest + part.right_tail, [], 0
        if ahead[1] and part.left_tail:
            part.left_rest, part.left_tail, part.clean = part.left_rest + part.left_tail, [], 0

    def _all_that_is_left(self, inside: Inside, place: EpochPlace) -> Pairing:
        """The pairing of the rest as one epoch, without its barriers. The sides meet again behind these."""
        i, j = place
        part = inside(self.left.stretch(i, self.end[0] + 1), self.right.stretch(j, self.end[1] + 1), True)
        lost_left = [item.place for item in self.left.barriers[i:]]
        lost_right = [item.place for item in self.right.barriers[j:]]
        last_left, last_right = max(lost_left, default=-1), max(lost_right, default=-1)
        behind = sum(1 for left, right in part.pairs if left > last_left and right > last_right)
        part.clean = min(part.clean, behind)
        part.left_rest += lost_left
        part.right_rest += lost_right
        return part


_FINISH: EpochPlace = (-1, -1)


def _places(piece: _Piece, epoch: int) -> list[int]:
    """The places of all items behind an epoch."""
    behind = zip(piece.barriers[epoch:], piece.epochs[epoch + 1 :], strict=True)
    return [item.place for barrier, events in behind for item in (barrier, *events)]


def _skipped(start: EpochPlace, end: EpochPlace) -> int:
    return BARRIER_COST * (end[0] - start[0] + end[1] - start[1] - 2)


def _way(came_from: dict[EpochPlace, EpochPlace | None], place: EpochPlace) -> list[EpochPlace]:
    way = []
    at: EpochPlace | None = place
    while at is not None and at != (0, 0):
        way.append(at)
        at = came_from[at]
    return way[::-1]
