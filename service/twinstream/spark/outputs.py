"""Runs the output of a pipeline to its end, and gives its records in the order in which they were written.

An output is a batch DataFrame, a streaming one, or a function from an input to either. A streaming output is
run by Spark as in production, micro-batch by micro-batch, in a temporary place that is removed. The input of
a function is cut into micro-batches as the caller says: each is a file of its own, and a trigger takes one.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from twinstream.errors import OutputError
from twinstream.spark.json_records import records

Job = Callable[[DataFrame], DataFrame]
"""A version of a pipeline: from its input to its output."""
Output = DataFrame | Job
RECORD_COLUMNS = {"key", "value", "headers", "partition", "topic", "timestamp", "timestampType", "offset"}
"""The columns of Kafka: rows with a value and only these are records already."""
_PLACE = StructType([StructField(f"twinstream_{name}", LongType()) for name in ("batch", "row")])
"""Where a row of an input stands: its micro-batch, and its number."""


class Input:
    """The rows of an input, and how they are cut into micro-batches.

    `rows` are a DataFrame, or rows for `SparkSession.createDataFrame` with their `schema`. `batches` is the
    number of micro-batches, or the numbers of rows in each; None is one batch.
    """

    def __init__(
        self,
        rows: DataFrame | Iterable[Any],
        schema: StructType | str | None = None,
        batches: int | Sequence[int] | None = None,
    ) -> None:
        frame = rows if isinstance(rows, DataFrame) else _session().createDataFrame(list(rows), schema)
        self.rows, self.schema = frame.collect(), frame.schema
        self.sizes = _sizes(len(self.rows), batches)

    def frame(self) -> DataFrame:
        """The rows as a batch DataFrame."""
        return _session().createDataFrame(self.rows, self.schema)

    def streamed(self, folder: Path) -> DataFrame:
        """The input as a streaming DataFrame; each trigger reads one batch."""
        session, files = _session(), folder.with_name(f"{folder.name}-files")
        folder.mkdir()
        numbers = (number for number, size in enumerate(self.sizes) for _ in range(size))
        rows = [
            (number, place, *row) for place, (number, row) in enumerate(zip(numbers, self.rows, strict=True))
        ]
        schema = StructType([*_PLACE, *self.schema])
        # One task, and an order that Spark need not sort into once more: rows stay as they are.
        ordered = session.createDataFrame(rows, schema).coalesce(1).sortWithinPartitions(*_PLACE.names)
        ordered.write.partitionBy(_PLACE.names[0]).parquet(str(files))
        for number in range(len(self.sizes)):
            (written,) = files.glob(f"{_PLACE.names[0]}={number}/part-*")
            target = written.rename(folder / f"{number:06}.parquet")
            os.utime(target, (number, number))  # Spark takes the files in the order of their times.
        reader = session.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(folder))


def written_by(output: Any, given: Input | None, mode: str = "append") -> list[bytes | None]:
    """The values of the records that an `Output` writes, in order; None for a record without one.

    Raises:
        OutputError: it is no output, or a function has no input.
    """
    if isinstance(output, DataFrame):
        return _collected(output, None, mode)
    if not callable(output):
        raise OutputError(f"an output is a DataFrame or a function of the input, not {type(output).__name__}")
    if given is None:
        raise OutputError("a function of the input needs `input=`, the rows to call it with")
    with tempfile.TemporaryDirectory(prefix="twinstream-") as folder:
        made: Any = output(given.streamed(Path(folder) / "input"))
        if not isinstance(made, DataFrame):
            raise OutputError(f"the function returned {type(made).__name__}, and not a DataFrame")
        return _collected(made, Path(folder), mode)


def _collected(output: DataFrame, folder: Path | None, mode: str) -> list[bytes | None]:
    if not output.isStreaming:
        return _values(output)
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="twinstream-") as temporary:
            return _collected(output, Path(temporary), mode)
    found: list[bytes | None] = []

    def collect(batch: DataFrame, _number: int) -> None:
        found.extend(_values(batch))

    writer = output.writeStream.outputMode(mode).foreachBatch(collect)
    checkpoint = str(folder / f"checkpoint-{uuid.uuid4().hex}")
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    return found


def _values(rows: DataFrame) -> list[bytes | None]:
    """The values of records; other rows become JSON."""
    is_text = "value" in rows.columns and isinstance(rows.schema["value"].dataType, BinaryType | StringType)
    if not is_text or not RECORD_COLUMNS.issuperset(rows.columns):
        rows = records(rows)
    found = rows.select(rows["value"].cast("binary")).collect()
    return [None if row[0] is None else bytes(row[0]) for row in found]


def _sizes(count: int, batches: int | Sequence[int] | None) -> list[int]:
    """The number of rows of each micro-batch."""
    if not count:
        return []
    if batches is None or isinstance(batches, int):
        parts = min(batches or 1, max(1, count))
        if parts < 1:
            raise OutputError(f"`batches` is {batches}: an input has at least one")
        return [count // parts + (place < count % parts) for place in range(parts)]
    sizes = list(batches)
    if sum(sizes) != count or any(size < 1 for size in sizes):
        raise OutputError(f"`batches` adds up to {sum(sizes)} rows, and the input has {count}")
    return sizes


def _session() -> SparkSession:
    session = SparkSession.getActiveSession()
    if session is None:
        raise OutputError("there is no Spark session: make one with SparkSession.builder.getOrCreate()")
    return session
