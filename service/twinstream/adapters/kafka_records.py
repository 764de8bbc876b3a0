"""Single records of topics, read again at their places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from twinstream.errors import SourceError

FORWARD = 1000
"""Records that are read in passing rather than beginning anew behind them."""
SILENCE_SECONDS = 10.0
_DEFAULTS: dict[str, str | int | bool] = {
    "group.id": "twinstream.replay",
    "auto.offset.reset": "error",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": 50,
    "log_level": 0,
}


class Found(NamedTuple):
    """A record, None for a tombstone, and its time."""

    record: bytes | None
    timestamp_ms: int


def records_at(
    brokers: str,
    places: Iterable[tuple[str, int, int]],
    properties: Mapping[str, str | int | bool],
    read: Callable[[Message], bytes | None] = Message.value,
) -> dict[tuple[str, int, int], Found]:
    """The records at some places (topic, partition, offset), without those that are not there any more.

    It joins no group and commits nothing. Raises SourceError where Kafka does not answer.
    """
    wanted: dict[tuple[str, int], list[int]] = {}
    for topic, partition, offset in sorted(set(places)):
        wanted.setdefault((topic, partition), []).append(offset)
    try:
        consumer = Consumer({**_DEFAULTS, **properties, "bootstrap.servers": brokers})
    except KafkaException as error:
        raise SourceError(f"kafka settings: {error.args[0].str()}") from None
    found: dict[tuple[str, int, int], Found] = {}
    try:
        for (topic, partition), offsets in wanted.items():
            for offset, record in _of_partition(consumer, topic, partition, offsets, read):
                found[topic, partition, offset] = record
    except TimeoutError:
        raise SourceError(f"kafka at {brokers} does not answer: is it there, and is {topic}?") from None
    finally:
        consumer.close()
    return found


def _of_partition(
    consumer: Consumer,
    topic: str,
    partition: int,
    offsets: list[int],
    read: Callable[[Message], bytes | None],
) -> Iterable[tuple[int, Found]]:
    left, position = list(reversed(offsets)), -FORWARD
    while left:
        if not 0 <= left[-1] - position < FORWARD:
            position = left[-1]
            consumer.assign([TopicPartition(topic, partition, position)])
        messages = consumer.consume(min(FORWARD, left[-1] - position + 1), SILENCE_SECONDS)
        if not messages:
            raise TimeoutError
        for message in messages:
            if (error := message.error()) is not None:
                _check(error)
                left.pop()
                position = -FORWARD
                break
            position = (message.offset() or 0) + 1
            while left and left[-1] < position - 1:
                left.pop()
            if left and left[-1] == position - 1:
                yield left.pop(), Found(read(message), message.timestamp()[1])


def _check(error: KafkaError) -> None:
    """What is not there any more, or not yet, is left out. Raises SourceError for all else."""
    if error.code() not in (KafkaError._AUTO_OFFSET_RESET, KafkaError._PARTITION_EOF):
        raise SourceError(f"Kafka cannot be read: {error.str()}")
