"""Creates, writes and removes the topics of drills. No other topic is written here.

The producer is idempotent: a retry that wrote a record twice would be a difference that nobody planted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from twinstream.adapters.kafka.client import LinkFaults, Properties, admin_client, config_of, reason_of
from twinstream.errors import SettingsError, SourceError
from twinstream.spec.drills import TOPICS, DrillRecord

TIMEOUT_SECONDS = 10.0
WRITE_SECONDS = 60.0
KEPT_MS = 24 * 3_600_000
"""Kafka removes any remaining records after a day."""
_FORBIDDEN = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
}


OnDelivery = Callable[[KafkaError | None, Message], None]


class DrillTopics:
    """The topics of drills on some brokers. `properties` are librdkafka's."""

    def __init__(self, brokers: str, properties: Properties) -> None:
        self._brokers, self._properties, self._link = brokers, properties, LinkFaults()
        self._admin = admin_client(brokers, properties, self._link)

    def create(self, partitions: Mapping[str, int], span_ms: int) -> None:
        """Create topics for records up to `span_ms` old. Raises SettingsError and SourceError."""
        config = {
            "cleanup.policy": "delete",
            "retention.ms": str(KEPT_MS + span_ms),
            "message.timestamp.type": "CreateTime",
        }
        topics = [NewTopic(name, count, config=config) for name, count in partitions.items()]
        asked = self._admin.create_topics(topics, request_timeout=TIMEOUT_SECONDS)
        for name, done in asked.items():
            try:
                done.result()
            except KafkaException as error:
                raise self._refused(f"topic {name} cannot be created", error) from None

    def _refused(self, what: str, error: KafkaException) -> SettingsError | SourceError:
        sentence = f"kafka at {self._brokers}: {what}: {reason_of(error)}"
        if error.args[0].code() in _FORBIDDEN:
            return SettingsError(
                f"{sentence}; let this user create, write, read and delete topics whose names begin with "
                f"{TOPICS}, or name other brokers in --shadow-config"
            )
        return SourceError(sentence)

    def write(self, records: Iterable[tuple[str, DrillRecord]], mark: int | None = None) -> float:
        """Write records, each to its topic, in this order; return when Kafka has them all.

        Returns the monotonic time at which Kafka had the record numbered `mark`, or all. Raises SettingsError
        and SourceError.
        """
        config = config_of(self._brokers, self._properties)
        producer = Producer({**config, "enable.idempotence": True, "linger.ms": 5})
        failed: list[KafkaError] = []
        marked: list[float] = []

        def noted(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failed.append(error)

        def marks(error: KafkaError | None, message: Message) -> None:
            marked.append(time.monotonic())
            noted(error, message)

        for number, (topic, record) in enumerate(records):
            self._produce(producer, topic, record, marks if number == mark else noted)
        left = producer.flush(WRITE_SECONDS)
        if failed:
            raise self._refused("the copies cannot be written", KafkaException(failed[0]))
        if left:
            raise SourceError(f"kafka at {self._brokers} has not taken the copies within {WRITE_SECONDS:g} s")
        return marked[0] if marked else time.monotonic()

    @staticmethod
    def _produce(producer: Producer, topic: str, record: DrillRecord, told: OnDelivery) -> None:
        while True:
            try:
                producer.produce(
                    topic,
                    record.value,
                    record.key,
                    record.partition,
                    on_delivery=told,
                    timestamp=record.timestamp_ms,
                    headers=list(record.headers),
                )
            except BufferError:
                producer.poll(0.1)
            else:
                producer.poll(0)
                return

    def found(self) -> list[str]:
        """The existing topics of all drills. Raises SourceError."""
        try:
            topics = self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics
        except KafkaException as error:
            self._admin.poll(0)
            told = self._link.reason(error)
            raise SourceError(f"kafka at {self._brokers} does not answer: {told}") from None
        return sorted(name for name in topics if name.startswith(TOPICS))

    def remove(self, topics: Sequence[str], groups: Sequence[str]) -> list[str]:
        """Remove topics and consumer groups; returns those that remain, each with the reason."""
        names = [name for name in topics if name.startswith(TOPICS)]
        left = []
        asked = self._admin.delete_topics(names, request_timeout=TIMEOUT_SECONDS) if names else {}
        for name, done in asked.items():
            if (reason := _outcome(done, KafkaError.UNKNOWN_TOPIC_OR_PART)) is not None:
                left.append(f"topic {name} ({reason})")
        remove_groups = self._admin.delete_consumer_groups
        asked = remove_groups(list(groups), request_timeout=TIMEOUT_SECONDS) if groups else {}
        for name, done in asked.items():
            if (reason := _outcome(done, KafkaError.GROUP_ID_NOT_FOUND)) is not None:
                left.append(f"consumer group {name} ({reason})")
        return left

    def groups(self, prefix: str) -> list[str]:
        """The consumer groups whose names begin so; none if Kafka does not allow listing them."""
        with suppress(KafkaException):
            listed = self._admin.list_consumer_groups(request_timeout=TIMEOUT_SECONDS).result()
            return sorted(group.group_id for group in listed.valid if group.group_id.startswith(prefix))
        return []


def _outcome(done: object, absent: int) -> str | None:
    """Why something could not be removed; None if it is gone."""
    try:
        done.result()  # type: ignore[attr-defined]
    except KafkaException as error:
        return None if error.args[0].code() == absent else reason_of(error)
    return None
