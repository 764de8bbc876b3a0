"""A query from a topic to a topic with the sink, as a program: it can be killed, and can run on a cluster.

    spark-submit spark_job.py '{"brokers": …, "events": …, "topic": …, "checkpoint": …}'

With `held` it stops for good behind the write of its second batch, and makes this file to say so. With `slow`
the first attempt of a task sleeps at this offset of partition 0.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from twinstream.spark import KafkaSink, records

ORIGIN = ("topic", "partition", "offset")
SLOW_MS = 600_000
"""Longer than a test takes: who sleeps is overtaken."""
FIRST = "reflect('java.lang.Thread', 'currentThread') LIKE '%.0 in stage %'"


def main(given: dict[str, Any]) -> None:
    """Run the query to the end of its input, in batches of ten records."""
    spark = SparkSession.builder.getOrCreate()
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", given["brokers"])
    reader = reader.option("subscribe", given["events"]).option("startingOffsets", "earliest")
    read = reader.option("maxOffsetsPerTrigger", 10).load()
    event = "inline(array(from_json(cast(value AS string), 'k STRING, n INT')))"
    rows = records(read.selectExpr(event, *ORIGIN), key=["k"], keep=ORIGIN)
    if "slow" in given:
        rows = slow_once(rows, given["slow"])
    names = ("brokers", "topic", "control")
    whole = KafkaSink(query="q", version="1", origin=ORIGIN, **{name: given[name] for name in names})

    def sink(batch: DataFrame, number: int) -> None:
        whole(batch, number)
        if number == 1 and "held" in given:
            Path(given["held"]).touch()
            signal.pause()

    writer = rows.writeStream.foreachBatch(sink).option("checkpointLocation", given["checkpoint"])
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


def slow_once(rows: DataFrame, row: int) -> DataFrame:
    """The rows, where the first attempt of a task sleeps at one of partition 0."""
    slept = f"substr(reflect('java.lang.Thread', 'sleep', {SLOW_MS}L), 1, 0)"
    here = f"partition = 0 AND offset = {row} AND {FIRST}"
    value = f"CASE WHEN {here} THEN concat({slept}, value) ELSE value END"
    return rows.selectExpr("key", f"{value} AS value", *ORIGIN)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
