"""Reads single records of topics at given offsets.

`KafkaRecall` reads them beside the matching, within a given time. It uses its own consumer, made on first
use, so that the positions of the matcher do not change. The consumer fetches little at a time, since the
wanted records are scattered. `KafkaEnds` tells with such a consumer whether there is a record at all, and of
which time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from twinstream.adapters.kafka.client import LinkFaults, Properties, opened, reason_of
from twinstream.core.events import Place, Side
from twinstream.errors import SourceError
from twinstream.ports import KeptRecord

FORWARD = 1000
"""Up to so many records are read and skipped rather than seeking past them."""
SILENCE_SECONDS = 10.0
METADATA_SECONDS = 2.0
END_SECONDS = 60.0
"""A task of Spark fails without an answer; Spark itself waits twice as long for a record."""
_DEFAULTS: Properties = {
    "group.id": "twinstream.replay",
    "auto.offset.reset": "error",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": 50,
    "log_level": 0,
}


def know(consumer: Consumer, topic: str, seconds: float = METADATA_SECONDS) -> None:
    """Ask for the metadata of a topic before a consumer is assigned some of it; best effort.

    librdkafka looks up unknown topics only once a second, and reads none of them meanwhile.
    """
    with suppress(KafkaException):
        consumer.list_topics(topic, max(0.001, min(seconds, METADATA_SECONDS)))


def records_at(
    brokers: str,
    topics: Mapping[Side, str],
    places: Iterable[Place],
    properties: Properties,
    read: Callable[[Message], bytes | None],
) -> dict[Place, KeptRecord]:
    """The records of both topics at some places, without those that no longer exist.

    It joins no group and commits nothing. Raises SourceError if Kafka does not answer.
    """
    link = LinkFaults()
    told = {"bootstrap.servers": brokers, "error_cb": link.heard}
    found: dict[Place, KeptRecord] = {}
    with closing(opened(Consumer, {**_DEFAULTS, **properties, **told})) as consumer:
        for (side, partition), offsets in _by_partition(places):
            records = of_partition(consumer, topics[side], partition, offsets, read, lambda: SILENCE_SECONDS)
            try:
                found |= {
                    (side, partition, offset): record for offset, record in records if record is not None
                }
            except TimeoutError:
                why = link.causes or f"is it there, and is {topics[side]}?"
                raise SourceError(f"kafka at {brokers} does not answer: {why}") from None
    return found


def _by_partition(places: Iterable[Place]) -> list[tuple[tuple[Side, int], list[int]]]:
    """The offsets of some places, in order."""
    groups = groupby(sorted(set(places)), itemgetter(0, 1))
    return [(key, [offset for _, _, offset in group]) for key, group in groups]


def of_partition(
    consumer: Consumer,
    topic: str,
    partition: int,
    offsets: Sequence[int],
    read: Callable[[Message], bytes | None],
    patience: Callable[[], float],
) -> Iterator[tuple[int, KeptRecord | None]]:
    """The records at some ascending offsets, each as soon as it is read; None for one that does not exist.

    `patience` gives how long to wait for the next ones, in seconds. Raises TimeoutError if nothing comes
    within that time, and SourceError if Kafka reports an error.
    """
    left, position = list(reversed(offsets)), -FORWARD
    know(consumer, topic, patience())
    while left:
        if not 0 <= left[-1] - position < FORWARD:
            position = left[-1]
            consumer.assign([TopicPartition(topic, partition, position)])
        messages = consumer.consume(min(FORWARD, left[-1] - position + 1), max(0.0, patience()))
        if not messages:
            raise TimeoutError
        for message in messages:
            if (error := message.error()) is not None:
                _check(error)
                yield left.pop(), None
                position = -FORWARD
                break
            position = (message.offset() or 0) + 1
            while left and left[-1] < position - 1:
                yield left.pop(), None
            if left and left[-1] == position - 1:
                yield left.pop(), KeptRecord(read(message), message.timestamp()[1])


_PLACED = (KafkaError._AUTO_OFFSET_RESET, KafkaError._PARTITION_EOF)
"""Errors about offsets that no longer, or do not yet, exist."""


def _check(error: KafkaError) -> None:
    """Ignore errors about offsets. Raises SourceError for all others."""
    if error.code() not in _PLACED:
        raise SourceError(f"Kafka cannot be read: {error.str()}")


_SPARING: Properties = {
    "fetch.message.max.bytes": 65_536,
    "fetch.queue.backoff.ms": 10,
    "log_level": 0,
    "queued.min.messages": 1,
    "statistics.interval.ms": 0,
}


class KafkaRecall:
    """Reads records of `topics` again, with the properties of the source. `read` gets one from a message."""

    def __init__(
        self,
        topics: Mapping[Side, str],
        config: Properties,
        read: Callable[[Message], bytes | None],
    ) -> None:
        self._topics, self._config, self._read = dict(topics), {**config, **_SPARING}, read
        self._consumer: Consumer | None = None
        self._turn = 0

    def records(self, places: Iterable[Place], seconds: float) -> dict[Place, bytes | None]:
        """See `ports.Recall`. Partitions take turns, so that one that hangs does not delay all others."""
        until = time.monotonic() + seconds
        found: dict[Place, bytes | None] = {}
        try:
            consumer = self._consumer = self._consumer or Consumer(self._config)
            for (side, partition), offsets in self._in_turn(places):
                topic = self._topics[side]
                for offset, record in of_partition(
                    consumer, topic, partition, offsets, self._read, lambda: until - time.monotonic()
                ):
                    found[side, partition, offset] = None if record is None else record.record
        except (TimeoutError, SourceError, KafkaException):
            pass  # Records not read in time, for whatever reason, are asked for again.
        return found

    def _in_turn(self, places: Iterable[Place]) -> list[tuple[tuple[Side, int], list[int]]]:
        """The offsets by partition, each time starting with another one."""
        groups = _by_partition(places)
        self._turn += 1
        first = self._turn % max(1, len(groups))
        return groups[first:] + groups[:first]

    def close(self) -> None:
        """Close the consumer. Calling it again does nothing."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


class _After(NamedTuple):
    """What lies behind a position: the next committed `record`, and where all records `end`.

    `marked`: up to there lie only marks of transactions; None where there is a record. Between that and the
    end are records of open transactions.
    """

    record: Message | None
    end: int
    marked: int | None


class KafkaEnds:
    """Tells where partitions end, and when they begin, for readers of committed records.

    `config` has the properties of a source.

    Kafka's own end lies behind marks of transactions, too, which are no records. Only the report of a
    consumer that it has come to the end shows that there are no more. It waits `seconds` for an answer.
    """

    def __init__(self, config: Properties, seconds: float = END_SECONDS) -> None:
        self._config, self._seconds = {**config, **_SPARING}, seconds

    @cached_property
    def _consumer(self) -> Consumer:
        return opened(Consumer, self._config)

    def end(self, topic: str, partition: int, position: int) -> tuple[int, int]:
        """The end of the committed records of a partition, and up to where marks of transactions follow it.

        Raises SourceError.
        """
        [(_, after)] = self._after(topic, {partition: position})
        return (after.end, after.end) if after.marked is None else (position, after.marked)

    def ended(self, topic: str, positions: Mapping[int, int]) -> dict[int, int]:
        """By partition of a topic, where no committed record lies behind a position: up to where marks do.

        Raises SourceError.
        """
        found = self._after(topic, positions)
        return {partition: after.marked for partition, after in found if after.marked is not None}

    def begins_ms(self, topic: str, first: Mapping[int, int]) -> dict[int, int]:
        """The time of the first committed record of each partition that has one.

        Raises SourceError, also while a transaction is open before the first one.
        """
        begins: dict[int, int] = {}
        for partition, after in self._after(topic, first):
            if after.record is not None:
                begins[partition] = after.record.timestamp()[1]
            elif after.marked is None or after.marked < after.end:
                place = f"partition {partition} of topic {topic}"
                raise SourceError(f"{place} begins with an open transaction: wait for its end")
        return begins

    def _after(self, topic: str, positions: Mapping[int, int]) -> Iterator[tuple[int, _After]]:
        """What lies behind some positions, by partition. Raises SourceError."""
        consumer, left = self._consumer, dict(positions)
        know(consumer, topic)
        consumer.assign([TopicPartition(topic, *place) for place in left.items()])
        until = time.monotonic() + self._seconds
        try:
            while left:
                message = consumer.poll(max(0.0, until - time.monotonic()))
                if message is None:
                    raise _silent(topic)
                partition, error = message.partition(), message.error()
                if partition not in left or (error is not None and error.code() not in _PLACED):
                    continue  # It may be read later.
                yield partition, self._told(topic, partition, message)
                del left[partition]
                consumer.incremental_unassign([TopicPartition(topic, partition)])
        except KafkaException as reason:
            raise SourceError(f"{_silent(topic)}: {reason_of(reason)}") from None
        finally:
            consumer.unassign()

    def _told(self, topic: str, partition: int, message: Message) -> _After:
        """What a message says about its partition. Raises KafkaException and SourceError."""
        error = message.error()
        code, record = (None, message) if error is None else (error.code(), None)
        told = self._consumer.get_watermark_offsets(
            TopicPartition(topic, partition), self._seconds, cached=code != KafkaError._AUTO_OFFSET_RESET
        )
        if told is None:
            raise _silent(topic)
        return _After(record, int(told[1]), message.offset() if code == KafkaError._PARTITION_EOF else None)

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def _silent(topic: str) -> SourceError:
    return SourceError(f"kafka does not tell where topic {topic} begins and ends")
