"""The few interfaces that the runtime needs from the outside.

Who implements them: `twinstream.adapters`. Who wires them: `twinstream.bootstrap`. Each has one battery of
checks that every implementation passes, the shipped in-memory ones included.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from twinstream.core.arrivals.sharding import Shard
from twinstream.core.events import Place, Side
from twinstream.spec.decode.headers import Headers
from twinstream.spec.lint.topics import Topic as ControlTopic
from twinstream.status.comparison import Publication

Positions = Mapping[Side, Mapping[int, int]]
"""By side and partition, the offset of the next record to read."""


Recall = Callable[[Iterable[Place], float], Mapping[Place, bytes | None]]
"""The records at some places, read again within so many seconds.

None for one that is not there any more, or is a tombstone; one that could not be read in time is not among
them. Where the source cannot be read none is. It raises nothing.
"""


class Batch(NamedTuple):
    """Consecutive records of one partition of one side, as columns of equal length, 1 or more.

    A record is None where Kafka holds a tombstone. Offsets grow and may have gaps. `headers` are those of
    each record, where the comparison asks for them.
    """

    side: Side
    partition: int
    records: Sequence[bytes | None]
    offsets: Sequence[int]
    timestamps_ms: Sequence[int]
    headers: Sequence[Headers] | None = None


class ControlEntry(NamedTuple):
    """A record of the control topic, None for a tombstone, and its offset."""

    offset: int
    record: bytes | None


class Line(NamedTuple):
    """One line that counts: an event of a side, or the end of it (`record` is None, and no `tombstone`).

    `file` and `number` say where it stands, `position` where in the whole input, counted from 1.
    """

    side: Side
    record: bytes | None
    partition: int
    offset: int
    timestamp_ms: int
    file: str
    number: int
    position: int
    tombstone: bool = False
    headers: Headers = ()


class Gap(NamedTuple):
    """Records that were to be read are not read: from `wanted` on, and `available` is the next.

    The source has lost them, or they are `left_out`, since matchers fell over them.
    """

    side: Side
    partition: int
    wanted: int
    available: int
    left_out: bool = False


class Topic(NamedTuple):
    """A topic as Kafka describes it.

    `id` is another for a topic that was deleted and created anew. `first` and `ends` are by partition the
    first retained offset and the one after the last record; `first_ms` is Kafka's time of the earliest of the
    first records, None where there is none. `cleanup_policy` is None where Kafka may not be asked for it.
    """

    id: str
    first: Mapping[int, int]
    ends: Mapping[int, int]
    first_ms: int | None
    cleanup_policy: str | None


class TopicsLook(NamedTuple):
    """A look at both topics, None for one that is not there; looks are numbered from 1 as they begin.

    A look that found the ids and the partitions of the one before has its `topics`: the very same object.
    """

    number: int
    topics: Mapping[Side, Topic | None]


class Control(NamedTuple):
    """The control topic as Kafka describes it, None for one that is not there."""

    topic: ControlTopic | None


class Mark(NamedTuple):
    """What a consumer group remembers of a partition: the next offset to read, and a note."""

    offset: int
    note: str


Marks = Mapping[Side, Mapping[int, Mark]]
"""By side and partition."""


class Source(Protocol):
    """Both topics, and that of control records. One thread calls it, and it never blocks longer than asked.

    A control topic has one partition; of more the first one is read. One that is not there yet is read when
    it is there. Control records are cumulative, so those that are gone are no gap: reading goes on at the
    first that is there.
    """

    def topics(self) -> Mapping[Side, Topic]:
        """Both topics as they are now. Raises SourceError."""
        ...

    def remember(self, marks: Marks) -> None:
        """Have the consumer group remember these; best effort, it neither waits nor fails."""
        ...

    def remembered(self) -> Marks:
        """What the consumer group remembers. Raises SourceError."""
        ...

    def bound(self) -> Positions | None:
        """The offsets below which nothing is to be read, where that was asked for. Raises SourceError."""
        ...

    def seen(self) -> TopicsLook:
        """The last look; it asks nobody.

        After `assign` the source looks by itself once in a while, and when it is asked to. Before the first
        look its number is 0, and no topic is in it.
        """
        ...

    def look(self) -> int:
        """Have the topics looked at soon, and wait for nothing: the number of a look that begins only now.

        Where it does not come to that, a look of a higher number will do.
        """
        ...

    def control(self) -> Control | None:
        """The control topic as of the last time that the topics were asked for; it asks nobody.

        None where there is none to read, or it is not known how it is.
        """
        ...

    def extend(self, side: Side, partition: int, offset: int) -> None:
        """Read one more partition, from this offset on."""
        ...

    def assign(self, positions: Positions) -> None:
        """Read from these positions on. Called once, before `poll`."""
        ...

    def pause(self, side: Side, partitions: Collection[int]) -> None:
        """Read none of these partitions of a side, and all others: one that was paused from where it was."""
        ...

    def poll(self, side: Side, timeout: float) -> Sequence[Batch | Gap]:
        """What has come for a side within `timeout` seconds; nothing is no error."""
        ...

    def follow(self, position: int | None) -> None:
        """Read the control topic, too: from this offset on, or from its first record.

        Called again it goes on from there.
        """
        ...

    def said(self) -> Sequence[ControlEntry]:
        """What has come on the control topic, in order; it waits for nothing, and nothing is no error."""
        ...

    def heard_all(self) -> bool:
        """Whether all was said that stood on the control topic when it was followed."""
        ...

    def ends(self) -> Positions:
        """The ends of the partitions as last heard of: the offset after the last record."""
        ...

    def trouble(self) -> str | None:
        """Why Kafka cannot be read now, as a sentence; None while it can."""
        ...

    def close(self) -> None:
        """Give everything back. Calling it again does nothing."""
        ...


class Recalling(Source, Protocol):
    """A source that reads records again, beside reading on."""

    def recall(self, places: Iterable[Place], seconds: float) -> Mapping[Place, bytes | None]:
        """See `Recall`."""
        ...


class Archive(Source, Protocol):
    """A source that can be asked what stood in its topics at a time."""

    def at(self, timestamp_ms: int) -> Positions:
        """The first records from that time or later, by Kafka's clock; else the ends. Raises SourceError."""
        ...


class Checkpoint(NamedTuple):
    """What takes effect in one step: a state, and the divergences found since the one before it.

    Each attempt to save has a `sequence` of its own, higher than all before. `after` is the sequence of the
    checkpoint that a delta builds on; without it `body` is a whole base. `head` is small, to be read without
    the bodies; each save replaces it. `divergences`, by id, are new or replace others. With a delta, so many
    of the oldest bodies as `dropped` says go out; a base that is `anew` forgets all divergences before it.
    """

    sequence: int
    after: int | None
    head: bytes
    body: bytes
    divergences: Mapping[str, bytes]
    dropped: int = 0
    anew: bool = False


class Stored(NamedTuple):
    """What a store holds: the last head, the base and then its deltas in order, and all divergences by id.

    Where nothing was saved, `sequence` is None and there is no body.
    """

    sequence: int | None
    head: bytes
    bodies: Sequence[bytes]
    divergences: Mapping[str, bytes]


EMPTY = Stored(None, b"", (), {})
"""Of a store that holds nothing."""


class Store(Protocol):
    """The checkpoints of one comparison, under a lease. Methods but `time` and `close` raise StoreError.

    Only the owner may save. Who takes ownership gets a higher epoch, and every write of an earlier owner is
    refused inside the store, so a process that was paused and wakes up can do no harm. One that ends in the
    middle of a save leaves what was saved before or what it was saving, and nothing in between.
    """

    def acquire(self) -> bool:
        """Take ownership if no other owner's lease is running; True when this one now owns."""
        ...

    def load(self) -> Stored:
        """What was saved last. Raises CheckpointError where a part of it is gone."""
        ...

    def save(self, checkpoint: Checkpoint) -> None:
        """Let a checkpoint take effect in one step, and prolong the lease.

        Saving a sequence number again changes nothing. A base replaces whatever there is but a newer save of
        the same owner, behind which it arrives. Raises Fenced when another owner has taken over, and Outdated
        when the store does not hold what a delta builds on. After any error but Fenced it is open whether it
        took effect: a base, under a new number, is to be next.
        """
        ...

    def clear(self) -> None:
        """Forget everything that was saved. Raises Fenced when another owner has taken over."""
        ...

    def renew(self, sequence: int) -> bool:
        """Prolong the lease; whether the store still holds the checkpoint of this sequence number.

        Raises Fenced when another owner has taken over.
        """
        ...

    def release(self) -> None:
        """Give the lease back, if it is this owner's."""
        ...

    def answers(self) -> bool:
        """Whether the store answers at once, whatever it says: it is asked for a fraction of a second."""
        ...

    def memory_bytes(self) -> int:
        """About how much memory the store needs for this comparison; at most a minute old."""
        ...

    def time(self) -> float | None:
        """Seconds since 1970 by the store's own clock; None where it does not say."""
        ...

    def asked(self) -> bytes:
        """The questions that those who stand by put last, words of 16 letters; none where nobody does.

        For the owner, as is `tell`: neither raises anything, or waits for longer than a fraction of a second.
        """
        ...

    def tell(self, bulletin: bytes) -> None:
        """Leave a bulletin for those who stand by, if this owner's lease is running; it does not last."""
        ...

    def ask(self, question: str) -> bytes | None:
        """Put a question, a word of 16 letters, and get the last bulletin of the owner whose lease runs.

        What any other owner has left is never handed out.
        """
        ...

    def glance(self) -> Stored:
        """What was saved last, without bodies, and only the divergences that came since the last glance.

        It may miss what is being replaced: then the next one has it. Raises CheckpointError.
        """
        ...

    def close(self) -> None:
        """Close connections. Calling it again does nothing."""
        ...


class ShelfStore(Store, Protocol):
    """A store that stands on a shelf, with others of the same comparison."""

    def seize(self) -> None:
        """Take ownership, whoever has it: of a store that is not in effect any more. Raises StoreError."""
        ...

    def head(self) -> bytes:
        """The head of what is in effect, for whoever asks; empty where there is none. Raises StoreError."""
        ...


class Shelf(Protocol):
    """The stores of all shards of one comparison. Every method but `store` and `close` raises StoreError."""

    def shards(self) -> int | None:
        """The number of shards that the state in effect has; None where there is none."""
        ...

    def begin(self, shards: int) -> int:
        """The number in effect: this one, from now on, where there was none."""
        ...

    def replace(self, old: int, new: int) -> None:
        """Put another number into effect. Doing it again changes nothing.

        Raises Fenced where neither of both is in effect.
        """
        ...

    def store(self, shard: Shard) -> ShelfStore:
        """The store of a shard."""
        ...

    def mask_secret(self, fresh: bytes) -> bytes:
        """The secret with which values of the comparison are masked: `fresh`, if it has none yet."""
        ...

    def close(self) -> None:
        """Close connections; those of its stores stay."""
        ...


class Publisher(Protocol):
    """Where a matcher sends what the API shows."""

    def publish(self, publication: Publication, made_at: float | None = None) -> None:
        """Hand over one publication; it is complete when this returns.

        `made_at` says when what it tells was so, on the monotonic clock of this machine; without it, now.
        """
        ...


class Clock(Protocol):
    """Time. `now` is for people, `monotonic` (seconds) for waiting."""

    def now(self) -> datetime:
        """The time of day, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...
