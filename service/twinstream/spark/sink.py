"""A sink for `foreachBatch` that marks what it writes, and proves what it has written.

Spark's Kafka sink writes at least once: a task that is retried, and a batch that is run again after a crash,
write their rows a second time. `KafkaSink` writes with the same writer of Spark, and adds headers that tell
one attempt from another, so that a comparison with `duplicates: {policy: replays}` knows a retry from a
duplicate. After each batch it writes a control record, by which a lost event is proven within two batches.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from twinstream.errors import SinkError
from twinstream.spark import checks
from twinstream.spark.control import ControlWriter
from twinstream.spark.late import LateCount
from twinstream.spark.marks import marked
from twinstream.spark.running import RunningBatch, identifier, running_batch
from twinstream.spark.topics import SERVERS, Offsets, Topics
from twinstream.spec.decode.control import ControlRecord


class KafkaSink:
    """Writes the batches of one query of one version to a topic; hand it to `writeStream.foreachBatch`.

    The rows have the columns of Spark's Kafka sink: `value`, and if need be `key`, `headers` and `partition`.

    Args:
        brokers: The address of Kafka, ``host:port[,…]``.
        topic: The topic of this version; no other query writes to it.
        query: The name of the query, which is the same in both versions and over restarts.
        version: The name of this version, as the comparison file has it.
        control: The topic for control records; it has one partition. Without it none are written.
        origin: The columns with topic, partition and offset of the one input record that a row comes from;
            none for aggregates. They are not written.
        sort_by: The columns by which the rows of a key are sorted before they are written. They are not
            written. It brings all rows of a key into one task.
        options: Further options of Spark's Kafka writer, such as ``{"kafka.security.protocol": "SSL"}``.
        reflect: Whether Spark may call `reflect`, which tells the attempts of a task apart. Without it no
            task may be retried: `spark.task.maxFailures` and `spark.stage.maxConsecutiveAttempts` have to be
            1, and speculation off.

    Raises:
        SinkError: at its first batch, before anything is written, if what it needs is not there; `checks`
            has the list. At a second call in a batch.
    """

    def __init__(
        self,
        *,
        brokers: str,
        topic: str,
        query: str,
        version: str,
        control: str | None = None,
        origin: Sequence[str] = (),
        sort_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        reflect: bool = True,
    ) -> None:
        checks.of_arguments(brokers=brokers, topic=topic, query=query, version=version)
        checks.of_origin(origin)
        self.topic, self.query, self.version, self.control = topic, query, version, control
        self._origin, self._sort_by, self._reflect = tuple(origin), tuple(sort_by), reflect
        self._options = {"kafka.acks": "all", **(options or {}), SERVERS: brokers}
        self._topics: Topics | None = None
        self._writer: ControlWriter | None = None
        self._late: LateCount | None = None
        self._written: Offsets = {}
        self._done: tuple[str, int] | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Write a batch: Spark calls it."""
        running = running_batch(batch, number)
        if self._done == (running.run_id, number):  # A second call would be a retry, which hides duplicates.
            raise SinkError(
                f"the sink was called twice in batch {number}: union the rows, or make one sink for each "
                "output"
            )
        if self._late is None or running.run_id != self._late.run:
            self._begin(batch, running)
            self._late = LateCount(running.run_id, number)
        self._late.add(number - 1, running.dropped_before)
        execution, query = uuid.uuid4().hex[:8], identifier(self.query, running.spark_id)
        self._write(batch, query, number, execution)
        if self._writer is not None:
            self._writer.write(partial(self._record, running, query, number, execution))
        self._done = running.run_id, number

    def _begin(self, batch: DataFrame, running: RunningBatch) -> None:
        """Connect, and check what a run needs."""
        checks.of_columns(batch, self._origin, self._sort_by)
        checks.of_session(batch.sparkSession, reflect=self._reflect)
        checks.of_checkpoint(running)
        session: Any = batch.sparkSession
        self._topics = Topics(session.sparkContext._jvm, self._options)
        checks.of_output(self._topics, self.topic)
        checks.of_writer(self._topics, self.topic, self.query)
        if self.control is not None:
            checks.of_control(self._topics, self.control, self.topic)
            checks.of_versions(self._topics, self.control, self.topic, self.version, running)
            self._writer = ControlWriter(self._topics, self.control)
        self._written = self._topics.ends(self.topic)

    def _write(self, batch: DataFrame, query: str, number: int, execution: str) -> None:
        if self._sort_by:
            apart = batch.repartition("key") if "key" in batch.columns else batch
            batch = apart.sortWithinPartitions(*self._sort_by)
        records = marked(batch, query, number, execution, self._origin, reflect=self._reflect)
        records.write.format("kafka").options(**self._options).option("topic", self.topic).save()

    def _record(self, running: RunningBatch, query: str, number: int, execution: str) -> ControlRecord:
        assert self._topics is not None
        before, self._written = self._written, self._topics.ends(self.topic)
        return ControlRecord(
            version=self.version,
            query_id=query,
            run_id=running.run_id,
            batch=number,
            attempt=execution,
            consumed=running.consumed,
            consumed_from=running.consumed_from,
            watermark=running.watermark,
            written={self.topic: self._written},
            rows=sum(max(0, end - before.get(partition, 0)) for partition, end in self._written.items()),
            late=None if self._late is None else self._late.told,
        )
