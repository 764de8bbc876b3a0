"""Reads a bounded stretch of two topics as lines, like the lines that `check` reads from files.

It reads the records that existed when reading began: up to the end of each partition, or of the requested
range, or up to a number of records. Records that come meanwhile are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from heapq import merge
from operator import attrgetter
from typing import NamedTuple

from twinstream.core.accounts import PLACE
from twinstream.core.events import Side
from twinstream.errors import SourceError
from twinstream.explain.holes import of_gap, place_of
from twinstream.ports import Batch, Clock, Gap, Line, Source, Topic

PATIENCE_SECONDS = 30.0
"""Without a record for so long the topics count as unreadable."""
POLL_SECONDS = 0.1


class OffsetBounds(NamedTuple):
    """The offsets from `first` on, and before `end`; None for the topic's own bound."""

    first: int | None = None
    end: int | None = None


Ranges = Mapping[Side, Mapping[int, OffsetBounds]]
"""By side and partition; a side without an entry is read as a whole."""


class Recorded:
    """The records in two topics. `names` are the topics' names, for messages; `limit` bounds each side.

    The same share of `limit` is read from each partition, so that both sides are cut alike. `lost` is called
    for offsets that are gone before they were read; without it that is an error.
    """

    def __init__(
        self,
        source: Source,
        names: Mapping[Side, str],
        ranges: Ranges,
        limit: int,
        clock: Clock,
        lost: Callable[[Gap], None] | None = None,
    ) -> None:
        """Raises SourceError if a topic or a partition is missing."""
        self._source, self._names, self._clock, self._note_lost = source, names, clock, lost
        topics = source.topics()
        self._first: dict[Side, dict[int, int]] = {}
        self._ends: dict[Side, dict[int, int]] = {}
        self._share: dict[Side, int] = {}
        self.cut = False
        for side in Side:
            places = _places(names[side], topics[side], ranges.get(side, {}))
            self._first[side] = {partition: first for partition, (first, _) in places.items()}
            self._ends[side] = {partition: end for partition, (_, end) in places.items()}
            self.cut = self.cut or any(end < topics[side].ends[p] for p, (_, end) in places.items())
            self._share[side] = max(1, limit // max(1, len(places)))
        source.assign(self._first)

    def lines(self, side: Side) -> Iterator[Line]:
        """The records of a side. Raises SourceError if Kafka stops answering or has lost some."""
        open_ends = {p: end for p, end in self._ends[side].items() if self._first[side][p] < end}
        left = dict.fromkeys(open_ends, self._share[side])
        silent_since = self._clock.monotonic()
        position = 0
        while open_ends:
            for batch in self._source.poll(side, POLL_SECONDS):
                for line in self._of(side, batch, open_ends, left):
                    position += 1
                    yield line._replace(position=position)
                # Only now: the consumer of the lines may be slow.
                silent_since = self._clock.monotonic()
            self._close_read(side, open_ends)
            if open_ends and self._clock.monotonic() > silent_since + PATIENCE_SECONDS:
                raise SourceError(self._source.trouble() or self._gone() or self._silence(side, open_ends))

    def in_step(self) -> Iterator[Line]:
        """The records of both sides, roughly in the order of Kafka's time. Raises as `lines` does."""
        both = merge(self.lines(Side.LEFT), self.lines(Side.RIGHT), key=attrgetter("timestamp_ms"))
        for position, line in enumerate(both, 1):
            yield line._replace(position=position)

    def _gone(self) -> str | None:
        """Why the topics are unusable now, as Kafka describes them; None if they are fine."""
        try:
            self._source.topics()
        except SourceError as error:
            return f"{error}: nothing more can be read"
        return None

    def _silence(self, side: Side, open_ends: Mapping[int, int]) -> str:
        partition, end = min(open_ends.items())
        return (
            f"no record of {self._names[side]} came for {PATIENCE_SECONDS:.0f} s, and partition {partition} "
            f"is not read up to offset {end}: a transaction that stays open holds it back, or Kafka fails"
        )

    def _of(
        self, side: Side, batch: Batch | Gap, open_ends: dict[int, int], left: dict[int, int]
    ) -> Iterator[Line]:
        if isinstance(batch, Gap):
            self._lose(side, batch, open_ends)
            return
        partition = batch.partition
        headers = batch.headers or [()] * len(batch.records)
        columns = zip(batch.records, batch.offsets, batch.timestamps_ms, headers, strict=True)
        for record, offset, timestamp_ms, marks in columns:
            end = open_ends.get(partition)
            if end is None:
                return
            if offset >= end or left[partition] == 0:
                self.cut = self.cut or offset < end
                del open_ends[partition]
                return
            left[partition] -= 1
            at = f"{self._names[side]}/{partition}"
            yield Line(side, record, partition, offset, timestamp_ms, at, offset, 0, record is None, marks)
            if offset + 1 == end:
                del open_ends[partition]

    def _lose(self, side: Side, gap: Gap, open_ends: dict[int, int]) -> None:
        """Report lost offsets; records now below a wanted offset are of another topic."""
        if self._note_lost is None:
            place = place_of(self._names[side], side, gap.partition)
            raise SourceError(of_gap(gap.wanted, gap.available).replace(PLACE, place))
        self._note_lost(gap)
        if not gap.wanted < gap.available < open_ends.get(gap.partition, 0):
            open_ends.pop(gap.partition, None)

    def _close_read(self, side: Side, open_ends: dict[int, int]) -> None:
        """Finish partitions that end with transaction markers, which are no records, on the source's word."""
        reached = self._source.ends()[side]
        for partition, end in tuple(open_ends.items()):
            if reached.get(partition, end) < end:
                del open_ends[partition]


def _places(name: str, topic: Topic, ranges: Mapping[int, OffsetBounds]) -> dict[int, tuple[int, int]]:
    """By partition, the first offset that is read, and the first that is not."""
    for partition in ranges:
        if partition not in topic.first:
            raise SourceError(f"topic {name} has no partition {partition}")
    places = {}
    for partition in ranges or topic.first:
        asked = ranges.get(partition, OffsetBounds())
        first = topic.first[partition] if asked.first is None else max(asked.first, topic.first[partition])
        end = topic.ends[partition] if asked.end is None else min(asked.end, topic.ends[partition])
        places[partition] = (first, end)
    return places
