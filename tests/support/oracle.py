"""Slow, plain readings of the theory, to hold the engine against.

Nothing here is indexed, incremental or clever, and nothing is shared with `twinstream.core`: each function is
written from a definition. Events are any values; what is dependent and what is equal are plain functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import combinations_with_replacement
from typing import Generic, TypeVar

T = TypeVar("T")
Relation = Callable[[T, T], bool]
LEFT, RIGHT = 0, 1


class PlainMatcher(Generic[T]):
    """The three steps of DiffStream (section 4.2) over lists, by comparing every pair.

    `decided_at` is the number of the step (an event, or the end of a side, counted from 1) at which the
    streams were known to differ; from there on nothing more is taken in.
    """

    def __init__(self, dependent: Relation[T], equal: Relation[T]) -> None:
        self.dependent, self.equal = dependent, equal
        self.unmatched: tuple[list[T], list[T]] = ([], [])
        self.ended = [False, False]
        self.decided_at: int | None = None
        self._steps = 0

    @property
    def diverged(self) -> bool:
        return self.decided_at is not None

    @property
    def equivalent(self) -> bool:
        """Whether both sides have ended and nothing is left."""
        return not self.diverged and all(self.ended) and not any(self.unmatched)

    def feed(self, side: int, x: T) -> None:
        self._steps += 1
        if self.diverged:
            return
        mine, theirs = self.unmatched[side], self.unmatched[1 - side]
        partner = self._partner(x, theirs)
        if partner is not None and not any(self.dependent(x, z) for z in mine):
            del theirs[partner]
        elif self.ended[1 - side] or any(self.dependent(x, y) for y in theirs):
            self.decided_at = self._steps
        else:
            mine.append(x)

    def end(self, side: int) -> None:
        self._steps += 1
        self.ended[side] = True
        if not self.diverged and self.unmatched[1 - side]:
            self.decided_at = self._steps

    def _partner(self, x: T, theirs: list[T]) -> int | None:
        """The place of the oldest minimal event that equals x."""
        for place, y in enumerate(theirs):
            if self.equal(x, y) and not any(self.dependent(y, z) for z in theirs[:place]):
                return place
        return None


def equivalent(
    left: Sequence[T], right: Sequence[T], dependent: Relation[T], letter: Callable[[T], Hashable]
) -> bool:
    """Whether two finite sequences are one trace: equal counts, and equal projections onto dependent letters.

    `letter` maps equal events to equal letters. (Mazurkiewicz traces: two words are equivalent exactly when
    their projections onto every pair of dependent letters are equal, and onto every single letter.)
    """
    samples = {letter(x): x for x in (*left, *right)}
    if Counter(map(letter, left)) != Counter(map(letter, right)):
        return False
    for a, b in combinations_with_replacement(samples, 2):
        if dependent(samples[a], samples[b]):
            words = [[letter(x) for x in side if letter(x) in (a, b)] for side in (left, right)]
            if words[0] != words[1]:
                return False
    return True


def lcs_length(left: Sequence[object], right: Sequence[object]) -> int:
    """The length of a longest common subsequence, by the textbook's table."""
    row = [0] * (len(right) + 1)
    for x in left:
        above = row
        row = [0]
        for j, y in enumerate(right):
            row.append(above[j] + 1 if x == y else max(above[j + 1], row[j]))
    return row[-1]
