"""The memory of this process: measured, given back, and seldom searched by Python's collector."""

from __future__ import annotations

import ctypes
import gc
import resource
from pathlib import Path

from twinstream.core.accounting.high_water import HighWater
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.explain.coverage import SeenEvents

_STATM = Path("/proc/self/statm")
_GC_THRESHOLDS = 200_000, 50, 100
"""Matching makes no cycles: searching for them after every 700 objects costs a tenth of the time."""


def collect_rarely() -> None:
    """Have Python's collector search for cycles only after many objects, and in none that is there now."""
    gc.set_threshold(*_GC_THRESHOLDS)
    gc.freeze()


def resident_bytes() -> int:
    """The resident memory of the process."""
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
    except OSError:  # As with no file descriptor left; the largest so far is known without one.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * resource.getpagesize()


class FreedMemory:
    """Gives memory back to the system once most of many unmatched events have left.

    Python gives back a block of a MiB only when nothing is left in it. A full collection empties its lists of
    free tuples, which lie in most blocks. What is remembered of events that have left is moved together. The
    C library gives back what is free in between when it is asked. Complexity: some 50 ms after a million
    events.
    """

    def __init__(self) -> None:
        self._water = HighWater()

    def look(self, comparison: Comparison, seen: SeenEvents) -> None:
        """Look at the number of unmatched events."""
        if self._water.has_fallen(sum(map(comparison.unmatched, Side))):
            comparison.index.shrink()
            comparison.ledger.recent.move()
            seen.move()
            gc.collect()
            if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
                trim(0)


def watch_memory(comparison: Comparison, limit_bytes: int | None) -> None:
    """Make a comparison keep no more events above a limit, before the kernel kills the process."""
    if limit_bytes is None or comparison.overflowing:
        return
    if (taken := resident_bytes()) > limit_bytes:
        comparison.overflow(f"the memory limit of a matcher ({limit_bytes:,} bytes, {taken:,} taken)")
