"""Bugs that the new version of the job can be run with, to see that they are found.

Each models a mistake that real pipelines have shipped. They are seeded and, but for the stall, a function of
the rows and the batch alone, so a drill can be repeated. All but the stall touch the views and leave the
counts as they are. At some hundred events a second each shows within ten seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event as Flag
from time import monotonic

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

Rewrite = Callable[[DataFrame, int], DataFrame]
"""Takes the rows of a batch and its number, and gives the rows to write."""

SLICE_MS = 3_000
"""A campaign is lost for one slice of event time, then there for the next."""

ONE_IN = 50
"""How many views there are to one that is doubled or changed."""

STALL_AFTER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Fault:
    """What a bug does to the batches of each query, after they have been arranged for writing."""

    views: list[Rewrite] = field(default_factory=list)
    counts: list[Rewrite] = field(default_factory=list)


def named(name: str | None, seed: int, stopping: Flag) -> Fault:
    """The bug of this name; without a name, none."""
    return Fault() if name is None else _FAULTS[name](seed, stopping)


def _drop(seed: int, stopping: Flag) -> Fault:
    """Loses one campaign's views for three seconds out of six.

    The bug: the campaign table is rebuilt under the running job, and the inner join silently drops the views
    of a campaign that is not back yet.
    """

    def lose(batch: DataFrame, batch_id: int) -> DataFrame:
        away = F.pmod(F.floor(F.col("event_time") / SLICE_MS) + seed, F.lit(2)) == 0
        return batch.where(~((F.col("campaign_id") == f"campaign-{seed % 100:02d}") & away))

    return Fault(views=[lose])


def _duplicate(seed: int, stopping: Flag) -> Fault:
    """Writes one view in fifty twice, the copies next to each other.

    The bug: a dimension table has two valid rows for a key, and the join multiplies.
    """

    def double(batch: DataFrame, batch_id: int) -> DataFrame:
        copies = F.when(_hit(seed), F.array(F.lit(1), F.lit(2))).otherwise(F.array(F.lit(1)))
        return batch.withColumn("copy", F.explode(copies)).drop("copy")

    return Fault(views=[double])


def _field(seed: int, stopping: Flag) -> Fault:
    """Gives one view in fifty the campaign next to its own.

    The bug: an index that is off by one where a lookup was rewritten.
    """

    def mistake(batch: DataFrame, batch_id: int) -> DataFrame:
        number = F.substring("campaign_id", -2, 2).cast("int")
        other = F.format_string("campaign-%02d", F.pmod(number + 1, F.lit(100)))
        return batch.withColumn("campaign_id", F.when(_hit(seed), other).otherwise(F.col("campaign_id")))

    return Fault(views=[mistake])


def _reorder(seed: int, stopping: Flag) -> Fault:
    """Writes, in every second batch, the views of half of the ads newest first.

    An ad with one view in the batch has no order to lose; the others show it. The bug: a sort whose direction
    was left over from a query for the newest views, on a path that is not always taken.
    """

    def newest_first(batch: DataFrame, batch_id: int) -> DataFrame:
        if (batch_id + seed) % 2:
            return batch
        hit = F.pmod(F.xxhash64("ad_id", F.lit(seed)), F.lit(2)) == 0
        place = F.when(hit, -F.col("offset")).otherwise(F.col("offset"))
        return batch.sortWithinPartitions("partition", place)

    return Fault(views=[newest_first])


def _stall(seed: int, stopping: Flag) -> Fault:
    """Stops writing, in both queries, ten seconds after the first output, while the process lives on.

    The bug: a call without a time-out in the batch writer, to a service that no longer answers.
    """
    began: list[float] = []

    def hang(batch: DataFrame, batch_id: int) -> DataFrame:
        began[:] = began or [monotonic()]
        if monotonic() - began[0] >= STALL_AFTER_SECONDS:
            stopping.wait()
            raise InterruptedError("the batch hung until the job was stopped")
        return batch

    return Fault(views=[hang], counts=[hang])


def _hit(seed: int) -> F.Column:
    """Whether a view, told by its place in the input, is one that the bug hits."""
    return F.pmod(F.xxhash64("partition", "offset", F.lit(seed)), F.lit(ONE_IN)) == 0


_FAULTS: dict[str, Callable[[int, Flag], Fault]] = {
    "drop": _drop,
    "duplicate": _duplicate,
    "field": _field,
    "reorder": _reorder,
    "stall": _stall,
}

NAMES = tuple(_FAULTS)
