"""The five MapReduce reducers: what each makes of the rows of a key, in the order in which these arrive.

Source: Xiao et al., "Nondeterminism in MapReduce considered harmful?" (ICSE 2014), as taken up by DiffStream
(OOPSLA 2020). None is commutative. So each is right only where its input makes up for that, or where its user
does not care which of several results comes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tests.case_studies.arrivals import SEED, arrived, turns

SCHEMA = "place INT, key INT, x INT, y INT"
COUNT, KEYS = 60, 12
FIRST = 2
"""How many rows FirstN keeps."""
Rows = list[tuple[int, int, int, int]]


class Reducer(NamedTuple):
    """What it makes of `rows`, the rows of a key: an expression of Spark. Several results are `exploded`."""

    result: str
    exploded: bool = False


REDUCERS = {
    # A table from x to y: of two rows with one x the later one wins.
    "IndexValuePair": Reducer(
        "transform(array_sort(array_distinct(rows.x)),"
        " x -> struct(x, element_at(filter(rows, row -> row.x = x), -1).y AS y))"
    ),
    # The row with the largest y: of several the first.
    "MaxRow": Reducer("aggregate(rows, rows[0], (best, row) -> IF(row.y > best.y, row, best))"),
    # The first rows.
    "FirstN": Reducer(f"slice(rows, 1, {FIRST})"),
    # One text of all x.
    "StrConcat": Reducer("array_join(transform(rows, row -> string(row.x)), '@')"),
    # All rows again, one by one.
    "Reorganize": Reducer("rows", exploded=True),
}


def reduced(rows: DataFrame, reducer: Reducer, workers: int) -> DataFrame:
    """The output of a reducer behind a stage of so many workers: by key its result, and the input for it."""
    arriving = arrived(rows, turns(workers))
    gathered = fn.array_sort(fn.collect_list(fn.struct("arrived", "x", "y")))
    groups = arriving.groupBy("key").agg(gathered.alias("rows"))
    groups = groups.withColumn("rows", fn.expr("transform(rows, row -> struct(row.x, row.y))"))
    groups = groups.coalesce(1).sortWithinPartitions("key")
    result = fn.expr(reducer.result)
    one = fn.explode(result) if reducer.exploded else result
    return groups.select("key", one.alias("result"), fn.col("rows").alias("group"))


# -- input -------------------------------------------------------------------------------------------------


def arbitrary(seed: int = SEED) -> Rows:
    """Any rows of a few keys, with few values."""
    draw = random.Random(seed)
    return [(place, draw.randint(1, KEYS), draw.randint(1, 3), draw.randint(1, 2)) for place in range(COUNT)]


def _one_y_for_each_x() -> Rows:
    return [(place, key, x, 10 * key + x) for place, key, x, _ in arbitrary()]


def _one_largest() -> Rows:
    places = random.Random(SEED).sample(range(COUNT), COUNT)
    return [(place, key, x, y) for (place, key, x, _), y in zip(arbitrary(), places, strict=True)]


def _at_most_n() -> Rows:
    return [(place, place // FIRST, x, y) for place, _, x, y in arbitrary()]


def _alike() -> Rows:
    return [(place, key, 2 * key, 4 * key) for place, key, _, _ in arbitrary()]


WELL_FORMED: dict[str, Callable[[], Rows]] = {
    "IndexValuePair": _one_y_for_each_x,
    "MaxRow": _one_largest,
    "FirstN": _at_most_n,
    "StrConcat": _alike,
    "Reorganize": _alike,
}
"""Input with which the order of arrival does not matter to a reducer."""


def frame(session: SparkSession, rows: Rows) -> DataFrame:
    """The rows as a DataFrame."""
    return session.createDataFrame(rows, SCHEMA)
