"""The running service on the clock of the input: headers and control records as a pipeline writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer

from deploy.embedded.kafka import Kafka
from tests.support.service import ServiceProcess
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually
from twinstream.spec.control import ControlRecord
from twinstream.spec.marks import InputPosition

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.requires_kafka,
    pytest.mark.requires_redis,
    pytest.mark.timeout(240),
]

SPEC = """
version: 1
name: clocked
reference: {{topic: {reference}, version: "1.8.2"}}
candidate: {{topic: {candidate}, version: "1.9.0"}}
control: {control}
order: unordered
overdue: {{clock: input, window_end: end}}
show: [n, end]
evidence: {{matched: 1, seconds: 0}}
"""
INPUT, PARTITIONS = "clicks", 2


class Pipeline:
    """One version: it writes rows with the input that they come from, and says what it has done."""

    def __init__(self, kafka: Kafka, topic: str, control: str, version: str) -> None:
        self._producer = Producer({"bootstrap.servers": kafka.brokers})
        self._topic, self._control, self._version = topic, control, version
        self._consumed = 0
        self._written = dict.fromkeys(range(PARTITIONS), 0)
        self._batch = 0

    def work(self, rows: int, *, drops: frozenset[int] = frozenset(), watermark: int | None = None) -> None:
        """A micro-batch over so many more records of the input."""
        for number in range(self._consumed, self._consumed + rows):
            if number not in drops:
                header = InputPosition(INPUT, 0, number).header
                self.put({"n": number}, number % PARTITIONS, [header])
        self._consumed += rows
        self.say(watermark)

    def put(self, value: Any, partition: int, headers: list[tuple[str, bytes]]) -> None:
        self._written[partition] += 1
        self._producer.produce(self._topic, orjson.dumps(value), partition=partition, headers=list(headers))

    def say(self, watermark: int | None = None) -> None:
        self._producer.flush()
        record = ControlRecord(
            version=self._version,
            query_id=f"query-{self._version}",
            run_id="run",
            batch=self._batch,
            attempt="e",
            consumed={INPUT: {0: self._consumed}},
            watermark=watermark,
            written={self._topic: self._written},
            rows=0,
        )
        self._batch += 1
        self._producer.produce(self._control, record.model_dump_json())
        self._producer.flush()


class Pair:
    """Both versions, and the service that compares them."""

    def __init__(self, kafka: Kafka, redis: str, make: MakeTopic, folder: Path) -> None:
        reference, candidate = make(partitions=PARTITIONS), make(partitions=PARTITIONS)
        control = make()
        file = folder / "clocked.yaml"
        file.write_text(SPEC.format(reference=reference, candidate=candidate, control=control))
        self.service = ServiceProcess(file, kafka.brokers, redis)
        self.reference = Pipeline(kafka, reference, control, "1.8.2")
        self.candidate = Pipeline(kafka, candidate, control, "1.9.0")

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.service.get("")
        return found

    def found(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.service.get("/divergences")["items"]
        return items


@pytest.fixture
def pair(kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(kafka, redis_url, topic, tmp_path)
    pair.service.start()
    yield pair
    pair.service.stop()


def test_exactly_the_dropped_row_is_missing_in_a_bag_and_a_late_partner_marks_it(pair: Pair) -> None:
    pair.reference.work(100)
    pair.candidate.work(60, drops=frozenset({17}))
    eventually(lambda: pair.status()["verdict"] == "DIVERGED", what="a divergence")
    status = pair.status()
    assert status["matched"] == 59
    (found,) = pair.found()
    assert (found["kind"], found["reference"], found["late"]) == ("missing", {"n": 17}, None)
    assert status["frontier"]["candidate"] == {"at": f"{INPUT} 0: 60", "held_back_by": None}
    pair.service.kill()
    pair.service.start()
    pair.candidate.put({"n": 17}, 1, [InputPosition(INPUT, 0, 17).header])
    pair.candidate.work(40)
    late = eventually(
        lambda: next((each for each in pair.found() if each["late"] is not None), None), what="it is late"
    )
    assert (late["id"], late["kind"]) == (found["id"], "missing")
    eventually(lambda: pair.status()["matched"] == 99, what="the rest matches")
    assert len(pair.found()) == 1
    assert pair.status()["unmatched"] == {"reference": 0, "candidate": 0}


def test_a_candidate_that_stands_still_is_no_difference_and_its_part_of_a_batch_neither(pair: Pair) -> None:
    pair.reference.work(50)
    pair.candidate.work(20)
    pair.candidate.put({"n": 21}, 0, [InputPosition(INPUT, 0, 21).header])
    pair.candidate._producer.flush()
    pair.reference.work(50)
    eventually(lambda: pair.status()["matched"] == 21, what="what is there matches")
    eventually(
        lambda: pair.status()["frontier"]["reference"]["at"] == f"{INPUT} 0: 100",
        what="the reference is heard",
    )
    status = pair.status()
    assert (status["verdict"], status["suspicions"]) == ("EQUIVALENT", 0)
    assert pair.found() == []


def test_a_window_is_missing_when_a_batch_behind_its_watermark_is_read(pair: Pair) -> None:
    for pipeline in (pair.reference, pair.candidate):
        pipeline.work(5)
    pair.reference.put({"end": 60_000}, 0, [])
    pair.reference.say(watermark=60_000)
    pair.candidate.say(watermark=60_000)
    eventually(lambda: pair.status()["events"]["reference"] == 6, what="the window is read")
    assert pair.found() == []
    pair.candidate.say(watermark=61_000)
    eventually(pair.found, what="a divergence")
    (found,) = pair.found()
    assert (found["kind"], found["reference"]) == ("missing", {"end": 60_000})
