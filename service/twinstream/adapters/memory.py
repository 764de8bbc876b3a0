"""Everything the runtime needs, in memory: for tests of this package and of those who build on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from twinstream.core.events import Side
from twinstream.errors import Fenced, NoTopic, Outdated, SourceError, StoreError
from twinstream.ports import (
    EMPTY,
    Batch,
    Checkpoint,
    Control,
    Gap,
    Layout,
    Marks,
    Place,
    Positions,
    Said,
    Seen,
    Stored,
    Topic,
)
from twinstream.spec.marks import Headers
from twinstream.spec.topics import Topic as ControlTopic
from twinstream.status import Publication

Row = tuple[bytes | None, int, Headers]
"""A record, its timestamp in milliseconds, and its headers."""


class MemorySource:
    """Two topics as lists: ``source.append(side, partition, record, timestamp_ms)``.

    While `down` is a sentence, reading fails as it does without a broker; while `looks` is False, no look at
    the topics comes to an end. What happens to a topic in Kafka can be done to these: `retain`, `cut_off`,
    `delete`, `create_anew`, `add_partition`, `set_cleanup_policy`. `control_topic` is that of
    control records, None while it is not there.
    """

    def __init__(self, partitions: int = 1, batch: int = 1000) -> None:
        self._topics = {side: _MemoryTopic("1", partitions) for side in Side}
        self._next: dict[Side, dict[int, int]] = {side: dict.fromkeys(range(partitions), 0) for side in Side}
        self._batch = batch
        self._deleted: set[Side] = set()
        self._looking = False
        self._asked = 0
        self._seen = Seen(0, {})
        self.looks = True
        self._control: list[bytes | None] = []
        self.control_topic: ControlTopic | None = ControlTopic(1, "delete")
        self._next_said: int | None = None
        self.down: str | None = None
        self.read_from_ms: int | None = None
        self._marks: Marks = {side: {} for side in Side}

    def reader(self) -> MemorySource:
        """One more source of the same topics, for another matcher."""
        other = MemorySource(batch=self._batch)
        other._topics, other._deleted, other._control = self._topics, self._deleted, self._control
        return other

    # -- what is done to the topics ------------------------------------------------------------------------

    def append(
        self,
        side: Side,
        partition: int,
        record: bytes | None,
        timestamp_ms: int = 0,
        headers: Headers = (),
    ) -> None:
        """Write a record to the end of a partition."""
        self._topics[side].rows[partition].append((record, timestamp_ms, headers))

    def say(self, record: bytes | None) -> None:
        """Write a record to the control topic."""
        self._control.append(record)

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
        """Delete the topic, if it is there, and create it: empty, and another."""
        self._deleted.discard(side)
        self._marks = {**self._marks, side: {}}
        self._topics[side] = _MemoryTopic(f"{self._topics[side].id}1", partitions)

    def add_partition(self, side: Side) -> None:
        """Add a partition."""
        self._topics[side].rows.append([])
        self._topics[side].first.append(0)

    def set_cleanup_policy(self, side: Side, policy: str) -> None:
        """Change how the topic is cleaned."""
        self._topics[side].cleanup_policy = policy

    # -- the port ------------------------------------------------------------------------------------------

    def topics(self) -> Mapping[Side, Topic]:
        """Both topics as they are now."""
        if self.down:
            raise SourceError(self.down)
        for side in self._deleted:
            raise NoTopic(f"topic {side.name}: there is no such topic")
        return {side: topic.described() for side, topic in self._topics.items()}

    def remember(self, marks: Marks) -> None:
        """Remember them with the topic: they go with it."""
        if not self.down:
            self._marks = {side: {**self._marks[side], **marks[side]} for side in Side}

    def remembered(self) -> Marks:
        """What was remembered last."""
        return self._marks

    def bound(self) -> Positions | None:
        """The first records from `read_from_ms` on; else the ends."""
        return None if self.read_from_ms is None else self.at(self.read_from_ms)

    def at(self, timestamp_ms: int) -> Positions:
        """The first records from that time or later; else the ends."""
        return {side: topic.offsets_at(timestamp_ms) for side, topic in self._topics.items()}

    def seen(self) -> Seen:
        """Both topics as they are now, once they are read."""
        if self.looks and self._looking and not self.down:
            topics = {
                side: None if side in self._deleted else self._topics[side].described() for side in Side
            }
            unchanged = topics == self._seen.topics
            self._seen = Seen(self._asked, self._seen.topics if unchanged else topics)
        return self._seen

    def look(self) -> int:
        """The number of the next look; `seen` takes it."""
        self._asked += 1
        return self._asked

    def control(self) -> Control | None:
        """The control topic as it is now."""
        return Control(self.control_topic)

    def assign(self, positions: Positions) -> None:
        """Read from these positions on."""
        self._next = {side: dict(positions[side]) for side in Side}
        self._looking = True

    def extend(self, side: Side, partition: int, offset: int) -> None:
        """Read one more partition, from this offset on."""
        self._next[side][partition] = offset

    def poll(self, side: Side, timeout: float) -> Sequence[Batch | Gap]:  # noqa: ARG002
        """The next records of the first partition that has some. It never waits."""
        if self.down or side in self._deleted:
            return ()
        topic = self._topics[side]
        for partition, start in self._next[side].items():
            if partition >= len(topic.rows):
                continue
            first = topic.first[partition]
            if not first <= start <= topic.end(partition):
                self._next[side][partition] = first
                return (Gap(side, partition, start, first),)
            rows = topic.rows[partition][start - first : start - first + self._batch]
            if rows:
                self._next[side][partition] = start + len(rows)
                records, timestamps, headers = zip(*rows, strict=True)
                offsets = range(start, start + len(rows))
                return (Batch(side, partition, records, offsets, timestamps, headers),)
        return ()

    def recall(self, places: Iterable[Place], seconds: float) -> Mapping[Place, bytes | None]:  # noqa: ARG002
        """The records at some places, as far as they are retained; none while it is down."""
        return {} if self.down else {place: self._topics[place[0]].record(*place[1:]) for place in places}

    def follow(self, position: int | None) -> None:
        """Read the control topic from this offset on."""
        self._next_said = position or 0

    def said(self) -> Sequence[Said]:
        """The next records of the control topic."""
        if self.down or self._next_said is None:
            return ()
        first = self._next_said
        said = [Said(first + n, record) for n, record in enumerate(self._control[first:][: self._batch])]
        self._next_said += len(said)
        return said

    def heard_all(self) -> bool:
        """Whether all records of the control topic were said."""
        there = self.control_topic is not None
        return there and self._next_said is not None and self._next_said >= len(self._control)

    def ends(self) -> Positions:
        """The end of each partition."""
        return {side: topic.described().ends for side, topic in self._topics.items()}

    def trouble(self) -> str | None:
        """What `down` says."""
        return self.down

    def close(self) -> None:
        """Nothing to give back."""


class _MemoryTopic:
    """One topic: records by partition, and the offset of the first of each."""

    def __init__(self, name: str, partitions: int) -> None:
        self.id = name
        self.rows: list[list[Row]] = [[] for _ in range(partitions)]
        self.first = [0] * partitions
        self.cleanup_policy = "delete"

    def record(self, partition: int, offset: int) -> bytes | None:
        """The record at an offset; None where there is none."""
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

    def described(self) -> Topic:
        first_times = [rows[0][1] for rows in self.rows if rows]
        ends = {partition: self.end(partition) for partition in range(len(self.rows))}
        first = dict(enumerate(self.first))
        return Topic(self.id, first, ends, min(first_times, default=None), self.cleanup_policy)


class MemoryStorage:
    """What several stores of one comparison share: the server, so to speak.

    While `down` is a sentence, every call fails as it does without a server. `clock` tells the time there, in
    seconds since 1970; without one the store does not say.
    """

    def __init__(self) -> None:
        self.owner: str | None = None
        self.lease: str | None = None
        self.writer: str | None = None
        self.stored = EMPTY
        self.questions: list[str] = []
        self.bulletin: tuple[str, bytes] | None = None
        self.down: str | None = None
        self.clock: Callable[[], float] | None = None


class MemoryStore:
    """A store over a `MemoryStorage`. A lease ends by `release`, or by setting ``storage.lease = None``."""

    def __init__(self, storage: MemoryStorage, token: str) -> None:
        self._storage, self._token = storage, token
        self._glanced: Mapping[str, bytes] = {}

    def acquire(self) -> bool:
        """Take ownership if no other lease is running."""
        storage = self._reached()
        if storage.lease not in (None, self._token):
            return False
        storage.owner = storage.lease = self._token
        return True

    def seize(self) -> None:
        """Take ownership, whoever has it."""
        storage = self._reached()
        storage.owner = storage.lease = self._token

    def load(self) -> Stored:
        """What was saved last."""
        return self._reached().stored

    def save(self, checkpoint: Checkpoint) -> None:
        """Let a checkpoint take effect. Raises Fenced or Outdated."""
        storage = self._owned()
        storage.owner = storage.lease = self._token
        stored = storage.stored
        if stored.sequence == checkpoint.sequence:
            return
        late = storage.writer == self._token and checkpoint.sequence < (stored.sequence or 0)
        if late or checkpoint.after not in (None, stored.sequence):
            raise Outdated(f"the store holds checkpoint {stored.sequence}, on which this one does not follow")
        bodies = () if checkpoint.after is None else stored.bodies[checkpoint.dropped :]
        storage.writer = self._token
        storage.stored = Stored(
            checkpoint.sequence,
            checkpoint.head,
            (*bodies, checkpoint.body),
            {**({} if checkpoint.anew else stored.divergences), **checkpoint.divergences},
        )

    def clear(self) -> None:
        """Forget everything that was saved."""
        self._owned().stored = EMPTY

    def renew(self, sequence: int) -> bool:
        """Prolong the lease; whether the checkpoint of this sequence number is there."""
        storage = self._owned()
        storage.owner = storage.lease = self._token
        return storage.stored.sequence == sequence

    def release(self) -> None:
        """Give the lease back, if it is this owner's."""
        storage = self._reached()
        if storage.lease == self._token:
            storage.lease = None

    def answers(self) -> bool:
        """Whether it is there."""
        return not self._storage.down

    def memory_bytes(self) -> int:
        """The bytes that are held."""
        _, head, bodies, divergences = self._reached().stored
        return len(head) + sum(map(len, bodies)) + sum(map(len, divergences.values()))

    def time(self) -> float | None:
        """What time it is by its clock, if it has one."""
        storage = self._storage
        return None if storage.down or storage.clock is None else storage.clock()

    def asked(self) -> bytes:
        """The latest questions."""
        return b"" if self._storage.down else " ".join(self._storage.questions).encode()

    def tell(self, bulletin: bytes) -> None:
        """Leave a bulletin, if the lease is this owner's."""
        storage = self._storage
        if not storage.down and storage.lease == storage.owner == self._token:
            storage.bulletin = (self._token, bulletin)

    def ask(self, question: str) -> bytes | None:
        """Put a question; the bulletin of the owner."""
        storage = self._reached()
        storage.questions = [question, *storage.questions][:32]
        if storage.bulletin is None or not storage.lease == storage.owner == storage.bulletin[0]:
            return None
        return storage.bulletin[1]

    def glance(self) -> Stored:
        """What was saved last, without bodies, and the divergences that are new."""
        stored, before = self._reached().stored, self._glanced
        self._glanced = stored.divergences
        new = {key: report for key, report in self._glanced.items() if before.get(key) != report}
        return stored._replace(bodies=(), divergences=new)

    def close(self) -> None:
        """Nothing to close."""

    def _reached(self) -> MemoryStorage:
        if self._storage.down:
            raise StoreError(self._storage.down)
        return self._storage

    def _owned(self) -> MemoryStorage:
        storage = self._reached()
        if storage.owner not in (None, self._token):
            raise Fenced("another process has taken this comparison over")
        return storage


class MemoryShelf:
    """The stores of all matchers of a comparison: what they share, and the layout `in_effect`, if any."""

    def __init__(self) -> None:
        self.storages: dict[tuple[int, int], MemoryStorage] = {}
        self.in_effect: Layout | None = None
        self.dealer: str | None = None
        self.notes: dict[tuple[int, int], bytes] = {}
        self.secret: bytes | None = None

    def owned_by(self, token: str) -> OwnedShelf:
        """The same for one owner."""
        return OwnedShelf(self, token)

    def storage(self, layout: Layout, number: int) -> MemoryStorage:
        """What the stores of a shard share."""
        place = (0, 0) if layout.shards == 1 else (layout.generation, number)
        return self.storages.setdefault(place, MemoryStorage())


class OwnedShelf:
    """A shelf over a `MemoryShelf`, for an owner."""

    def __init__(self, shelf: MemoryShelf, token: str) -> None:
        self._shelf, self._token = shelf, token

    def layout(self) -> Layout:
        """What is in effect."""
        return self._shelf.in_effect or Layout()

    def claim(self) -> None:
        """Be the one who may put another layout into effect."""
        self._shelf.dealer = self._token

    def replace(self, old: Layout, new: Layout) -> None:
        """Put a layout into effect in the place of another."""
        shelf = self._shelf
        mine = old == new or shelf.dealer == self._token
        if not mine or shelf.in_effect not in (None, old, new):
            raise Fenced("another process has divided this comparison anew")
        shelf.in_effect = new

    def exchange(self, layout: Layout, number: int, note: bytes) -> Mapping[int, bytes]:
        """Leave the note of a shard; the newest of each shard of the layout."""
        notes = self._shelf.notes
        notes[layout.generation, number] = note
        return {shard: text for (generation, shard), text in notes.items() if generation == layout.generation}

    def store(self, layout: Layout, number: int) -> MemoryStore:
        """The store of a shard."""
        return MemoryStore(self._shelf.storage(layout, number), self._token)

    def mask_secret(self, fresh: bytes) -> bytes:
        """The secret of the comparison: the first that was given."""
        self._shelf.secret = self._shelf.secret or fresh
        return self._shelf.secret

    def close(self) -> None:
        """Nothing to close."""


class MemoryPublisher:
    """Keeps what was published, in order, and beside it when what it tells was so, where that was said."""

    def __init__(self) -> None:
        self.published: list[Publication] = []
        self.made_at: list[float | None] = []

    def publish(self, publication: Publication, made_at: float | None = None) -> None:
        """Keep it."""
        self.published.append(publication)
        self.made_at.append(made_at)


class ManualClock:
    """A clock that stands still until `advance` is called; `set` moves its time of day alone."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._start = start
        self._passed = 0.0

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._passed += seconds

    def set(self, seconds: float) -> None:
        """Move the time of day, forwards or back, as somebody does who sets the clock."""
        self._start += seconds

    def now(self) -> datetime:
        """The hand-driven time of day."""
        return datetime.fromtimestamp(self._start + self._passed, UTC)

    def monotonic(self) -> float:
        """Seconds advanced so far."""
        return self._passed


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """The time of day, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()
