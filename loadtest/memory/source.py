"""Two topics of Kafka as lists, with every event that can happen to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from twinstream.core.events import Place, Side
from twinstream.errors import NoTopic, SourceError
from twinstream.ports import (
    Batch,
    BeginsMs,
    Control,
    ControlEntry,
    Gap,
    Mark,
    Marks,
    Positions,
    Topic,
    TopicsLook,
)
from twinstream.spec.decode.headers import Headers
from twinstream.spec.lint.topics import Topic as ControlTopic

MemoryRow = tuple[bytes | None, int, Headers, bytes | None]
"""A record, its timestamp in milliseconds, its headers, and its key."""


class MemorySource:
    """Two topics as lists: ``source.append(side, partition, record, timestamp_ms)``.

    While `down` is a sentence, reading fails as without a broker; while `looks` is False, no look at the
    topics finishes. Everything that can happen to a topic in Kafka can be done to these: `retain`, `cut_off`,
    `delete`, `create_anew`, `add_partition`, `set_cleanup_policy`. `control_topic` is that of control
    records, None while it is missing.
    """

    def __init__(self, partitions: int = 1, batch: int = 1000) -> None:
        self._topics = {side: _MemoryTopic("1", partitions) for side in Side}
        self._next: dict[Side, dict[int, int]] = {side: dict.fromkeys(range(partitions), 0) for side in Side}
        self._paused: dict[Side, frozenset[int]] = dict.fromkeys(Side, frozenset())
        self._batch = batch
        self._deleted: set[Side] = set()
        self._looking = False
        self._asked = 0
        self._seen = TopicsLook(0, {}, {}, {})
        self.looks = True
        self._control: list[bytes | None] = []
        self._control_lives = [1]
        self.control_topic: ControlTopic | None = ControlTopic(1, "delete")
        self._next_said: int | None = None
        self.down: str | None = None
        self.read_from_ms: int | None = None
        self._marks: dict[Side, Mapping[int, Mark]] = {side: {} for side in Side}

    def reader(self, before: MemorySource | None = None) -> MemorySource:
        """Another source of the same topics, for another matcher: in the group of one `before` it."""
        other = MemorySource(batch=self._batch)
        other._topics, other._deleted, other._control = self._topics, self._deleted, self._control
        other._control_lives = self._control_lives
        if before is not None:
            other._marks = before._marks
        return other

    # -- changes to the topics -----------------------------------------------------------------------------

    def append(
        self,
        side: Side,
        partition: int,
        record: bytes | None,
        timestamp_ms: int = 0,
        headers: Headers = (),
        key: bytes | None = None,
    ) -> None:
        """Write a record to the end of a partition."""
        self._topics[side].rows[partition].append((record, timestamp_ms, headers, key))

    def say(self, record: bytes | None) -> None:
        """Write a record to the control topic."""
        self._control.append(record)

    def create_control_anew(self) -> None:
        """Delete the control topic and create it again: empty."""
        self._control.clear()
        self._control_lives[0] += 1

    def retain(self, side: Side, partition: int, first: int) -> None:
        """Drop the records below an offset, as retention does."""
        topic = self._topics[side]
        del topic.rows[partition][: first - topic.first[partition]]
        topic.first[partition] = first

    def cut_off(self, side: Side, partition: int, end: int) -> None:
        """Drop the records from an offset on, as an unclean election does."""
        topic = self._topics[side]
        del topic.rows[partition][end - topic.first[partition] :]

    def delete(self, side: Side) -> None:
        """Delete the topic."""
        self._deleted.add(side)

    def create_anew(self, side: Side, partitions: int = 1) -> None:
        """Delete the topic, if it exists, and create a new one: empty, with another id."""
        self._deleted.discard(side)
        self._marks[side] = {}
        self._topics[side] = _MemoryTopic(f"{self._topics[side].id}1", partitions)

    def add_partition(self, side: Side) -> None:
        """Add a partition."""
        self._topics[side].rows.append([])
        self._topics[side].first.append(0)

    def set_cleanup_policy(self, side: Side, policy: str) -> None:
        """Change the cleanup policy of the topic."""
        self._topics[side].cleanup_policy = policy

    # -- the port ------------------------------------------------------------------------------------------

    def topics(self) -> Mapping[Side, Topic]:
        """Both topics as they are now."""
        if self.down:
            raise SourceError(self.down)
        for side in self._deleted:
            raise NoTopic(f"topic {side.name}: there is no such topic")
        return {side: topic.described() for side, topic in self._topics.items()}

    def begins_ms(self) -> BeginsMs:
        """The times of the first records."""
        return {side: topic.begins_ms() for side, topic in self._topics.items()}

    def remember(self, marks: Marks) -> None:
        """Store the marks with the topic: they are deleted with it."""
        if not self.down:
            for side in Side:
                self._marks[side] = {**self._marks[side], **marks[side]}

    def forget(self) -> None:
        """Remove all marks, as where the consumer group has expired."""
        self._marks.update({side: {} for side in Side})

    def remembered(self) -> Marks:
        """The marks stored last."""
        return dict(self._marks)

    def bound(self) -> Positions | None:
        """The first records from `read_from_ms` on; else the ends."""
        return None if self.read_from_ms is None else self.at(self.read_from_ms)

    def at(self, timestamp_ms: int) -> Positions:
        """The first records from that time on; else the ends."""
        return {side: topic.offsets_at(timestamp_ms) for side, topic in self._topics.items()}

    def seen(self) -> TopicsLook:
        """Both topics as they are now, once they are read."""
        if self.looks and self._looking and not self.down:
            topics = {
                side: None if side in self._deleted else self._topics[side].described() for side in Side
            }
            unchanged = topics == self._seen.topics
            ends = {side: topic.ends for side, topic in topics.items() if topic is not None}
            self._seen = TopicsLook(self._asked, self._seen.topics if unchanged else topics, ends, ends)
        return self._seen

    def look(self) -> int:
        """The number of the next look; `seen` takes it."""
        self._asked += 1
        return self._asked

    def control(self) -> Control | None:
        """The control topic as it is now."""
        name = "" if self.control_topic is None else f"control {self._control_lives[0]}"
        return Control(self.control_topic, name)

    def assign(self, positions: Positions) -> None:
        """Read from these positions on."""
        self._next = {side: dict(positions[side]) for side in Side}
        self._looking = True

    def extend(self, side: Side, partition: int, offset: int) -> None:
        """Read one more partition, from this offset on."""
        self._next[side][partition] = offset

    def pause(self, side: Side, partitions: Collection[int]) -> None:
        """Read none of these partitions of a side."""
        self._paused[side] = frozenset(partitions)

    def poll(self, side: Side, timeout: float) -> Sequence[Batch | Gap]:  # noqa: ARG002
        """The next records of the first partition that has any. It never waits."""
        if self.down or side in self._deleted:
            return ()
        topic = self._topics[side]
        for partition, start in self._next[side].items():
            if partition >= len(topic.rows) or partition in self._paused[side]:
                continue
            first = topic.first[partition]
            if not first <= start <= topic.end(partition):
                self._next[side][partition] = first
                return (Gap(side, partition, start, first),)
            rows = topic.rows[partition][start - first : start - first + self._batch]
            if rows:
                self._next[side][partition] = start + len(rows)
                records, timestamps, headers, keys = zip(*rows, strict=True)
                offsets = range(start, start + len(rows))
                return (Batch(side, partition, records, offsets, timestamps, headers, keys),)
        return ()

    def recall(self, places: Iterable[Place], seconds: float) -> Mapping[Place, bytes | None]:  # noqa: ARG002
        """The records at some places, as far as they are retained; none while it is down."""
        return {} if self.down else {place: self._topics[place[0]].record(*place[1:]) for place in places}

    def follow(self, position: int | None) -> None:
        """Read the control topic from this offset on."""
        self._next_said = position or 0

    def said(self) -> Sequence[ControlEntry]:
        """The next records of the control topic."""
        if self.down or self._next_said is None:
            return ()
        first = self._next_said if self._next_said <= len(self._control) else 0  # As a consumer out of range.
        records = self._control[first:][: self._batch]
        self._next_said = first + len(records)
        return [ControlEntry(first + n, record) for n, record in enumerate(records)]

    def heard_all(self) -> bool:
        """Whether all records of the control topic were read."""
        there = self.control_topic is not None
        return there and self._next_said is not None and self._next_said >= len(self._control)

    def ends(self) -> Positions:
        """The end of each partition."""
        return {side: topic.described().ends for side, topic in self._topics.items()}

    def trouble(self) -> str | None:
        """The sentence in `down`."""
        return self.down

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class _MemoryTopic:
    """One topic: records by partition, and the offset of the first of each."""

    def __init__(self, name: str, partitions: int) -> None:
        self.id = name
        self.rows: list[list[MemoryRow]] = [[] for _ in range(partitions)]
        self.first = [0] * partitions
        self.cleanup_policy = "delete"

    def record(self, partition: int, offset: int) -> bytes | None:
        """The record at an offset; None if there is none."""
        first, rows = self.first[partition], self.rows[partition]
        return rows[offset - first][0] if first <= offset < self.end(partition) else None

    def end(self, partition: int) -> int:
        return self.first[partition] + len(self.rows[partition])

    def offsets_at(self, timestamp_ms: int) -> dict[int, int]:
        return {
            partition: self.first[partition]
            + next((n for n, row in enumerate(rows) if row[1] >= timestamp_ms), len(rows))
            for partition, rows in enumerate(self.rows)
        }

    def begins_ms(self) -> dict[int, int]:
        return {partition: rows[0][1] for partition, rows in enumerate(self.rows) if rows}

    def described(self) -> Topic:
        ends = {partition: self.end(partition) for partition in range(len(self.rows))}
        first = dict(enumerate(self.first))
        return Topic(self.id, first, ends, self.cleanup_policy)
