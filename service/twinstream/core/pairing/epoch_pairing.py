"""Pairs two pieces with barriers: first the barriers of both sides, then the events between them.

Barriers cut a piece into epochs. Once the barriers are paired, the events between two such pairs are compared
by themselves; a barrier without a partner is a difference, and the epochs around it count as one. So one
barrier too many or too few shifts nothing behind it.

Barriers may be equal, so the events between them decide: of all ways to pair barriers in order the cheapest
is taken, where a barrier without a partner and an event without a partner in its epochs cost one each (the
barrier slightly more: an event that moved over a barrier is preferred to a barrier that moved over an event).
That is a shortest path, found by a best-first search: equal epochs cost nothing, so the work grows with the
differences and not with the epochs.

Behind the last pair one side may be barriers ahead. Either these are still to come on the other side, whose
epoch then has no further events; or they have no partner, and the epoch goes on. The cheaper one is taken.

Three things limit the search. While sides are open, events behind the last pair may still find partners, so
only some of them have a cost: the path is the cheapest for the events so far, and more events may make
another one cheaper. Between two pairs at most `LONGEST_GAP` barriers of a side lack a partner; where both
sides have such barriers, and one has more, the next pair has the first of its form on one side. And above
`STEPS_LIMIT` or `WORK_LIMIT` barriers are paired by their own content alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import chain, count
from typing import NamedTuple

from twinstream.core.events import Letter, Side
from twinstream.core.order import BARRIER
from twinstream.core.pairing.alignment import align
from twinstream.core.pairing.pieces import ALIGNMENT_BUDGET, Item, Items, Pairing, count_behind

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
    return _Search((_cut(left), _cut(right)), whole).pairing(inside)


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
    def __init__(self, pieces: tuple[_Piece, _Piece], whole: bool) -> None:
        self.pieces, self.whole = pieces, whole
        self.end = len(pieces[0].barriers), len(pieces[1].barriers)
        self._work = WORK_LIMIT

    def _between(self, start: EpochPlace, end: EpochPlace) -> tuple[list[Item], list[Item]]:
        """The events of both sides in the epochs between two places."""
        left, right = self.pieces
        return left.stretch(start[0], end[0]), right.stretch(start[1], end[1])

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
        yield from self._uneven_gaps(place)

    def _uneven_gaps(self, place: EpochPlace) -> Iterator[EpochPlace]:
        """The gaps in which both sides have barriers without partners, and one side more of them.

        They end at the first barrier of a side that is equal to one of the other.
        """
        left, right = (
            [item.letter for item in piece.barriers[start : start + LONGEST_GAP]]
            for piece, start in zip(self.pieces, place, strict=True)
        )
        firsts = _first_places(left), _first_places(right)
        gaps = {(gap, firsts[1].get(letter, 1)) for gap, letter in enumerate(left, start=1)}
        gaps |= {(firsts[0].get(letter, 1), gap) for gap, letter in enumerate(right, start=1)}
        for skip_left, skip_right in sorted(gaps):
            if 1 < skip_left != skip_right > 1:
                yield place[0] + skip_left, place[1] + skip_right

    def _alike(self, place: EpochPlace) -> bool:
        left, right = self.pieces
        return left.barriers[place[0] - 1].letter == right.barriers[place[1] - 1].letter

    def _at_least(self, start: EpochPlace, end: EpochPlace) -> int:
        left, right = self.pieces
        return EVENT_COST * abs(left.size(start[0], end[0]) - right.size(start[1], end[1]))

    def _difference(self, start: EpochPlace, end: EpochPlace) -> int:
        lacking, surplus = self._unlike(start, end)
        return EVENT_COST * (lacking + surplus)

    def _unlike(self, start: EpochPlace, end: EpochPlace) -> tuple[int, int]:
        """The number of events between two places that each side has more than the other."""
        left, right = (Counter(item.letter for item in events) for events in self._between(start, end))
        self._work -= left.total() + right.total()
        return (left - right).total(), (right - left).total()

    def _finish_cost(self, place: EpochPlace) -> int:
        """The cost of the rest behind the last pair of barriers."""
        ahead = self._ahead(place)
        if self.whole or all(ahead):
            following = (self.end[0] + 1, self.end[1] + 1)
            return BARRIER_COST * sum(ahead) + self._difference(place, following)
        return min(self._awaiting_cost(place), self._surplus_cost(place))

    def _ahead(self, place: EpochPlace) -> tuple[int, int]:
        """The number of barriers of each side behind a place."""
        return self.end[0] - place[0], self.end[1] - place[1]

    def _awaiting_cost(self, place: EpochPlace) -> int:
        """The cost where the barriers that one side is ahead are still to come on the other."""
        ahead = self._ahead(place)
        lacking, surplus = self._unlike(place, (place[0] + 1, place[1] + 1))
        if ahead[0]:
            return EVENT_COST * surplus
        return EVENT_COST * (lacking if ahead[1] else min(lacking, surplus))

    def _surplus_cost(self, place: EpochPlace) -> int:
        """The cost where they have no partner, as if its epoch went on; the other side may still go on."""
        ahead = self._ahead(place)
        lacking, surplus = self._unlike(place, (self.end[0] + 1, self.end[1] + 1))
        return BARRIER_COST * sum(ahead) + EVENT_COST * (surplus if ahead[0] else lacking)

    def _by_content(self) -> list[EpochPlace]:
        left, right = ([item.letter for item in piece.barriers] for piece in self.pieces)
        return [(i + 1, j + 1) for i, j in align(left, right, ALIGNMENT_BUDGET, whole=self.whole).pairs]

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
        part = inside(*self._between(start, end), True)
        for side in Side:
            lost = self.pieces[side].barriers[start[side] : end[side] - 1]
            part.rest[side].extend(item.place for item in lost)
        if part.different:
            result.clean = result.epochs = 0
        else:
            result.clean += len(part.pairs)
            result.epochs += bool(part.pairs) and start != (0, 0)
        result.include(part)
        left, right = self.pieces
        result.pairs.append((left.barriers[end[0] - 1].place, right.barriers[end[1] - 1].place))
        result.clean += 1

    def _include_rest(self, result: Pairing, inside: Inside, place: EpochPlace) -> None:
        """Include the events behind the last pair of barriers."""
        ahead = self._ahead(place)
        closed = self.whole or all(ahead)
        if closed or (any(ahead) and self._surplus_cost(place) < self._awaiting_cost(place)):
            part = self._all_that_is_left(inside, place, whole=closed)
            clean = len(part.pairs)
        else:
            part = inside(*self._between(place, (place[0] + 1, place[1] + 1)), False)
            clean = max(0, len(part.pairs) - 2 * min(map(len, part.tail)))
            for side in Side:
                if ahead[side.other] and part.tail[side]:  # The other side is past these.
                    part.rest[side].extend(part.tail[side])
                    part.tail[side].clear()
                    part.clean = 0
                part.tail[side].extend(_places(self.pieces[side], place[side]))
        if part.different:
            result.clean, result.epochs = part.clean, 0
        else:
            result.clean += clean
        result.include(part)

    def _all_that_is_left(self, inside: Inside, place: EpochPlace, *, whole: bool) -> Pairing:
        """The pairing of the rest as one epoch, without its barriers. The sides meet again behind these."""
        part = inside(*self._between(place, (self.end[0] + 1, self.end[1] + 1)), whole)
        lost = [[item.place for item in self.pieces[side].barriers[place[side] :]] for side in Side]
        part.clean = min(part.clean, count_behind(part.pairs, lost))
        for side in Side:
            part.rest[side].extend(lost[side])
        return part


_FINISH: EpochPlace = (-1, -1)


def _places(piece: _Piece, epoch: int) -> list[int]:
    """The places of all items behind an epoch."""
    behind = zip(piece.barriers[epoch:], piece.epochs[epoch + 1 :], strict=True)
    return [item.place for barrier, events in behind for item in (barrier, *events)]


def _first_places(letters: list[Letter]) -> dict[Letter, int]:
    first: dict[Letter, int] = {}
    for place, letter in enumerate(letters, start=1):
        first.setdefault(letter, place)
    return first


def _skipped(start: EpochPlace, end: EpochPlace) -> int:
    return BARRIER_COST * (end[0] - start[0] + end[1] - start[1] - 2)


def _way(came_from: dict[EpochPlace, EpochPlace | None], place: EpochPlace) -> list[EpochPlace]:
    way = []
    at: EpochPlace | None = place
    while at is not None and at != (0, 0):
        way.append(at)
        at = came_from[at]
    return way[::-1]
