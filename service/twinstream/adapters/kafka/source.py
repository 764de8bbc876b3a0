"""Kafka as a source: one consumer for each side, with positions assigned by hand.

Choices, each for a reason:

- Two consumers, so that the side that is behind can be read first, and the other left alone.
- `assign`, never a shared group: the matcher's positions are those of its checkpoint, and it must not disturb
  the pipelines' consumers. The group only remembers progress, in addition to the checkpoint.
- A topic's metadata are asked for before it is assigned, on both sides first: otherwise the first records
  come up to a second late, and not on both sides at once (`kafka_records.know`).
- `auto.offset.reset=error`: a range that Kafka has lost must be reported, not skipped.
- `isolation.level=read_committed`: a pipeline never wrote what it aborted.
- `fetch.queue.backoff.ms=10`: its default of a second stalls catching up.
- `enable.partition.eof`: the end of a partition may lie behind transaction markers, and aborted records.
  Only the consumer's report of the end shows that everything was read: such a stretch is `Passed`.
- Columns by `map` over the C methods of a message: six times cheaper than a call from Python for each.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, cast

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from twinstream.adapters.kafka.client import Properties, opened, reason_of
from twinstream.adapters.kafka.records import KafkaEnds, KafkaRecall, know
from twinstream.adapters.kafka.watch import LOOK_SECONDS, TopicsAdmin, TopicWatch
from twinstream.core.events import Place, Side
from twinstream.errors import SourceError
from twinstream.ports import (
    Batch,
    BeginsMs,
    Control,
    ControlEntry,
    Gap,
    Item,
    Mark,
    Marks,
    Passed,
    Positions,
    Topic,
    TopicsLook,
)
from twinstream.spec.decode.deletions import row_or_deletion
from twinstream.spec.decode.formats.envelope import envelope
from twinstream.spec.decode.headers import Headers
from twinstream.spec.file.model import Spec

BATCH_RECORDS = 1000
LATEST = -1
BEGIN_SECONDS = 3.0
"""To learn when a topic begins; meanwhile nothing else is done."""
GROUP_TIMEOUT_SECONDS = 10.0
_NO_GROUP = {KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED}
"""Without the right to read the group there is no second record of progress."""
METADATA_TIMEOUT_SECONDS = 3.0
SILENCE_US = 5_000_000
"""A broker answers a fetch within `fetch.wait.max.ms`; one that is silent for 5 s is down."""
REFUSED_RETRY_SECONDS = 5.0
"""Until a partition that may not be read is assigned again: only then an idle one shows that it may be."""
_TOLD_ELSEWHERE = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}
"""The looks at the topics tell that a topic or partition is gone."""
_DEFAULTS: Properties = {
    "auto.offset.reset": "error",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "fetch.queue.backoff.ms": 10,
    "fetch.wait.max.ms": 50,
    "fetch.error.backoff.ms": 100,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 65_536,
    "reconnect.backoff.max.ms": 1_000,
    "socket.keepalive.enable": True,
    "socket.timeout.ms": 10_000,
    "statistics.interval.ms": 1_000,
}
_second = itemgetter(1)
# A message with a record has an offset and a partition, which the client's types do not say.
_offset = cast("Callable[[Message], int]", Message.offset)
_partition = cast("Callable[[Message], int]", Message.partition)
_headers = cast("Callable[[Message], Headers | None]", Message.headers)
_key = cast("Callable[[Message], bytes | None]", Message.key)

ValueOf = Callable[[Message], bytes | None]


def whole_record(message: Message) -> bytes:
    """The envelope of a record, for a comparison that reads more than the value."""
    _, timestamp_ms = message.timestamp()
    return envelope(
        message.value(), message.key(), _headers(message) or (), timestamp_ms, _partition(message)
    )


def row_record(message: Message) -> bytes | None:
    """The value of a record, or what stands for a deletion, where rows replace each other."""
    return row_or_deletion(message.value(), _key(message))


def record_reader(spec: Spec) -> ValueOf:
    """How a comparison reads a record of its topics."""
    if spec.folding is not None:
        return row_record
    return whole_record if spec.whole else Message.value


def reading(brokers: str, name: str, properties: Properties) -> Properties:
    """The configuration of a consumer that reads for a comparison."""
    return {**_DEFAULTS, "bootstrap.servers": brokers, "group.id": f"twinstream.{name}", **properties}


class KafkaSource:
    """Both topics of a comparison. `properties` are librdkafka's, and win over ours.

    `read` turns a message into a record (see `record_reader`). `headers` and `keys`: batches carry them, too.
    `control` is the topic of control records, if it is to be read. `read_from`: a time in milliseconds, or
    `LATEST`, before which nothing is read on a first start.
    """

    def __init__(
        self,
        brokers: str,
        name: str,
        topics: Mapping[Side, str],
        properties: Properties,
        read: ValueOf = Message.value,
        *,
        headers: bool = False,
        keys: bool = False,
        control: str | None = None,
        look_seconds: float = LOOK_SECONDS,
        read_from: int | None = None,
    ) -> None:
        config = reading(brokers, name, properties)
        columns = _Columns(read, headers, keys)
        self._readers = {side: _TopicReader(side, topics[side], config, columns) for side in Side}
        self._control = None if control is None else ControlReader(control, config)
        self._recall = KafkaRecall(topics, config, read)
        self._config = config
        self._names, self._read_from = dict(topics), read_from
        self._admin = TopicsAdmin(self._names, brokers, properties, control)
        self._watch = TopicWatch(self._admin, look_seconds)

    def topics(self) -> Mapping[Side, Topic]:
        """Both topics as they are now. Raises SourceError if one is missing, or Kafka does not answer."""
        return self._admin.both()

    def begins_ms(self) -> BeginsMs:
        """When the partitions begin, read with a separate consumer. Raises SourceError."""
        topics = self.topics()
        with closing(KafkaEnds(self._config, BEGIN_SECONDS)) as ends:
            return {side: ends.begins_ms(self._names[side], topic.first) for side, topic in topics.items()}

    def remember(self, marks: Marks) -> None:
        """Commit offsets to the group, asynchronously; a failure is ignored: the next commit says more."""
        for side, reader in self._readers.items():
            reader.commit(marks[side])

    def remembered(self) -> Marks:
        """The group's offsets for the partitions of both topics. Raises SourceError."""
        return {
            side: self._readers[side].committed(list(topic.first)) for side, topic in self.topics().items()
        }

    def bound(self) -> Positions | None:
        """The positions of `read_from`: the ends for `LATEST`, else at that time. Raises SourceError."""
        if self._read_from is None:
            return None
        if self._read_from == LATEST:
            return {side: topic.ends for side, topic in self.topics().items()}
        return self.at(self._read_from)

    def at(self, timestamp_ms: int) -> Positions:
        """The first records from that time on; else the ends. Raises SourceError."""
        topics = self.topics()
        return {side: self._admin.offsets_at(side, topic, timestamp_ms) for side, topic in topics.items()}

    def seen(self) -> TopicsLook:
        """The result of the last look."""
        return self._watch.seen

    def look(self) -> int:
        """Ask for a look soon; returns the number of a look that has not begun yet."""
        return self._watch.look()

    def control(self) -> Control | None:
        """The control topic, as the last look found it."""
        return self._admin.control

    def assign(self, positions: Positions) -> None:
        """Read from these positions on."""
        for reader in self._readers.values():
            reader.know()
        for side, reader in self._readers.items():
            reader.assign(positions[side])
        self._watch.start()

    def extend(self, side: Side, partition: int, offset: int) -> None:
        """Read one more partition, from this offset on."""
        self._readers[side].extend(partition, offset)

    def pause(self, side: Side, partitions: Collection[int]) -> None:
        """Read none of these partitions of a side, and all others."""
        self._readers[side].pause(frozenset(partitions))

    def poll(self, side: Side, timeout: float) -> Sequence[Item]:
        """What comes for a side within `timeout` seconds."""
        return self._readers[side].poll(timeout)

    def recall(self, places: Iterable[Place], seconds: float) -> Mapping[Place, bytes | None]:
        """The records at some places, read with a separate consumer."""
        return self._recall.records(places, seconds)

    def follow(self, position: int | None) -> None:
        """Also read the control topic, from this offset on or from its first record."""
        if self._control is not None:
            self._control.follow(position)

    def said(self) -> Sequence[ControlEntry]:
        """The new records of the control topic."""
        return () if self._control is None else self._control.said()

    def heard_all(self) -> bool:
        """Whether the end of the control topic was reached."""
        return self._control is not None and self._control.heard_all()

    def ends(self) -> Positions:
        """The ends of the partitions as of the latest fetch; it asks no broker."""
        return {side: reader.ends() for side, reader in self._readers.items()}

    def trouble(self) -> str | None:
        """Why Kafka cannot be read now."""
        troubles = (reader.trouble() for reader in self._readers.values())
        return next(filter(None, troubles), self._watch.trouble)

    def close(self) -> None:
        """Close all consumers."""
        self._watch.stop()
        self._recall.close()
        if self._control is not None:
            self._control.close()
        for reader in self._readers.values():
            reader.close()


class _Columns(NamedTuple):
    """What is read of each message: its record, and if asked for its headers and its key."""

    read: ValueOf
    headers: bool
    keys: bool


class _TopicReader:
    """One side: a consumer with hand-assigned positions. `columns` are as the source was told."""

    def __init__(self, side: Side, topic: str, config: Properties, columns: _Columns) -> None:
        self._side, self._topic, self._columns = side, topic, columns
        self._group = config["group.id"]
        self._link = _Link(str(config["bootstrap.servers"]))
        callbacks = {"error_cb": self._link.failed, "stats_cb": self._link.measured}
        self._consumer = opened(Consumer, {**config, **callbacks, "logger": _quiet_logger()})
        self._partitions: list[int] = []
        self._next: dict[int, int] = {}
        self._lost: dict[int, int] = {}
        self._refused: dict[int, KafkaError] = {}
        self._refused_until = 0.0
        self._paused: frozenset[int] = frozenset()
        self._closed = False

    def know(self) -> None:
        know(self._consumer, self._topic)

    def assign(self, positions: Mapping[int, int]) -> None:
        self._partitions = list(positions)
        self._next.update(positions)
        self._consumer.assign([TopicPartition(self._topic, p, offset) for p, offset in positions.items()])

    def commit(self, marks: Mapping[int, Mark]) -> None:
        offsets = [TopicPartition(self._topic, p, mark.offset, mark.note) for p, mark in marks.items()]
        with suppress(KafkaException, RuntimeError):
            if offsets:
                self._consumer.commit(offsets=offsets, asynchronous=True)

    def committed(self, partitions: list[int]) -> dict[int, Mark]:
        places = [TopicPartition(self._topic, partition) for partition in partitions]
        try:
            found = self._consumer.committed(places, timeout=GROUP_TIMEOUT_SECONDS)
        except KafkaException as error:
            if error.args[0].code() in _NO_GROUP:
                return {}
            raise SourceError(f"kafka does not answer for group {self._group}: {reason_of(error)}") from error
        return {
            place.partition: Mark(place.offset, place.metadata or "")
            for place in found
            if place.error is None and place.offset >= 0
        }

    def extend(self, partition: int, offset: int) -> None:
        self._partitions.append(partition)
        self._next[partition] = offset
        self.know()
        self._consumer.incremental_assign([TopicPartition(self._topic, partition, offset)])

    def pause(self, partitions: frozenset[int]) -> None:
        """Pause partitions: their fetched records are dropped, and fetched again when they resume."""
        before, self._paused = self._paused, partitions
        self._consumer.pause([TopicPartition(self._topic, p) for p in sorted(partitions - before)])
        self._consumer.resume([TopicPartition(self._topic, p) for p in sorted(before - partitions)])

    def poll(self, timeout: float) -> Sequence[Item]:
        if self._refused and time.monotonic() >= self._refused_until:
            self._try_again()
        messages = self._consumer.consume(BATCH_RECORDS, timeout)
        errors: list[Message] = []
        if any(map(Message.error, messages)):
            errors = [message for message in messages if message.error() is not None]
            messages = [message for message in messages if message.error() is None]
        batches = list(self._batches(messages))
        passed = list(self._passed(errors))  # Last: the records before an error show that they could be read.
        gaps = list(self._gaps()) if self._lost else []
        return [*batches, *passed, *gaps]

    def _batches(self, messages: list[Message]) -> Iterator[Batch]:
        if not messages:
            return
        partitions = list(map(_partition, messages))
        if partitions.count(partitions[0]) == len(partitions):
            yield self._batch(partitions[0], messages)
            return
        for partition, group in groupby(zip(partitions, messages, strict=True), key=itemgetter(0)):
            yield self._batch(partition, list(map(_second, group)))

    def _batch(self, partition: int, messages: list[Message]) -> Batch:
        first, last = _offset(messages[0]), _offset(messages[-1])
        self._next[partition] = last + 1
        if self._refused:
            self._refused.pop(partition, None)
        gapless = last - first == len(messages) - 1
        return Batch(
            self._side,
            partition,
            list(map(self._columns.read, messages)),
            range(first, last + 1) if gapless else list(map(_offset, messages)),
            list(map(_second, map(Message.timestamp, messages))),
            [_headers(message) or () for message in messages] if self._columns.headers else None,
            list(map(_key, messages)) if self._columns.keys else None,
        )

    def _passed(self, messages: list[Message]) -> Iterator[Passed]:
        """Note the errors that were told. At the end of a partition, all that lies before it is passed."""
        for message in messages:
            error = message.error()
            if error is None:
                continue
            partition = _partition(message)
            if error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._lost[partition] = _offset(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._refused.pop(partition, None)
                if (end := _offset(message)) > self._next[partition]:
                    self._next[partition] = end
                    yield Passed(self._side, partition, end)
            elif partition in self._next and error.code() not in _TOLD_ELSEWHERE:
                self._refused[partition] = error
                self._refused_until = time.monotonic() + REFUSED_RETRY_SECONDS

    def _try_again(self) -> None:
        """Assign the refused partitions again: Kafka then reports records, the end, or the refusal."""
        self._refused_until = time.monotonic() + REFUSED_RETRY_SECONDS
        for partition in self._refused.keys() - self._paused:
            self._assign_again(partition, self._next[partition])

    def _assign_again(self, partition: int, offset: int) -> None:
        self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])
        self._consumer.incremental_assign([TopicPartition(self._topic, partition, offset)])

    def _gaps(self) -> Iterator[Gap]:
        """Lost ranges; each partition resumes at its new beginning, as soon as Kafka reports it."""
        for partition, wanted in tuple(self._lost.items()):
            place = TopicPartition(self._topic, partition)
            try:
                available, _ = self._consumer.get_watermark_offsets(place, timeout=METADATA_TIMEOUT_SECONDS)
            except KafkaException:
                continue
            self._assign_again(partition, available)
            del self._lost[partition]
            self._next[partition] = available
            yield Gap(self._side, partition, wanted, available)

    def ends(self) -> dict[int, int]:
        places = (TopicPartition(self._topic, partition) for partition in self._partitions)
        ends = {
            place.partition: self._consumer.get_watermark_offsets(place, cached=True)[1] for place in places
        }
        return {partition: end for partition, end in ends.items() if end >= 0}

    def trouble(self) -> str | None:
        return self._link.sentence() or self._refusal()

    def _refusal(self) -> str | None:
        if not self._refused:
            return None
        partition, error = next(iter(self._refused.items()))
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return f"kafka does not let this user read topic {self._topic}: extend its ACL"
        return f"partition {partition} of topic {self._topic} cannot be read: {error.str()}"

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._consumer.close()


class ControlReader:
    """The control topic: a consumer of its one partition, which connects when it is told to follow.

    A lost range is skipped, since control records are cumulative. `config` is that of a consumer (`reading`).
    """

    def __init__(self, topic: str, config: Properties) -> None:
        self._topic = topic
        self._config = {
            **config,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 10_000,
        }
        self._consumer: Consumer | None = None
        self._reached_end = False

    def follow(self, position: int | None) -> None:
        """See `Source.follow`."""
        self.close()
        self._consumer = Consumer({**self._config, "logger": _quiet_logger()})
        know(self._consumer, self._topic)
        place = TopicPartition(self._topic, 0, OFFSET_BEGINNING if position is None else position)
        self._consumer.assign([place])

    def said(self) -> Sequence[ControlEntry]:
        """See `Source.said`."""
        messages = [] if self._consumer is None else self._consumer.consume(BATCH_RECORDS, 0.0)
        errors = [error for one in messages if (error := one.error()) is not None]
        if any(error.code() == KafkaError._PARTITION_EOF for error in errors):
            self._reached_end = True
        return [ControlEntry(_offset(one), one.value()) for one in messages if one.error() is None]

    def heard_all(self) -> bool:
        """See `Source.heard_all`."""
        return self._reached_end

    def close(self) -> None:
        """Close the consumer. Calling it again does nothing."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer, self._reached_end = None, False


class _Link:
    """Tells whether Kafka answers, from librdkafka's error callback and its statistics of every second."""

    def __init__(self, brokers: str) -> None:
        self._brokers = brokers
        self._since: float | None = None

    def failed(self, error: KafkaError) -> None:
        """The error callback."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._since = self._since or time.time()

    def measured(self, statistics: str) -> None:
        """The statistics callback: a broker is up when it is connected and its answers are fresh."""
        brokers = orjson.loads(statistics)["brokers"].values()
        answering = [
            broker for broker in brokers if broker["state"] == "UP" and 0 <= broker["rxidle"] < SILENCE_US
        ]
        if answering:
            self._since = None
        elif any(broker["rxidle"] >= SILENCE_US for broker in brokers):
            self._since = self._since or time.time()

    def sentence(self) -> str | None:
        """The problem as a sentence, None if there is none."""
        if self._since is None:
            return None
        moment = time.strftime("%H:%M:%S", time.gmtime(self._since))
        return f"no Kafka broker of {self._brokers} answers since {moment} UTC"


def _quiet_logger() -> logging.Logger:
    """A logger that drops librdkafka's own lines: `trouble` reports what matters."""
    logger = logging.getLogger("twinstream.librdkafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger
