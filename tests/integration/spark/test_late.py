"""What a version drops as late is in its control records, and a difference names it as its likely cause."""

from __future__ import annotations

import uuid

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tests.integration.spark.conftest import Pipelines
from tests.support.spark import SOCKETS
from tests.support.waiting import eventually
from tests.support.workers import Bench
from twinstream.core.events import Side
from twinstream.spark import KafkaSink, ProgressListener, records
from twinstream.spec.decode.control import ControlRecord, LateRows, control_record

pytestmark = [SOCKETS, pytest.mark.requires_kafka, pytest.mark.requires_spark, pytest.mark.timeout(300)]

BATCHES = (range(10), [60] * 10, [70] * 10, [1] * 3 + [80] * 7, [300] * 10, [301] * 10)
"""The times of the input: three of the fourth batch come too late for a short watermark.

Spark drops what was late when the batch *before* began; that one was the first behind 60 s.
"""
SECONDS = [second for batch in BATCHES for second in batch]
EVENTS = [{"k": "abcdefghij"[place % 10], "s": second} for place, second in enumerate(SECONDS)]
DELAYS = {"1": "100 seconds", "2": "5 seconds"}
DROPPED = {"1": [0, 0, 0, 0, 0, 0], "2": [0, 0, 0, 0, 3, 3]}
"""By version, the rows that were dropped before each batch."""
IDLE_REPORTS = "spark.sql.streaming.noDataProgressEventInterval"
SPEC = """
version: 1
name: test
reference: {{topic: {}, version: "1"}}
candidate: {{topic: {}, version: "2"}}
control: {}
order: unordered
identity: [k, end]
overdue: {{clock: input, window_end: end}}
show: [k, end, n]
evidence: {{matched: 1, seconds: 0}}
"""


def counts(pipelines: Pipelines, events: str, delay: str) -> DataFrame:
    """The records of each key in windows of ten seconds, with a watermark of this delay."""
    rows = pipelines.rows(events, "k STRING, s INT").selectExpr("k", "timestamp_seconds(s) AS at")
    window = fn.window("at", "10 seconds")
    counted = rows.withWatermark("at", delay).groupBy("k", window).agg(fn.count("*").alias("n"))
    return records(counted.selectExpr("k", "unix_millis(window.end) AS end", "n"), key=["k"])


@pytest.mark.nightly
def test_rows_dropped_as_late_are_told_and_are_the_likely_cause_of_what_they_changed(
    pipelines: Pipelines,
) -> None:
    events, control = pipelines.input(EVENTS), pipelines.topic()
    outputs = {version: pipelines.topic() for version in DELAYS}
    for version, delay in DELAYS.items():
        given = {"brokers": pipelines.kafka.brokers, "topic": outputs[version], "control": control}
        sink = KafkaSink(query="q", version=version, **given)
        pipelines.run(counts(pipelines, events, delay), sink)
    said = [record.value or b"" for record in pipelines.read(control)]
    for version, dropped in DROPPED.items():
        told = [record.late for record in map(control_record, said) if record.version == version]
        wanted = [LateRows(rows=rows, since=0, before=batch) for batch, rows in enumerate(dropped)]
        assert told[: len(wanted)] == wanted
    first = control_record(said[0]).watermark
    assert first == 0, "it has not advanced, and is there: a version with several queries waits for it"

    bench = Bench(SPEC.format(*outputs.values(), control))
    for side, topic in zip(Side, outputs.values(), strict=True):
        for record in pipelines.read(topic):
            bench.source.append(side, 0, record.value or b"", 0, list(record.headers.items()))
    for record in said:
        bench.source.say(record)
    bench.settled()
    found = [report for report in bench.reports().values() if report.kind == "changed"]
    assert {report.reference["k"] for report in found} == set("abc")
    where, cause = f"{events} partition 0 offsets 10 to 59", "a different watermark or trigger"
    for report in found:
        assert report.text.endswith(
            f"Of the input in {where}, the reference dropped 0 rows as late and the candidate 3: {cause} is "
            "the likely cause."
        )


@pytest.mark.nightly
def test_a_query_that_begins_again_counts_from_zero(pipelines: Pipelines) -> None:
    events, control, out = pipelines.input(EVENTS[:40]), pipelines.topic(), pipelines.topic()
    given = {"brokers": pipelines.kafka.brokers, "topic": out, "query": "q", "version": "2"}
    place = pipelines.run(counts(pipelines, events, DELAYS["2"]), KafkaSink(**given, control=control))
    pipelines.write(events, EVENTS[40:])
    pipelines.run(counts(pipelines, events, DELAYS["2"]), KafkaSink(**given, control=control), place)
    told = [control_record(record.value) for record in pipelines.read(control)]
    runs = list(dict.fromkeys(record.run_id for record in told))
    first, second = ([one for one in told if one.run_id == run] for run in runs)
    assert first[-1].late == LateRows(rows=3, since=0, before=first[-1].batch)
    begun = second[0].batch
    assert [one.late for one in second[:2]] == [
        LateRows(rows=0, since=begun, before=begun),
        LateRows(rows=0, since=begun, before=begun + 1),
    ]


@pytest.mark.nightly
def test_a_query_that_was_idle_counts_on(pipelines: Pipelines) -> None:
    events, control, out = pipelines.input(EVENTS[:40]), pipelines.topic(), pipelines.topic()
    sink = KafkaSink(brokers=pipelines.kafka.brokers, topic=out, query="q", version="2", control=control)

    def told() -> list[ControlRecord]:
        return [control_record(record.value) for record in pipelines.read(control)]

    pipelines.spark.conf.set(IDLE_REPORTS, "100")
    try:
        writer = counts(pipelines, events, DELAYS["2"]).writeStream.foreachBatch(sink)
        query = writer.option("checkpointLocation", str(pipelines.folder / "idle")).start()
        eventually(lambda: told() and told()[-1].consumed[events][0] == 40, what="it has read all")
        eventually(
            lambda: query.lastProgress is not None and query.lastProgress.batchId > told()[-1].batch,
            what="it reports that it is idle",
        )
        pipelines.write(events, EVENTS[40:])
        eventually(lambda: told()[-1].consumed[events][0] == 60, what="it has read on")
        query.stop()
    finally:
        pipelines.spark.conf.unset(IDLE_REPORTS)
    last = told()[-1]
    assert last.late == LateRows(rows=3, since=0, before=last.batch)


def test_a_listener_tells_what_its_own_batch_dropped(pipelines: Pipelines) -> None:
    events, control, out = pipelines.input(EVENTS), pipelines.topic(), pipelines.topic()
    name = uuid.uuid4().hex
    made = ProgressListener(
        brokers=pipelines.kafka.brokers, topic=out, query=name, version="2", control=control
    )
    pipelines.spark.streams.addListener(made)
    try:
        writer = counts(pipelines, events, DELAYS["2"]).writeStream.format("kafka").queryName(name)
        writer = writer.option("kafka.bootstrap.servers", pipelines.kafka.brokers).option("topic", out)
        writer = writer.option("checkpointLocation", str(pipelines.folder / name))
        writer.trigger(availableNow=True).start().awaitTermination()
        eventually(lambda: len(pipelines.read(control)) >= 6, what="each of six batches is told")
    finally:
        pipelines.spark.streams.removeListener(made)
    told = [control_record(record.value).late for record in pipelines.read(control)]
    rows = [0, 0, 0, 3, 3, 3]
    assert told[:6] == [LateRows(rows=rows[batch], since=0, before=batch + 1) for batch in range(6)]
