"""On real Kafka, no side runs ahead of the other into a limit."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from confluent_kafka import Producer

from deploy.embedded.kafka import Kafka
from loadtest.memory import MemoryPublisher, MemoryRelay, MemoryStorage, MemoryStore
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually
from twinstream.adapters.clocks import SystemClock
from twinstream.adapters.kafka.source import KafkaSource
from twinstream.core.events import Side
from twinstream.intake.backpressure import FULL_POLL
from twinstream.matcher.worker import Ports, Worker
from twinstream.ports import Batch, Gap
from twinstream.spec.load import loads

LIMIT = 50_000
EVENTS, KEYS, HOUR_MS = 200_000, 97, 3_600_000
SPEC = f"""
version: 1
name: lead
reference: {{topic: REFERENCE}}
candidate: {{topic: CANDIDATE}}
order: {{per_key: [k]}}
evidence: {{matched: 1, seconds: 0}}
limits: {{unmatched_events: {LIMIT}, lead: 60s}}
"""

pytestmark = pytest.mark.requires_kafka


class SlowAtFirst(KafkaSource):
    """Brings nothing of the candidate for a while."""

    until = float("inf")

    def poll(self, side: Side, timeout: float) -> Sequence[Batch | Gap]:
        if side is Side.RIGHT and time.monotonic() < self.until:
            time.sleep(timeout)
            return ()
        return super().poll(side, timeout)


def write(kafka: Kafka, topic: str, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": kafka.brokers, "linger.ms": 20})
    begun = int(time.time() * 1000) - HOUR_MS
    for number in range(EVENTS):
        key, at = number % KEYS, begun + number * HOUR_MS // EVENTS
        producer.produce(
            topic, b'{"k": %d, "n": %d}' % (key, number), partition=key % partitions, timestamp=at
        )
        if number % 5_000 == 0:
            producer.flush()
    assert producer.flush(30) == 0


def opened(kafka: Kafka, topics: list[str]) -> tuple[Worker, SlowAtFirst]:
    source = SlowAtFirst(kafka.brokers, f"lead-{topics[0]}", dict(zip(Side, topics, strict=True)), {})
    text = SPEC.replace("REFERENCE", topics[0]).replace("CANDIDATE", topics[1])
    storage = MemoryStorage()
    store, relay = MemoryStore(storage, "one"), MemoryRelay(storage, "one")
    worker = Worker(loads(text), Ports(source, store, relay, MemoryPublisher(), SystemClock()))
    eventually(worker.start, what="the worker starts")
    return worker, source


@pytest.mark.parametrize("partitions", [(1, 1), (12, 3)])
def test_a_candidate_that_is_slow_at_the_start_makes_no_hole(
    kafka: Kafka, topic: MakeTopic, partitions: tuple[int, int]
) -> None:
    topics = [topic(partitions=count) for count in partitions]
    for name, count in zip(topics, partitions, strict=True):
        write(kafka, name, count)
    worker, source = opened(kafka, topics)
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        worker.step()
    a_minute, a_batch_each = EVENTS // 60, FULL_POLL * (partitions[0] + 1)
    assert worker.comparison.unmatched(Side.LEFT) <= a_minute + a_batch_each
    source.until = 0.0
    most = 0

    def all_read() -> bool:
        nonlocal most
        for _ in range(100):
            worker.step()
            most = max(most, sum(worker.comparison.unmatched(side) for side in Side))
        return worker.comparison.matched == EVENTS

    eventually(all_read, seconds=60, what="all is matched")
    worker.stop()
    print(f"at most {most} events waited")
    assert (most < LIMIT * 3 // 4, worker.comparison.holes) == (True, [])
