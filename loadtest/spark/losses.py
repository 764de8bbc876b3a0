"""Which events are lost, when their batches were written, and how long it took to find them.

All of it is pure: `detection` runs the pipelines and asks the service.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median, quantiles
from typing import Any, NamedTuple

import orjson

from loadtest.ad_events import AdEvents

View = tuple[str, int]
"""A view by its ad and its time: no other view has both."""
Place = tuple[int, int]
"""Partition and offset of an input record."""
BATCHES_CLAIMED = 2
"""Within so many batches the clock of the input finds a lost event, as docs/pyspark.md says."""


class Batch(NamedTuple):
    """A batch by its control record: when Kafka got that, and the input that it has consumed by then."""

    at: float
    consumed: Mapping[int, int]


class Finding(NamedTuple):
    """When a lost event was first told of, and as what: a kind of divergence, or a suspicion."""

    at: float
    kind: str
    verdict: str


def chosen(events: AdEvents, first: int, last: int, count: int, seed: int) -> list[View]:
    """Views at random moments between two numbers of events, in their order; none is like another one."""
    views = [view for number in range(first, last) if (view := _view(events, number)) is not None]
    alone = [view for view, copies in Counter(views).items() if copies == 1]
    places = sorted(random.Random(seed).sample(range(len(alone)), count))
    return [alone[place] for place in places]


def _view(events: AdEvents, number: int) -> View | None:
    value = orjson.loads(events.event(number)[1])
    return (value["ad_id"], value["event_time"]) if value["event_type"] == "view" else None


def written(batches: Sequence[Batch], place: Place) -> float:
    """When the batch was written that consumed an input record."""
    partition, offset = place
    return next(batch.at for batch in batches if batch.consumed.get(partition, 0) > offset)


def finished(batches: Sequence[Batch], since: float, until: float) -> int:
    """How many batches were written after one moment, up to another."""
    return sum(since < batch.at <= until for batch in batches)


def row(
    place: Place, finding: Finding | None, lossy: Sequence[Batch], other: Sequence[Batch]
) -> dict[str, Any]:
    """How one lost event was found: its time counts from the batch of the version that lost it."""
    lost_at = written(lossy, place)
    if finding is None:
        return {"found": None}
    return {
        "found": finding.kind,
        "verdict": finding.verdict,
        "seconds": round(finding.at - lost_at, 2),
        "batches": finished(lossy, lost_at, finding.at),
        "partner_after": round(written(other, place) - lost_at, 2),
    }


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The rows of one clock, put together."""
    found = [row for row in rows if row["found"] is not None]
    seconds, batches = [row["seconds"] for row in found], [row["batches"] for row in found]
    return {
        "lost": len(rows),
        "found": dict(Counter(row["found"] for row in found)),
        "verdicts": dict(Counter(row["verdict"] for row in found)),
        "seconds": _spread(seconds),
        "batches": _spread(batches),
        "within_two_batches": sum(count <= BATCHES_CLAIMED for count in batches),
        "losses": list(rows),
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    if len(values) < 2:
        return {}
    tenths = quantiles(values, n=10, method="inclusive")
    return {"median": round(median(values), 2), "p90": round(tenths[8], 2), "most": max(values)}
