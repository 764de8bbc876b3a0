"""What a sink refuses before it writes anything, each in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from twinstream.errors import DecodeError, SinkError
from twinstream.spark.running import RunningBatch, identifier
from twinstream.spark.topics import Topics
from twinstream.spec.decode.control import ControlRecord, control_record
from twinstream.spec.decode.headers import QUERY

OLDEST_SPARK = (4, 0)
PLACE = 3
"""The columns that name an input record: topic, partition, offset."""
RECORDS_READ = 200
"""The newest control records that are read, to find the other version."""


def of_arguments(**given: str) -> None:
    """Refuse arguments that are empty."""
    for name, text in given.items():
        if not text.strip():
            raise SinkError(f"`{name}` is empty: give it a value")


def of_origin(origin: Sequence[str]) -> None:
    """Refuse other than three columns, or none."""
    if len(origin) not in (0, PLACE):
        raise SinkError(
            "`origin` names three columns, the topic, the partition and the offset of the input record of a "
            f"row; it names {len(origin)}"
        )


def of_columns(batch: DataFrame, origin: Sequence[str], sort_by: Sequence[str]) -> None:
    """Refuse rows that lack a column."""
    have = ", ".join(batch.columns)
    if "value" not in batch.columns:
        raise SinkError(f"the rows have no column `value`, which is what Kafka gets; they have {have}")
    for argument, names in (("origin", origin), ("sort_by", sort_by)):
        for name in names:
            if name not in batch.columns:
                raise SinkError(f"`{argument}` names a column {name!r}, and the rows have {have}")


def of_session(session: SparkSession, *, reflect: bool) -> None:
    """Refuse a Spark that lacks something."""
    if tuple(map(int, session.version.split(".")[:2])) < OLDEST_SPARK:
        raise SinkError(f"KafkaSink needs Spark 4.0 or newer, and this is {session.version}")
    if reflect:
        return
    conf = session.sparkContext.getConf()
    failures, speculates = conf.get("spark.task.maxFailures", "4"), conf.get("spark.speculation", "false")
    stages = conf.get("spark.stage.maxConsecutiveAttempts", "4")
    master = str(session.sparkContext.master)
    local = master.startswith("local") and "," not in master
    if (failures != "1" and not local) or stages != "1" or speculates == "true":
        raise SinkError(
            "KafkaSink(reflect=False) cannot tell the attempts of a task apart: set spark.task.maxFailures "
            "and spark.stage.maxConsecutiveAttempts to 1 and spark.speculation to false, so that a failed "
            "task runs the whole batch again"
        )


def of_checkpoint(running: RunningBatch) -> None:
    """Refuse a query that forgets everything when it stops."""
    if running.is_temporary:
        raise SinkError(
            "the query has no checkpoint location, so nobody can tell what it writes again after a restart: "
            'set `.option("checkpointLocation", …)`'
        )


def of_output(topics: Topics, topic: str) -> None:
    """Refuse a topic that cannot hold the output."""
    if not topics.partitions(topic):
        raise SinkError(f"topic {topic}: there is no such topic; create it first")
    if topics.is_compacted(topic):
        raise SinkError(
            f"topic {topic} is compacted, so Kafka throws records away before they are compared: set "
            "cleanup.policy to delete, or use another topic"
        )


def of_control(topics: Topics, control: str, topic: str) -> None:
    """Refuse a control topic that is the output, or does not have one partition."""
    if control == topic:
        raise SinkError(f"topic {topic} is both the output and the control topic: give each its own")
    if (count := topics.partitions(control)) != 1:
        has = f"has {count} partitions" if count else "does not exist"
        raise SinkError(
            f"control topic {control} {has}: it needs exactly one, which keeps its records in order"
        )


def of_writer(topics: Topics, topic: str, query: str) -> None:
    """Refuse a topic whose last records were not written by the query."""
    for last in topics.last_records(topic):
        writers = [value.rpartition(b"@")[0] for name, value in last.headers if name == QUERY and value]
        if writers != [query.encode()]:
            raise SinkError(
                f"topic {topic} has another writer: the record at offset {last.offset} of partition "
                f"{last.partition} was not written by query {query!r}; give each query a topic of its own"
            )


def of_versions(topics: Topics, control: str, topic: str, version: str, running: RunningBatch) -> None:
    """Refuse a topic or a checkpoint that another version uses, by the newest control records."""
    for other in _records(topics, control):
        if other.version == version:
            continue
        if other.query_id == identifier(other.query_id.rpartition("@")[0], running.spark_id):
            raise SinkError(
                f"version {other.version!r} runs on the same checkpoint, {running.checkpoint}: give each "
                "version a checkpoint location of its own, or one takes the input of the other"
            )
        if topic in other.written:
            raise SinkError(
                f"version {other.version!r} writes to topic {topic}, too: give each version its own topic"
            )


def _records(topics: Topics, control: str) -> list[ControlRecord]:
    found = []
    for value in topics.newest(control, RECORDS_READ):
        try:
            found.append(control_record(value))
        except DecodeError:
            continue
    return found
