"""The clock of this machine."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

_BOOT, _SPACE = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/time")


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """The time of day, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()


def shared_clock() -> str | None:
    """Names what `SystemClock.monotonic` counts from; None if nothing tells that for sure.

    Two processes with the same name have the same clock: they are on one host since the same boot, and in one
    time namespace. Containers on one host have names of their own.
    """
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
        space = str(_SPACE.readlink()) if _SPACE.is_symlink() else ""  # Older kernels have none.
    except OSError:
        return None
    return f"{os.uname().nodename} {boot} {space}"
