"""Measures the memory of this process, and stops comparing if it is too much."""

from __future__ import annotations

import resource
from pathlib import Path

from twinstream.core.comparison import Comparison

_STATM = Path("/proc/self/statm")


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
