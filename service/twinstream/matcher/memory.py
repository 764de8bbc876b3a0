"""Measures the memory of this process, and keeps Python's collector from searching it in vain."""

from __future__ import annotations

import gc
import resource
from pathlib import Path

from twinstream.core.comparison import Comparison

_STATM = Path("/proc/self/statm")
_GC_THRESHOLDS = 200_000, 50, 100
"""Matching makes no cycles: searching for them after every 700 objects costs a tenth of the time."""


def collect_rarely() -> None:
    """Have Python's collector search for cycles only after many objects."""
    gc.set_threshold(*_GC_THRESHOLDS)


def resident_bytes() -> int:
    """The resident memory of the process."""
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
    except OSError:  # As with no file descriptor left; the largest so far is known without one.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * resource.getpagesize()


def watch_memory(comparison: Comparison, limit_bytes: int | None) -> None:
    """Make a comparison keep no more events above a limit, before the kernel kills the process."""
    if limit_bytes is None or comparison.overflowing:
        return
    if (taken := resident_bytes()) > limit_bytes:
        comparison.overflow(f"the memory limit of a matcher ({limit_bytes:,} bytes, {taken:,} taken)")
