"""The sink marks what it writes, and a comparison knows a retry from a duplicate; on real Spark and Kafka."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.integration.spark.conftest import EVENTS, ORIGIN, Pipelines, attempts, compared
from tests.support.spark import SOCKETS
from twinstream.errors import SinkError
from twinstream.spark import KafkaSink
from twinstream.spark.marks import TASK, TASK_ATTEMPT, marked
from twinstream.spec.decode.control import control_record

pytestmark = [SOCKETS, pytest.mark.requires_kafka, pytest.mark.requires_spark, pytest.mark.timeout(300)]


def sink(pipelines: Pipelines, topic: str, **more: Any) -> KafkaSink:
    given = {"brokers": pipelines.kafka.brokers, "topic": topic, "query": "q", "version": "1", **more}
    return KafkaSink(**given)


def test_a_record_names_its_query_batch_attempt_and_input(pipelines: Pipelines) -> None:
    events, out = pipelines.input(EVENTS, partitions=2), pipelines.topic(partitions=2)
    pipelines.run(pipelines.records(events), sink(pipelines, out, origin=ORIGIN))
    written = pipelines.read(out)
    assert sorted(json.loads(record.value or b"")["n"] for record in written) == list(range(25))
    for record in written:
        event, marks = json.loads(record.value or b""), record.headers
        assert record.key == event["k"].encode()
        assert re.fullmatch(rb"q@[0-9a-f]{8}", marks["twinstream-query"] or b"")
        assert marks["twinstream-batch"] in {b"0", b"1", b"2"}
        assert re.fullmatch(rb"[0-9a-f]{8}/[01]\.0", marks["twinstream-attempt"] or b"")
        came_from = f"{events}:{event['n'] % 2}:{event['n'] // 2}".encode()
        assert marks["twinstream-input"] == came_from
    assert len({record.headers["twinstream-attempt"] for record in written}) == 6, "an execution a batch"


def test_a_stage_that_is_run_again_goes_on_with_the_attempts_of_its_tasks(pipelines: Pipelines) -> None:
    numbers = {"3.0 in stage 2.0": "3.0", "3.1 in stage 20.0": "3.1", "0.0 in stage 2.1": "0.1000"}
    numbers |= {"12.2 in stage 2.10": "12.10002", "0.Thread[stream execution]": "0.0"}
    rows = pipelines.spark.createDataFrame([(task,) for task in numbers], [TASK])
    assert {row[0]: row[1] for row in rows.selectExpr(TASK, TASK_ATTEMPT).collect()} == numbers


def attempt(rows: DataFrame) -> bytes:
    """The mark of the first row, as a batch gets it."""
    (row,) = marked(rows, "q", 0, "run", (), reflect=True).take(1)
    return bytes({header["key"]: header["value"] for header in row["headers"]}["twinstream-attempt"])


def test_a_task_is_named_by_its_partition_also_where_spark_runs_only_the_tasks_that_are_left(
    session: SparkSession,
) -> None:
    rows = session.range(0, 8, 1, 4).where("id > 5").selectExpr("cast(id as string) value")
    assert attempt(rows) == b"run/3.0", "take looks at partition 0, and then runs three tasks"


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_rows_that_the_driver_makes_are_of_the_first_attempt(session: SparkSession, ansi: str) -> None:
    session.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        assert attempt(session.sql("SELECT * FROM VALUES ('a') AS rows(value)")) == b"run/0.0"
    finally:
        session.conf.unset("spark.sql.ansi.enabled")


def test_headers_and_partitions_of_the_rows_stay(pipelines: Pipelines) -> None:
    events, out = pipelines.input(EVENTS[:4]), pipelines.topic(partitions=2)
    own = "array(named_struct('key', 'own', 'value', cast('x' as binary))) headers"
    rows = pipelines.records(events).selectExpr("key", "value", own, "1 partition")
    pipelines.run(rows, sink(pipelines, out))
    written = pipelines.read(out)
    assert [record.headers["own"] for record in written] == [b"x"] * 4
    assert [json.loads(record.value or b"")["n"] for record in written] == [0, 1, 2, 3]
    assert all("twinstream-input" not in record.headers for record in written)


def fails_once(rows: DataFrame, row: int) -> DataFrame:
    """The rows, where the first attempt of the task fails at one of them."""
    first = "reflect('java.lang.Thread', 'currentThread') like '%.0 in stage %'"
    value = f"CASE WHEN offset = {row} AND {first} THEN cast(raise_error('lost') as string) ELSE value END"
    return rows.selectExpr("key", f"{value} AS value", *ORIGIN)


def test_a_task_that_is_tried_again_is_no_duplicate(pipelines: Pipelines) -> None:
    events = pipelines.input(EVENTS)
    plain, retried = pipelines.topic(), pipelines.topic()
    pipelines.run(pipelines.records(events), sink(pipelines, plain))
    pipelines.run(fails_once(pipelines.records(events), 15), sink(pipelines, retried))
    assert attempts(pipelines.read(retried)) == {"0.0": 20, "0.1": 10}
    answer = compared(pipelines, plain, retried)
    assert (answer["verdict"], answer["matched"]) == ("EQUIVALENT", 25)
    assert answer["accounts"]["candidate"]["replayed"] == 5
    without = compared(pipelines, plain, retried, "")
    assert without["divergences"]["total"] == 5, "without the marks these are duplicates"


def test_a_batch_that_is_run_again_after_its_write_is_no_duplicate(pipelines: Pipelines) -> None:
    events, control = pipelines.input(EVENTS), pipelines.topic()
    plain, again = pipelines.topic(), pipelines.topic()
    pipelines.run(pipelines.records(events), sink(pipelines, plain))
    checkpoint = str(pipelines.folder / "again")
    whole = sink(pipelines, again, control=control)

    def dies_after_the_write(batch: DataFrame, number: int) -> None:
        whole(batch, number)
        if number == 1:
            raise RuntimeError("dies before the commit")

    with pytest.raises(StreamingQueryException):
        pipelines.run(pipelines.records(events), dies_after_the_write, checkpoint)
    pipelines.run(pipelines.records(events), sink(pipelines, again, control=control), checkpoint)
    answer = compared(pipelines, plain, again)
    assert (answer["verdict"], answer["accounts"]["candidate"]["replayed"]) == ("EQUIVALENT", 10)
    told = [control_record(record.value) for record in pipelines.read(control)]
    assert [record.batch for record in told] == [0, 1, 1, 2]
    assert len({record.query_id for record in told}) == 1
    assert [record.run_id for record in told[:2]] != [record.run_id for record in told[2:]]


def test_a_control_record_tells_what_a_batch_read_and_wrote(pipelines: Pipelines) -> None:
    events, out, control = pipelines.input(EVENTS, partitions=2), pipelines.topic(), pipelines.topic()
    made = sink(pipelines, out, control=control, version="1.9.0", origin=ORIGIN)
    pipelines.run(pipelines.records(events), made)
    told = [control_record(record.value) for record in pipelines.read(control)]
    assert [(record.version, record.batch) for record in told] == [("1.9.0", 0), ("1.9.0", 1), ("1.9.0", 2)]
    read = [sum(record.consumed[events].values()) for record in told]
    assert read[-1] == 25
    assert [record.written for record in told] == [{out: {0: end}} for end in read]
    assert [record.rows for record in told] == [end - before for before, end in pairwise([0, *read])]
    assert told[1].consumed_from == told[0].consumed
    assert told[0].watermark is None
    assert {record.query_id for record in told} == {
        (record.headers["twinstream-query"] or b"").decode() for record in pipelines.read(out)
    }, "a control record closes the batch that the headers name"


def refused(pipelines: Pipelines, rows: DataFrame, made: KafkaSink, checkpoint: str | None = None) -> str:
    """The sentence with which a query ends before it has written anything."""
    with pytest.raises(StreamingQueryException) as failed:
        pipelines.run(rows, made, checkpoint)
    found = re.search(r"SinkError: (.*)", str(failed.value))
    assert found is not None, str(failed.value)
    return found[1]


def test_rows_that_lack_a_column_are_refused(pipelines: Pipelines) -> None:
    rows, out = pipelines.records(pipelines.input(EVENTS[:1])), pipelines.topic()
    told = refused(pipelines, rows.selectExpr("value AS text"), sink(pipelines, out))
    assert told == "the rows have no column `value`, which is what Kafka gets; they have text"
    told = refused(pipelines, rows.select("value"), sink(pipelines, out, origin=("a", "b", "c")))
    assert told == "`origin` names a column 'a', and the rows have value"


def test_topics_that_cannot_hold_the_output_are_refused(pipelines: Pipelines) -> None:
    rows, out, two = (
        pipelines.records(pipelines.input(EVENTS[:1])),
        pipelines.topic(),
        pipelines.topic(partitions=2),
    )
    compacted = pipelines.topic(config={"cleanup.policy": "compact"})
    others = pipelines.input(EVENTS[:1])
    assert refused(pipelines, rows, sink(pipelines, "nowhere")) == (
        "topic nowhere: there is no such topic; create it first"
    )
    assert "is compacted" in refused(pipelines, rows, sink(pipelines, compacted))
    assert refused(pipelines, rows, sink(pipelines, out, control=out)) == (
        f"topic {out} is both the output and the control topic: give each its own"
    )
    assert f"control topic {two} has 2 partitions" in refused(
        pipelines, rows, sink(pipelines, out, control=two)
    )
    told = refused(pipelines, rows, sink(pipelines, others))
    assert told.startswith(
        f"topic {others} has another writer: the record at offset 0 of partition 0 was not"
    )


def test_two_versions_share_neither_a_topic_nor_a_checkpoint(pipelines: Pipelines) -> None:
    events, control = pipelines.input(EVENTS[:1]), pipelines.topic()
    rows = pipelines.records(events)
    first, second = pipelines.topic(), pipelines.topic()
    checkpoint = pipelines.run(rows, sink(pipelines, first, control=control))
    shares = sink(pipelines, first, control=control, version="2")
    assert refused(pipelines, rows, shares) == (
        f"version '1' writes to topic {first}, too: give each version its own topic"
    )
    pipelines.write(events, EVENTS[1:2])
    takes = sink(pipelines, second, control=control, version="2")
    told = refused(pipelines, rows, takes, checkpoint)
    assert told.startswith("version '1' runs on the same checkpoint, ")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic": ""}, "`topic` is empty"),
        ({"version": " "}, "`version` is empty"),
        ({"origin": ["offset"]}, "`origin` names three columns"),
    ],
)
def test_a_sink_with_wrong_arguments_is_refused_at_once(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SinkError, match=re.escape(said)):
        KafkaSink(**{"brokers": "b:1", "topic": "out", "query": "q", "version": "1", **given})


def test_a_query_without_a_checkpoint_location_is_refused(pipelines: Pipelines) -> None:
    rows, out = pipelines.records(pipelines.input(EVENTS[:1])), pipelines.topic()
    query = rows.writeStream.foreachBatch(sink(pipelines, out)).trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException, match="has no checkpoint location"):
        query.awaitTermination()
