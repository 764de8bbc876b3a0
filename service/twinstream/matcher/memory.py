"""Measures the memory of this process, and stops comparing if it is too much."""

from __future__ import annotations

import resource
from pathlib import Path

from twinstream.core.comparison import Comparison

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """The resident memory of the process."""
    return int(_STATM.read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def watch_memory(comparison: Comparison, limit_bytes: int | None) -> None:
    """Make a comparison keep no more events above a limit, before the kernel kills the process."""
    if limit_bytes is None or comparison.overflowing:
        return
    if (taken := resident_bytes()) > limit_bytes:
        comparison.overflow(f"the memory limit of a matcher ({limit_bytes:,} bytes, {taken:,} taken)")
