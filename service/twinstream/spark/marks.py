"""Marks the records of a batch with the headers of `spec.decode.headers`, in Spark's own plan.

Which task writes a row, and in which attempt, is known on the executor alone. There the name of the thread
tells the attempt: `Executor task launch worker for task 3.0 in stage 2.0 (TID 5)`. SQL can read it, so no
Python worker touches a row. A stage that is run again counts its attempts from 0 again; so the attempt of the
stage is part of the number. It also counts the tasks that are left from 0; so Spark tells the partition.

Rows that the driver makes, such as those of `VALUES`, get their marks in the driver, where no thread runs a
task. Each is in the first attempt.

The plan is written as SQL: each `Column` that is made in Python is a call to the JVM, and a batch would wait
for fifty of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from twinstream.spark.json_records import quoted
from twinstream.spec.decode.headers import ATTEMPT, BATCH, INPUT, QUERY

STAGE_ATTEMPT = 1_000
"""One attempt of a stage, in attempts of a task: more than any task has."""
KEPT = ("key", "value", "headers", "partition")
"""The columns that Spark's Kafka writer reads; the topic is an option."""
TASK = "twinstream_task"
"""The column that says which task writes a row, such as `3.0 in stage 2.0`."""
_THREAD = "reflect('java.lang.Thread', 'currentThread')"
_OF_THREAD = (
    f"concat(spark_partition_id(), '.', substring_index(substring_index({_THREAD}, ' (TID', 1), '.', -2))"
)
_OF_PARTITION = "concat(spark_partition_id(), '.0 in stage 0.0')"
"""The same where `reflect` is forbidden: no task may have a second attempt then."""
_FIRST = f"substring_index({TASK}, ' ', 1)"
_AGAIN = (
    f"concat(substring_index({TASK}, '.', 1), '.', "
    f"cast(substring_index({TASK}, '.', -1) AS bigint) * {STAGE_ATTEMPT}"
    f" + cast(substring_index({_FIRST}, '.', -1) AS bigint))"
)
_IN_TASK = f"if(endswith({TASK}, '.0'), {_FIRST}, {_AGAIN})"
_IN_DRIVER = f"concat(substring_index({TASK}, '.', 1), '.0')"
TASK_ATTEMPT = f"if(contains({TASK}, ' in stage '), {_IN_TASK}, {_IN_DRIVER})"
"""TASK.ATTEMPT of that column; short where it is the first attempt of the stage."""
_NONE = "cast(array() AS array<struct<key:string,value:binary>>)"


def marked(
    batch: DataFrame, query: str, number: int, execution: str, origin: Sequence[str], *, reflect: bool
) -> DataFrame:
    """The records of a batch with their headers, and nothing else that Kafka does not get.

    `execution` names this run of the batch. `origin` are the columns with the topic, partition and offset of
    the input record of a row. Without `reflect`, each attempt of a task is taken to be the first.
    """
    ours = [
        _header(QUERY, _bytes(query)),
        _header(BATCH, _bytes(str(number))),
        _header(ATTEMPT, f"cast(concat('{execution}/', {TASK_ATTEMPT}) AS binary)"),
    ]
    if origin:
        topic, partition, offset = map(quoted, origin)
        ours.append(_header(INPUT, f"cast(concat({topic}, ':', {partition}, ':', {offset}) AS binary)"))
    headers = f"array({', '.join(ours)})"
    columns = [name for name in KEPT if name in batch.columns and name not in origin]
    if "headers" in columns:
        columns.remove("headers")
        headers = f"concat(coalesce(headers, {_NONE}), {headers})"
    told = batch.selectExpr("*", f"{_OF_THREAD if reflect else _OF_PARTITION} AS {TASK}")
    return told.selectExpr(*columns, f"{headers} AS headers")


def _header(name: str, value: str) -> str:
    return f"named_struct('key', '{name}', 'value', {value})"


def _bytes(text: str) -> str:
    """A text as a literal of its bytes, whatever is in it."""
    return f"X'{text.encode().hex()}'"
