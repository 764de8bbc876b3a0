"""Falls: counts how often a matcher fell over a batch, until that batch is left out.

A matcher that dies while it takes a batch (a fault in a C library, a kill for its memory) is started again,
reads the same batch again, and would die again for ever. So it notes the batch that it is taking in memory
shared with its supervisor (its `Trail`). The supervisor, which outlives it, counts its `Falls`: after
`FALLS_TO_LEAVE_OUT` over one batch, its successors leave that batch out as a hole, and go on behind it.

A matcher may read the same records in other batches. Falls are over the same batch if their batches have
records in common, and the common records are left out: those that killed the matcher are among them. One fall
may be chance (an operator, a full machine), and falls over different batches never add up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, MutableSequence, Sequence
from typing import NamedTuple
from zlib import crc32

from twinstream.core.events import Side
from twinstream.ports import Batch, Gap

FALLS_TO_LEAVE_OUT = 3
"""One or two falls may be chance, and a batch that is left out is never compared."""
TRAIL_LENGTH = 6
"""The numbers in a trail: whether a batch is being taken, and its stretch."""
_TAKING = 1


class FallenStretch(NamedTuple):
    """Records of one partition of a side, by their first and last offset.

    `topic` is a number made of the topic's id: a recreated topic has other records at these offsets.
    """

    side: Side
    partition: int
    first: int
    last: int
    topic: int

    def common(self, other: FallenStretch) -> FallenStretch | None:
        """The records that both have, of the same partition; None if there are none."""
        first, last = max(self.first, other.first), min(self.last, other.last)
        return self._replace(first=first, last=last) if first <= last and self.topic == other.topic else None


class Trail:
    """The batch that a matcher is taking, in `TRAIL_LENGTH` numbers that outlive it."""

    def __init__(self, memory: MutableSequence[int] | None = None) -> None:
        self._memory = [0] * TRAIL_LENGTH if memory is None else memory

    def enter(self, batch: Batch, topic: str = "") -> None:
        """Note that a batch of the topic with this id is being taken. Complexity: O(1), about 1 µs."""
        self._memory[1:] = [batch.side, batch.partition, batch.offsets[0], batch.offsets[-1], _mark(topic)]
        self._memory[0] = _TAKING

    def leave(self) -> None:
        """Note that no batch is being taken."""
        self._memory[0] = 0

    def stretch(self) -> FallenStretch | None:
        """The batch that the matcher is taking, or was taking when it ended."""
        if self._memory[0] != _TAKING:
            return None
        _, side, *place = self._memory
        return FallenStretch(Side(side), *place)


class Caution(NamedTuple):
    """The precautions of a matcher: its trail, the records that it leaves out, and its memory limit."""

    trail: Trail
    left_out: tuple[FallenStretch, ...] = ()
    memory_limit_bytes: int | None = None


class Falls:
    """The falls of one matcher and all its successors. `left_out` are the records that the next leaves out.

    Falls are counted for each partition, since a matcher may fall over batches of two in turn. Within a
    partition it reads in order: a fall further on shows that it came past the earlier one.

    >>> falls, batch = Falls(), FallenStretch(Side.LEFT, 0, 0, 99, topic=0)
    >>> [falls.fell_over(batch) for _ in range(3)], falls.left_out == (batch,)
    ([False, True, True], True)
    """

    def __init__(self) -> None:
        self._counted: dict[tuple[Side, int], tuple[FallenStretch, int]] = {}
        self.left_out: tuple[FallenStretch, ...] = ()

    def fell_over(self, stretch: FallenStretch | None) -> bool:
        """Note a fall, over a batch or none; returns whether an earlier fall was over the same batch."""
        if stretch is None:
            return False
        place = stretch[:2]
        before, count = self._counted.pop(place, (stretch, 0))
        common = before.common(stretch)
        if common is None:
            common, count = stretch, 0
        if count + 1 == FALLS_TO_LEAVE_OUT:
            self.left_out = (*self.left_out, common)
        else:
            self._counted[place] = common, count + 1
        return count > 0


def without(batch: Batch, left_out: Sequence[FallenStretch], topic: str = "") -> Iterator[Batch | Gap]:
    """The parts of a batch of the topic with this id, with a gap in place of the records left out.

    Complexity: O(1) if no records were ever left out.
    """
    begin, place = 0, (batch.side, batch.partition)
    for stretch in sorted(one for one in left_out if one[:2] == place and one.topic == _mark(topic)):
        first, end = bisect_left(batch.offsets, stretch.first), bisect_right(batch.offsets, stretch.last)
        if first < end:
            if begin < first:
                yield part_of(batch, slice(begin, first))
            yield Gap(batch.side, batch.partition, batch.offsets[first], stretch.last + 1, left_out=True)
            begin = end
    if begin == 0:
        yield batch
    elif begin < len(batch.offsets):
        yield part_of(batch, slice(begin, None))


def _mark(topic: str) -> int:
    return crc32(topic.encode())


def part_of(batch: Batch, part: slice) -> Batch:
    """Some consecutive records of a batch."""
    columns = (None if column is None else column[part] for column in batch[2:])
    return Batch._make((batch.side, batch.partition, *columns))
