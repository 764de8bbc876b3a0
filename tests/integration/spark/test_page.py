"""Every example of docs/pyspark.md runs as it is printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.integration.spark.conftest import Pipelines
from tests.support.spark import SOCKETS
from tests.support.waiting import eventually
from twinstream.spec.decode.control import control_record
from twinstream.spec.load import loads

PAGE = (Path(__file__).parents[3] / "docs" / "pyspark.md").read_text()
pytestmark = [SOCKETS, pytest.mark.requires_kafka, pytest.mark.requires_spark, pytest.mark.timeout(300)]


def block(language: str, having: str) -> str:
    """The example in a language that has a text in it."""
    (found,) = (text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if having in text)
    return found


def run(example: str, names: dict[str, Any]) -> None:
    exec(compile(example, "docs/pyspark.md", "exec"), names)


@pytest.fixture(scope="module")
def names(session: object) -> dict[str, Any]:  # noqa: ARG001 - the example finds the session that there is
    """What the examples of the test library have defined."""
    found: dict[str, Any] = {"__name__": "page"}
    run(block("python", "def test_the_new_version_does_the_same"), found)
    return found


def test_the_first_example_fails_with_the_text_that_is_printed(names: dict[str, Any]) -> None:
    with pytest.raises(AssertionError) as failed:
        names["test_the_new_version_does_the_same"]()
    assert str(failed.value).splitlines()[: len(printed())] == printed()


def printed() -> list[str]:
    """The printed text, without the mark that it was cut."""
    return [line for line in block("text", "DIVERGED").splitlines() if line != "…"]


@pytest.mark.nightly
def test_a_version_is_checked_against_itself_as_printed(
    names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    run(block("python", "self_check("), names)
    assert "3 micro-batches, 3 tasks a shuffle: DIVERGED" in capsys.readouterr().out


@pytest.mark.nightly
def test_the_strategy_finds_no_difference_between_the_versions(names: dict[str, Any]) -> None:
    run(block("python", "strategies.rows("), names)
    names["test_no_input_tells_the_versions_apart"]()


def placed(example: str, pipelines: Pipelines, **topics: str) -> str:
    """An example with the addresses of this run."""
    example = example.replace("broker:9092", pipelines.kafka.brokers)
    example = example.replace("/checkpoints", str(pipelines.folder))
    for name, topic in topics.items():
        example = example.replace(f'"orders.{name}"', f'"{topic}"')
    return example


def test_the_sink_and_the_listener_write_control_records_as_printed(pipelines: Pipelines) -> None:
    events = pipelines.input([{"customer_id": "a", "n": n} for n in range(3)])
    orders = pipelines.rows(events, "customer_id STRING, n INT")
    for having in ("sink = KafkaSink(", "ProgressListener("):
        topics = {"v2": pipelines.topic(), "control": pipelines.topic()}
        found = {"orders": orders, "spark": pipelines.spark}
        run(placed(block("python", having), pipelines, **topics), found)
        if having == "ProgressListener(":
            plain = orders.selectExpr("to_json(struct(n)) AS value").writeStream.queryName("orders")
            plain = plain.format("kafka").option("topic", topics["v2"])
            plain = plain.option("kafka.bootstrap.servers", pipelines.kafka.brokers)
            plain.option("checkpointLocation", str(pipelines.folder / "plain")).start()
        told = eventually(lambda t=topics: pipelines.read(t["control"]), what="a batch is told")
        for query in pipelines.spark.streams.active:
            query.stop()
        record = control_record(told[0].value)
        assert (record.version, record.consumed) == ("1.9.0", {events: {0: 3}})


def test_the_comparison_file_is_one() -> None:
    assert loads(block("yaml", "name: orders")).control == "orders.control"
