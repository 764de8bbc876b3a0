"""Keeps the recent past of one comparison for charts: about one sample a second for fifteen minutes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from twinstream.status.common import Frozen, Sides
from twinstream.status.comparison import ComparisonStatus, Histogram, PartitionProgress

KEPT = 900
"""Fifteen minutes at one a second, for people who are deciding; Prometheus has older data."""

LEAST_SECONDS_APART = 0.8
"""Less than a second, so that a slightly early publication does not drop every other sample."""

RATE_WINDOW_SECONDS = 5.0
"""Long enough to smooth the micro-batches of a pipeline, short enough to show a stall at once."""


class Waits(Frozen):
    """How long events waited for their partner: half of them at most `p50`, and so on.

    The values are interpolated within the decades of the histogram, as if waits were even on a logarithmic
    scale.
    """

    p50: float
    p95: float
    p99: float


class Sample(Frozen):
    """One comparison at one moment. Rates, lags and waits are None until they are known."""

    at: datetime
    events_per_second: Sides[float | None]
    unmatched: Sides[int]
    lag: Sides[int | None]
    matched: int
    wait_seconds: Waits | None = None


class Samples:
    """A bounded ring of samples, made from the statuses as they come.

    Runtime complexity: amortised O(1) per status for statuses no closer than `LEAST_SECONDS_APART`.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._ring: deque[tuple[float, Sample]] = deque(maxlen=kept)
        self._marks: deque[_Mark] = deque()
        self._last = float("-inf")
        self._run: datetime | None = None

    def add(self, status: ComparisonStatus, now: float) -> Sample | None:
        """Add a status; returns the sample made from it, None if it is too close to the last one.

        `now` is on the monotonic clock: a time of day that is set back must not end the samples.
        """
        if status.started_at != self._run:
            self._run = status.started_at
            self._marks.clear()
        if now - self._last < LEAST_SECONDS_APART:
            return None
        self._last = now
        sample = Sample(
            at=status.updated_at,
            events_per_second=self._rates(status, now),
            unmatched=status.unmatched,
            lag=Sides[int | None](**{side: total_lag(partitions) for side, partitions in status.progress}),
            matched=status.matched,
            wait_seconds=self._waits(status.match_latency),
        )
        self._ring.append((now, sample))
        return sample

    def items(self) -> list[Sample]:
        """All kept samples, oldest first."""
        return [sample for _, sample in self._ring]

    def latest(self, seconds: float) -> list[Sample]:
        """The samples of the last so many seconds, oldest first."""
        return [sample for taken, sample in self._ring if self._last - taken <= seconds]

    def _rates(self, status: ComparisonStatus, now: float) -> Sides[float | None]:
        marks = self._marks
        marks.append(_Mark(now, status.events, status.match_latency.counts))
        while len(marks) > 2 and now - marks[1].at >= RATE_WINDOW_SECONDS:
            marks.popleft()
        before = marks[0]
        seconds = now - before.at
        return Sides[float | None](
            reference=_rate(status.events.reference - before.events.reference, seconds),
            candidate=_rate(status.events.candidate - before.events.candidate, seconds),
        )

    def _waits(self, latency: Histogram) -> Waits | None:
        """The waiting times of events matched since the oldest mark; to be called after `_rates`."""
        counts = [now - then for now, then in zip(latency.counts, self._marks[0].waits, strict=True)]
        if sum(counts) <= 0 or min(counts) < 0:
            return None
        p50, p95, p99 = (quantile(latency.edges_seconds, counts, share) for share in (0.5, 0.95, 0.99))
        return Waits(p50=p50, p95=p95, p99=p99)


class _Mark(NamedTuple):
    """The counters at a moment."""

    at: float
    events: Sides[int]
    waits: list[int]


def quantile(edges: Sequence[float], counts: Sequence[int], share: float) -> float:
    """The value below which a share of the counted values lies: estimated inside a bucket, on a log scale.

    `counts` has one bucket more than `edges`; for values in that last bucket only the last edge is known.

    >>> round(quantile([0.1, 1.0, 10.0], [0, 100, 0, 0], 0.5), 3)
    0.316
    >>> quantile([0.1, 1.0, 10.0], [0, 0, 0, 7], 0.5)
    10.0
    """
    rank, seen = share * sum(counts), 0
    for number, upper in enumerate(edges):
        if counts[number] and seen + counts[number] >= rank:
            lower = edges[number - 1] if number else upper / 10
            part = (rank - seen) / counts[number]
            return float(lower * (upper / lower) ** part)
        seen += counts[number]
    return float(edges[-1])


def total_lag(partitions: list[PartitionProgress]) -> int | None:
    """Unread records over all partitions of a side; None while any of them is unknown."""
    lags = [partition.lag for partition in partitions]
    return sum(lag for lag in lags if lag is not None) if lags and None not in lags else None


def _rate(count: int, seconds: float) -> float | None:
    return count / seconds if seconds > 0 and count >= 0 else None
