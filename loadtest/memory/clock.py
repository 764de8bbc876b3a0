"""A clock that is moved by hand."""

from __future__ import annotations

from datetime import UTC, datetime


class ManualClock:
    """A clock that stands still until `advance` is called; `set` moves its time of day alone."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._start = start
        self._passed = 0.0

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._passed += seconds

    def set(self, seconds: float) -> None:
        """Move the time of day, forwards or back, as an administrator who sets the clock."""
        self._start += seconds

    def now(self) -> datetime:
        """The hand-driven time of day."""
        return datetime.fromtimestamp(self._start + self._passed, UTC)

    def monotonic(self) -> float:
        """Seconds advanced so far."""
        return self._passed
