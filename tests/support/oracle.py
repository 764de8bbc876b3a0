"""Slow, plain readings of the theory, to hold the engine against.

Nothing here is indexed, incremental or clever, and nothing is shared with `twinstream.core`: each function is
written from a definition. Events are any values; what is dependent and what is equal are plain functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations_with_replacement
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

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
    if Counter(map(letter, left)) != Counter(map(letter, right)):
        return False
    samples = {letter(x): x for x in left}
    places = [_places(side, letter) for side in (left, right)]
    for a, b in combinations_with_replacement(samples, 2):
        if dependent(samples[a], samples[b]) and _word(places[0], {a, b}) != _word(places[1], {a, b}):
            return False
    return True


def _word(places: Mapping[Hashable, list[int]], letters: set[Hashable]) -> list[Hashable]:
    """The projection onto some letters."""
    return [x for _, x in sorted(((n, x) for x in letters for n in places[x]), key=itemgetter(0))]


def _places(side: Sequence[T], letter: Callable[[T], Hashable]) -> dict[Hashable, list[int]]:
    """Where each letter stands."""
    places: dict[Hashable, list[int]] = {}
    for place, x in enumerate(side):
        places.setdefault(letter(x), []).append(place)
    return places


class Wrote(NamedTuple):
    """A row of a batch: what wrote it, and its letter."""

    execution: str
    task: int
    attempt: int
    letter: Hashable


def batch_counts(rows: Sequence[Wrote]) -> Counter[Hashable]:
    """What a batch wrote: by letter the largest count over executions of the sum over tasks.

    Of a task it is the largest count over its attempts (design, section 5, Duplicates).
    """
    most: Counter[Hashable] = Counter()
    for execution in {row.execution for row in rows}:
        most |= _execution_counts([row for row in rows if row.execution == execution])
    return most


def _execution_counts(rows: Sequence[Wrote]) -> Counter[Hashable]:
    total: Counter[Hashable] = Counter()
    for task in {row.task for row in rows}:
        of_task: Counter[Hashable] = Counter()
        for attempt in {row.attempt for row in rows}:
            of_task |= Counter(row.letter for row in rows if (row.task, row.attempt) == (task, attempt))
        total += of_task
    return total


def attempts_agree(rows: Sequence[Wrote]) -> bool:
    """Whether one execution, with one attempt of each task, has written all that the batch wrote."""
    for execution in {row.execution for row in rows}:
        mine = [row for row in rows if row.execution == execution]
        one_each: Counter[Hashable] = Counter()
        for task in {row.task for row in mine}:
            tried = {row.attempt for row in mine if row.task == task}
            each = [Counter(r.letter for r in mine if (r.task, r.attempt) == (task, n)) for n in tried]
            one_each += max(each, key=Counter.total)
        if one_each == batch_counts(rows):
            return True
    return False


def lcs_length(left: Sequence[object], right: Sequence[object]) -> int:
    """The length of a longest common subsequence, by the textbook's table."""
    row = [0] * (len(right) + 1)
    for x in left:
        above = row
        row = [0]
        for j, y in enumerate(right):
            row.append(above[j] + 1 if x == y else max(above[j + 1], row[j]))
    return row[-1]


def equivalent_within(
    left: Sequence[T],
    right: Sequence[T],
    dependent: Relation[T],
    letter: Callable[[T], Hashable],
    close: Relation[T],
) -> bool:
    """Whether two finite sequences are one trace, where events of one letter are equal only if `close`.

    That is: some one-to-one pairing of close events of one letter keeps the order of all dependent pairs. The
    letters have to be one trace. Then events of a letter that depends on itself are paired in their order,
    others freely with those that have as many of each dependent letter before them.
    """
    if not equivalent(left, right, dependent, letter):
        return False
    groups = _interchangeable(left, dependent, letter), _interchangeable(right, dependent, letter)
    return all(
        len(matching(xs, groups[1].get(group, []), close)) == len(xs) for group, xs in groups[0].items()
    )


def _interchangeable(
    side: Sequence[T], dependent: Relation[T], letter: Callable[[T], Hashable]
) -> dict[Hashable, list[T]]:
    """The events by letter, and by how many of each dependent letter, also their own, stand before them."""
    before: Counter[Hashable] = Counter()
    samples: dict[Hashable, T] = {}
    groups: dict[Hashable, list[T]] = {}
    for x in side:
        seen = frozenset((b, before[b]) for b, sample in samples.items() if dependent(x, sample))
        groups.setdefault((letter(x), seen), []).append(x)
        samples.setdefault(letter(x), x)
        before[letter(x)] += 1
    return groups


def matching(left: Sequence[T], right: Sequence[T], close: Relation[T]) -> dict[int, int]:
    """A largest set of close pairs in which each event stands once: places on the right to those on the left.

    By augmenting paths (Berge 1957), one event after the other.
    """
    partner: dict[int, int] = {}

    def place(i: int, tried: set[int]) -> bool:
        for j, y in enumerate(right):
            if j not in tried and close(left[i], y):
                tried.add(j)
                if j not in partner or place(partner[j], tried):
                    partner[j] = i
                    return True
        return False

    for i in range(len(left)):
        place(i, set())
    return partner
