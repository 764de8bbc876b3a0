"""The interfaces between the runtime and the outside world.

`twinstream.adapters` implements them, `twinstream.bootstrap` wires them. Each has one battery of checks that
every implementation passes, including the in-memory ones of tests and benchmarks.
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
"""Reads the records at some places again, within so many seconds.

A record is None if it no longer exists, or is a tombstone; one that could not be read in time is missing from
the result. If the source cannot be read, all are. It raises nothing.
"""


class Batch(NamedTuple):
    """Consecutive records of one partition of one side, as columns of equal length, 1 or more.

    A record is None for a tombstone. Offsets ascend and may have gaps. `headers` and `keys` are those of each
    record, if the comparison needs them.
    """

    side: Side
    partition: int
    records: Sequence[bytes | None]
    offsets: Sequence[int]
    timestamps_ms: Sequence[int]
    headers: Sequence[Headers] | None = None
    keys: Sequence[bytes | None] | None = None


class ControlEntry(NamedTuple):
    """A record of the control topic, None for a tombstone, and its offset."""

    offset: int
    record: bytes | None


class Line(NamedTuple):
    """One line that counts: an event of a side, or the end of it (`record` is None, and no `tombstone`).

    `file` and `number` give its place, `position` its place in the whole input, counted from 1.
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
    key: bytes | None = None


class KeptRecord(NamedTuple):
    """A record as Kafka has it, None for a tombstone, and its timestamp."""

    record: bytes | None
    timestamp_ms: int


class Gap(NamedTuple):
    """Expected records that are not read: those from `wanted` to before `available`, the next one.

    The source has lost them, or they are `left_out`, since matchers fell over them.
    """

    side: Side
    partition: int
    wanted: int
    available: int
    left_out: bool = False


class Passed(NamedTuple):
    """Nothing to compare before `position` of a partition.

    There are marks of transactions, and aborted records. Or records that belong to other shards: `newest_ms`
    is the latest of their Kafka times.
    """

    side: Side
    partition: int
    position: int
    newest_ms: int | None = None


Item = Batch | Gap | Passed
"""What a source reads of a partition, in the order of the partition."""


class Topic(NamedTuple):
    """A topic as Kafka describes it.

    `id` changes if the topic is deleted and created again. `first` and `ends` are, by partition, the first
    retained offset and the one after the last record. `cleanup_policy` is None if Kafka does not allow asking
    for it.
    """

    id: str
    first: Mapping[int, int]
    ends: Mapping[int, int]
    cleanup_policy: str | None


class TopicsLook(NamedTuple):
    """A look at both topics, None for a missing one; looks are numbered from 1 as they begin.

    A look that found the same ids and partitions as the one before has its `topics`: the very same object.
    `ends` are those of the partitions as of this look, before the records of open transactions, and `written`
    those behind these. So both are behind the marks of ended transactions.
    """

    number: int
    topics: Mapping[Side, Topic | None]
    ends: Positions
    written: Positions


class Control(NamedTuple):
    """The control topic as Kafka describes it, None if it is missing.

    `id` changes if the topic is deleted and created again; it is empty for a missing one.
    """

    topic: ControlTopic | None
    id: str = ""


class Mark(NamedTuple):
    """A consumer group's memory of a partition: the next offset to read, and a note."""

    offset: int
    note: str


Marks = Mapping[Side, Mapping[int, Mark]]
"""By side and partition."""

BeginsMs = Mapping[Side, Mapping[int, int]]
"""By side and partition, Kafka's time of the first committed record, where there is one."""


class Source(Protocol):
    """Both topics and the control topic. One thread calls it, and it never blocks longer than asked.

    A control topic has one partition; of several the first one is read. A missing one is read as soon as it
    exists. Control records are cumulative, so deleted ones are no gap: reading continues at the first
    existing one.
    """

    def topics(self) -> Mapping[Side, Topic]:
        """Both topics as they are now. Raises SourceError."""

    def begins_ms(self) -> BeginsMs:
        """When the partitions begin.

        Raises SourceError, also while a transaction is open at the beginning of a partition.
        """

    def remember(self, marks: Marks) -> None:
        """Have the consumer group remember these marks; best effort, it neither waits nor fails."""

    def remembered(self) -> Marks:
        """The marks that the consumer group remembers. Raises SourceError."""

    def bound(self) -> Positions | None:
        """The offsets below which nothing is to be read, if that was requested. Raises SourceError."""

    def seen(self) -> TopicsLook:
        """The last look; it asks no broker.

        After `assign` the source looks by itself from time to time, and on request. Before the first look its
        number is 0, and it has no topics.
        """

    def look(self) -> int:
        """Request a look soon, without waiting; returns the number of a look that has not begun yet.

        If that look is never made, any look with a higher number is as good.
        """

    def control(self) -> Control | None:
        """The control topic as of the last look; it asks no broker.

        None if there is none to read, or its state is unknown.
        """

    def extend(self, side: Side, partition: int, offset: int) -> None:
        """Read one more partition, from this offset on."""

    def assign(self, positions: Positions) -> None:
        """Read from these positions on. Called once, before `poll`."""

    def pause(self, side: Side, partitions: Collection[int]) -> None:
        """Read none of these partitions of a side, and all others; a resumed one goes on where it stopped."""

    def poll(self, side: Side, timeout: float) -> Sequence[Item]:
        """The items of a side that come within `timeout` seconds; none is no error."""

    def follow(self, position: int | None) -> None:
        """Also read the control topic: from this offset on, or from its first record.

        A second call continues from the given offset.
        """

    def said(self) -> Sequence[ControlEntry]:
        """The new records of the control topic, in order; it waits for nothing, and none is no error."""

    def heard_all(self) -> bool:
        """Whether all records that existed on the control topic when it was followed have been returned."""

    def ends(self) -> Positions:
        """The ends of the partitions as last reported: the offset after the last record."""

    def trouble(self) -> str | None:
        """Why Kafka cannot be read now, as a sentence; None while it can."""

    def close(self) -> None:
        """Release everything. Calling it again does nothing."""


class Recalling(Source, Protocol):
    """A source that can read records again, apart from reading on."""

    def recall(self, places: Iterable[Place], seconds: float) -> Mapping[Place, bytes | None]:
        """See `Recall`."""


class Archive(Source, Protocol):
    """A source that can find the positions of its topics at a time."""

    def at(self, timestamp_ms: int) -> Positions:
        """The first records from that time on, by Kafka's clock; else the ends. Raises SourceError."""


class Checkpoint(NamedTuple):
    """A change that takes effect in one step: a state, and the divergences found since the last checkpoint.

    Each attempt to save has its own `sequence`, higher than all before. `after` is the sequence of the
    checkpoint that a delta builds on; without it `body` is a whole base. `head` is small, to be read without
    the bodies; each save replaces it. `divergences`, by id, are new or replace others. With a delta,
    `dropped` is the number of the oldest bodies to remove; a base that is `anew` removes all divergences
    before it.
    """

    sequence: int
    after: int | None
    head: bytes
    body: bytes
    divergences: Mapping[str, bytes]
    dropped: int = 0
    anew: bool = False


class Stored(NamedTuple):
    """The content of a store: the last head, the base with its deltas in order, and all divergences by id.

    If nothing was saved, `sequence` is None and there is no body.
    """

    sequence: int | None
    head: bytes
    bodies: Sequence[bytes]
    divergences: Mapping[str, bytes]


EMPTY = Stored(None, b"", (), {})
"""The content of an empty store."""


class GlancedStore(Protocol):
    """The checkpoints of one comparison for those who look on. Raises StoreError."""

    def glance(self) -> Stored:
        """The saved state without bodies, with only the divergences added since the last glance.

        It may miss a state that is being replaced: the next glance has it. Raises CheckpointError.
        """

    def close(self) -> None:
        """Close connections. Calling it again does nothing."""


class CheckpointStore(GlancedStore, Protocol):
    """The checkpoints of one comparison, under a lease. Every method but `close` raises StoreError.

    Only the owner may save. A new owner gets a higher epoch, and the store refuses every write of an earlier
    owner, so a process that was paused and wakes up can do no harm. A process that ends during a save leaves
    either the state saved before or the one it was saving, never a mixture.
    """

    def acquire(self) -> bool:
        """Take ownership if no other owner's lease is running; returns True if this one is the owner now."""

    def load(self) -> Stored:
        """The state saved last. Raises CheckpointError if a part of it is gone."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Make a checkpoint take effect in one step, and prolong the lease.

        Saving a sequence number again changes nothing. A base replaces everything, except a newer save of the
        same owner that arrived earlier. Raises Fenced if another owner has taken over, and Outdated if the
        store does not hold the base of a delta. After any other error it is unknown whether the save took
        effect: the next one must be a base, with a new number.
        """

    def clear(self) -> None:
        """Delete everything that was saved. Raises Fenced if another owner has taken over."""

    def renew(self, sequence: int) -> bool:
        """Prolong the lease; returns whether the store still holds the checkpoint with this sequence number.

        Raises Fenced if another owner has taken over.
        """

    def release(self) -> None:
        """Release the lease, if it is this owner's."""

    def answers(self) -> bool:
        """Whether the store answers at once, with any answer; it waits only a fraction of a second."""

    def memory_bytes(self) -> int:
        """The approximate memory that the store needs for this comparison; at most a minute old."""


class ShelfStore(CheckpointStore, Protocol):
    """A store on a shelf, with others of the same comparison."""

    def seize(self) -> None:
        """Take ownership of a store that is no longer in effect, whoever has it. Raises StoreError."""

    def head(self) -> bytes:
        """The head of the state in effect, for any reader; empty if there is none. Raises StoreError."""


class Heard(NamedTuple):
    """A bulletin, the token of the owner that wrote it, and the time of the relay when it was read."""

    seconds: float
    token: str
    bulletin: bytes


class Asked(NamedTuple):
    """A request that was left in a relay, and the ticket by which its outcome is found."""

    ticket: str
    request: bytes


class HeardRelay(Protocol):
    """Passes the status of a comparison from its owner to other processes; `heard` raises StoreError.

    Each comparison has one, or each shard of it. The owner is the one of the checkpoints.
    """

    def heard(self) -> Heard | None:
        """The bulletin of the owner whose lease is running; never that of any other owner."""

    def close(self) -> None:
        """Close connections. Calling it again does nothing."""


class OwnersRelay(HeardRelay, Protocol):
    """Its end for the owner. These methods raise nothing, and wait only a fraction of a second."""

    def time(self) -> float | None:
        """Seconds since 1970 by the clock of the relay; None if it does not give the time."""

    def tell(self, bulletin: bytes) -> None:
        """Replace the bulletin, if this owner's lease is running; it expires."""

    def take(self) -> Asked | None:
        """The request that waits, if this owner's lease is running. It is removed: nobody takes it again."""

    def answer(self, ticket: str, outcome: bytes) -> None:
        """Leave the outcome of a request; it expires."""


class StatusRelay(OwnersRelay, Protocol):
    """The whole relay: it also passes resets from other processes to the owner. These raise StoreError."""

    def ask(self, request: bytes) -> Asked:
        """Leave a request for the owner, unless one waits; returns the one that waits now.

        It expires within seconds unless `answered` is called.
        """

    def answered(self, ticket: str) -> bytes | None:
        """The outcome of a request, if there is one; else the request is prolonged."""

    def withdraw(self, ticket: str) -> bool:
        """Remove a request; returns False if it does not wait any more."""

    def listened_to(self) -> bool:
        """Whether any process has called `heard` lately, and so may still show an earlier bulletin."""


class ReadShelf(Protocol):
    """The stores and relays of one comparison for those who look on. `shards` raises StoreError."""

    def shards(self) -> int | None:
        """The number of shards of the state in effect; None if there is none."""

    def store(self, shard: Shard) -> GlancedStore:
        """Open the store of a shard."""

    def relay(self, shard: Shard) -> HeardRelay:
        """Open the relay of a shard."""

    def close(self) -> None:
        """Close connections; those of its stores and relays stay."""


class Shelf(ReadShelf, Protocol):
    """The stores and relays of one comparison. `begin`, `replace` and the secret raise StoreError."""

    def begin(self, shards: int) -> int:
        """The number in effect, which is this one from now on if there was none."""

    def replace(self, old: int, new: int) -> None:
        """Put another number into effect. Doing it again changes nothing.

        Raises Fenced if neither number is in effect.
        """

    def store(self, shard: Shard) -> ShelfStore:
        """Open the store of a shard."""

    def relay(self, shard: Shard) -> StatusRelay:
        """Open the relay of a shard."""

    def mask_secret(self, fresh: bytes) -> bytes:
        """The secret that masks values of the comparison: `fresh`, if it has none yet."""

    def set_mask_secret(self, secret: bytes) -> None:
        """Replace that secret."""


class Publisher(Protocol):
    """Receives everything from a matcher that the API shows."""

    def publish(self, publication: Publication, made_at: float | None = None) -> None:
        """Publish one publication; it is complete when this returns.

        `made_at` is when it was true, on the monotonic clock of this machine; without it, now.
        """


class Clock(Protocol):
    """Time. `now` is for people, `monotonic` (seconds) for waiting."""

    def now(self) -> datetime:
        """The time of day, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back."""
