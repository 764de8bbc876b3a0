"""The exit codes of the job are those of the command line."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, KafkaException
from pyspark.errors import StreamingQueryException

from twinstream.errors import (
    CheckpointError,
    Fenced,
    NoResults,
    SettingsError,
    SourceError,
    StoreError,
    TwinstreamError,
)
from twinstream.spark.matcher import __main__ as job
from twinstream.spark.matcher import claim
from twinstream.spark.matcher.__main__ import TRIES, Driver, code_of, failed_by, main

SPEC = "version: 1\nname: a\nreference: {topic: r}\ncandidate: {topic: c}\norder: unordered\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("a setting"), 2),
        (CheckpointError("of 4 shards"), 2),
        (Fenced("another job"), 2),
        (StoreError("kafka does not answer"), 4),
        (failed_by("… twinstream.errors.CheckpointError: it is of 4 shards"), 2),
        (failed_by("… twinstream.errors.SourceError: the candidate is not read on\n at …"), 4),
        (failed_by("org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node"), 4),
        (failed_by("java.lang.OutOfMemoryError: Java heap space"), 2),
    ],
)
def test_a_mistake_is_2_and_an_unreachable_kafka_4(error: TwinstreamError, code: int) -> None:
    assert code_of(error) == code


def test_lost_records_are_named_and_the_job_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: Some data may have been lost because …\n"
        "Reason: Could not read records in offset [1200, 2400) for topic partition rides.v1-0\nwith consumer"
    )
    job = Outage(monkeypatch, topics=[False], queries=[StreamingQueryException(failure)])
    with pytest.raises(
        TwinstreamError, match=r"no longer has the records \[1200, 2400\) of rides\.v1-0"
    ) as found:
        job.run()
    assert (code_of(found.value), job.said) == (2, [])


def test_of_an_outage_kafkas_own_client_says_why() -> None:
    failure = "Job aborted\nCaused by: org.apache.kafka.common.errors.TimeoutException: Expiring 2 records"
    assert str(failed_by(failure)) == "the query has failed: Expiring 2 records"


def test_a_job_that_reaches_no_kafka_ends_with_4_and_a_wrong_file_with_2(tmp_path: Path) -> None:
    spec = tmp_path / "a.yaml"
    spec.write_text(SPEC)
    options = [str(spec), "--brokers", "127.0.0.1:1", "--results", "a.results", "--checkpoint", "c"]
    found = CliRunner().invoke(main, options)
    assert found.exit_code == 4
    assert found.stderr.startswith("twinstream: kafka at 127.0.0.1:1 does not answer")
    spec.write_text(SPEC.replace("order", "ordr"))
    assert CliRunner().invoke(main, options).exit_code == 2


def test_a_results_topic_of_several_partitions_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    is_there, described = Future[Any](), Future[Any]()
    is_there.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_ALREADY_EXISTS)))
    described.set_result(MagicMock(partitions=[0, 1, 2]))
    client = MagicMock()
    client.create_topics.return_value = {"a.results": is_there}
    client.describe_topics.return_value = {"a.results": described}
    monkeypatch.setattr(claim, "admin_client", lambda *_: client)
    with pytest.raises(TwinstreamError, match=r"the results topic a\.results has 3 partitions") as found:
        claim.make_topics("", "a.results", {})
    assert code_of(found.value) == 2


AWAY = SourceError("kafka does not answer")


class Outage:
    """What a driver calls: each call returns or raises the next of its results."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, topics: list[Any], queries: list[Any]) -> None:
        self.said: list[str] = []
        self.make_topics, self.claim, self.claims = MagicMock(side_effect=topics), MagicMock(), MagicMock()
        self.claims.return_value = self.claim
        query = MagicMock(lastProgress="a batch")
        query.awaitTermination.side_effect = queries
        made = {"make_topics": self.make_topics, "Claim": self.claims, "start": lambda *_: query}
        for name, port in {**made, "Location": MagicMock(), "stays": MagicMock()}.items():
            monkeypatch.setattr(job, name, port)
        monkeypatch.setattr(job, "LOOK_SECONDS", 0)

    def run(self) -> None:
        Driver(MagicMock(), MagicMock(), "c", MagicMock(), self.said.append).run()


def test_an_outage_of_kafka_is_waited_for_also_where_a_query_that_failed_begins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed = StreamingQueryException("org.apache.kafka.common.errors.TimeoutException: Timed out")
    outage = Outage(monkeypatch, topics=[False, AWAY, AWAY, False], queries=[failed, True])
    outage.run()
    assert outage.said[1:] == 2 * ["kafka does not answer; it is tried again"]
    heard = StreamingQueryException("… twinstream.errors.SourceError: topic a is not described\n at …")
    outage = Outage(monkeypatch, topics=[False, False], queries=[heard, True])
    outage.run()
    assert outage.said == ["topic a is not described; it goes on from its checkpoint"]
    assert outage.claims.call_count == 1, "it goes on with its claim"
    outage = Outage(monkeypatch, topics=[False, *[AWAY] * TRIES], queries=[failed])
    with pytest.raises(SourceError, match="kafka does not answer"):
        outage.run()
    assert outage.make_topics.call_count == TRIES
    outage = Outage(monkeypatch, topics=[AWAY, False], queries=[True])
    with pytest.raises(SourceError):
        outage.run()  # Nothing was compared yet.
    deleted = NoResults("deleted")
    topics = [False, *[AWAY] * (TRIES - 2), False, AWAY, True]
    Outage(monkeypatch, topics=topics, queries=[failed, deleted, True]).run()


@pytest.mark.parametrize("error", [AWAY, NoResults("deleted again")])
def test_a_claim_that_kafka_did_not_take_is_made_again(
    monkeypatch: pytest.MonkeyPatch, error: TwinstreamError
) -> None:
    outage = Outage(monkeypatch, topics=[False, True, False], queries=[NoResults("deleted"), True])
    outage.claim.make.side_effect = [None, error, None]
    outage.run()
    assert (outage.claim.make.call_count, outage.claim.close.call_count) == (3, 2)
