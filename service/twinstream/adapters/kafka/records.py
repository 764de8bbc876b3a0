"""Reads single records of topics at given offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from twinstream.errors import SourceError

FORWARD = 1000
"""Up to so many records are read and skipped rather than seeking past them."""
SILENCE_SECONDS = 10.0
METADATA_SECONDS = 2.0
_DEFAULTS: dict[str, str | int | bool] = {
    "group.id": "twinstream.replay",
    "auto.offset.reset": "error",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": 50,
    "log_level": 0,
}


class FoundRecord(NamedTuple):
    """A record, None for a tombstone, and its timestamp."""

    record: bytes | None
    timestamp_ms: int


def know(consumer: Consumer, topic: str, seconds: float = METADATA_SECONDS) -> None:
    """Ask for the metadata of a topic before a consumer is assigned some of it; best effort.

    librdkafka looks up unknown topics only once a second, and reads none of them meanwhile.
    """
    with suppress(KafkaException):
        consumer.list_topics(topic, max(0.001, min(seconds, METADATA_SECONDS)))


def records_at(
    brokers: str,
    places: Iterable[tuple[str, int, int]],
    properties: Mapping[str, str | int | bool],
    read: Callable[[Message], bytes | None] = Message.value,
) -> dict[tuple[str, int, int], FoundRecord]:
    """The records at some places (topic, partition, offset), without those that no longer exist.

    It joins no group and commits nothing. Raises SourceError if Kafka does not answer.
    """
    wanted: dict[tuple[str, int], list[int]] = {}
    for topic, partition, offset in sorted(set(places)):
        wanted.setdefault((topic, partition), []).append(offset)
    try:
        consumer = Consumer({**_DEFAULTS, **properties, "bootstrap.servers": brokers})
    except KafkaException as error:
        raise SourceError(f"kafka settings: {error.args[0].str()}") from None
    found: dict[tuple[str, int, int], FoundRecord] = {}
    try:
        for (topic, partition), offsets in wanted.items():
            for offset, record in of_partition(
                consumer, topic, partition, offsets, read, lambda: SILENCE_SECONDS
            ):
                if record is not None:
                    found[topic, partition, offset] = record
    except TimeoutError:
        raise SourceError(f"kafka at {brokers} does not answer: is it there, and is {topic}?") from None
    finally:
        consumer.close()
    return found


def of_partition(
    consumer: Consumer,
    topic: str,
    partition: int,
    offsets: Sequence[int],
    read: Callable[[Message], bytes | None],
    patience: Callable[[], float],
) -> Iterator[tuple[int, FoundRecord | None]]:
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
                yield left.pop(), FoundRecord(read(message), message.timestamp()[1])


def _check(error: KafkaError) -> None:
    """Ignore errors about offsets that no longer, or do not yet, exist. Raises SourceError for all others."""
    if error.code() not in (KafkaError._AUTO_OFFSET_RESET, KafkaError._PARTITION_EOF):
        raise SourceError(f"Kafka cannot be read: {error.str()}")
