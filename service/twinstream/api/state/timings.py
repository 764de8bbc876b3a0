"""Adds up how long events waited and what they cost, over all matchers and all their starts.

A matcher counts from 0 whenever it starts. What it counted before stays here: a sum that falls by the part of
one matcher is to Prometheus a restart of all, and it would count the parts of the others again.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add, lt

from twinstream.status.comparison import HISTOGRAM_EDGES_SECONDS, Histogram


def empty_histogram() -> Histogram:
    """Nothing is counted yet."""
    edges = list(HISTOGRAM_EDGES_SECONDS)
    return Histogram(edges_seconds=edges, counts=[0] * (len(edges) + 1), sum_seconds=0.0)


def summed(parts: Iterable[Histogram]) -> Histogram:
    """All of them together."""
    return reduce(_plus, parts)


def _plus(one: Histogram, other: Histogram) -> Histogram:
    counts, seconds = list(map(add, one.counts, other.counts)), one.sum_seconds + other.sum_seconds
    return Histogram(edges_seconds=one.edges_seconds, counts=counts, sum_seconds=seconds)


class Tally:
    """A histogram of one matcher over all its starts."""

    def __init__(self) -> None:
        self._before = self._told = empty_histogram()

    def hear(self, told: Histogram) -> None:
        """Take what the matcher has counted since it started; where that is less, it has started again."""
        if any(map(lt, told.counts, self._told.counts)):
            self._before = self.total
        self._told = told

    @property
    def total(self) -> Histogram:
        """All that was counted."""
        return _plus(self._before, self._told)
