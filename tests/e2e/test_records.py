"""The running service, and what producers may write: transactions that were aborted, odd partitions."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Producer

from deploy.embedded.kafka import Kafka
from tests.support.cases import Case, serving
from tests.support.marks import whole_product
from tests.support.stack import MakeTopic

pytestmark = whole_product()


@pytest.fixture
def topics(topic: MakeTopic) -> tuple[str, str]:
    return topic(), topic()


@pytest.fixture
def case(kafka: Kafka, redis_url: str, topics: tuple[str, str], tmp_path: Path) -> Iterator[Case]:
    with serving(tmp_path, kafka.brokers, redis_url, topics) as case:
        yield case


def _write(producer: Producer, topics: tuple[str, ...], numbers: range) -> None:
    """Events of one key."""
    for topic in topics:
        for number in numbers:
            producer.produce(topic, orjson.dumps({"k": 1, "n": number}))
    producer.flush()


def test_what_a_transaction_put_out_counts_when_it_is_committed_and_never_when_it_is_aborted(
    case: Case, kafka: Kafka, topics: tuple[str, str]
) -> None:
    service = case.service
    pipeline = Producer({"bootstrap.servers": kafka.brokers, "transactional.id": uuid.uuid4().hex})
    pipeline.init_transactions()
    for first in (0, 20, 40):
        pipeline.begin_transaction()
        _write(pipeline, topics, range(first, first + 20))
        pipeline.commit_transaction()
        pipeline.begin_transaction()
        _write(pipeline, topics[1:], range(900, 905))
        pipeline.abort_transaction()
    service.passes_with(60)
    pipeline.begin_transaction()
    _write(pipeline, topics[1:], range(60, 80))
    _write(Producer({"bootstrap.servers": kafka.brokers}), topics[:1], range(60, 80))
    service.shows(unmatched={"reference": 20, "candidate": 0})
    assert service.get("")["events"]["candidate"] == 60, "what is not committed has not come yet"
    pipeline.commit_transaction()
    service.passes_with(80)
    ends = {
        side: {str(each["partition"]): each["end"] for each in progress}
        for side, progress in service.get("")["progress"].items()
    }
    service.shows(verified_up_to=ends)
