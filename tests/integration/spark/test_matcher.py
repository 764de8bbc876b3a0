"""The matcher as a Spark job: the answers of `check`, over restarts, on real Spark and Kafka."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.integration.spark.conftest import SPEC, Pipelines
from tests.support.secure import SecureKafka
from tests.support.spark import SOCKETS
from tests.support.topics import KafkaTopics
from tests.support.versions import HEAD, PARTITIONS, Version
from tests.support.waiting import eventually
from twinstream.adapters.kafka.results import ResultsTopics
from twinstream.api.state.merging import merged
from twinstream.bootstrap import expectation
from twinstream.core.events import Side
from twinstream.errors import Fenced, SourceError, StoreError
from twinstream.processes.standby import Bulletin
from twinstream.spark.matcher.__main__ import Driver
from twinstream.spark.matcher.claim import Claim, make_topics
from twinstream.spark.matcher.job import Pace, job_of
from twinstream.spark.matcher.processor import Job
from twinstream.spec.load import ComparisonFile, loads
from twinstream.status.comparison import ComparisonStatus, DivergenceReport

pytestmark = [SOCKETS, pytest.mark.requires_kafka, pytest.mark.requires_spark, pytest.mark.timeout(600)]

SHARDS = 3
SAID = {"verdict", "reason", "events", "matched", "unmatched", "holes", "difference_awaits"}
OF_INPUT = """
order: unordered
start: {at: input}
overdue: {clock: input}
keep: hashes
show: [n]
"""
MORE = "show: [k, n, v]\nidentity: [k, n]\nevidence: {matched: 1, seconds: 0}"


class Running:
    """A job that runs as in its driver."""

    def __init__(self, session: SparkSession, job: Job, checkpoint: Path, seconds: float = 0.2) -> None:
        pace = Pace(seconds, records=1_000)
        self._session, self._name = session, f"twinstream {job.spec.name}"
        self._driver = Driver(lambda: session, job, checkpoint, pace, print)
        self._failure = list[Exception]()
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._driver.run()
        except Exception as error:  # noqa: BLE001 - the test has to see it
            self._failure.append(error)
        finally:
            self._driver.close()

    def exception(self) -> Exception | None:
        """Why it has ended."""
        return self._failure[0] if self._failure else None

    def failure(self) -> str:
        """Why it has ended, once it has."""
        self._thread.join(300)
        return str(self.exception())

    def rest(self) -> None:
        """Wait until a batch has ended and the next one has not begun."""
        (query,) = (query for query in self._session.streams.active if query.name == self._name)
        eventually(lambda: not query.status["isTriggerActive"], what="a batch ends", every_seconds=0.05)

    def stop(self) -> None:
        while self._thread.is_alive():
            for query in self._session.streams.active:
                if query.name == self._name:
                    query.stop()
            self._thread.join(0.2)


@dataclass
class Compared:
    """Two topics that are partitioned differently, and a job that compares them."""

    pipelines: Pipelines
    reference: str
    candidate: str
    results: str
    more: str = MORE
    given: str = ""
    kafka: Mapping[str, str] = field(default_factory=dict)
    """Properties of librdkafka for the job."""

    @property
    def text(self) -> str:
        return self.given or SPEC.format(self.reference, self.candidate, self.more)

    @contextmanager
    def job(self, shards: int = SHARDS, seconds: float = 0.2) -> Iterator[Running]:
        """A job on one checkpoint, as after a start of its driver."""
        spark = self.pipelines.spark
        job = job_of(loads(self.text), self.pipelines.kafka.brokers, self.results, shards, self.kafka)
        running = Running(spark, job, self.pipelines.folder / "checkpoint", seconds)
        try:
            yield running
        finally:
            running.stop()

    def write(self, numbers: range, faults: random.Random) -> None:
        """Events for both sides, each in partitions of its own, with a few faults of the candidate."""
        events = [{"k": number % 5, "n": number, "v": number % 5} for number in numbers]
        self.write_events(self.reference, events, partitions=3)
        early = events[:-500]  # so that a hundred later events of their keys settle them
        *changed, lost = faults.sample(early, 5)
        for event in changed:
            event["v"] = -1
        events.remove(lost)
        self.write_events(self.candidate, events, partitions=2)

    def write_events(self, topic: str, events: Sequence[Mapping[str, Any]], partitions: int) -> None:
        """Each key in one partition, which is another on each side."""
        producer = Producer({"bootstrap.servers": self.pipelines.kafka.brokers, "enable.idempotence": True})
        for event in events:
            producer.produce(topic, json.dumps(event).encode(), partition=event["k"] % partitions)
        assert producer.flush(30) == 0

    @contextmanager
    def results_so_far(self) -> Iterator[ResultsTopics]:
        topics = ResultsTopics(self.pipelines.kafka.brokers, self.results, {})
        yield topics
        topics.close()


def told(topics: ResultsTopics, file: ComparisonFile, shards: int = SHARDS) -> ComparisonStatus | None:
    """What all shards together say; None before each has said something."""
    topics.read()
    said = {
        shard: Bulletin.model_validate_json(status.bulletin).said
        for (_, shard), status in topics.statuses.items()
    }
    if len(said) < shards:
        return None
    return said[0].status if shards == 1 else merged(expectation(file, shards), said, datetime.now(UTC))


class Runs(Protocol):
    """A query, or what runs one."""

    def exception(self) -> object: ...


def come_to(
    topics: ResultsTopics,
    text: str,
    reference: int,
    query: Runs,
    seconds: float = 150,
    shards: int = SHARDS,
) -> ComparisonStatus:
    """The status once so many events of the reference are settled, and all that differs is final."""
    file = ComparisonFile(loads(text), text)

    seen: list[ComparisonStatus] = []

    def settled() -> bool:
        assert query.exception() is None, query.exception()
        if (status := told(topics, file, shards)) is None:
            return False
        seen[:] = [status]
        final = status.closed_divergences.total == status.divergences.total
        waiting = status.unmatched.reference + status.unmatched.candidate
        settled_all = status.events.reference == reference and not waiting
        return final and settled_all and not status.difference_awaits

    try:
        eventually(settled, seconds=seconds, what="the shards settle all events", every_seconds=0.3)
    finally:
        print(*(status.model_dump_json(include=SAID) for status in seen))
    return seen[0]


def reports(topics: ResultsTopics) -> dict[str, DivergenceReport]:
    return {
        key: DivergenceReport.model_validate_json(report)
        for of_shard in topics.reports.values()
        for key, (_, report) in of_shard.items()
    }


@pytest.fixture
def both(pipelines: Pipelines) -> Compared:
    reference, candidate = pipelines.topic(partitions=3), pipelines.topic(partitions=2)
    return Compared(pipelines, reference, candidate, f"{reference}.results")


def python_workers(session: SparkSession) -> list[int]:
    """The processes that run Python for the tasks of this session: children of its daemon."""
    daemons = _children(session.sparkContext._gateway.proc.pid)
    return [worker for daemon in daemons for worker in _children(daemon)]


def _children(parent: int) -> list[int]:
    command = ["pgrep", "-P", f"{parent}", "-f", "pyspark.daemon"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


@pytest.mark.nightly
def test_a_job_that_is_started_again_speaks_at_once_and_refuses_another_number_of_shards(
    both: Compared,
) -> None:
    both.write(range(1_000), random.Random(1))
    make_topics(both.pipelines.kafka.brokers, both.results, {})

    def bulletins() -> dict[Any, bytes]:
        topics.read()
        return {shard: status.bulletin for shard, status in topics.statuses.items()}

    with both.results_so_far() as topics:
        with both.job(seconds=5) as query:
            come_to(topics, both.text, 1_000, query)
            query.rest()
        before = bulletins()
        topic = KafkaTopics(both.pipelines.kafka.brokers, {Side.LEFT: both.reference})
        topic.retain(Side.LEFT, 0, 1)  # It was read by then.
        with both.job():
            eventually(
                lambda: len(now := bulletins()) == SHARDS and not now.items() & before.items(),
                seconds=60,
                what="all shards speak, though no record comes",
            )
    with both.job(SHARDS + 1) as job:
        failure = job.failure()
    assert failure == (
        "the checkpoint is one of 3 shards, not 4: give --checkpoint a new location, where the comparison "
        "begins anew, or use the old file and number"
    )


@pytest.mark.nightly
def test_a_state_of_megabytes_is_saved_whole_and_restored(both: Compared) -> None:
    source = random.Random(2)
    events = [{"k": number % 5, "n": number, "v": source.randbytes(3_000).hex()} for number in range(1_000)]
    both.write_events(both.reference, events, partitions=3)
    make_topics(both.pipelines.kafka.brokers, both.results, {})
    file = ComparisonFile(loads(both.text), both.text)

    def all_wait() -> bool:
        assert query.exception() is None, query.exception()
        status = told(topics, file)
        return status is not None and status.unmatched.reference == 1_000

    def passes() -> bool:
        status = told(topics, file)
        return status is not None and status.verdict == "EQUIVALENT"

    with both.results_so_far() as topics, both.job(seconds=3) as query:
        eventually(all_wait, seconds=150, what="all events of the reference wait", every_seconds=0.3)
        query.rest()
        for process in python_workers(both.pipelines.spark):
            os.kill(process, signal.SIGKILL)
        both.write_events(both.candidate, events, partitions=2)
        come_to(topics, both.text, 1_000, query)
        eventually(passes, seconds=60, what="it passes")


@pytest.mark.nightly
def test_a_job_judges_by_the_input_and_holds_digests_over_a_restart(
    pipelines: Pipelines,
) -> None:
    reference, candidate = pipelines.topic(partitions=PARTITIONS), pipelines.topic(partitions=PARTITIONS)
    control = pipelines.topic()
    head = HEAD.format(name="sink", reference=reference, candidate=candidate, control=control)
    both = Compared(pipelines, reference, candidate, f"{reference}.results", given=head + OF_INPUT)
    one = Version(pipelines.kafka, reference, control, "1.8.2")
    other = Version(pipelines.kafka, candidate, control, "1.9.0", first=905)
    one.work(900)
    one.work(100)
    other.work(15)
    other.work(80, drops=frozenset({950}))
    make_topics(pipelines.kafka.brokers, both.results, {})
    with both.results_so_far() as topics:
        with both.job() as query:
            first = come_to(topics, both.text, 100, query)
        one.work(100)
        other.work(100, drops=frozenset({1017}))
        with both.job() as query:
            status = come_to(topics, both.text, 200, query)
        found = reports(topics).values()
    assert (first.matched, first.divergences.total) == (79, 1), "920 to 999 but one"
    assert (status.verdict, status.matched, status.hole_count) == ("DIVERGED", 178, 0), status.holes
    assert status.accounts.reference.before_start == 20
    told = sorted((report.kind, (report.reference or {})["n"]) for report in found)
    assert told == [("missing", 950), ("missing", 1017)], "their records are read again from Kafka"


@pytest.mark.nightly
def test_a_job_reaches_a_broker_that_asks_for_tls_and_a_login(
    pipelines: Pipelines, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with SecureKafka(tmp_path_factory.mktemp("secure")) as kafka:
        kafka.create_topics({"one": 3, "other": 2})
        plain = Compared(replace(pipelines, kafka=kafka), "one", "other", "one.results")
        plain.write(range(1_000), random.Random(1))
        guarded = replace(pipelines, kafka=kafka.guarded)
        both = Compared(guarded, "one", "other", "one.results", kafka=kafka.properties)
        make_topics(kafka.brokers, both.results, {})
        with plain.results_so_far() as topics, both.job() as query:
            status = come_to(topics, both.text, 1_000, query)
    assert (status.verdict, status.divergences.total) == ("DIVERGED", 5)


def test_the_last_claim_wins_and_an_older_job_ends(both: Compared) -> None:
    brokers, said = both.pipelines.kafka.brokers, list[str]()
    make_topics(brokers, both.results, {})
    first, second = (Claim(brokers, both.results, {}, "sink", run) for run in ("first", "second"))
    first.make(said.append)
    first.check()
    stranger = Producer({"bootstrap.servers": brokers})
    for key in (b"stranger", b"sink/zero", b"\xff"):
        stranger.produce(both.results, b"{}", key)
    assert stranger.flush(60) == 0
    second.make(said.append)
    with pytest.raises(Fenced, match="another job has claimed comparison 'sink'"):
        eventually(first.check, what="the first job finds the later claim", seconds=20)
    second.check()
    assert said == []
    first.close()
    second.close()


def test_a_claim_that_kafka_refuses_ends_the_job(both: Compared) -> None:
    brokers = both.pipelines.kafka.brokers
    both.pipelines.kafka.create_topic(both.results, config={"max.message.bytes": "10"})
    make_topics(brokers, both.results, {})
    with (
        closing(Claim(brokers, both.results, {}, "sink", "first")) as claim,
        pytest.raises(SourceError, match=f"refuses the claim of the job on topic {both.results}: .*large"),
    ):
        claim.make(print)


def test_a_topic_that_nobody_made_is_named(both: Compared) -> None:
    with (
        both.results_so_far() as topics,
        pytest.raises(StoreError, match=f"has no topic {both.results}: start the Spark job"),
    ):
        topics.read()
