"""Marks the records of a batch with the headers of `spec.decode.headers`, in Spark's own plan.

Which task writes a row, and in which attempt, is known on the executor alone. There the name of the thread
tells it: `Executor task launch worker for task 3.0 in stage 2.0 (TID 5)`. SQL can read it, so no Python
worker touches a row. A stage that is run again counts its attempts from 0 again; so the attempt of the stage
is part of the number.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from twinstream.spec.decode.headers import ATTEMPT, BATCH, INPUT, QUERY

STAGE_ATTEMPT = 1_000
"""One attempt of a stage, in attempts of a task: more than any task has."""
KEPT = ("key", "value", "headers", "partition")
"""The columns that Spark's Kafka writer reads; the topic is an option."""
_TASK = "twinstream_task"
_THREAD = "reflect('java.lang.Thread', 'currentThread')"
_OF_THREAD = f"substring_index(substring_index({_THREAD}, ' for task ', -1), ' (TID', 1)"
"""Such as `3.0 in stage 2.0`."""
_OF_PARTITION = "concat(spark_partition_id(), '.0 in stage 0.0')"
"""The same where `reflect` is forbidden: no task may have a second attempt then."""
_HEADERS = "array<struct<key:string,value:binary>>"


def marked(
    batch: DataFrame, query: str, number: int, execution: str, origin: Sequence[str], *, reflect: bool
) -> DataFrame:
    """The records of a batch with their headers, and nothing else that Kafka does not get.

    `execution` names this run of the batch. `origin` are the columns with the topic, partition and offset of
    the input record of a row. Without `reflect`, each attempt of a task is taken to be the first.
    """
    told = batch.withColumn(_TASK, fn.expr(_OF_THREAD if reflect else _OF_PARTITION))
    ours = [(QUERY, fn.lit(query)), (BATCH, fn.lit(str(number))), (ATTEMPT, _attempt(execution))]
    if origin:
        topic, partition, offset = map(fn.col, origin)
        ours.append((INPUT, fn.concat(topic, fn.lit(":"), partition, fn.lit(":"), offset)))
    headers = fn.array(*(_header(name, value) for name, value in ours)).cast(_HEADERS)
    columns = [name for name in KEPT if name in batch.columns and name not in origin]
    if "headers" in columns:
        headers = fn.concat(fn.coalesce(fn.col("headers"), fn.array().cast(_HEADERS)), headers)
    return told.select(*(name for name in columns if name != "headers"), headers.alias("headers"))


def _header(name: str, value: Column) -> Column:
    return fn.struct(fn.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))


def _attempt(execution: str) -> Column:
    """EXECUTION/TASK.ATTEMPT."""
    task = fn.substring_index(fn.col(_TASK), " ", 1)
    stage = fn.substring_index(fn.col(_TASK), ".", -1)
    again = fn.concat(
        fn.substring_index(task, ".", 1),
        fn.lit("."),
        (stage.cast("long") * STAGE_ATTEMPT + fn.substring_index(task, ".", -1).cast("long")).cast("string"),
    )
    return fn.concat(fn.lit(f"{execution}/"), fn.when(stage == "0", task).otherwise(again))
