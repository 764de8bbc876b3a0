"""Poison: records that a matcher falls over, found by bisection and left out.

A matcher that falls while it takes a batch is started again, reads the same batch again, and would fall again
for ever. So it notes in memory that it shares with its supervisor which stretch of records it is taking (its
`Trail`), and the supervisor, which outlives it, remembers where it fell (`Isolation`):

- A stretch in which it fell is *suspected*: that may have been chance, a kill or a full machine.
- Its successor takes a suspected stretch in `PIECES` pieces and notes each. If it gets through, the suspicion
  is over; if it falls, the piece is suspected.
- A single record over which it falls a second time is *poison*: it is left out from then on, as a hole that
  names it.

So of a batch of a thousand records one is found after five falls.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, MutableSequence
from itertools import pairwise
from typing import NamedTuple

from twinstream.core.events import Side
from twinstream.ports import Batch

PIECES = 10
TRAIL_LENGTH = 5
"""Numbers that a trail takes: whether a stretch is being taken, and the stretch."""
_TAKING, _ON_TRIAL = 1, 2


class Stretch(NamedTuple):
    """Records of one partition of a side, by their first and last offset."""

    side: Side
    partition: int
    first: int
    last: int

    @property
    def single(self) -> bool:
        """Whether it is one record."""
        return self.first == self.last

    def meets(self, other: Stretch) -> bool:
        """Whether both have a record in common."""
        return self[:2] == other[:2] and self.first <= other.last and other.first <= self.last


class Suspicion(NamedTuple):
    """What a matcher should be careful with: a stretch that may hold poison, and single records that are."""

    suspected: Stretch | None = None
    poison: tuple[Stretch, ...] = ()


NO_SUSPICION = Suspicion()


class Trail:
    """Which stretch a matcher is taking, in `TRAIL_LENGTH` numbers that outlive it."""

    def __init__(self, memory: MutableSequence[int] | None = None) -> None:
        self._memory = [0] * TRAIL_LENGTH if memory is None else memory

    def enter(self, batch: Batch) -> None:
        """Note that a batch is being taken. Complexity: O(1), about 1 µs."""
        self._memory[1:] = [batch.side, batch.partition, batch.offsets[0], batch.offsets[-1]]
        self._memory[0] = _TAKING

    def enter_trial(self, batch: Batch) -> None:
        """Note that a batch, which the comparison has taken, is being taken into a trial beside it."""
        self.enter(batch)
        self._memory[0] = _ON_TRIAL

    def leave(self) -> None:
        """Note that nothing is being taken."""
        self._memory[0] = 0

    def stretch(self) -> Stretch | None:
        """What the comparison is, or was at the end, taking."""
        return self._place() if self._memory[0] == _TAKING else None

    def trial_stretch(self) -> Stretch | None:
        """What a trial beside it is, or was at the end, taking."""
        return self._place() if self._memory[0] == _ON_TRIAL else None

    def _place(self) -> Stretch:
        _, side, *place = self._memory
        return Stretch(Side(side), *place)


class Caution(NamedTuple):
    """How a matcher is careful: the trail that it leaves, what it suspects, and the most memory it takes."""

    trail: Trail
    suspicion: Suspicion = NO_SUSPICION
    memory_limit_bytes: int | None = None


class Isolation:
    """What is known of the falls of one matcher, over all its successors.

    >>> isolation, batch = Isolation(), Stretch(Side.LEFT, 0, 0, 99)
    >>> isolation.fell_in(batch).suspected == batch
    True
    >>> for _ in range(2):
    ...     found = isolation.fell_in(Stretch(Side.LEFT, 0, 7, 7))
    >>> found
    Suspicion(suspected=None, poison=(Stretch(side=<Side.LEFT: 0>, partition=0, first=7, last=7),))
    """

    def __init__(self) -> None:
        self._suspicion = NO_SUSPICION

    def fell_in(self, stretch: Stretch | None) -> Suspicion:
        """The matcher fell while it took a stretch, or none: what its successor should be careful with."""
        suspected, poison = self._suspicion
        if stretch is not None:
            again = stretch.single and stretch == suspected
            self._suspicion = Suspicion(None, (*poison, stretch)) if again else Suspicion(stretch, poison)
        return self._suspicion

    def narrows(self, stretch: Stretch | None) -> bool:
        """Whether a fall in a stretch is one more over the same records, so that waiting helps nothing."""
        suspected = self._suspicion.suspected
        return stretch is not None and suspected is not None and suspected.meets(stretch)


class Poison(NamedTuple):
    """One record that is left out."""

    side: Side
    partition: int
    offset: int


def carefully(batch: Batch, suspicion: Suspicion) -> Iterator[Batch | Poison]:
    """A batch in the parts in which it should be taken.

    Complexity: O(1) where nothing of it is suspected.
    """
    whole = Stretch(batch.side, batch.partition, batch.offsets[0], batch.offsets[-1])
    suspected, poison = suspicion
    cuts = {0, len(batch.offsets)}
    if suspected is not None and suspected.meets(whole):
        first, last = bisect_left(batch.offsets, suspected.first), bisect_right(batch.offsets, suspected.last)
        cuts |= {first, last, *range(first, last, max(1, (last - first) // PIECES))}
    bad = {
        place
        for record in poison
        if record.meets(whole)
        and batch.offsets[place := bisect_left(batch.offsets, record.first)] == record.first
    }
    cuts |= bad | {place + 1 for place in bad}
    for start, end in pairwise(sorted(cuts)):
        if start in bad:
            yield Poison(batch.side, batch.partition, batch.offsets[start])
        else:
            yield _part(batch, slice(start, end))


def _part(batch: Batch, part: slice) -> Batch:
    return Batch(
        batch.side,
        batch.partition,
        batch.records[part],
        batch.offsets[part],
        batch.timestamps_ms[part],
        None if batch.headers is None else batch.headers[part],
    )
