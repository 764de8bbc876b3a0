"""The exit codes of the job are those of the command line."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, KafkaException

from twinstream.errors import CheckpointError, Fenced, SettingsError, StoreError, TwinstreamError
from twinstream.spark.matcher import claim
from twinstream.spark.matcher.__main__ import code_of, failed_by, main

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
