"""Queries from topics to topics, run to the end of their input."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession

from deploy.embedded.kafka import Kafka
from tests.support.commands import twinstream
from tests.support.stack import MakeTopic
from twinstream.spark import records

ORIGIN = ("topic", "partition", "offset")
EVENTS = [{"k": "abc"[n % 3], "n": n} for n in range(25)]
SPEC = """
version: 1
name: sink
reference: {{topic: {}}}
candidate: {{topic: {}}}
order: {{per_key: [k]}}
{}
"""
REPLAYS = "duplicates: {policy: replays, horizon: 10}"


class Record(NamedTuple):
    """A record of Kafka."""

    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes | None]


@dataclass(frozen=True)
class Pipelines:
    """A session, a broker, and topics; queries run to the end of their input, in batches of ten records."""

    spark: SparkSession
    kafka: Kafka
    topic: MakeTopic
    folder: Path

    def input(self, events: Sequence[Any], *, partitions: int = 1) -> str:
        """A topic with events, in turns in its partitions."""
        name = self.topic(partitions=partitions)
        self.write(name, events, partitions=partitions)
        return name

    def write(self, topic: str, events: Sequence[Any], *, partitions: int = 1) -> None:
        producer = Producer({"bootstrap.servers": self.kafka.brokers, "enable.idempotence": True})
        for place, event in enumerate(events):
            producer.produce(topic, json.dumps(event).encode(), partition=place % partitions)
        assert producer.flush(30) == 0

    def rows(self, topic: str, fields: str) -> DataFrame:
        """The events of a topic as columns, with the columns that name their input record."""
        reader = self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.kafka.brokers)
        reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
        read = reader.option("maxOffsetsPerTrigger", 10).load()
        event = f"inline(array(from_json(cast(value as string), '{fields}')))"
        return read.selectExpr(event, *ORIGIN)

    def records(self, topic: str, fields: str = "k STRING, n INT") -> DataFrame:
        return records(self.rows(topic, fields), key=["k"], keep=ORIGIN)

    def run(
        self, rows: DataFrame, sink: Callable[[DataFrame, int], None], checkpoint: str | None = None
    ) -> str:
        """Run a query to the end of its input; returns its checkpoint."""
        place = checkpoint or str(self.folder / uuid.uuid4().hex)
        writer = rows.writeStream.foreachBatch(sink).option("checkpointLocation", place)
        writer.trigger(availableNow=True).start().awaitTermination()
        return place

    def read(self, topic: str) -> list[Record]:
        """All records of a topic, partition by partition."""
        consumer = Consumer({"bootstrap.servers": self.kafka.brokers, "group.id": "reads", "log_level": 0})
        found = []
        try:
            for partition in consumer.list_topics(topic, 10).topics[topic].partitions:
                place = TopicPartition(topic, partition, 0)
                _, end = consumer.get_watermark_offsets(place, 10)
                consumer.assign([place])
                while len(found) < 1_000_000 and (position := _position(consumer, place)) < end:
                    message = consumer.poll(10)
                    assert message is not None, f"{topic}: nothing at {position}, and its end is {end}"
                    found.append(Record(message.key(), message.value(), dict(message.headers() or [])))
        finally:
            consumer.close()
        return found


def _position(consumer: Consumer, place: TopicPartition) -> int:
    (at,) = consumer.position([place])
    return max(at.offset, place.offset)


@pytest.fixture
def pipelines(session: SparkSession, kafka: Kafka, topic: MakeTopic, tmp_path: Path) -> Pipelines:
    return Pipelines(session, kafka, topic, tmp_path)


def compared(pipelines: Pipelines, one: str, other: str, more: str = REPLAYS) -> dict[str, Any]:
    (pipelines.folder / "spec.yaml").write_text(SPEC.format(one, other, more))
    brokers = ("--brokers", pipelines.kafka.brokers, "--json")
    _, out, err = twinstream("check", "spec.yaml", *brokers, folder=pipelines.folder)
    assert not err
    answer: dict[str, Any] = json.loads(out)
    return answer


def attempts(records: list[Record]) -> Counter[str]:
    """How many records each attempt of a task wrote, whatever the execution."""
    return Counter(
        (record.headers["twinstream-attempt"] or b"").decode().partition("/")[2] for record in records
    )
