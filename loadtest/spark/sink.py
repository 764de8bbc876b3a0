"""What `KafkaSink` costs a query, against the same query with Spark's own Kafka sink, in one run.

    python -m loadtest.spark.sink [--rounds 5] [--query json|copy] [--batch large|small] [--json FILE]

One Spark session reads the advertising events from a topic of the embedded broker, batch by batch, and writes
them to another topic. *json* reads each event's fields and writes them as JSON, the least that a pipeline
does; *copy* writes keys and values as they are, the worst case for a sink. There are *large* batches, which
tell the throughput, and *small* ones, which tell what a batch costs that has hardly any rows. Each round
writes in these ways, in turn, each with a checkpoint and a topic of its own:

- *kafka*: Spark's own sink, `format("kafka")`;
- *foreachBatch*: a function that writes its batch by `format("kafka")`, and does nothing else;
- *constants*: the same with four headers as long as ours, whose values are constants: the floor of any sink
  that writes so many;
- *headers*: `KafkaSink` without a control topic, which adds headers;
- *sink*: `KafkaSink` with a control topic.

So each adds one thing to the one before. What counts is how a way compares with *kafka* in the same round:
`lost` is the share of the throughput that is gone, and `more` the seconds that its median batch takes longer.
`cpu` is how much more processor time a row takes of Spark, this process and the broker, which tells more
where others use the machine. All are medians of the rounds, with their range. Times are those of Spark's
progress reports (`triggerExecution`; `parts` has the others). The first batch of a query is left out: there a
sink connects and checks what it needs, which `first` tells. The first round is left out, too: Java compiles
then.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import click
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from rich.console import Console
from rich.table import Table

from deploy.embedded import jars
from deploy.embedded.kafka import Kafka
from loadtest.ad_events import AdEvents
from loadtest.generator import Run
from loadtest.measuring import environment, spent_by, write_report, yardstick_ns
from loadtest.schedule import Schedule
from twinstream.spark import KafkaSink, records
from twinstream.spec.decode.headers import ATTEMPT, BATCH, INPUT, QUERY

PARTITIONS = 2
ORIGIN = ("topic", "partition", "offset")
HEADERS = (QUERY, BATCH, ATTEMPT, INPUT)
START_MS, RATE = 1_767_225_600_000, 1000
FIELDS = (
    "user_id STRING, page_id STRING, ad_id STRING, ad_type STRING, event_type STRING, event_time BIGINT, "
    "ip_address STRING"
)
TARGETS = {"lost": 0.02, "more": 0.1}

Result = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """So many batches of so many rows, after a first one that is left out."""

    batches: int
    rows: int

    @property
    def events(self) -> int:
        """The rows of all batches."""
        return (self.batches + 1) * self.rows


SIZES = {"large": Size(3, 300_000), "small": Size(20, 500)}


@dataclass(frozen=True)
class Target:
    """Where a query writes."""

    brokers: str
    topic: str
    control: str

    def options(self) -> dict[str, str]:
        """The options of Spark's Kafka writer."""
        return {"kafka.bootstrap.servers": self.brokers, "topic": self.topic}

    def sink(self, control: str | None = None) -> KafkaSink:
        """Our sink."""
        return KafkaSink(
            brokers=self.brokers,
            topic=self.topic,
            query="bench",
            version=self.topic,
            control=control,
            origin=ORIGIN,
        )


def by_kafka(rows: DataFrame, to: Target) -> DataStreamWriter:
    """Spark's own sink."""
    return rows.select("key", "value").writeStream.format("kafka").options(**to.options())


def by_foreach_batch(rows: DataFrame, to: Target) -> DataStreamWriter:
    """Spark's own sink for batches."""

    def write(batch: DataFrame, _number: int) -> None:
        batch.write.format("kafka").options(**to.options()).save()

    return rows.select("key", "value").writeStream.foreachBatch(write)


def by_constants(rows: DataFrame, to: Target) -> DataStreamWriter:
    """Spark's own sink for batches, with headers that nothing has to be worked out for."""
    headers = ", ".join(f"named_struct('key', '{name}', 'value', X'{'31' * 12}')" for name in HEADERS)

    def write(batch: DataFrame, _number: int) -> None:
        told = batch.selectExpr("key", "value", f"array({headers}) AS headers")
        told.write.format("kafka").options(**to.options()).save()

    return rows.select("key", "value").writeStream.foreachBatch(write)


def by_headers(rows: DataFrame, to: Target) -> DataStreamWriter:
    """Headers alone."""
    return rows.writeStream.foreachBatch(to.sink())


def by_sink(rows: DataFrame, to: Target) -> DataStreamWriter:
    """Headers and control records."""
    return rows.writeStream.foreachBatch(to.sink(to.control))


WAYS: dict[str, Callable[[DataFrame, Target], DataStreamWriter]] = {
    "kafka": by_kafka,
    "foreachBatch": by_foreach_batch,
    "constants": by_constants,
    "headers": by_headers,
    "sink": by_sink,
}


def copied(events: DataFrame) -> DataFrame:
    """The events as they are."""
    return events.select("key", "value", *ORIGIN)


def parsed(events: DataFrame) -> DataFrame:
    """The events read, and written as JSON."""
    event = fn.from_json(fn.col("value").cast("string"), FIELDS).alias("event")
    return records(events.select(event, *ORIGIN).select("event.*", *ORIGIN), key=["ad_id"], keep=ORIGIN)


QUERIES = {"json": parsed, "copy": copied}


class Bench:
    """A Spark session, a broker with input, and the queries between them."""

    def __init__(self, spark: SparkSession, kafka: Kafka, folder: Path) -> None:
        self._spark, self._kafka, self._folder = spark, kafka, folder
        self._control = kafka.create_topic(f"control-{uuid.uuid4().hex[:8]}")

    def input(self, size: Size) -> str:
        """A topic with as many events as the batches take."""
        topic = self._kafka.create_topic(f"events-{uuid.uuid4().hex[:8]}", partitions=PARTITIONS)
        events = AdEvents(0, START_MS, Schedule(RATE))
        summary = Run(events, self._kafka.brokers, topic, size.events, paced=False).run()
        assert summary.failed == 0, "Kafka took everything"
        return topic

    def run(self, source: str, size: Size, query: str, way: str) -> Result:
        """One query from the begin of its input to the end."""
        topic = self._kafka.create_topic(f"{way}-{uuid.uuid4().hex[:8]}", partitions=PARTITIONS)
        to = Target(self._kafka.brokers, topic, self._control)
        writer = WAYS[way](QUERIES[query](self._events(source, size)), to)
        place = str(self._folder / to.topic)
        spent = self._spent()
        running = writer.option("checkpointLocation", place).trigger(availableNow=True).start()
        running.awaitTermination()
        spent = self._spent() - spent
        self._delete(to.topic)
        return {**timed(progress_of(running), size), "cpu_us": round(1e6 * spent / size.events, 2)}

    def _spent(self) -> float:
        """The processor time in seconds of all that takes part."""
        jvm: Any = self._spark.sparkContext._jvm
        spark, broker = int(jvm.java.lang.ProcessHandle.current().pid()), self._kafka.process
        assert broker is not None, "the broker runs"
        return sum(map(spent_by, (spark, os.getpid(), broker.process_id)))

    def _events(self, topic: str, size: Size) -> DataFrame:
        reader = self._spark.readStream.format("kafka").option("subscribe", topic)
        reader = reader.option("kafka.bootstrap.servers", self._kafka.brokers)
        return reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", size.rows).load()

    def _delete(self, topic: str) -> None:
        """Make room on the disk."""
        admin = AdminClient({"bootstrap.servers": self._kafka.brokers, "log_level": 0})
        for deleted in admin.delete_topics([topic]).values():
            deleted.result(timeout=30)


def progress_of(query: StreamingQuery) -> list[tuple[int, dict[str, int]]]:
    """The rows and the durations of each batch, in milliseconds."""
    told = [(batch.numInputRows, dict(batch.durationMs)) for batch in query.recentProgress]
    return [(rows, durations) for rows, durations in told if rows]


def timed(batches: list[tuple[int, dict[str, int]]], size: Size) -> Result:
    """What a query took, its first batch apart; Spark leaves some rows for one more batch."""
    assert len(batches) > size.batches, f"a query ran in {len(batches)} batches"
    (_, first), *others = batches[: size.batches + 1]
    seconds = [durations["triggerExecution"] / 1000 for _, durations in others]
    parts = {name: median(durations.get(name, 0) for _, durations in others) / 1000 for name in first}
    return {
        "rows_per_second": round(sum(rows for rows, _ in others) / sum(seconds)),
        "batch_seconds": median(seconds),
        "first_seconds": first["triggerExecution"] / 1000,
        "parts": parts,
    }


def measure(bench: Bench, query: str, name: str, size: Size, rounds: int) -> Result:
    """All rounds of one query with batches of one size; every second round goes the other way round."""
    source, ways = bench.input(size), list(WAYS)
    results: dict[str, list[Result]] = {way: [] for way in ways}
    loads = []
    for number in range(rounds + 1):
        for way in ways if number % 2 else reversed(ways):
            result = bench.run(source, size, query, way)
            if number:
                results[way].append(result)
        loads.append(round(os.getloadavg()[0], 2))
    return {
        "query": query,
        "batch": name,
        "rows_per_batch": size.rows,
        "ways": {way: compared(results[way], results["kafka"]) for way in ways},
        "load": loads,
        "yardstick_ns": yardstick_ns(),
    }


def compared(results: list[Result], baseline: list[Result]) -> Result:
    """How a way compares with Spark's own sink, round by round."""
    pairs = list(zip(results, baseline, strict=True))
    lost = [1 - ours["rows_per_second"] / theirs["rows_per_second"] for ours, theirs in pairs]
    more = [ours["batch_seconds"] - theirs["batch_seconds"] for ours, theirs in pairs]
    cpu = [ours["cpu_us"] / theirs["cpu_us"] - 1 for ours, theirs in pairs]
    return {
        "rows_per_second": median(result["rows_per_second"] for result in results),
        "batch_seconds": median(result["batch_seconds"] for result in results),
        "lost": spread(lost),
        "more": spread(more),
        "cpu": spread(cpu),
        "cpu_us": median(result["cpu_us"] for result in results),
        "first": median(result["first_seconds"] for result in results),
        "meets": {"lost": median(lost) <= TARGETS["lost"], "more": median(more) <= TARGETS["more"]},
        "parts": {name: median(result["parts"][name] for result in results) for name in results[0]["parts"]},
    }


def spread(values: list[float]) -> Result:
    """The median of some values and their range, and the values."""
    return {
        "median": round(median(values), 4),
        "range": [round(min(values), 4), round(max(values), 4)],
        "rounds": [round(value, 4) for value in values],
    }


@contextmanager
def spark_session(folder: Path, cores: int = 2) -> Iterator[SparkSession]:
    """A session on some cores of this machine with Kafka's connector."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.jars": ",".join(map(str, jars.ensure(jars.SPARK))),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("bench")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def print_table(rows: list[Result]) -> None:
    """The rows on standard error."""
    table = Table(title="KafkaSink against Spark's own sink")
    for heading in ("query", "rows a batch", "written by", "rows/s", "lost", "range"):
        table.add_column(heading)
    for heading in ("more s a batch", "range", "more cpu", "range", "first s"):
        table.add_column(heading)
    for row in rows:
        for way, found in row["ways"].items():
            lost, more, cpu = found["lost"], found["more"], found["cpu"]
            table.add_row(
                row["query"],
                f"{row['rows_per_batch']:,}",
                way,
                f"{found['rows_per_second']:,.0f}",
                f"{lost['median']:.1%}",
                " to ".join(f"{value:.1%}" for value in lost["range"]),
                f"{more['median']:.3f}",
                " to ".join(f"{value:.3f}" for value in more["range"]),
                f"{cpu['median']:.1%}",
                " to ".join(f"{value:.1%}" for value in cpu["range"]),
                f"{found['first']:.2f}",
            )
    Console(stderr=True, width=150).print(table)


@click.command(help=__doc__)
@click.option("--rounds", default=5, show_default=True)
@click.option("--query", "queries", multiple=True, type=click.Choice(list(QUERIES)), help="Default: json.")
@click.option("--batch", "sizes", multiple=True, type=click.Choice(list(SIZES)), help="Default: both.")
@click.option(
    "--json", "file", type=click.Path(dir_okay=False), help="Write the report there, not to stdout."
)
def main(rounds: int, queries: tuple[str, ...], sizes: tuple[str, ...], file: str | None) -> None:
    """Measure, print the table, and write the report."""
    with tempfile.TemporaryDirectory(prefix="twinstream-sink-") as name:
        folder = Path(name)
        with Kafka(folder / "kafka") as kafka, spark_session(folder / "spark") as spark:
            bench = Bench(spark, kafka, folder)
            cases = product(queries or ("json",), sizes or SIZES)
            rows = [measure(bench, query, size, SIZES[size], rounds) for query, size in cases]
    print_table(rows)
    write_report({**environment(), "targets": TARGETS, "rounds": rounds, "results": rows}, file)


if __name__ == "__main__":
    main()
