"""The pipelines of the DiffStream paper in PySpark, each as it is written first, and in parallel.

Source: Kallas, Niksic, Stanford, Alur, "DiffStream" (OOPSLA 2020).
"""

from __future__ import annotations

import random

from pyspark.sql import Column, DataFrame, GroupedData, Window
from pyspark.sql import functions as fn

from tests.case_studies.arrivals import SEED, arrived, turns

COUNT = 60
_draw = random.Random(SEED)


# -- running sums between barriers -------------------------------------------------------------------------

SUMS = "place INT, barrier INT, n INT"
NUMBERS = [
    (place, place // 10, 0) if place % 10 == 9 else (place, None, _draw.randint(1, 9))
    for place in range(COUNT)
]
"""Numbers, and behind every ninth a barrier with its own number."""


def sums(rows: DataFrame) -> DataFrame:
    """At each barrier the sum of all numbers before it."""
    return _sums_by(rows, fn.lit(0)).orderBy("barrier")


def sums_in_parallel(rows: DataFrame) -> DataFrame:
    """Two workers add up their numbers; each barrier goes to both, and there their sums are added up."""
    epoch = fn.count("barrier").over(Window.orderBy("place"))
    epochs = rows.withColumn("epoch", epoch).where("barrier IS NULL").withColumn("worker", turns(2))
    parts = epochs.groupBy("epoch", "worker").agg(fn.sum("n").alias("sum"))
    whole = parts.groupBy("epoch").agg(fn.sum("sum").alias("sum"))
    running = fn.sum("sum").over(Window.orderBy("epoch"))
    return whole.select(fn.col("epoch").cast("int").alias("barrier"), running.alias("sum")).orderBy("barrier")


def sums_in_naive_parallel(rows: DataFrame) -> DataFrame:
    """Two workers, and barriers go to one of them like numbers: it writes the sum that it knows of."""
    return _sums_by(arrived(rows, turns(2)), turns(2)).orderBy("arrived").drop("arrived")


def _sums_by(rows: DataFrame, worker: Column) -> DataFrame:
    running = fn.sum("n").over(Window.partitionBy(worker).orderBy("place"))
    return rows.withColumn("sum", running).where("barrier IS NOT NULL").drop("place", "n")


# -- increments and decrements -----------------------------------------------------------------------------

STEPS = "place INT, kind STRING, n INT"
CHANGES = [
    (place, "barrier" if place % 15 == 14 else ("inc", "dec")[place // 5 % 2], place)
    for place in range(COUNT)
]
"""Five increments, five decrements, and so on, with barriers in between."""


def steps(rows: DataFrame) -> DataFrame:
    """As they came."""
    return rows.orderBy("place").drop("place")


def steps_in_parallel(rows: DataFrame) -> DataFrame:
    """Two workers, which wait for each other wherever another kind begins."""
    begins = fn.coalesce(fn.col("kind") != fn.lag("kind").over(Window.orderBy("place")), fn.lit(True))
    run = fn.sum(begins.cast("int")).over(Window.orderBy("place"))
    numbered = rows.withColumn("begins", begins).withColumn("run", run)
    return arrived(numbered, turns(2)).orderBy("run", "arrived").select("kind", "n")


def steps_in_naive_parallel(rows: DataFrame) -> DataFrame:
    """Two workers that do not wait for each other."""
    return arrived(rows, turns(2)).orderBy("arrived").select("kind", "n")


# -- taxi positions by taxi --------------------------------------------------------------------------------

POSITIONS = "place INT, taxi INT, x INT, y INT, note STRING"
DRIVEN = [
    (place, _draw.randint(1, 3), _draw.randint(0, 99), _draw.randint(0, 99), "…") for place in range(COUNT)
]


def positions(rows: DataFrame) -> DataFrame:
    """The taxi and its position, by one worker."""
    return rows.orderBy("place").select("taxi", "x", "y")


def key_then_project(rows: DataFrame) -> DataFrame:
    """By taxi to two workers, which drop the other columns."""
    return arrived(rows, fn.col("taxi") % 2).orderBy("arrived").select("taxi", "x", "y")


def project_then_key(rows: DataFrame) -> DataFrame:
    """In turns to two workers, which drop the other columns; by taxi only behind them."""
    return arrived(rows, turns(2)).orderBy("arrived").select("taxi", "x", "y")


# -- the best tips of an hour, as a stream -----------------------------------------------------------------

FARES = "at TIMESTAMP, driver INT, tip INT"
TIPPED = [*((minute, _draw.randint(1, 4), _draw.randint(0, 9)) for minute in range(0, 240, 4)), (1000, 0, 0)]
"""Minute, driver and tip; the last fare only lets the time go on, so that the hours before it are closed."""


def hourly_tips(fares: DataFrame) -> DataFrame:
    """By hour the driver who got most tips in it, and how much that was."""
    return _best(_tips_by_driver(fares).groupBy(fn.window("hour", "1 hour").alias("hour")))


def hourly_tips_by_driver(fares: DataFrame) -> DataFrame:
    """The same by key, and so by a part of the drivers: each of two workers has a best one of its own."""
    groups = _tips_by_driver(fares).groupBy(fn.window("hour", "1 hour").alias("hour"), fn.col("driver") % 2)
    return _best(groups)


def _tips_by_driver(fares: DataFrame) -> DataFrame:
    hours = fares.withWatermark("at", "0 seconds").groupBy(fn.window("at", "1 hour").alias("hour"), "driver")
    return hours.agg(fn.sum("tip").alias("tips"))


def _best(groups: GroupedData) -> DataFrame:
    best = groups.agg(fn.max(fn.struct("tips", "driver")).alias("best"))
    return best.select(fn.date_format("hour.start", "HH:mm").alias("hour"), "best.driver", "best.tips")


# -- the topic of a text -----------------------------------------------------------------------------------

WORDS = "text INT, place INT, word STRING"
TOPICS = {"goal": "sport", "match": "sport", "vote": "politics", "law": "politics", "rain": "weather"}
TEXTS = [(place // 8, place, _draw.choice(sorted(TOPICS))) for place in range(COUNT)]


def topics(words: DataFrame) -> DataFrame:
    """By text the topic of most of its words."""
    return _most(_with_topic(words).groupBy("text", "topic").agg(fn.count("word").alias("words")))


def topics_in_parallel(words: DataFrame) -> DataFrame:
    """Two workers count, and their counts are added up."""
    parts = _with_topic(words).groupBy("text", "topic", turns(2)).agg(fn.count("word").alias("words"))
    return _most(parts.groupBy("text", "topic").agg(fn.sum("words").alias("words")))


def topics_in_naive_parallel(words: DataFrame) -> DataFrame:
    """Two workers count, and the larger of their counts is taken."""
    parts = _with_topic(words).groupBy("text", "topic", turns(2)).agg(fn.count("word").alias("words"))
    return _most(parts.groupBy("text", "topic").agg(fn.max("words").alias("words")))


def _with_topic(words: DataFrame) -> DataFrame:
    known = words.sparkSession.createDataFrame(list(TOPICS.items()), "word STRING, topic STRING")
    return words.join(fn.broadcast(known), "word")


def _most(counts: DataFrame) -> DataFrame:
    best = counts.groupBy("text").agg(fn.max(fn.struct("words", "topic")).alias("best"))
    return best.select("text", "best.topic").orderBy("text")
