"""What every benchmark needs: a process of its own, its peak of memory, and a report of where it ran."""

from __future__ import annotations

import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import orjson

Result = TypeVar("Result")


def apart(function: Callable[..., Result], *arguments: Any) -> Result:
    """Run in a fresh process, so that peak memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def yardstick_ns(turns: int = 300_000) -> float:
    """Nanoseconds of one turn of a plain loop: how fast the machine is just now."""
    total = 0
    started = time.process_time()
    for turn in range(turns):
        total += turn
    return round(1e9 * (time.process_time() - started) / turns, 1)


def peak_mib() -> float:
    """The most memory that this program ever had; what `getrusage` says has that of its parent in it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def spent_by(process_id: int) -> float:
    """The processor time in seconds that a process has taken, with all of its threads."""
    fields = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def environment() -> dict[str, Any]:
    """The machine and the versions that a measurement depends on."""
    return {
        "machine": {
            "cpus": multiprocessing.cpu_count(),
            "processor": _processor(),
            "system": platform.platform(),
        },
        "python": platform.python_version(),
        "twinstream": version("twinstream"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")


def report_text(report: dict[str, Any]) -> bytes:
    """A report as JSON, to be read by people too."""
    return orjson.dumps(report, option=_READABLE)


def write_report(report: dict[str, Any], file: str | None) -> None:
    """Write a report to a file, or to standard output."""
    if file is None:
        sys.stdout.buffer.write(report_text(report))
    else:
        Path(file).write_bytes(report_text(report))


_READABLE = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
