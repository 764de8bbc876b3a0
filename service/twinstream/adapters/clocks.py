"""The clock of this machine."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """The time of day, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()
