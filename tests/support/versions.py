"""Two versions of a pipeline on real Kafka, which mark what they write and say what they have done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer

from deploy.embedded.kafka import Kafka
from tests.support.retries import attempt
from tests.support.service import ServiceProcess
from tests.support.stack import MakeTopic
from twinstream.spec.decode.control import ControlRecord
from twinstream.spec.decode.headers import attempt_headers, input_header

INPUT, PARTITIONS, KEYS = "clicks", 2, 5
HEAD = """
version: 1
name: {name}
reference: {{topic: {reference}, version: "1.8.2"}}
candidate: {{topic: {candidate}, version: "1.9.0"}}
control: {control}
evidence: {{matched: 1, seconds: 0}}
"""


class Version:
    """One version, which has consumed its input from `first` on. Rows go to the partition of their number."""

    def __init__(self, kafka: Kafka, topic: str, control: str, version: str, first: int = 0) -> None:
        self._producer = Producer({"bootstrap.servers": kafka.brokers})
        self._topic, self._control, self._version = topic, control, version
        self._query = f"query-{version}"
        self.consumed = first
        self._written = dict.fromkeys(range(PARTITIONS), 0)
        self.batch = 0

    def work(self, rows: int, *, drops: frozenset[int] = frozenset()) -> None:
        """A micro-batch over so many more records of the input."""
        for number in range(self.consumed, self.consumed + rows):
            if number not in drops:
                header = input_header(INPUT, 0, number)
                self.put({"n": number}, number % PARTITIONS, [header])
        self.consumed += rows
        self.say()

    def attempt(self, marks: str, numbers: Sequence[int]) -> None:
        """Rows of the current batch by one attempt, ``EXECUTION/TASK.ATTEMPT``, in this order."""
        headers = attempt_headers(attempt(f"{self.batch}/{marks}", self._query))
        for n in numbers:
            self.put({"k": n % KEYS, "n": n}, n % KEYS % PARTITIONS, headers)
        self.flush()

    def put(self, value: Any, partition: int, headers: Iterable[tuple[str, bytes]]) -> None:
        """One row."""
        self._written[partition] += 1
        self._producer.produce(self._topic, orjson.dumps(value), partition=partition, headers=list(headers))

    def say(self) -> None:
        """The batch is finished, and the next one begins."""
        self.flush()
        record = ControlRecord(
            version=self._version,
            query_id=self._query,
            run_id="run",
            batch=self.batch,
            attempt="e",
            consumed={INPUT: {0: self.consumed}},
            written={self._topic: self._written},
            rows=0,
        )
        self.batch += 1
        self._producer.produce(self._control, record.model_dump_json())
        self.flush()

    def flush(self) -> None:
        """Return when Kafka has everything."""
        assert self._producer.flush(60) == 0, "Kafka took everything"


class Pair:
    """Both versions, and the service that compares them; `candidate` has consumed from `first` on."""

    def __init__(
        self,
        kafka: Kafka,
        redis: str,
        make: MakeTopic,
        folder: Path,
        more: str,
        *options: str,
        first: int = 0,
    ) -> None:
        reference, candidate = make(partitions=PARTITIONS), make(partitions=PARTITIONS)
        control = make()
        name = f"pair-{control}".replace(".", "-").replace("_", "-").lower()[:60]
        file = folder / f"{name}.yaml"
        file.write_text(
            HEAD.format(name=name, reference=reference, candidate=candidate, control=control) + more
        )
        self.service = ServiceProcess(file, kafka.brokers, redis, *options)
        self.reference = Version(kafka, reference, control, "1.8.2")
        self.candidate = Version(kafka, candidate, control, "1.9.0", first)

    def status(self) -> dict[str, Any]:
        """What the service says of the comparison."""
        found: dict[str, Any] = self.service.get("")
        return found


MakePair = Callable[..., Pair]
"""Takes what `Pair` does after the folder."""


@pytest.fixture
def pair_of(kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path) -> Iterator[MakePair]:
    """Makes both versions and their service, which a test starts and which ends with it."""
    with ExitStack() as stack:

        def make(more: str, *options: str, first: int = 0) -> Pair:
            made = Pair(kafka, redis_url, topic, tmp_path, more, *options, first=first)
            stack.callback(made.service.end)
            return made

        yield make
