"""How fast a Spark job matches, beside the service, over the same topics in the same run.

    python -m loadtest.spark.matcher [--events 3000000] [--rounds 3] [--cores 1 --cores 2] [--shards 8]
                                     [--json FILE]

The topics are those of `loadtest.bench`. Each round measures, one after the other:

a. *service*: one matcher process, as in `loadtest.bench`;
b. *job*, for each number of cores: the job of `twinstream.spark.matcher` under `local[CORES]`, on a new
   checkpoint, until all is matched. What counts is the steady part: the second half of the batches, rows of
   both sides by the time from one trigger to the next. In the first half the JVM still compiles, for half of
   its time; the rate of that half without its first batch is the *early* one. Nothing is asked of the query
   meanwhile, but what its checkpoint location tells.

Broker, Spark's JVM and Python share the cores of the machine, so two cores of a job are not twice one.
Besides, each job tells the seconds to its first batch, and those of a batch in which nothing comes. Then the
reference alone writes a tenth more, so that these events wait: the bytes of the saved state for each of them,
the seconds from a new start on this checkpoint to the end of its first batch, and those to move this state
back to a service and there again, without Redis and the start of Spark.
"""

from __future__ import annotations

import json
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import click
from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from deploy.embedded.stack import Stack
from loadtest.bench import PARTITIONS, SIDES, event, matcher_loop, produce, spec_text
from loadtest.measuring import apart, environment, write_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from twinstream.spec.file.model import Spec

ORDER = "per_key"
BATCH = 500_000
"""Records of a batch, as the job has by default: large enough that its fixed costs are small."""
BEAT = 1
"""Input rows of each batch that are none of the topics: see `twinstream.spark.matcher.job`."""
WAIT_SECONDS = 600
LOOK_SECONDS = 0.2


def job_run(brokers: str, text: str, events: int, cores: int, shards: int, folder: str) -> dict[str, float]:
    """One job, from nothing until so many events of both sides are read, and its start again."""
    from loadtest.spark.sink import spark_session
    from twinstream.spark.matcher.claim import make_topics
    from twinstream.spark.matcher.job import Pace, job_of, start
    from twinstream.spec.load import loads

    spec, checkpoint = loads(text), Path(folder) / "checkpoint"
    results = f"{spec.name}.results"
    with spark_session(Path(folder), cores) as spark:
        spark.conf.set("spark.sql.shuffle.partitions", str(cores))
        make_topics(brokers, results, {})
        job = job_of(spec, brokers, results, shards)
        run = partial(start, spark, job, checkpoint, Pace(0.0, BATCH))
        began = time.perf_counter()
        query = run()
        _until(query, checkpoint, 1)
        start_seconds = time.perf_counter() - began
        _until(query, checkpoint, events)
        progress = [one for one in query.recentProgress if one.numInputRows > BEAT]
        time.sleep(5)  # some batches in which nothing comes
        idle = [one.batchDuration for one in query.recentProgress if one.numInputRows == BEAT]
        before, waiting = _saved(spark, checkpoint), events // 20
        write(brokers, spec.reference.topic, waiting)
        _until(query, checkpoint, events + waiting)
        time.sleep(5)  # another save
        state_bytes = (_saved(spark, checkpoint) - before) / waiting
        query.stop()
        began, batch = time.perf_counter(), _committed(checkpoint)
        query = run()
        _wait(query, lambda: _committed(checkpoint) > batch)
        again_seconds = time.perf_counter() - began
        query.stop()
        back_seconds, there_seconds = moved(spark, spec, checkpoint, shards)
    half = len(progress) // 2
    return {
        "rate": _rate(progress[half:]),
        "early_rate": _rate(progress[1:half]),
        "batches": len(progress),
        "start_seconds": start_seconds,
        "idle_seconds": median(idle or [0]) / 1000,
        "state_bytes": state_bytes,
        "again_seconds": again_seconds,
        "back_seconds": back_seconds,
        "there_seconds": there_seconds,
    }


def _rate(batches: list[Any]) -> float:
    seconds = sum(float(one.batchDuration) for one in batches) / 1000
    return sum(int(one.numInputRows) for one in batches) / seconds


def moved(spark: SparkSession, spec: Spec, checkpoint: Path, shards: int) -> tuple[float, float]:
    """The seconds to take what a job has saved as the state of a service, and to hand that to another job."""
    from twinstream.checkpoints.moving import divided_checkpoint, joined_checkpoint
    from twinstream.processes.moving import Mark
    from twinstream.spark.matcher.location import Location
    from twinstream.spec.codec.codec import Codec
    from twinstream.spec.compile.addresses import Addresses
    from twinstream.spec.load import digest

    began = time.perf_counter()
    whole = joined_checkpoint(Location(spark, checkpoint).committed(None))
    back = time.perf_counter()
    parts = divided_checkpoint(whole, Addresses(Codec(spec), shards).of_stored, shards)
    mark = Mark(owner="job", name=spec.name, digest=digest(spec), shards=shards, moved="there")
    Location(spark, checkpoint.with_name("moved")).hand_over(mark, parts, b"secret")
    return back - began, time.perf_counter() - back


def write(brokers: str, topic: str, events: int) -> None:
    """Write events to one topic that the other does not have."""
    settings = {"enable.idempotence": True, "linger.ms": 50, "partitioner": "murmur2_random"}
    producer = Producer({"bootstrap.servers": brokers, **settings})
    for number in range(events):
        key, value = event(number, SIDES[0], "all")
        producer.produce(topic, value.replace(b"NL", b"BE"), key)
        if not number % 5_000:
            producer.flush()
    assert producer.flush(300) == 0, "Kafka took everything"


def _saved(spark: SparkSession, checkpoint: Path) -> int:
    """The bytes of the saves of all shards in a checkpoint."""
    reader = spark.read.format("statestore").option("path", str(checkpoint))
    pieces = reader.option("stateVarName", "pieces").option("flattenCollectionTypes", "true").load()
    bodies = pieces.where("startswith(user_map_key.part, 'body/')")
    (found,) = bodies.selectExpr("sum(length(user_map_value.piece))").collect()
    return int(found[0])


def _until(query: Any, checkpoint: Path, rows: int) -> None:
    """Wait until a query has committed so many rows of both topics.

    Its progress would tell as well, but each answer has Spark's JVM look for classes in all its jars: 0.1 s.
    """
    _wait(query, lambda: _rows(checkpoint) >= rows)


def _wait(query: Any, done: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not done():
        assert query.isActive, query.exception()
        assert time.monotonic() < until, f"nothing in {WAIT_SECONDS} s"
        time.sleep(LOOK_SECONDS)


def _committed(checkpoint: Path) -> int:
    """The number of the last batch that a query has committed, or -1."""
    return max((int(one.name) for one in (checkpoint / "commits").glob("[0-9]*")), default=-1)


def _rows(checkpoint: Path) -> int:
    """The rows of both topics up to the last committed batch; both begin with offset 0."""
    if (batch := _committed(checkpoint)) < 0:
        return 0
    _, _, *sources = (checkpoint / "offsets" / f"{batch}").read_text().splitlines()
    ends = next(one for line in sources if isinstance(one := json.loads(line), dict) and "bench" in line)
    return sum(sum(partitions.values()) for partitions in ends.values())


def measure(stack: Stack, events: int, rounds: int, cores: tuple[int, ...], shards: int) -> dict[str, Any]:
    """Run the rounds, each on topics of its own."""
    brokers = stack.kafka.brokers
    services: list[float] = []
    jobs: dict[int, list[dict[str, float]]] = {count: [] for count in cores}
    for number in range(rounds):
        topics = [f"bench.spark.{number}.{side}" for side in SIDES]
        for topic in topics:
            stack.kafka.create_topic(topic, partitions=PARTITIONS)
        produce(brokers, topics, events, "all")
        text = spec_text(f"service-{number}", topics, ORDER, "all")
        services.append(apart(matcher_loop, brokers, stack.redis.url, text, 2 * events)["rate"])
        for count, runs in jobs.items():
            text = spec_text(f"job-{count}-{number}", topics, ORDER, "all")
            with tempfile.TemporaryDirectory(prefix="twinstream-job-") as folder:
                runs.append(apart(job_run, brokers, text, 2 * events, count, shards, folder))
    return {
        "events_a_side": events,
        "shards": shards,
        "batch": BATCH,
        "service": round(median(services)),
        "jobs": {count: _summary(runs, services) for count, runs in jobs.items()},
    }


def _summary(runs: list[dict[str, float]], services: list[float]) -> dict[str, Any]:
    found = {name: round(median(run[name] for run in runs), 2) for name in runs[0]}
    ratio = median(run["rate"] / service for run, service in zip(runs, services, strict=True))
    whole = {name: round(found[name]) for name in ("rate", "early_rate")}
    return {**found, **whole, "of_service": round(ratio, 3)}


def print_table(report: dict[str, Any]) -> None:
    """The report on standard error."""
    table = Table(title=f"A Spark job, beside a service that takes {report['service']:,} events a second")
    names = [
        "rate",
        "early_rate",
        "of_service",
        "start_seconds",
        "idle_seconds",
        "again_seconds",
        "state_bytes",
    ]
    names += ["back_seconds", "there_seconds"]
    for heading in ("cores", *names):
        table.add_column(heading, justify="right")
    for cores, job in report["jobs"].items():
        table.add_row(f"{cores}", *(f"{job[name]:,}" for name in names))
    Console(stderr=True, width=120).print(table)


@click.command(help=__doc__)
@click.option("--events", default=3_000_000, show_default=True, help="Events on each side.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--cores", multiple=True, type=int, help="Default: 1, 2.")
@click.option("--shards", default=8, show_default=True)
@click.option(
    "--json", "file", type=click.Path(dir_okay=False), help="Write the report there, not to stdout."
)
def main(events: int, rounds: int, cores: tuple[int, ...], shards: int, file: str | None) -> None:
    """Measure, print the table, and write the report."""
    with tempfile.TemporaryDirectory(prefix="twinstream-bench-") as folder, Stack(Path(folder)) as stack:
        report = measure(stack, events, rounds, cores or (1, 2), shards)
    print_table(report)
    write_report({**environment(), "rounds": rounds, **report}, file)


if __name__ == "__main__":
    main()
