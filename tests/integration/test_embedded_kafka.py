"""The embedded Kafka is a real broker, and survives what tests of its clients do to it."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from deploy.embedded.errors import EmbeddedError
from deploy.embedded.kafka import Kafka
from tests.support.stack import MakeTopic

pytestmark = [pytest.mark.requires_kafka, pytest.mark.timeout(180)]


def produce(broker: Kafka, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": broker.brokers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def consume(broker: Kafka, topic: str, count: int) -> list[bytes | None]:
    settings = {"bootstrap.servers": broker.brokers, "group.id": "test", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    try:
        consumer.subscribe([topic])
        return [message.value() for message in consumer.consume(count, timeout=30)]
    finally:
        consumer.close()


def partitions(broker: Kafka, topic: str) -> int:
    metadata = AdminClient({"bootstrap.servers": broker.brokers}).list_topics(topic, timeout=10)
    return len(metadata.topics[topic].partitions)


def test_what_is_produced_is_consumed(kafka: Kafka, topic: MakeTopic) -> None:
    name = topic()
    produce(kafka, name, [b"one", b"two"])
    assert consume(kafka, name, 2) == [b"one", b"two"]


def test_a_topic_has_the_partitions_it_was_created_with(kafka: Kafka, topic: MakeTopic) -> None:
    assert partitions(kafka, topic(partitions=3)) == 3


def test_a_topic_that_exists_is_refused_by_name(kafka: Kafka, topic: MakeTopic) -> None:
    name = topic()
    with pytest.raises(EmbeddedError, match=f"topic '{name}' cannot be created: .*already exists"):
        kafka.create_topic(name)


def test_a_topic_is_not_created_by_asking_for_it(kafka: Kafka) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.brokers})
    assert admin.list_topics("nobody-made-this", timeout=10).topics["nobody-made-this"].error is not None
    assert "nobody-made-this" not in admin.list_topics(timeout=10).topics


def test_a_broker_killed_and_restarted_keeps_its_data_and_its_address(own_kafka: Kafka) -> None:
    address = own_kafka.brokers
    produce(own_kafka, own_kafka.create_topic("kept"), [b"one"])
    own_kafka.kill()
    own_kafka.restart()
    assert own_kafka.brokers == address
    assert consume(own_kafka, "kept", 1) == [b"one"]


def test_a_paused_broker_answers_nothing_until_it_is_resumed(kafka: Kafka, topic: MakeTopic) -> None:
    name = topic()
    kafka.pause()
    try:
        with pytest.raises(KafkaException):
            AdminClient({"bootstrap.servers": kafka.brokers}).list_topics(name, timeout=1)
    finally:
        kafka.resume()
    assert partitions(kafka, name) == 1
