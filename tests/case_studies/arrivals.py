"""In which order rows arrive from workers that run at once: drawn from a seed, and the same in each run.

A version that works in parallel has a bug only in some runs. So a run is recorded here: each row takes its
worker a time that a hash of the seed and the row gives, and the second worker is half as fast. A worker takes
its rows one after the other, and a row arrives when its worker is done with it. Nothing waits for a real
worker, so no race decides a test.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

SEED = 16
LONGEST = 9
"""The longest time that a row takes the first worker; the shortest is 1."""


def turns(workers: int) -> Column:
    """Rows go to the workers in turns."""
    return fn.col("place") % workers


def arrived(rows: DataFrame, worker: Column, seed: int = SEED) -> DataFrame:
    """The rows with a column `arrived`, which sorts them into the order in which they arrive.

    They have a `place`, their number in the input; `worker` is the number of the worker that gets a row.
    """
    takes = (fn.pmod(fn.xxhash64(fn.lit(seed), "place"), fn.lit(LONGEST)) + 1) * (fn.col("worker") + 1)
    one_by_one = Window.partitionBy("worker").orderBy("place")
    done = fn.sum(takes).over(one_by_one)
    return rows.withColumn("worker", worker).withColumn("arrived", fn.struct(done, "worker")).drop("worker")
