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

    def closed(self, kind: str, member: str = "kind") -> dict[str, Any]:
        """The difference of a kind, once it is final and has this member."""

        def told() -> dict[str, Any] | None:
            found = (one for one in self.service.divergences() if one["kind"] == kind and one[member])
            return next((one for one in found if not one["provisional"]), None)

        return eventually(told, what=f"one that is {kind}, with {member}, is found")


@pytest.fixture
def hashed(kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path) -> Iterator[Hashed]:
    topics = topic(), topic()
    file = spec_file(tmp_path, "hashed", *topics, more="keep: hashes\nidentity: [k, id]\n")
    with ServiceProcess(file, kafka.brokers, redis_url) as service:
        yield Hashed(kafka, topics, service)


def test_a_difference_is_told_from_kafka_and_said_to_be_gone_where_that_has_it_no_more(
    hashed: Hashed,
) -> None:
    hashed.write([*SAME, {"k": "a", "n": 97, "id": 7}], [*SAME, {"k": "a", "n": 98, "id": 7}])
    hashed.write(SAME, SAME)
    changed = hashed.closed("changed", "fields")
    assert changed["fields"] == {"n": {"reference": 97, "candidate": 98}}
    hashed.write([{"k": "a", "n": 99}], [])
    hashed.service.shows(unmatched={"reference": 1, "candidate": 0})
    hashed.service.stop()
    hashed.service.start()
    hashed.forget(42)
    hashed.write(SAME, SAME)
    missing = hashed.closed("missing")
    assert missing["reference"] == GONE
    assert missing["positions"]["reference"]["offset"] == 41
    assert hashed.closed("changed")["fields"] == changed["fields"], "what was told stays"
    _, told, _ = twinstream("explain", missing["id"], "--service", hashed.service.address)
    told = " ".join(told.split())
    assert "Missing from the candidate: an event (Kafka no longer has it). Reference p0:41." in told


def test_with_another_secret_nothing_is_compared_and_the_reason_is_named(
    hashed: Hashed, tmp_path: Path
) -> None:
    hashed.write([*SAME, {"k": "b", "n": 1}], SAME)
    hashed.service.shows(matched=20)
    hashed.service.stop()
    key = tmp_path / "key"
    key.write_text("another secret of the tests\n")
    key.chmod(0o600)
    named = "made with another secret"
    with hashed.service.another("--mask-key-file", str(key)) as other:
        eventually(lambda: named in str(other.get("")["health"]["reasons"]), what="the reason is named")
        assert other.gate() == "undecided"
