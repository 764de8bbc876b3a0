"""A query that keeps Spark's own sink reports its batches, and a lost event is proven by that."""

from __future__ import annotations

import gc
from threading import enumerate as threads
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from tests.integration.spark.conftest import Pipelines
from tests.support.spark import SOCKETS
from tests.support.waiting import eventually
from twinstream.errors import SinkError
from twinstream.spark import ProgressListener
from twinstream.spark.topics import close_beside
from twinstream.spec.decode.control import ControlRecord, control_record

pytestmark = [SOCKETS, pytest.mark.requires_kafka, pytest.mark.requires_spark, pytest.mark.timeout(300)]


def listener(pipelines: Pipelines, topic: str, control: str, **more: Any) -> ProgressListener:
    given = {"brokers": pipelines.kafka.brokers, "query": "plain", "version": "1", **more}
    return ProgressListener(topic=topic, control=control, **given)


@pytest.fixture
def written(pipelines: Pipelines) -> tuple[str, str, list[ControlRecord]]:
    """The input, the output and the control records of a query with Spark's own sink."""
    events = pipelines.input([{"k": "a", "n": n} for n in range(25)], partitions=2)
    out, control = pipelines.topic(), pipelines.topic()
    made = listener(pipelines, out, control)
    pipelines.spark.streams.addListener(made)
    try:
        plain(pipelines, pipelines.records(events).select("key", "value"), out)
        eventually(lambda: len(pipelines.read(control)) >= 3, what="each of three batches is told")
    finally:
        pipelines.spark.streams.removeListener(made)
    return events, out, [control_record(record.value) for record in pipelines.read(control)]


def plain(pipelines: Pipelines, rows: DataFrame, out: str) -> None:
    writer = rows.writeStream.format("kafka").queryName("plain").option("topic", out)
    writer = writer.option("kafka.bootstrap.servers", pipelines.kafka.brokers)
    writer = writer.option("checkpointLocation", str(pipelines.folder / "plain"))
    writer.trigger(availableNow=True).start().awaitTermination()


def test_each_batch_of_sparks_own_sink_is_told_with_what_it_consumed(
    written: tuple[str, str, list[ControlRecord]],
) -> None:
    events, out, told = written
    consumed = {record.batch: sum(record.consumed[events].values()) for record in told}
    assert list(consumed) == [0, 1, 2]
    assert consumed[2] == 25
    for record in told:
        assert record.written[out][0] >= consumed[record.batch], "its output stands in the topic"
        assert record.watermark is None
    assert told[1].consumed_from == told[0].consumed


def test_a_listener_that_cannot_write_is_refused_at_once(pipelines: Pipelines) -> None:
    out, two = pipelines.topic(), pipelines.topic(partitions=2)
    with pytest.raises(SinkError, match=f"control topic {two} has 2 partitions"):
        listener(pipelines, out, two)
    with pytest.raises(SinkError, match="topic nowhere: there is no such topic"):
        listener(pipelines, "nowhere", two)
    with pytest.raises(SinkError, match="`version` is empty"):
        listener(pipelines, out, two, version=" ")
    with pytest.raises(SinkError, match="kafka at nowhere"):
        listener(pipelines, out, two, brokers="nowhere.invalid:1")


def test_what_is_no_longer_used_keeps_no_client_in_the_jvm(
    pipelines: Pipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Any] = []
    monkeypatch.setattr("twinstream.spark.topics.close_beside", closed.append)
    made = listener(pipelines, pipelines.topic(), pipelines.topic())
    consumer = made._topics._consumer
    del made
    gc.collect()
    assert closed == [consumer]
    close_beside(consumer)
    eventually(lambda: "closes a client" not in {thread.name for thread in threads()}, what="it is closed")
    with pytest.raises(Py4JJavaError, match="has already been closed"):
        consumer.listTopics()
