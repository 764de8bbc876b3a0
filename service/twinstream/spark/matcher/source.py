"""The source of a worker in a Spark job: Spark reads both topics, and the worker is fed.

What Spark does not read is asked of Kafka by a `Lookout`, which all shards of a Python worker share: how the
topics are, from time to time (see `adapters.kafka.watch`), and single records for `keep: hashes`. The control
topic is small, so each shard follows it by itself: its place there is a part of the state of the shard.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from twinstream.adapters.kafka.client import Properties
from twinstream.adapters.kafka.records import KafkaEnds, KafkaRecall
from twinstream.adapters.kafka.source import ControlReader, reading, record_reader
from twinstream.adapters.kafka.watch import LOOK_SECONDS, TopicsAdmin, TopicWatch
from twinstream.core.events import Place, Side
from twinstream.errors import SourceError
from twinstream.ports import Batch, BeginsMs, Control, ControlEntry, Gap, Marks, Positions, Topic, TopicsLook
from twinstream.spec.file.model import Spec

_POLL_SECONDS = 0.002


class Follower(Protocol):
    """A reader of the control topic: see `Source`."""

    def follow(self, position: int | None) -> None:
        """Read from this offset on, or from the first record."""

    def said(self) -> Sequence[ControlEntry]:
        """The new records."""

    def heard_all(self) -> bool:
        """Whether all records that existed when it was followed have been returned."""

    def close(self) -> None:
        """Release everything."""


class Lookout(Protocol):
    """What the shards of a process ask of Kafka beside Spark: see `Source` and `Recalling`."""

    def topics(self) -> Mapping[Side, Topic]:
        """Both topics as they are now. Raises SourceError."""

    def begins_ms(self) -> BeginsMs:
        """When the partitions begin. Raises SourceError."""

    def control(self) -> Control | None:
        """The control topic as of the last look."""

    def seen(self) -> TopicsLook:
        """The last look."""

    def look(self) -> int:
        """Ask for a look soon."""

    def recall(self, places: Iterable[Place], seconds: float) -> Mapping[Place, bytes | None]:
        """The records at some places."""

    def ended(self, side: Side, positions: Mapping[int, int]) -> Mapping[int, int]:
        """By partition of a side, where no committed record lies behind a position: up to where marks do.

        Raises SourceError.
        """

    def follower(self) -> Follower | None:
        """A new reader of the control topic, if anything depends on it."""


class KafkaLookout:
    """Asks Kafka. `watch` before `seen` and `look`: it looks on a thread of its own."""

    def __init__(self, spec: Spec, brokers: str, properties: Properties) -> None:
        names = {side: spec.version_of(side).topic for side in Side}
        self._names, self._ends = names, KafkaEnds(reading(brokers, spec.name, properties))
        self._config, self._followed = reading(brokers, spec.name, properties), spec.followed
        self._admin = TopicsAdmin(names, brokers, properties, spec.followed)
        self._watch = TopicWatch(self._admin, LOOK_SECONDS)
        self.topics, self.look = self._admin.both, self._watch.look
        self.recall = KafkaRecall(names, self._config, record_reader(spec)).records

    def watch(self) -> KafkaLookout:
        """Begin to look; returns itself."""
        self._watch.start()
        return self

    def begins_ms(self) -> BeginsMs:
        """When the partitions begin."""
        topics = self.topics()
        return {side: self._ends.begins_ms(self._names[side], topics[side].first) for side in Side}

    def control(self) -> Control | None:
        """The control topic as described last."""
        return self._admin.control

    def seen(self) -> TopicsLook:
        """The last look."""
        return self._watch.seen

    def ended(self, side: Side, positions: Mapping[int, int]) -> Mapping[int, int]:
        """By partition, where no committed record lies behind a position: up to where marks do."""
        return self._ends.ended(self._names[side], positions)

    def follower(self) -> Follower | None:
        """A new reader of the control topic."""
        return None if self._followed is None else ControlReader(self._followed, self._config)


class FedSource:
    """A source that reads the control topic alone. `topics` are both as they were when its worker began."""

    def __init__(self, topics: Mapping[Side, Topic], lookout: Lookout) -> None:
        self._topics, self._follower = topics, lookout.follower()
        self._seen, self._look, self.control = lookout.seen, lookout.look, lookout.control
        self._asked = 0
        self._begins_now = self._begins = lookout.begins_ms
        self._ended = lookout.ended
        self._ends = {side: dict(topics[side].ends) for side in Side}
        self._marked: dict[Side, dict[int, int]] = {side: {} for side in Side}

    def reached(self, side: Side, partition: int, end: int, marked: int) -> None:
        """Note the end of a partition, as Kafka told it to the task that read the partition.

        Up to `marked` there are only marks of transactions behind it.
        """
        self._ends[side][partition], self._marked[side][partition] = end, marked

    @contextmanager
    def beginnings_kept(self, spec: Spec) -> Iterator[None]:
        """Ask when the partitions begin, if it matters, and answer that to a process without connections."""
        if not spec.start.is_cut:
            self._begins = _kept(self._begins_now)
        yield
        self._begins = self._begins_now

    def begins_ms(self) -> BeginsMs:
        """When the partitions begin. Raises SourceError."""
        return self._begins()

    def find_marks(self, told: Collection[tuple[Side, int]]) -> None:
        """Find marks behind partitions of which the last batch `told` nothing: it had no record of them."""
        for side, ends in self._seen().written.items():
            known, marked = self._ends[side], self._marked[side]
            beyond = {
                p: known[p]
                for p, end in ends.items()
                if (side, p) not in told and p in known and end > max(known[p], marked.get(p, -1))
            }
            with suppress(SourceError):  # Then they count as not read.
                self._note_marks(side, beyond)

    def _note_marks(self, side: Side, positions: Mapping[int, int]) -> None:
        """Note where only marks of transactions lie behind these positions. Raises SourceError."""
        for partition, marked in self._ended(side, positions).items() if positions else ():
            self.reached(side, partition, positions[partition], marked)

    def seen(self) -> TopicsLook:
        """The last look, without the marks that were told."""
        seen = self._seen()
        return seen._replace(ends=self._unmarked(seen.ends), written=self._unmarked(seen.written))

    def _unmarked(self, ends: Positions) -> Positions:
        """The ends of a look. Where one is beyond all that was told, there are new records, or new marks."""
        return {
            side: {
                place: min(end, self._ends[side][place]) if end <= self._marked[side].get(place, -1) else end
                for place, end in of_side.items()
            }
            for side, of_side in ends.items()
        }

    def look(self) -> int:
        """Request a look."""
        self._asked = self._look()
        return self._asked

    def await_look(self, seconds: float) -> None:
        """Wait for the look requested last, at most so long: this process may get no second batch."""
        until = time.monotonic() + seconds
        while self._seen().number < self._asked and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)

    def topics(self) -> Mapping[Side, Topic]:
        """Both topics as they were."""
        return self._topics

    def remember(self, marks: Marks) -> None:
        """Do nothing: the checkpoint of the query is the one memory of a job."""

    def remembered(self) -> Marks:
        """Nothing."""
        return {side: {} for side in Side}

    def bound(self) -> Positions | None:
        """No bound: the query has its starting offsets."""
        return None

    def extend(self, side: Side, partition: int, offset: int) -> None:
        """Note where a new partition ends; Spark reads it by itself."""
        self._look_behind(side, {partition: offset})

    def assign(self, positions: Positions) -> None:
        """Note which partitions are read to their end; Spark has assigned them."""
        for side in Side:
            self._look_behind(side, positions[side])

    def _look_behind(self, side: Side, positions: Mapping[int, int]) -> None:
        """Find the ends that marks of transactions hide: no task that reads records will tell them."""
        ends = self._ends[side]
        self._note_marks(side, {p: at for p, at in positions.items() if p not in ends or at < ends[p]})

    def pause(self, side: Side, partitions: Collection[int]) -> None:
        """Do nothing: the query limits its batches."""

    def poll(self, side: Side, timeout: float) -> Sequence[Batch | Gap]:
        """Nothing: the worker is fed."""
        return ()

    def follow(self, position: int | None) -> None:
        """Also read the control topic."""
        if self._follower is not None:
            self._follower.follow(position)

    def said(self) -> Sequence[ControlEntry]:
        """The new records of the control topic."""
        return () if self._follower is None else self._follower.said()

    def heard_all(self) -> bool:
        """Whether the control topic was read to its end."""
        return self._follower is not None and self._follower.heard_all()

    def ends(self) -> Positions:
        """The ends of the partitions, as the tasks that read them were told."""
        return self._ends

    def trouble(self) -> str | None:
        """None: a task that cannot read fails."""
        return None

    def close(self) -> None:
        """Leave the control topic; the lookout is shared."""
        if self._follower is not None:
            self._follower.close()


def _kept(begins_ms: Callable[[], BeginsMs]) -> Callable[[], BeginsMs]:
    """What answers as Kafka does now."""
    try:
        told = begins_ms()
    except SourceError as error:
        reason = str(error)
    else:
        return lambda: told

    def fail() -> BeginsMs:
        raise SourceError(reason)

    return fail
