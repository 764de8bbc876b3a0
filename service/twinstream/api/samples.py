"""The recent past of one comparison, for charts: about one sample a second, fifteen minutes of them."""

from __future__ import annotations

from collections import deque
from datetime import datetime

from twinstream.status import ComparisonStatus, Frozen, PartitionProgress, Sides

KEPT = 900
"""Fifteen minutes at one a second: what a person looks back on while deciding; older is Prometheus' part."""

LEAST_SECONDS_APART = 0.8
"""Under one second, so that a publisher that is a little early does not lose every other sample."""

RATE_WINDOW_SECONDS = 5.0
"""Long enough to smooth the micro-batches of a pipeline, short enough to show a stall at once."""


class Sample(Frozen):
    """One comparison at one moment. A rate is None until it can be known; so is a lag."""

    at: datetime
    events_per_second: Sides[float | None]
    unmatched: Sides[int]
    lag: Sides[int | None]
    matched: int


class Samples:
    """A bounded ring of samples, made from the statuses that come by.

    Runtime complexity: amortised O(1) per status for statuses no closer than `LEAST_SECONDS_APART`.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._ring: deque[Sample] = deque(maxlen=kept)
        self._marks: deque[tuple[datetime, Sides[int]]] = deque()
        self._run: datetime | None = None

    def add(self, status: ComparisonStatus) -> Sample | None:
        """Take a status in; returns the sample made of it, None if it is too close to the last one."""
        if status.started_at != self._run:
            self._run = status.started_at
            self._marks.clear()
        if self._ring and _seconds(self._ring[-1].at, status.updated_at) < LEAST_SECONDS_APART:
            return None
        sample = Sample(
            at=status.updated_at,
            events_per_second=self._rates(status),
            unmatched=status.unmatched,
            lag=Sides[int | None](
                reference=total_lag(status.progress.reference), candidate=total_lag(status.progress.candidate)
            ),
            matched=status.matched,
        )
        self._ring.append(sample)
        return sample

    def items(self) -> list[Sample]:
        """All kept samples, oldest first."""
        return list(self._ring)

    def _rates(self, status: ComparisonStatus) -> Sides[float | None]:
        marks = self._marks
        marks.append((status.updated_at, status.events))
        while len(marks) > 2 and _seconds(marks[1][0], status.updated_at) >= RATE_WINDOW_SECONDS:
            marks.popleft()
        then, before = marks[0]
        seconds = _seconds(then, status.updated_at)
        return Sides[float | None](
            reference=_rate(status.events.reference - before.reference, seconds),
            candidate=_rate(status.events.candidate - before.candidate, seconds),
        )


def total_lag(partitions: list[PartitionProgress]) -> int | None:
    """Records not yet read over all partitions of a side; None while that of any is unknown."""
    lags = [partition.lag for partition in partitions]
    return sum(lag for lag in lags if lag is not None) if lags and None not in lags else None


def _seconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds()


def _rate(count: int, seconds: float) -> float | None:
    return count / seconds if seconds > 0 and count >= 0 else None
