"""Control records of a query that keeps Spark's own Kafka sink.

Spark reports each batch when it is over. That names the input that it has consumed and its watermark, and so
a lost event is proven as with `KafkaSink`. But the next batch may have begun by then, so `written` may lie
beyond the end of this one: a proof may come one batch later. And records carry no headers: a retry writes
duplicates, and an event does not name its input record.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from pyspark import SparkContext
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)
from typing_extensions import override

from twinstream.errors import SinkError
from twinstream.spark import checks
from twinstream.spark.control import ControlWriter
from twinstream.spark.late import LateCount
from twinstream.spark.running import identifier, kafka_offsets
from twinstream.spark.topics import SERVERS, Topics
from twinstream.spec.decode.control import ControlRecord, LateRows


class ProgressListener(StreamingQueryListener):
    """Writes a control record after each batch of a query; hand it to `spark.streams.addListener`.

    A control topic or a broker that is away neither fails nor slows the query.

    Args:
        brokers: The address of Kafka, ``host:port[,…]``.
        topic: The topic that the query writes to; no other query writes to it.
        query: The name of the query, as given to `queryName`. Other queries of the session are left alone.
        version: The name of this version, as the comparison file has it.
        control: The topic for control records; it has one partition.
        options: Further options of Spark's Kafka writer, such as ``{"kafka.security.protocol": "SSL"}``.

    Raises:
        SinkError: an argument is wrong, there is no session yet, or the topics cannot hold what is written.
    """

    def __init__(
        self,
        *,
        brokers: str,
        topic: str,
        query: str,
        version: str,
        control: str,
        options: Mapping[str, str] | None = None,
    ) -> None:
        checks.of_arguments(brokers=brokers, topic=topic, query=query, version=version, control=control)
        context: Any = SparkContext._active_spark_context
        if context is None:
            raise SinkError("there is no Spark session yet: make it before the ProgressListener")
        self.topic, self.query, self.version = topic, query, version
        self._topics = Topics(context._jvm, {**(options or {}), SERVERS: brokers})
        checks.of_output(self._topics, topic)
        checks.of_control(self._topics, control, topic)
        self._writer = ControlWriter(self._topics, control)
        self._late: LateCount | None = None

    @override
    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Spark calls it; there is nothing to tell yet."""

    @override
    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Tell what a batch has done: Spark calls it."""
        progress = event.progress
        if progress.name != self.query:
            return
        if self._late is None or self._late.run != str(progress.runId):
            self._late = LateCount(str(progress.runId), progress.batchId)
        dropped = sum(operator.numRowsDroppedByWatermark for operator in progress.stateOperators)
        self._late.add(progress.batchId, dropped)
        self._writer.write(partial(self._record, progress, self._late.told))

    @override
    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Spark calls it; there is nothing new to tell."""

    @override
    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Spark calls it; the last batch has been told."""

    def _record(self, progress: StreamingQueryProgress, late: LateRows) -> ControlRecord:
        return ControlRecord(
            version=self.version,
            query_id=identifier(self.query, str(progress.id)),
            run_id=str(progress.runId),
            batch=progress.batchId,
            attempt=str(progress.runId)[:8],
            consumed=kafka_offsets(source.endOffset for source in progress.sources),
            consumed_from=kafka_offsets(source.startOffset or "" for source in progress.sources),
            watermark=_milliseconds(progress.eventTime.get("watermark")),
            written={self.topic: self._topics.ends(self.topic)},
            rows=max(0, progress.sink.numOutputRows),
            late=late,
        )


def _milliseconds(watermark: str | None) -> int | None:
    """A watermark as Spark prints it: 0 until it has advanced, None of a query that declares none."""
    return None if watermark is None else round(datetime.fromisoformat(watermark).timestamp() * 1000)
