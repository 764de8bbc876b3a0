"""What an operator, or Kafka itself, does to topics that are being compared."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from tests.support.waiting import eventually
from twinstream.core.events import Side


class KafkaTopics:
    """The topics of both sides on a real broker; the methods are those of `MemorySource`."""

    def __init__(self, brokers: str, names: Mapping[Side, str]) -> None:
        self._brokers, self._names = brokers, names
        self._admin = AdminClient({"bootstrap.servers": brokers, "log_level": 0})

    def append(self, side: Side, partition: int, record: bytes | None, timestamp_ms: int = 0) -> None:
        """Write one record."""
        producer = Producer({"bootstrap.servers": self._brokers, "log_level": 0})
        producer.produce(self._names[side], record, partition=partition, timestamp=timestamp_ms)
        assert producer.flush(30) == 0

    def retain(self, side: Side, partition: int, first: int) -> None:
        """Delete the records below an offset."""
        for done in self._admin.delete_records(
            [TopicPartition(self._names[side], partition, first)]
        ).values():
            done.result(timeout=10)

    def delete(self, side: Side) -> None:
        """Delete the topic."""
        self._admin.delete_topics([self._names[side]])[self._names[side]].result(timeout=10)

    def create_anew(self, side: Side, partitions: int = 1) -> None:
        """Delete the topic, if it is there, and create it."""
        name = self._names[side]
        if name in self._admin.list_topics(timeout=10).topics:
            self.delete(side)
        eventually(lambda: self._created(name, partitions), what=f"{name} is created")

    def _created(self, name: str, partitions: int) -> bool:
        try:
            self._admin.create_topics([NewTopic(name, partitions, 1)])[name].result(timeout=10)
        except KafkaException:
            return False
        return True

    def add_partition(self, side: Side) -> None:
        """Add a partition."""
        name = self._names[side]
        count = len(self._admin.list_topics(name, timeout=10).topics[name].partitions) + 1
        self._admin.create_partitions([NewPartitions(name, count)])[name].result(timeout=10)
        eventually(
            lambda: len(self._admin.list_topics(name, timeout=10).topics[name].partitions) == count,
            what=f"{name} has {count} partitions",
        )

    def set_cleanup_policy(self, side: Side, policy: str) -> None:
        """Change how the topic is cleaned."""
        entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, self._names[side], incremental_configs=[entry])
        for done in self._admin.incremental_alter_configs([resource]).values():
            done.result(timeout=10)


def forget(brokers: str, group: str) -> None:
    """Delete what Kafka remembers of a comparison, so that the next start is a first one."""
    admin = AdminClient({"bootstrap.servers": brokers, "log_level": 0})
    for deleted in admin.delete_consumer_groups([group]).values():
        deleted.result(timeout=20)
