"""What Spark knows of the batch that is running: its query, and from where to where it reads the input.

Spark writes the offsets of a batch to its checkpoint before it runs the batch, and reads them from there when
it runs it again. So what they say is exact, and the same in each execution.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from twinstream.errors import SinkError
from twinstream.spark.late import dropped_in
from twinstream.spec.decode.control import WrittenOffsets

QUERY_ID = "sql.streaming.queryId"
ID_DIGITS = 8
TEMPORARY = "temporary-"
"""How Spark names a checkpoint that it throws away."""


def identifier(query: str, spark_id: str) -> str:
    """The name of a query in headers and control records: another one when its checkpoint was lost.

    Spark keeps its own identifier of a query in the checkpoint. Without one the batches begin at 0 again, and
    what they write is no retry of earlier batches with these numbers.
    """
    return f"{query}@{spark_id[:ID_DIGITS]}"


class RunningBatch(NamedTuple):
    """One batch of a query: what it consumes, as next offsets, and its watermark in milliseconds.

    `watermark` is None of a query that declares none; until one has advanced it is 0, and holds others back.
    `is_temporary`: its checkpoint goes with the query. Sources other than Kafka are left out of `consumed`.
    `dropped_before` are the rows that the batch before it dropped as late, if that is known.
    """

    spark_id: str
    run_id: str
    checkpoint: str
    is_temporary: bool
    consumed: WrittenOffsets
    consumed_from: WrittenOffsets
    watermark: int | None
    dropped_before: int | None


def running_batch(batch: DataFrame, number: int) -> RunningBatch:
    """The batch that is running in this thread.

    Raises:
        SinkError: no streaming query runs here, or this Spark has other names for what is asked.
    """
    session: Any = batch.sparkSession
    query_id = session.sparkContext.getLocalProperty(QUERY_ID)
    if query_id is None:
        raise SinkError(
            "the sink is called outside of a streaming query: hand it to `writeStream.foreachBatch`"
        )
    try:
        return _running(batch, query_id, number)
    except Py4JError as error:
        raise SinkError(
            f"Spark {session.version} does not tell what a batch has read in a way that KafkaSink knows: use "
            f"Spark 4.0, with which it is tested ({str(error).splitlines()[0]})"
        ) from None


def _running(batch: DataFrame, spark_id: str, number: int) -> RunningBatch:
    session: Any = batch.sparkSession
    jvm = session.sparkContext._jvm
    active = batch._jdf.sparkSession().sharedState().activeStreamingQueries()
    query = active.get(jvm.java.util.UUID.fromString(spark_id))
    log, checkpoint = query.offsetLog(), str(query.resolvedCheckpointRoot())
    now, before = log.get(number), log.get(number - 1)
    watermark = _metadata(now.get()).get().batchWatermarkMs()
    marked = jvm.org.apache.spark.sql.catalyst.trees.TreePattern.EVENT_TIME_WATERMARK()
    return RunningBatch(
        spark_id,
        str(query.runId()),
        checkpoint,
        checkpoint.rpartition("/")[2].startswith(TEMPORARY),
        _offsets(now.get()),
        _offsets(before.get()) if before.isDefined() else {},
        watermark if query.logicalPlan().containsPattern(marked) else None,
        dropped_in(number - 1, query),
    )


def _metadata(sequence: Any) -> Any:
    """What the offset log has beside the offsets of a batch; it got another name with Spark 4.1."""
    try:
        return sequence.metadataOpt()
    except Py4JError:
        return sequence.metadata()


def _offsets(sequence: Any) -> WrittenOffsets:
    """The next offsets of all Kafka sources of a batch."""
    sources = sequence.offsets()
    found = [sources.apply(place) for place in range(sources.size())]
    return kafka_offsets(source.get().json() for source in found if source.isDefined())


def kafka_offsets(texts: Iterable[str]) -> WrittenOffsets:
    """The next offsets that the sources of a query name, each as JSON; those of other sources are left out.

    Two sources of one query may read the same partition: what both have read is consumed.
    """
    found: WrittenOffsets = {}
    for topic, partitions in chain.from_iterable(map(_by_topic, texts)):
        known = found.setdefault(topic, {})
        for partition, offset in partitions.items():
            known[int(partition)] = min(offset, known.get(int(partition), offset))
    return found


def _by_topic(text: str) -> list[tuple[str, dict[str, int]]]:
    """By topic the next offset of each partition; empty for another kind of source."""
    try:
        offsets = json.loads(text)
    except ValueError:
        return []
    if not isinstance(offsets, dict) or not all(map(_are_kafkas, offsets.values())):
        return []
    return list(offsets.items())


def _are_kafkas(offsets: object) -> bool:
    """Whether these are offsets by partition, and not what a source of another kind has in their place."""
    return isinstance(offsets, dict) and all(
        partition.isdecimal() and type(offset) is int and offset >= 0 for partition, offset in offsets.items()
    )
