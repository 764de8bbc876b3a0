"""What the two versions of the advertising job share: how they are started, fed, configured and stopped.

None of the logic that is being compared is here. Each version has its own parsing, filter, join, aggregation
and way of writing; a mistake in one cannot hide behind the same mistake in the other.

It needs PySpark, and on the driver alone `twinstream`: no Python runs where the tasks do.
"""

import argparse
import csv
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event as Flag
from typing import ClassVar

from py4j.java_gateway import JavaGateway
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from twinstream.spark import KafkaSink

CAMPAIGNS = 100
ADS_PER_CAMPAIGN = 10

SHUFFLE_PARTITIONS = 2
"""Tasks and state stores of a stage that shuffles. The data are small: each more costs a task and a state
file per micro-batch, and buys nothing. A checkpoint remembers the number, so it is the code's to say, not
the submitter's."""

IDLE_SECONDS = 15.0
"""How long a stop waits for running micro-batches to end. A batch that is cut off is written again after the
restart, and then stands in the topic twice."""

HOOK_SECONDS = 30
"""How long the JVM may wait for that before it goes down all the same."""

ANSWER_SECONDS = 0.3
"""How long this process stays after a stop that the JVM asked for, so that its answer gets there."""

HOOK_PRIORITY = 1000
"""Above those of Spark (50) and of Hadoop's file systems (10): the highest goes first."""


def arguments(description: str) -> argparse.ArgumentParser:
    """The arguments of both versions; `--master` and the like are spark-submit's own."""
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument("--brokers", required=True, help="Kafka bootstrap servers, host:port[,…]")
    parser.add_argument("--input", default="ads.events", help="topic of the events (%(default)s)")
    parser.add_argument("--views-topic", help="topic for the views; without it that query is not run")
    parser.add_argument("--counts-topic", help="topic for the counts; without it that query is not run")
    parser.add_argument("--control-topic", help="topic for control records; without it none are written")
    parser.add_argument("--job-version", default="1", help="name of this version in them (%(default)s)")
    parser.add_argument("--checkpoint", required=True, help="folder or URI; each query has its own subfolder")
    parser.add_argument("--trigger-seconds", type=float, default=1.0, help="between batches of views (1)")
    parser.add_argument("--counts-trigger-seconds", type=float, default=5.0, help="the same of counts (5)")
    parser.add_argument("--max-offsets", type=int, help="largest micro-batch, in records (no limit)")
    parser.add_argument("--available-now", action="store_true", help="process what is there, and end")
    parser.add_argument("--campaigns", type=Path, help="CSV with ad_id,campaign_id (a built-in table)")
    return parser


def session(name: str) -> SparkSession:
    """The Spark session, with the settings that the results or the checkpoints depend on."""
    return (
        SparkSession.builder.appName(name)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", SHUFFLE_PARTITIONS)
        # Adaptive execution re-plans by the sizes of finished stages. With batches of kilobytes it only adds
        # a job per stage, and it may merge partitions whose number the checkpoint has fixed.
        .config("spark.sql.adaptive.enabled", False)
        .getOrCreate()
    )


def campaign_table(spark: SparkSession, file: Path | None) -> DataFrame:
    """The campaign of each ad: (ad_id, campaign_id).

    As literal rows, not as a scan: each micro-batch has the table in its plan and needs no job to get it.
    """
    rows = ", ".join(f"({_literal(ad)}, {_literal(campaign)})" for ad, campaign in _campaigns(file))
    return spark.sql(f"SELECT * FROM VALUES {rows} AS campaigns(ad_id, campaign_id)")


def _campaigns(file: Path | None) -> list[tuple[str, str]]:
    if file is None:
        ads = range(CAMPAIGNS * ADS_PER_CAMPAIGN)
        return [(f"ad-{ad:03d}", f"campaign-{ad // ADS_PER_CAMPAIGN:02d}") for ad in ads]
    with file.open(newline="", encoding="utf-8") as lines:
        table = csv.DictReader(lines)
        if not {"ad_id", "campaign_id"} <= set(table.fieldnames or ()):
            raise SystemExit(f"{file}: the first line must name the columns ad_id and campaign_id")
        return [(row["ad_id"], row["campaign_id"]) for row in table]


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def kafka_source(spark: SparkSession, options: argparse.Namespace) -> DataFrame:
    """The input as Spark's Kafka source gives it: key, value, topic, partition, offset, ….

    `minPartitions` is never set: it would split a Kafka partition among tasks, and the order in it would be
    lost. `failOnDataLoss` stays on: a version that skips expired input without a word cannot be compared.
    """
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", options.brokers)
        .option("subscribe", options.input)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "true")
        .option("kafka.isolation.level", "read_committed")
    )
    if options.max_offsets is not None:
        # No limit by default: after an outage one large batch catches up, and all of its events meet the same
        # watermark. Small batches in catch-up are fine as long as they take all partitions forward evenly.
        reader = reader.option("maxOffsetsPerTrigger", options.max_offsets)
    return reader.load()


ORIGIN = ("topic", "partition", "offset")
"""The columns of the Kafka source that name the record which a view comes from."""


def sink(options: argparse.Namespace, query: str, topic: str, origin: Sequence[str] = ()) -> KafkaSink:
    """The sink of a query: its records name the attempt that wrote them, and where they come from."""
    return KafkaSink(
        brokers=options.brokers,
        topic=topic,
        query=query,
        version=options.job_version,
        control=options.control_topic,
        origin=origin,
    )


def start(
    query: str, writer: DataStreamWriter, options: argparse.Namespace, trigger_seconds: float
) -> StreamingQuery:
    """Start a query under its name, with its own checkpoint and its trigger.

    The checkpoint holds the input offsets of each batch and the state of the counts. It belongs to this query
    of this version: a second version must never be pointed at it, or it takes the first one's place. The
    trigger is a compromise: each batch has fixed costs (planning, checkpoint files) of some 0.3 s of a core,
    and an event waits for half an interval on average. Counts come every ten seconds of event time, so their
    query may run less often than that of the views.
    """
    checkpoint = f"{options.checkpoint.rstrip('/')}/{query}"
    named = writer.queryName(query).option("checkpointLocation", checkpoint)
    if options.available_now:
        return named.trigger(availableNow=True).start()
    return named.trigger(processingTime=f"{round(trigger_seconds * 1000)} milliseconds").start()


def run(spark: SparkSession, queries: Sequence[StreamingQuery], stopping: Flag) -> None:
    """Wait until the queries have ended, one of them fails, or the process is told to stop.

    Raises:
        StreamingQueryException: a query failed by itself; the other one is stopped.
    """
    if not queries:
        sys.exit("nothing to do: name --views-topic, --counts-topic or both")
    with _stopped_first(spark, stopping):
        while not stopping.wait(0.2) and any(query.isActive for query in queries):
            if any(not query.isActive and query.exception() for query in queries):
                break
        for query in queries:
            _stop(query)
    if stopping.is_set():
        return  # the JVM may be on its way down, and an end that was asked for is no failure
    for query in queries:
        if error := query.exception():
            raise error


def _stop(query: StreamingQuery) -> None:
    """Stop a query between two micro-batches rather than inside one, if it has such a moment soon."""
    until = time.monotonic() + IDLE_SECONDS
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < until:
        time.sleep(0.01)
    query.stop()


@contextmanager
def _stopped_first(spark: SparkSession, stopping: Flag) -> Iterator[None]:
    """Set `stopping` on SIGTERM or SIGINT, whether this process gets the signal or the JVM above it.

    Under spark-submit the process that a supervisor knows is the JVM. It would take Spark down in the middle
    of a batch; so a hook that runs before Spark's own asks this process to stop, and waits until the block is
    left.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    gateway = spark.sparkContext._gateway
    assert isinstance(gateway, JavaGateway)
    ensure_callback_server_started(gateway)
    hooks = gateway.jvm.org.apache.hadoop.util.ShutdownHookManager.get()
    seconds = gateway.jvm.java.util.concurrent.TimeUnit.SECONDS
    stopped = Flag()
    hook = gateway.jvm.java.lang.Thread(_StopFirst(stopping, stopped))
    hooks.addShutdownHook(hook, HOOK_PRIORITY, HOOK_SECONDS, seconds)
    try:
        yield
    finally:
        going_down = hooks.isShutdownInProgress()
        if not going_down:
            hooks.removeShutdownHook(hook)
        stopped.set()
        if going_down:
            time.sleep(ANSWER_SECONDS)


class _StopFirst:
    """A java.lang.Runnable that asks for a stop and waits until it has been done."""

    def __init__(self, stopping: Flag, stopped: Flag) -> None:
        self._stopping = stopping
        self._stopped = stopped

    def run(self) -> None:
        """Called by the JVM on its way down."""
        self._stopping.set()
        self._stopped.wait(HOOK_SECONDS)

    class Java:
        """Names the interface to py4j."""

        implements: ClassVar[list[str]] = ["java.lang.Runnable"]
