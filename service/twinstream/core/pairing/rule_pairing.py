"""Pairs two pieces under rules, or under a function: a common subsequence, completed.

First the longest common prefix of both pieces, as traces, is paired: it is unique, and includes all events
matched before the difference was seen. So it does not matter how many of these the pieces hold. Behind it a
longest common subsequence contradicts no order. It lacks independent events that changed places, so it is
completed: an unpaired event and an equal unpaired one of the other side are paired if that reverses no
dependent pair between them. And a pair that is in the way of several is given up for them: an event that
moved over many is one difference. The events then left over on both sides have really moved: within
`WORK_LIMIT`, no two equal ones of them could be paired as well.

Equal events are interchangeable, so the copies of a letter are always paired in order, the first with the
first; a further pair shifts those between its two places by one. If any way to pair copies contradicts
nothing, nor does this one: it only requires equal numbers of each dependent letter before an event and before
its partner.

While the streams go on, an unpaired event is a difference only if the other side is past it: if a dependent
event that came later is paired. (Or if it is left over on both sides.)

The least number of unpaired events is hard to find for an arbitrary relation; this finds a small number, and
never too few: without the unpaired events both pieces are one trace.
"""

from __future__ import annotations

from bisect import bisect, bisect_left, insort
from collections import Counter, deque
from collections.abc import Iterable, Sequence

from twinstream.core.events import Letter, Side
from twinstream.core.pairing.alignment import align
from twinstream.core.pairing.pieces import ALIGNMENT_BUDGET, Items, Pairing, Related, count_behind

WORK_LIMIT = 2_000_000
"""Letters that may be counted, and copies shifted, to complete a common subsequence: about a second."""

BEGINNING_LIMIT = 20_000
"""Pairs of letters that may be compared to find the common prefix of two pieces: about 20 ms."""

Occurrences = tuple[list[int], list[int]]
"""The places of paired equal events on both sides, in order: the n-th of both sides are a pair."""


def pair_related(left: Items, right: Items, related: Related, *, whole: bool) -> Pairing:
    """Pair two pieces under an arbitrary dependence.

    Complexity: O(n d) for n events and d differences or swaps of independent events, bounded by `WORK_LIMIT`.
    """
    return _Completion(left, right, related).pairing(whole=whole)


class _Completion:
    def __init__(self, left: Items, right: Items, related: Related) -> None:
        self.left, self.right = left, right
        self._places = ([item.place for item in left], [item.place for item in right])
        self._related = related
        self._work = WORK_LIMIT
        self._kept: dict[Letter, Occurrences] = {}
        rest = self._begin()
        pieces = zip((left, right), rest, strict=True)
        letters = [[piece[n].letter for n in places] for piece, places in pieces]
        for i, j in align(letters[0], letters[1], ALIGNMENT_BUDGET, whole=True).pairs:
            self._keep(rest[0][i], rest[1][j])

    def _begin(self) -> Occurrences:
        """Pair the longest common prefix; return the events behind it on either side.

        An event belongs to the prefix if, on both sides, it depends on no earlier event outside the prefix.
        Its pair then spoils no pairing: it is independent of the events that it crosses.
        """
        behind: list[int] = []
        open_on_the_right = list(range(len(self.right)))
        copies: dict[Letter, deque[int]] = {}
        for j, item in enumerate(self.right):
            copies.setdefault(item.letter, deque()).append(j)
        work = BEGINNING_LIMIT
        for i, item in enumerate(self.left):
            theirs = copies.get(item.letter)
            if not theirs or work <= 0 or any(self._depends(Side.LEFT, i, n) for n in behind):
                behind.append(i)
                work -= len(behind)
                continue
            j = theirs[0]
            before = open_on_the_right[: bisect_left(open_on_the_right, j)]
            work -= 1 + len(behind) + len(before)
            if any(self._depends(Side.RIGHT, j, n) for n in before):
                behind.append(i)
                continue
            theirs.popleft()
            del open_on_the_right[len(before)]
            self._keep(i, j)
        return behind, open_on_the_right

    def pairing(self, *, whole: bool) -> Pairing:
        moved = self._complete()
        paired = {i for i, _ in self.pairs}, {j for _, j in self.pairs}
        loose = [
            [n for n in range(len(piece)) if n not in paired[s]]
            for s, piece in enumerate((self.left, self.right))
        ]
        rest = [
            [n for n in loose[side] if whole or n in moved[side] or self._passed(side, n)] for side in Side
        ]
        clean = count_behind(self.pairs, rest)
        if not whole and not any(rest):
            # The oldest unpaired event is the difference of the scope until more is known.
            rest, clean = [loose[0][:1], [] if loose[0] else loose[1][:1]], 0
        gone = list(map(set, rest))
        tails = [[n for n in places if n not in one] for places, one in zip(loose, gone, strict=True)]
        return Pairing(
            [(self.left[i].place, self.right[j].place) for i, j in self.pairs],
            rest=(self._named(Side.LEFT, rest[0]), self._named(Side.RIGHT, rest[1])),
            tail=(self._named(Side.LEFT, tails[0]), self._named(Side.RIGHT, tails[1])),
            clean=clean,
        )

    def _named(self, side: Side, numbers: Iterable[int]) -> list[int]:
        return [self._places[side][n] for n in numbers]

    def _complete(self) -> tuple[set[int], set[int]]:
        """Pair all events that fit; return the events still left over on both sides.

        A pair may make room for others, so events left over are tried again until no more fit.
        """
        moved = self._fill()
        while moved and self._exchange(moved):
            moved = self._fill()
        return {i for i, _ in moved}, {j for _, j in moved}

    def _fill(self) -> list[tuple[int, int]]:
        """Pair all further events that fit; return the pairs of equal events left over on both sides."""
        waiting, loose = self._unpaired()
        tried = len(loose) + 1
        while len(loose) < tried:
            tried = len(loose)
            loose = [j for j in loose if self._finds_partner(waiting[self.right[j].letter], j) is None]
        self.pairs = sorted(pair for copies in self._kept.values() for pair in zip(*copies, strict=True))
        left_over: dict[Letter, list[int]] = {}
        for j in loose:
            left_over.setdefault(self.right[j].letter, []).append(j)
        return [
            (i, j)
            for letter, places in left_over.items()
            for i, j in zip(waiting[letter], places, strict=False)
        ]

    def _unpaired(self) -> tuple[dict[Letter, list[int]], list[int]]:
        """The unpaired events of the left by letter, and those of the right that equal one of them."""
        paired = [{n for copies in self._kept.values() for n in copies[side]} for side in Side]
        waiting: dict[Letter, list[int]] = {}
        for i, item in enumerate(self.left):
            if i not in paired[0]:
                waiting.setdefault(item.letter, []).append(i)
        loose = [j for j, item in enumerate(self.right) if j not in paired[1] and item.letter in waiting]
        return waiting, loose

    def _exchange(self, moved: Sequence[tuple[int, int]]) -> bool:
        """Give up a pair for several that it is in the way of; returns whether there was one."""
        in_the_way = Counter(pair for i, j in moved for pair in self._against(i, j))
        for (i, j), times in in_the_way.most_common():
            if times == 1 or self._work <= 0:
                break
            waiting, loose = self._unpaired()
            self._work -= len(self.left) + len(self.right)
            self._drop(i, j)
            gained = [
                (found, n)
                for n in loose
                if (found := self._finds_partner(waiting[self.right[n].letter], n)) is not None
            ]
            if len(gained) > 1:
                return True
            for pair in gained:
                self._drop(*pair)
            self._keep(i, j)
        return False

    def _against(self, i: int, j: int) -> list[tuple[int, int]]:
        """The pairs that a further pair would contradict, if no copies change their partners."""
        self._work -= len(self.pairs)
        if self._work <= 0:
            return []
        return [
            (m, n)
            for m, n in self.pairs
            if (m < i) != (n < j)
            and self.left[m].letter != self.left[i].letter
            and self._depends(Side.LEFT, i, m)
        ]

    def _finds_partner(self, waiting: list[int], j: int) -> int | None:
        """Pair an event on the right with the first equal one on the left that fits, if there is one."""
        for i in waiting:
            if self._work <= 0:
                break
            if self._fits(i, j):
                waiting.remove(i)
                self._keep(i, j)
                return i
        return None

    def _keep(self, i: int, j: int) -> None:
        lefts, rights = self._kept.setdefault(self.left[i].letter, ([], []))
        insort(lefts, i)
        insort(rights, j)

    def _drop(self, i: int, j: int) -> None:
        lefts, rights = self._kept[self.left[i].letter]
        lefts.remove(i)
        rights.remove(j)

    def _fits(self, i: int, j: int) -> bool:
        """Whether one more pair contradicts no other, once all copies of its letter are paired in order.

        Only the copies between its two places change their partners.
        """
        letter = self.left[i].letter
        lefts, rights = self._kept.get(letter, ([], []))
        m, n = bisect(lefts, i), bisect(rights, j)
        self._work -= 1 + abs(m - n)
        if m <= n:
            copies = zip([i, *lefts[m:n]], [*rights[m:n], j], strict=True)
        else:
            copies = zip([*lefts[n:m], i], [j, *rights[n:m]], strict=True)
        return all(self._agrees(letter, *pair) for pair in copies)

    def _agrees(self, letter: Letter, i: int, j: int) -> bool:
        """Whether both sides have equally many copies of each dependent letter before a pair."""
        self._work -= len(self._kept)
        return self._work > 0 and not any(
            (m := bisect(lefts, i)) != (n := bisect(rights, j))
            and other != letter
            and self._depends(Side.LEFT, i, lefts[min(m, n)])
            for other, (lefts, rights) in self._kept.items()
        )

    def _passed(self, side: int, n: int) -> bool:
        """Whether the other side is past an unpaired event."""
        self._work -= len(self.pairs)
        return any(pair[side] > n and self._depends(Side(side), n, pair[side]) for pair in self.pairs)

    def _depends(self, side: Side, one: int, another: int) -> bool:
        places = self._places[side]
        return self._related(side, places[one], side, places[another])
