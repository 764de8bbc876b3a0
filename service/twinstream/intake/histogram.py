"""A histogram of durations; counting many equal ones costs one addition."""

from __future__ import annotations

from bisect import bisect_left

from twinstream.status import comparison as status
from twinstream.status.comparison import HISTOGRAM_EDGES_SECONDS as EDGES_SECONDS


class Buckets:
    """Counts of durations up to each edge; the last bucket is open."""

    def __init__(self) -> None:
        self.counts = [0] * (len(EDGES_SECONDS) + 1)
        self.sum_seconds = 0.0

    def add(self, seconds: float, count: int) -> None:
        """Count a duration `count` times."""
        self.counts[bisect_left(EDGES_SECONDS, seconds)] += count
        self.sum_seconds += seconds * count

    def published(self) -> status.Histogram:
        """The buckets as the API shows them."""
        return status.Histogram(
            edges_seconds=list(EDGES_SECONDS), counts=list(self.counts), sum_seconds=self.sum_seconds
        )
