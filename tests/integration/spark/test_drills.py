"""Faults of a Spark job, on real Spark and Kafka: it goes on, or says in one sentence why not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from deploy.embedded import jars
from deploy.embedded.kafka import Kafka
from tests.integration.spark.conftest import Pipelines, compared
from tests.integration.spark.test_matcher import (
    MORE,
    SHARDS,
    Compared,
    both,
    come_to,
    python_workers,
    reports,
    told,
)
from tests.support.processes import new_mark
from tests.support.service import ServiceProcess
from tests.support.spark import SOCKETS
from tests.support.spark_faults import NewerProcessor
from tests.support.waiting import eventually
from twinstream.adapters.kafka.results import DIVERGENCES, ResultsTopics
from twinstream.errors import StoreError
from twinstream.spark.matcher.claim import make_topics
from twinstream.spec.load import ComparisonFile, loads
from twinstream.status.comparison import ComparisonStatus

__all__ = ["both"]

pytestmark = [
    SOCKETS,
    pytest.mark.nightly,
    pytest.mark.requires_kafka,
    pytest.mark.requires_spark,
    pytest.mark.timeout(900),
]


def is_that_of_check(topics: ResultsTopics, status: ComparisonStatus, given: Compared) -> None:
    """The job has come to the verdict, the accounts and the differences of `check`."""
    whole = compared(given.pipelines, given.reference, given.candidate, MORE)
    accounts: dict[str, Any] = status.accounts.model_dump()
    for account in accounts.values():
        del account["superseded"]
    assert (status.verdict, status.matched) == (whole["verdict"], whole["matched"])
    assert dict(status.divergences.by_kind) == whole["divergences"]["by_kind"]
    assert accounts == whole["accounts"]
    assert reports(topics).keys() == {example["id"] for example in whole["examples"]}


def claim_of(topics: ResultsTopics) -> tuple[int, str]:
    topics.read()
    return topics.claims["sink"]


def are_of_claim(topics: ResultsTopics) -> bool:
    """Whether the last statuses are those of the job with the last claim."""
    _, run = claim_of(topics)
    return {status.run for status in topics.statuses.values()} == {run}


def kill_python(pipelines: Pipelines) -> None:
    for process in python_workers(pipelines.spark):
        os.kill(process, signal.SIGKILL)


# -- records, state and topics -----------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [SHARDS, 1], ids=["where keys are read", "where it is compared"])
def test_a_record_that_kills_the_matcher_each_time_is_named_and_left_out(both: Compared, shards: int) -> None:
    both.more = f"{MORE}\nequality: {{any_of: {{v: 'tests.support.spark_faults:is_right'}}}}"
    events = [{"k": n % 5, "n": n, "v": "poison" if n == 77 else n} for n in range(200)]
    both.write_events(both.reference, events, partitions=3)
    both.write_events(both.candidate, [one for one in events if one["v"] != "poison"], partitions=2)
    file = ComparisonFile(loads(both.text), both.text)
    make_topics(both.pipelines.kafka.brokers, both.results, {})

    def settled() -> ComparisonStatus | None:
        assert query.exception() is None, query.exception()
        status = told(topics, file, shards)
        return status if status is not None and status.matched == 199 else None

    query = DriverProcess(both, "checkpoint", shards)
    with ended(query), both.results_so_far() as topics:
        query.start()
        status = eventually(settled, seconds=300, what="all others are matched", every_seconds=0.3)
    assert status is not None
    assert (status.verdict, status.unmatched.reference, status.unmatched.candidate) == ("INCONCLUSIVE", 0, 0)
    (hole,) = status.holes
    assert hole.reason == (
        f"the matcher fell 3 times while it took offset 15 of {both.reference} partition 2 (reference); "
        "it was left out"
    )


def test_state_of_a_later_version_is_refused_in_one_sentence_and_kept_for_it(
    both: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = random.Random(3)
    both.write(range(1_000), faults)
    make_topics(both.pipelines.kafka.brokers, both.results, {})
    with both.results_so_far() as topics:
        with monkeypatch.context() as later:
            later.setattr("twinstream.spark.matcher.job.ShardProcessor", NewerProcessor)
            with both.job() as query:
                come_to(topics, both.text, 1_000, query)
        both.write(range(1_000, 2_000), faults)
        kill_python(both.pipelines)
        with both.job() as job:
            failure = job.failure()
        assert failure == "the stored state has format 99, this version reads format 3: upgrade Twinstream"
        with monkeypatch.context() as later:
            later.setattr("twinstream.spark.matcher.job.ShardProcessor", NewerProcessor)
            with both.job() as query:
                status = come_to(topics, both.text, 2_000, query)
        kill_python(both.pipelines)
        is_that_of_check(topics, status, both)


def test_results_topics_that_are_deleted_are_made_and_told_everything_again(both: Compared) -> None:
    faults = random.Random(4)
    both.write(range(1_000), faults)
    brokers = both.pipelines.kafka.brokers
    make_topics(brokers, both.results, {})
    gone = [both.results, both.results + DIVERGENCES]
    admin = AdminClient({"bootstrap.servers": brokers})
    with both.results_so_far() as topics, both.job() as query:
        come_to(topics, both.text, 1_000, query)
        before = claim_of(topics)
        for deleted in admin.delete_topics(gone).values():
            deleted.result()
        both.write(range(1_000, 2_000), faults)
        eventually(lambda: are_others(topics, before), seconds=300, what="the job makes its topics again")
        status = come_to(topics, both.text, 2_000, query)
        is_that_of_check(topics, status, both)


def are_others(topics: ResultsTopics, before: tuple[int, str]) -> bool:
    """Whether the topics are there, with another claim than before."""
    try:
        topics.read()
    except StoreError:
        return False
    return topics.claims.get("sink", before)[1] != before[1]


def test_kafka_that_is_away_for_a_while_loses_nothing(pipelines: Pipelines, own_kafka: Kafka) -> None:
    own = Pipelines(pipelines.spark, own_kafka, pipelines.topic, pipelines.folder)
    own_kafka.create_topics({"away.reference": 3, "away.candidate": 2})
    both = Compared(own, "away.reference", "away.candidate", "away.results")
    faults = random.Random(5)
    both.write(range(1_000), faults)
    make_topics(own_kafka.brokers, both.results, {})
    with both.results_so_far() as topics, both.job() as query:
        come_to(topics, both.text, 1_000, query)
        own_kafka.kill()
        own_kafka.start()
        both.write(range(1_000, 2_000), faults)
        status = come_to(topics, both.text, 2_000, query)
        is_that_of_check(topics, status, both)


# -- drivers -----------------------------------------------------------------------------------------------


class DriverProcess:
    """A job as `spark-submit` starts it, in a process of its own."""

    def __init__(self, given: Compared, checkpoint: str, shards: int = SHARDS) -> None:
        folder = given.pipelines.folder
        self.file = folder / "sink.yaml"
        self.file.write_text(given.text)
        self.checkpoint = folder / checkpoint
        self._log = folder / f"{checkpoint}.log"
        settings = {
            "spark.jars": ",".join(map(str, jars.ensure(jars.SPARK))),
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
        }
        options = " ".join(f"--conf {name}={value}" for name, value in settings.items())
        self._environment = {
            **os.environ,
            **new_mark(),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_SUBMIT_ARGS": f"--master local[2] {options} pyspark-shell",
        }
        self._command = [
            *(sys.executable, "-m", "twinstream.spark.matcher", str(self.file)),
            *("--brokers", given.pipelines.kafka.brokers, "--results", given.results),
            *("--checkpoint", str(self.checkpoint), "--shards", f"{shards}", "--seconds", "0.2"),
        ]

    def start(self) -> DriverProcess:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stderr=log, env=self._environment, start_new_session=True
            )
        return self

    def signal(self, number: int) -> None:
        """Send a signal to the driver and its JVM."""
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait(30)

    def said(self) -> str:
        return self._log.read_text()

    def exception(self) -> str | None:
        """What it said when it ended; None while it runs."""
        return None if self.process.poll() is None else self.said()[-2_000:]

    def is_in_a_batch(self) -> bool:
        """Whether the query has planned a batch that it has not committed."""
        planned, done = ({*_numbers(self.checkpoint / name)} for name in ("offsets", "commits"))
        return bool(planned - done)


def _numbers(folder: Path) -> Iterator[int]:
    return (int(file.name) for file in folder.glob("[0-9]*"))


@contextmanager
def ended(*drivers: DriverProcess) -> Iterator[None]:
    try:
        yield
    finally:
        for driver in drivers:
            if hasattr(driver, "process"):
                driver.kill()


def test_a_driver_killed_in_a_batch_goes_on_and_a_second_job_waits_and_takes_over(both: Compared) -> None:
    faults, brokers = random.Random(1), both.pipelines.kafka.brokers
    first, again, other = (DriverProcess(both, name) for name in ("checkpoint", "checkpoint", "another"))
    make_topics(brokers, both.results, {})
    both.write(range(1_000), faults)
    shown = ("--results", both.results, "--shards", f"{SHARDS}")
    service = ServiceProcess(first.file, brokers, "redis://nowhere:1", *shown)
    with ended(first, again, other), both.results_so_far() as topics, service:
        first.start()
        come_to(topics, both.text, 1_000, first)
        both.write(range(1_000, 2_000), faults)
        eventually(first.is_in_a_batch, seconds=120, what="a batch is begun", every_seconds=0.001)
        first.kill()
        again.start()
        status = come_to(topics, both.text, 2_000, again)
        is_that_of_check(topics, status, both)
        service.answers("fail", seconds=240)

        other.start()
        waits = "another job writes about comparison 'sink': this one begins when that has ended"
        eventually(lambda: waits in other.said(), seconds=240, what="the second job waits")
        again.signal(signal.SIGSTOP)
        before = claim_of(topics)
        eventually(lambda: claim_of(topics) != before, seconds=240, what="the second job claims it")
        again.signal(signal.SIGCONT)
        assert again.process.wait(120) == 2
        assert "another job has claimed comparison 'sink' on the results topic" in again.said()
        eventually(lambda: are_of_claim(topics), seconds=300, what="the second job tells")
        status = come_to(topics, both.text, 2_000, other)
        is_that_of_check(topics, status, both)
        service.answers("fail", seconds=240)
        assert {one["id"] for one in service.divergences()} == reports(topics).keys()
        other.kill()
        service.answers("undecided", seconds=60)  # A job that has stopped says nothing any more.
        assert '"gate": "pass"' not in service.log()
