"""A comparison with `keep: hashes` as a user runs it: differences are told from what Kafka still has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from deploy.embedded.kafka import Kafka
from tests.support.commands import twinstream
from tests.support.marks import whole_product
from tests.support.service import ServiceProcess, spec_file
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually

pytestmark = whole_product(seconds=180)

GONE = "‹Kafka no longer has it›"
SAME = [{"k": "a", "n": number} for number in range(20)]


class Hashed:
    """A service on two topics, and what writes them."""

    def __init__(self, kafka: Kafka, topics: tuple[str, str], service: ServiceProcess) -> None:
        self.service, self._kafka, self._topics = service, kafka, topics

    def write(self, *sides: list[dict[str, Any]]) -> None:
        """Write values to the reference, and to the candidate."""
        producer = Producer({"bootstrap.servers": self._kafka.brokers})
        for topic, values in zip(self._topics, sides, strict=True):
            for value in values:
                producer.produce(topic, orjson.dumps(value))
        assert producer.flush(30) == 0

    def forget(self, below: int) -> None:
        """Have Kafka drop what stands below an offset of the reference, as retention does."""
        admin = AdminClient({"bootstrap.servers": self._kafka.brokers})
        for dropped in admin.delete_records([TopicPartition(self._topics[0], 0, below)]).values():
            dropped.result(timeout=10)

    def closed(self, kind: str) -> dict[str, Any] | None:
        """A difference of a kind that is final."""
        found: list[dict[str, Any]] = self.service.get("/divergences")["items"]
        return next((one for one in found if one["kind"] == kind and not one["provisional"]), None)


@pytest.fixture
def hashed(kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path) -> Iterator[Hashed]:
    topics = topic(), topic()
    file = spec_file(tmp_path, "hashed", *topics, more="keep: hashes\nidentity: [k, id]\n")
    service = ServiceProcess(file, kafka.brokers, redis_url)
    service.start()
    try:
        yield Hashed(kafka, topics, service)
    finally:
        service.stop()


def test_a_difference_is_told_from_kafka_and_said_to_be_gone_where_that_has_it_no_more(
    hashed: Hashed,
) -> None:
    hashed.write([*SAME, {"k": "a", "n": 97, "id": 7}], [*SAME, {"k": "a", "n": 98, "id": 7}])
    hashed.write(SAME, SAME)
    eventually(
        lambda: (hashed.closed("changed") or {}).get("fields"), seconds=40, what="a changed event is found"
    )
    changed = hashed.closed("changed") or {}
    assert changed["fields"] == {"n": {"reference": 97, "candidate": 98}}
    hashed.write([{"k": "a", "n": 99}], [])
    eventually(
        lambda: hashed.service.get("")["unmatched"]["reference"] == 1, seconds=30, what="an event waits"
    )
    hashed.service.stop()
    hashed.service.start()
    hashed.forget(42)
    hashed.write(SAME, SAME)
    eventually(lambda: hashed.closed("missing"), seconds=30, what="the lost event is found")
    missing = hashed.closed("missing") or {}
    assert missing["reference"] == GONE
    assert missing["positions"]["reference"]["offset"] == 41
    assert (hashed.closed("changed") or {})["fields"] == changed["fields"], "what was told stays"
    _, told, _ = twinstream("explain", missing["id"], "--service", hashed.service.address)
    told = " ".join(told.split())
    assert f"The reference wrote {GONE} (partition 0 offset 41), and the candidate did not." in told


def test_with_another_secret_nothing_is_compared_and_the_reason_is_named(
    hashed: Hashed, tmp_path: Path, kafka: Kafka, redis_url: str
) -> None:
    hashed.write([*SAME, {"k": "b", "n": 1}], SAME)
    eventually(lambda: hashed.service.get("")["matched"] == 20, seconds=30, what="both are compared")
    hashed.service.stop()
    key = tmp_path / "key"
    key.write_text("another secret of the tests\n")
    key.chmod(0o600)
    other = ServiceProcess(hashed.service.spec, kafka.brokers, redis_url, "--mask-key-file", str(key))
    other.start()
    try:
        eventually(
            lambda: "made with another secret" in str(other.get("")["health"]["reasons"]),
            seconds=30,
            what="the reason is named",
        )
        assert other.get("/gate")["answer"] == "undecided"
    finally:
        other.stop()
