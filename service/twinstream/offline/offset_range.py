"""Determines the stretch of two topics to compare once, with the records around it, and reads it as lines.

An edge is *sharp* if nothing beyond it can be the partner of an event within: the beginning of a topic, its
end when the version has stopped, and offsets, which the user declares to belong together.

A time is not sharp. The versions write equal events at different times, so the partner of an event within may
lie beyond. Therefore the records up to `slack` beyond a time are read, too, on both sides: they may be
partners, but need none themselves. `range_edges` judges the events left over.

`Recorded` reads the records that existed when reading began, as lines like those of files: up to the end of
each partition, or of the requested range, or up to a number of records. Records that come meanwhile are not
read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import merge
from operator import attrgetter
from typing import Literal, NamedTuple

from twinstream.core.accounts import PLACE, Hole
from twinstream.core.events import Side
from twinstream.errors import SettingsError, SourceError
from twinstream.explain.divergence import NAMES
from twinstream.explain.holes import of_gap, place_of
from twinstream.ports import Archive, BeginsMs, Clock, Gap, Item, Line, Passed, Positions, Source, Topic
from twinstream.settings import time_of
from twinstream.spec.file.model import Spec
from twinstream.spec.file.orders import Barrier, nodes
from twinstream.spec.lint.topics import Topic as TopicFacts
from twinstream.spec.lint.topics import refusals
from twinstream.status.timestamps import in_utc

SideOffsets = Mapping[Side, Mapping[int, int]]
"""By side and partition; a side without an entry has none."""
Edge = Literal["earliest", "latest"] | datetime | SideOffsets

_MS = timedelta(milliseconds=1)
_OFFSETS = re.compile(r"(reference|candidate):(\d+=\d+(?:,\d+=\d+)*)")
_SIDES: Mapping[str, Side] = {name: side for side, name in NAMES.items()}


class PartitionRange(NamedTuple):
    """The offsets of a partition that are compared, and those that are read."""

    compared: range
    read: range


Parts = Mapping[int, PartitionRange]
"""By partition."""


@dataclass(frozen=True)
class OffsetRange:
    """The stretch that is compared.

    By side: `begins_ms` is the time of its very first record, if it began later than the other side and than
    the stretch; `passed` tells whether it has records beyond a time that ends the stretch. `holes` are the
    parts that no longer exist.
    """

    begin: Edge
    end: Edge
    slack: timedelta
    parts: Mapping[Side, Parts]
    begins_ms: Mapping[Side, int | None]
    passed: Mapping[Side, bool]
    holes: Sequence[Hole]

    @property
    def fuzzy(self) -> bool:
        """Whether an edge is a time."""
        return isinstance(self.begin, datetime) or isinstance(self.end, datetime)

    @property
    def slack_ms(self) -> int:
        """The slack in milliseconds."""
        return self.slack // _MS

    @property
    def ranges(self) -> Ranges:
        """The offsets that are read."""
        return {
            side: {number: part.read for number, part in parts.items()} for side, parts in self.parts.items()
        }

    @property
    def size(self) -> int:
        """The number of offsets that are read: at least the number of records."""
        return sum(len(part.read) for parts in self.parts.values() for part in parts.values())


def edge_of(option: str, texts: Sequence[str], default: Literal["earliest", "latest"]) -> Edge:
    """The edge that the values of an option name. Raises SettingsError.

    >>> edge_of("--from", ["reference:0=5,1=7"], "earliest")
    {<Side.LEFT: 0>: {0: 5, 1: 7}}
    """
    if list(texts) in ([], [default]):
        return default
    if len(texts) == 1 and (moment := time_of(texts[0])) is not None:
        return in_utc(moment)
    offsets: dict[Side, dict[int, int]] = {}
    for text in texts:
        found = _OFFSETS.fullmatch(text)
        if found is None:
            raise SettingsError(
                f"{option} {text}: give {default}, a time with its zone like 2026-01-01T00:00:00Z, or offsets"
                " of a side like reference:0=1200,1=980 (again for the other side)"
            )
        of_side = offsets.setdefault(_SIDES[found[1]], {})
        for pair in found[2].split(","):
            partition, offset = map(int, pair.split("="))
            if of_side.setdefault(partition, offset) != offset:
                raise SettingsError(f"{option} names partition {partition} of the {found[1]} twice")
    return offsets


def edge_text(edge: Edge) -> str:
    """An edge in a word; offsets of a side are given with its partitions."""
    if isinstance(edge, datetime):
        return edge.isoformat()
    return edge if isinstance(edge, str) else "offsets"


def stretch_of(
    spec: Spec, archive: Archive, begin: Edge, end: Edge, slack: timedelta, now: datetime
) -> OffsetRange:
    """Find the stretch in the topics as they are now.

    What Kafka has deleted is looked at last: it may delete a beginning while the edges are found.

    Raises SettingsError if it cannot be compared, and SourceError.
    """
    _check_edges(spec, begin, end, now)
    topics = archive.topics()
    _check_topics(spec, topics)
    _check_named("--from", begin, topics)
    _check_named("--to", end, topics)
    first = _at(archive, begin, {side: topic.first for side, topic in topics.items()}, -slack)
    last = _at(archive, end, {side: topic.ends for side, topic in topics.items()}, slack)
    edges = list(zip(first, last, strict=True))
    parts = {
        side: {
            number: PartitionRange(
                *(range(begins[side][number], ends[side][number]) for begins, ends in edges)
            )
            for number in sorted(topic.first)
        }
        for side, topic in topics.items()
    }
    _check_order(parts)
    left = archive.topics()
    for side, topic in topics.items():
        if topic.id != left[side].id:
            name = spec.version_of(side).topic
            raise SourceError(f"topic {name} was created anew while its range was looked for: run it again")
    begins_ms = archive.begins_ms() if isinstance(begin, datetime) else {side: {} for side in Side}
    return OffsetRange(
        begin,
        end,
        slack,
        {side: _readable(parts[side], left[side]) for side in Side},
        begins_ms={side: _beginning(slack, side, parts[side], begins_ms) for side in Side},
        passed={side: _is_passed(end, parts[side], topics[side]) for side in Side},
        holes=[hole for side in Side for hole in _lost(begin, side, parts[side], left[side])],
    )


# -- what is refused ---------------------------------------------------------------------------------------


def _check_edges(spec: Spec, begin: Edge, end: Edge, now: datetime) -> None:
    for option, edge in (("--from", begin), ("--to", end)):
        if isinstance(edge, datetime) and edge > now:
            raise SettingsError(f"{option} {edge.isoformat()} lies in the future")
    if isinstance(begin, datetime) and isinstance(end, datetime) and begin > end:
        raise SettingsError(f"--from {begin.isoformat()} is later than --to {end.isoformat()}")
    if not (isinstance(begin, datetime) or isinstance(end, datetime)):
        return
    if spec.on_divergence == "halt":
        raise SettingsError(
            "`on_divergence: halt` ends at the first difference, and at a time that may be none, since its "
            "partner may lie beyond: give offsets, or set `continue`"
        )
    for node in nodes(spec.order, spec.compared_kinds):
        if isinstance(node.order, Barrier) and node.order.copies == "per_partition":
            raise SettingsError(
                "a time would part the copies of one barrier (`copies: per_partition`): give offsets, or "
                "earliest and latest"
            )


def _check_topics(spec: Spec, topics: Mapping[Side, Topic]) -> None:
    facts = {side: TopicFacts(len(topic.first), topic.cleanup_policy) for side, topic in topics.items()}
    refuse_topics(spec, facts)


def refuse_topics(spec: Spec, facts: Mapping[Side, TopicFacts]) -> None:
    """Raises SettingsError if the comparison cannot be right on topics of which these are the facts."""
    by_name = {spec.version_of(side).topic: topic for side, topic in facts.items()}
    if notes := list(refusals(spec, by_name)):
        raise SettingsError("; ".join(f"`{note.key}`: {note.text}" for note in notes))


def _check_named(option: str, edge: Edge, topics: Mapping[Side, Topic]) -> None:
    """Offsets must name all partitions of a side, and none beyond their ends."""
    if not isinstance(edge, Mapping):
        return
    for side, offsets in edge.items():
        name, topic = NAMES[side], topics[side]
        for partition in sorted(offsets.keys() ^ topic.first.keys()):
            problem = "is not named" if partition in topic.first else "does not exist"
            raise SettingsError(f"{option}: partition {partition} of the {name} {problem}")
        for partition, offset in offsets.items():
            if offset > topic.ends[partition]:
                raise SettingsError(
                    f"{option}: partition {partition} of the {name} ends at {topic.ends[partition]}, so "
                    f"{offset} lies beyond it"
                )


def _check_order(parts: Mapping[Side, Parts]) -> None:
    for side, of_side in parts.items():
        for number, part in of_side.items():
            if part.compared.start > part.compared.stop:
                raise SettingsError(
                    f"--from lies behind --to in partition {number} of the {NAMES[side]}: it would be "
                    f"compared from offset {part.compared.start} up to {part.compared.stop}"
                )


# -- where it lies -----------------------------------------------------------------------------------------


def _at(archive: Archive, edge: Edge, whole: Positions, beyond: timedelta) -> tuple[Positions, Positions]:
    """The position of an edge, and the position where reading begins or ends for it."""
    if isinstance(edge, datetime):
        return archive.at(_ms(edge)), archive.at(max(0, _ms(edge) + beyond // _MS))
    found = {**whole, **edge} if isinstance(edge, Mapping) else whole
    return found, found


def _readable(parts: Parts, topic: Topic) -> dict[int, PartitionRange]:
    """The ranges without lost offsets."""
    readable = {}
    for number, part in parts.items():
        first = topic.first[number]
        kept = (range(max(some.start, first), max(some.stop, first)) for some in part)
        readable[number] = PartitionRange(*kept)
    return readable


def _is_passed(end: Edge, parts: Parts, topic: Topic) -> bool:
    if not isinstance(end, datetime):
        return True
    return any(part.read.stop < topic.ends[number] for number, part in parts.items())


def _beginning(slack: timedelta, side: Side, parts: Parts, begins_ms: BeginsMs) -> int | None:
    """The time of a side's first record, if nothing precedes it and the other side began earlier."""
    own, other = (min(begins_ms[of].values(), default=None) for of in (side, side.other))
    if own is None or other is None:
        return None
    whole = all(part.read.start == 0 for part in parts.values())
    return own if whole and own - other > slack // _MS else None


def _lost(begin: Edge, side: Side, parts: Parts, topic: Topic) -> Iterator[Hole]:
    """The holes for records that may have been deleted: only offsets show that what exists is complete."""
    declared = isinstance(begin, Mapping) and side in begin
    for number, part in parts.items():
        retained = topic.first[number]
        if part.read.start < retained or (retained and part.read.start == retained and not declared):
            reason = (
                f"Kafka no longer has anything below offset {retained:,} of {PLACE}, so the beginning of "
                "what was to be compared may be lost"
            )
            yield Hole(reason, side, number, part.read.start)


def _ms(moment: datetime) -> int:
    """Milliseconds since 1970; 0 for what is before, since Kafka takes a negative time for something else."""
    return max(0, (moment - datetime(1970, 1, 1, tzinfo=UTC)) // _MS)


PATIENCE_SECONDS = 30.0
"""Without a record for so long the topics count as unreadable."""
POLL_SECONDS = 0.1


Ranges = Mapping[Side, Mapping[int, range]]
"""Offsets by side and partition, as far as the topic has them; a side without an entry is read as a whole."""
ALL_OFFSETS = range(sys.maxsize)


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
        """Raises SettingsError if a partition is missing, and SourceError."""
        self._source, self._names, self._clock, self._note_lost = source, names, clock, lost
        topics = source.topics()
        self._spans = {side: _spans(names[side], topics[side], ranges.get(side, {})) for side in Side}
        self._share = {side: max(1, limit // max(1, len(spans))) for side, spans in self._spans.items()}
        self.cut = {
            side for side in Side for p, span in self._spans[side].items() if span.stop < topics[side].ends[p]
        }
        self._note_deleted(ranges)
        source.assign({side: {p: span.start for p, span in self._spans[side].items()} for side in Side})

    def _note_deleted(self, ranges: Ranges) -> None:
        """Report what the topics had when the ranges were found, and do not have any more."""
        if self._note_lost is None:
            return
        for side, of_side in ranges.items():
            for partition, asked in of_side.items():
                available = self._spans[side][partition].start
                if asked and asked.start < available:
                    self._note_lost(Gap(side, partition, asked.start, available))

    def lines(self, side: Side) -> Iterator[Line]:
        """The records of a side, unnumbered. Raises SourceError if Kafka stops answering or has lost some."""
        open_ends = {partition: span.stop for partition, span in self._spans[side].items() if span}
        left = dict.fromkeys(open_ends, self._share[side])
        silent_since = self._clock.monotonic()
        while open_ends:
            for batch in self._source.poll(side, POLL_SECONDS):
                if batch.partition in open_ends:
                    yield from self._of(side, batch, open_ends, left)
                    # Only now: the consumer of the lines may be slow.
                    silent_since = self._clock.monotonic()
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

    def _of(self, side: Side, batch: Item, open_ends: dict[int, int], left: dict[int, int]) -> Iterator[Line]:
        if isinstance(batch, Gap):
            self._lose(side, batch, open_ends)
            return
        partition = batch.partition
        if isinstance(batch, Passed):
            if batch.position >= open_ends.get(partition, batch.position):
                open_ends.pop(partition, None)
            return
        headers = batch.headers or [()] * len(batch.records)
        keys = batch.keys or [None] * len(batch.records)
        columns = zip(batch.records, batch.offsets, batch.timestamps_ms, headers, keys, strict=True)
        for record, offset, timestamp_ms, marks, key in columns:
            end = open_ends.get(partition)
            if end is None:
                return
            if offset >= end or left[partition] == 0:
                if offset < end:
                    self.cut.add(side)
                del open_ends[partition]
                return
            left[partition] -= 1
            at = f"{self._names[side]}/{partition}"
            place = (partition, offset, timestamp_ms, at, offset, 0)
            yield Line(side, record, *place, tombstone=record is None, headers=marks, key=key)
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


def _spans(name: str, topic: Topic, ranges: Mapping[int, range]) -> dict[int, range]:
    """By partition, the offsets that are read."""
    spans = {}
    for partition in ranges or topic.first:
        if partition not in topic.first:
            raise SettingsError(f"topic {name} has no partition {partition}")
        asked, first, end = ranges.get(partition, ALL_OFFSETS), topic.first[partition], topic.ends[partition]
        spans[partition] = range(max(asked.start, first), min(asked.stop, end))
    return spans
