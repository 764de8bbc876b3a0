"""What the driver asks Kafka, and tells it, through the client in Spark's own JVM.

So all options of the write hold here, too: addresses, encryption, passwords. Each call is bounded in time.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, NamedTuple

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

from twinstream.errors import SinkError

PREFIX = "kafka."
"""Spark passes options with this prefix on to the Kafka client."""
SERVERS = f"{PREFIX}bootstrap.servers"
BYTES = "org.apache.kafka.common.serialization.ByteArray"
WAIT_MS = 10_000
"""How long the driver waits for an answer that it needs."""
PATIENCE_MS = 2_000
"""How long it waits for one that it can do without."""

MARKS = 10
"""Offsets at the end of a partition that are searched for a record: marks of transactions take some."""

Offsets = dict[int, int]
"""The next offset of each partition."""


class LastRecord(NamedTuple):
    """The last record of a partition: where it is, and its headers."""

    partition: int
    offset: int
    headers: list[tuple[str, bytes | None]]


class Topics:
    """The topics of one Kafka cluster, seen from the driver; `options` are those of Spark's Kafka writer.

    Raises SinkError if no client can be made with these.
    """

    def __init__(self, jvm: Any, options: Mapping[str, str]) -> None:
        self._jvm, self._kafka = jvm, jvm.org.apache.kafka
        self._clients = jvm.org.apache.kafka.clients
        self._options = {
            name.removeprefix(PREFIX): value for name, value in options.items() if name.startswith(PREFIX)
        }
        answers = {"default.api.timeout.ms": str(WAIT_MS), "request.timeout.ms": str(WAIT_MS)}
        reading = {"key.deserializer": f"{BYTES}Deserializer", "value.deserializer": f"{BYTES}Deserializer"}
        self._answers = answers
        with _asking(f"kafka at {options[SERVERS]}"):
            consumer = self._clients.consumer.KafkaConsumer(self._properties({**answers, **reading}))
        self._consumer = self._closed_with_this(consumer)
        self._producer: Any = None

    def _closed_with_this(self, client: Any) -> Any:
        """A client of Kafka that is closed when these topics are no longer used."""
        let_go = weakref.finalize(self, close_beside, client)
        let_go.atexit = False  # Then the JVM ends, too.
        return client

    def _properties(self, more: Mapping[str, str]) -> Any:
        properties = self._jvm.java.util.Properties()
        for name, value in {**self._options, **more}.items():
            properties.put(name, value)
        return properties

    def partitions(self, topic: str) -> int:
        """The number of partitions of a topic; 0 if there is no such topic.

        Raises:
            SinkError: Kafka does not answer.
        """
        with _asking(f"topic {topic}"):
            known = self._consumer.listTopics().get(topic)
        return 0 if known is None else int(known.size())

    def is_compacted(self, topic: str) -> bool:
        """Whether Kafka throws away records of a topic that have a later one with their key."""
        resource = self._kafka.common.config.ConfigResource
        name = resource(resource.Type.TOPIC, topic)
        with _asking(f"topic {topic}"):
            admin = self._clients.admin.AdminClient.create(self._properties(self._answers))
        try:
            with _asking(f"topic {topic}"):
                asked = admin.describeConfigs(self._jvm.java.util.Collections.singleton(name)).all()
                config = asked.get(WAIT_MS, self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS).get(name)
                return "compact" in str(config.get("cleanup.policy").value())
        finally:
            admin.close()

    def ends(self, topic: str) -> Offsets:
        """The next offset of each partition of a topic."""
        with _asking(f"topic {topic}"):
            known = self._consumer.partitionsFor(topic)
            places = self._jvm.java.util.ArrayList()
            for place in known or ():
                places.add(self._kafka.common.TopicPartition(topic, place.partition()))
            ends = self._consumer.endOffsets(places)
            return {int(entry.partition()): int(ends.get(entry)) for entry in places}

    def write(self, topic: str, value: bytes) -> None:
        """Write one record, and wait a little until Kafka has it.

        Raises:
            SinkError: it has not.
        """
        if self._producer is None:
            limits = {"max.block.ms": PATIENCE_MS, "request.timeout.ms": PATIENCE_MS, "linger.ms": 0}
            limits |= {"delivery.timeout.ms": 2 * PATIENCE_MS}
            writing = {"key.serializer": f"{BYTES}Serializer", "value.serializer": f"{BYTES}Serializer"}
            writing |= {name: str(limit) for name, limit in limits.items()}
            with _asking(f"topic {topic}"):
                producer = self._clients.producer.KafkaProducer(self._properties({**writing, "acks": "all"}))
            self._producer = self._closed_with_this(producer)
        with _asking(f"topic {topic}"):
            record = self._clients.producer.ProducerRecord(topic, bytearray(value))
            milliseconds = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
            self._producer.send(record).get(2 * PATIENCE_MS, milliseconds)

    def last_records(self, topic: str) -> Iterator[LastRecord]:
        """The last record of each partition that has any."""
        for partition, end in self.ends(topic).items():
            with _asking(f"topic {topic}"):
                found = self._read(topic, partition, end - MARKS, end)
            if found:
                headers = [(str(header.key()), header.value()) for header in found[-1].headers().toArray()]
                yield LastRecord(partition, int(found[-1].offset()), headers)

    def newest(self, topic: str, count: int) -> list[bytes]:
        """The values of at most so many newest records of a topic of one partition; a tombstone is empty."""
        end = self.ends(topic).get(0, 0)
        with _asking(f"topic {topic}"):
            return [bytes(record.value() or b"") for record in self._read(topic, 0, end - count, end)]

    def _read(self, topic: str, partition: int, start: int, end: int) -> list[Any]:
        """The records of a range of offsets; those that come within a bounded time."""
        place = self._kafka.common.TopicPartition(topic, partition)
        only = self._jvm.java.util.Collections.singletonList(place)
        self._consumer.assign(only)
        first = int(self._consumer.beginningOffsets(only).get(place))
        self._consumer.seek(place, max(first, start))
        found: list[Any] = []
        until = time.monotonic() + WAIT_MS / 1000
        while self._consumer.position(place) < end and time.monotonic() < until:
            polled = self._consumer.poll(self._jvm.java.time.Duration.ofMillis(PATIENCE_MS))
            found.extend(polled.records(place))
        return [record for record in found if record.offset() < end]


def close_beside(client: Any) -> None:
    """Close a client, which would keep its threads and connections; return at once.

    It is called where Python collects garbage: in any thread, at any time. A JVM that ends may not answer.
    """

    def close() -> None:
        with suppress(Py4JError, OSError):  # the JVM may have gone first
            client.close()

    Thread(target=close, name="closes a client", daemon=True).start()


@contextmanager
def _asking(about: str) -> Iterator[None]:
    """Turn a failure of Kafka's client into one sentence."""
    try:
        yield
    except Py4JJavaError as error:
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        said = str(cause.getMessage() or cause.getClass().getSimpleName())
        raise SinkError(f"{about}: Kafka does not answer as it should: {said}") from None
