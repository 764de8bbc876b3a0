"""The query of a comparison: from both topics to its results topics.

The driver decides two things once for a checkpoint location, and keeps them there (`location.Beginning`):

- The secret that masks values, unless the operator gives a file with one. With another secret the same value
  would be shown with another hash after a restart, and `keep: hashes` could tell nothing of its state.
- The start at the input. Every shard begins at the same, also one that has its first records after a restart.

Whoever reads a checkpoint location has the unmatched events as well, so the secret reveals nothing more; but
with `keep: hashes` it does. Then a file for the secret is the better place.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from twinstream.adapters.kafka.records import KafkaEnds
from twinstream.adapters.kafka.source import reading
from twinstream.core.events import Side
from twinstream.errors import SettingsError
from twinstream.explain.masking import fresh_secret
from twinstream.intake.control import unreliable
from twinstream.ports import Positions
from twinstream.spark.matcher.kafka_options import options_of
from twinstream.spark.matcher.location import CONF, Beginning, Location, Moved, begun_at, moved_here
from twinstream.spark.matcher.parcels import SCHEMA, Dealer
from twinstream.spark.matcher.processor import OUTPUT, Job, ShardProcessor
from twinstream.spark.matcher.python_worker import spare
from twinstream.spark.matcher.source import FedSource, KafkaLookout, Lookout
from twinstream.spec.codec.codec import Codec
from twinstream.spec.file.model import Spec
from twinstream.spec.laws.emits import service_refusal
from twinstream.spec.lint.sharding import refusal_by_key
from twinstream.spec.load import digest, with_schemas
from twinstream.starting.input_start import Found, Opening
from twinstream.starting.start import Unsafe, positions_of

START_SECONDS = 1.0
"""The time between two looks for a start at the input."""
SECRET_IN_FILE = (
    "the service that this comparison was moved from had its secret in a file: name a copy of it as "
    "`mask_key_file` in --config"
)


def job_of(
    spec: Spec,
    brokers: str,
    results: str,
    shards: int,
    kafka: Mapping[str, Any] | None = None,
    java: Mapping[str, Any] | None = None,
    mask_secret: bytes = b"",
) -> Job:
    """What the tasks need to know, but for what `start` decides.

    Raises SettingsError, SourceError and SpecError.

    `kafka` are properties of librdkafka, `java` options of Spark's own reader and writer that win over these.
    """
    if reason := service_refusal(spec) or refusal_by_key(spec, shards):
        raise SettingsError(reason)
    kafka = dict(kafka or {})
    options = options_of(kafka, java or {})
    lookout = KafkaLookout(spec, brokers, kafka)
    topics = lookout.topics()
    if reason := unreliable(spec, lookout.control()):
        raise SettingsError(reason)
    Codec(spec)  # Where the path of a schema file can still be told.
    return Job(with_schemas(spec), brokers, kafka, options, results, shards, uuid4().hex, topics, mask_secret)


def start_found(spec: Spec, lookout: Lookout, wait: Callable[[str], object]) -> Found:
    """The start at the input, once both versions have said enough. Raises SourceError."""
    source, before = FedSource(lookout.topics(), lookout), ""
    opening = Opening(spec, source)
    try:
        while True:
            try:
                opening.positions(lookout.topics())
            except Unsafe as reason:
                if str(reason) == before:  # The control topic is not read at once.
                    wait(before)
                before = str(reason)
                time.sleep(START_SECONDS)
            else:
                assert opening.found is not None, "it has positions"
                return opening.found
    finally:
        source.close()


class Pace(NamedTuple):
    """The seconds between two batches, and the most records of a batch."""

    seconds: float = 2.0
    records: int = 500_000


def start(
    spark: SparkSession,
    job: Job,
    checkpoint: str | Path,
    pace: Pace,
    wait: Callable[[str], object] = lambda _: None,
) -> StreamingQuery:
    """Start the query of a comparison, or go on from its checkpoint.

    `wait` is called with the reason, again and again, while there is no safe start at the input; what it
    raises ends the wait. Raises SettingsError, CheckpointError and SourceError.
    """
    location = Location(spark, checkpoint)
    job, moved = _begun(job, location, wait), moved_here(location)
    for key, value in CONF.items():
        spark.conf.set(key, value)
    if moved is not None:
        starts = moved.positions
    elif location.begun():  # From where its checkpoint says: Kafka may have deleted the beginning since.
        starts = {side: topic.first for side, topic in job.topics.items()}
    else:
        starts = _starts(job)
    rows = results_of(spark, job, pace.records, starts, moved)
    writer = rows.writeStream.format("kafka").options(**_connection(job))
    writer = writer.option("checkpointLocation", str(checkpoint)).outputMode("update")
    writer = writer.queryName(f"twinstream {job.spec.name}")
    return writer.trigger(processingTime=f"{pace.seconds} seconds").start()


def _begun(job: Job, location: Location, wait: Callable[[str], object]) -> Job:
    """A job with the secret and the start that its location has, or has from now on."""
    beginning = begun_at(job.spec, job.shards, location)
    if beginning is None:
        found = None
        if job.spec.start.at == "input":
            found = start_found(job.spec, KafkaLookout(job.spec, job.brokers, job.kafka), wait)
        beginning = Beginning(digest(job.spec), job.shards, fresh_secret(), found)
        location.begin(beginning)
    secret = job.mask_secret or beginning.mask_secret
    if not secret:
        raise SettingsError(SECRET_IN_FILE)
    return job._replace(mask_secret=secret, found=beginning.found)


def results_of(
    spark: SparkSession, job: Job, most: int, starts: Positions, moved: Moved | None = None
) -> DataFrame:
    """The records for the results topics, as a stream of batches of at most so many records."""
    dealt = _records(spark, job, most, starts).mapInArrow(_dealing(job), SCHEMA)
    rows = dealt.union(_beats(spark, dealt))
    return rows.groupBy("shard").transformWithStateInPandas(
        ShardProcessor(job),
        OUTPUT,
        "Update",
        "ProcessingTime",
        initialState=None if moved is None else moved.shards.groupBy("shard"),
    )


def _beats(spark: SparkSession, like: DataFrame) -> DataFrame:
    """Rows that never come, of a source that always has some.

    Without it a query may make no batch before its first record, though its shards have to be surveyed:
    always after a move, and once after a restart. With it each trigger has a batch.
    """
    beats = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    nothing = [sf.lit(None).cast(column.dataType).alias(column.name) for column in like.schema]
    return beats.where("false").select(*nothing)


def _connection(job: Job) -> dict[str, str]:
    """The options of Spark's Kafka source and sink alike."""
    return {**job.java, "kafka.bootstrap.servers": job.brokers}


def _records(spark: SparkSession, job: Job, most: int, starts: Positions) -> DataFrame:
    reader = spark.readStream.format("kafka").options(**_connection(job))
    options = {
        "subscribe": ",".join(job.names.values()),
        "startingOffsets": _offsets(job, starts),
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": "true",
        "maxOffsetsPerTrigger": str(most),
        "includeHeaders": str(job.spec.reads_marks or job.spec.whole).lower(),
    }
    rows = reader.options(**options).load()
    keyed = job.spec.reads_keys or job.spec.whole or job.spec.folding is not None
    more = ["key"] if keyed else []
    more += ["headers"] if job.spec.reads_marks or job.spec.whole else []
    one, other = (job.names[side] for side in Side)
    side = sf.when(sf.col("topic") == one, int(Side.LEFT)).when(sf.col("topic") == other, int(Side.RIGHT))
    columns = ["partition", "offset", "unix_millis(timestamp) AS timestamp_ms", "value", *more]
    return rows.withColumn("side", side).selectExpr("side", *columns)


def _starts(job: Job) -> Positions:
    """Where the query begins, as the comparison file says. Raises SettingsError."""
    try:
        if job.found is not None:
            return job.found.opened.positions
        lookout = KafkaLookout(job.spec, job.brokers, job.kafka)
        return positions_of(job.spec, job.topics, lookout.begins_ms)
    except Unsafe as reason:
        raise SettingsError(str(reason)) from None


def _offsets(job: Job, starts: Positions) -> str:
    """The starting offsets for Spark, of all partitions; one added meanwhile begins with its first record."""
    return json.dumps(
        {
            job.names[side]: {
                str(p): starts[side].get(p, first) for p, first in job.topics[side].first.items()
            }
            for side in Side
        }
    )


def _dealing(job: Job) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def deal(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _dealer(job).parcels(batches)
        spare()

    return deal


_dealers: dict[str, Dealer] = {}


def _dealer(job: Job) -> Dealer:
    """The dealer of this process, which remembers the shards of keys between tasks."""
    if job.run not in _dealers:
        ends = KafkaEnds(reading(job.brokers, job.spec.name, job.kafka))
        _dealers[job.run] = Dealer(job.spec, Codec(job.spec), job.shards, ends.end)
    return _dealers[job.run]
