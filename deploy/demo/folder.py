"""Where a run keeps its data: a folder of its own, so that two runs do not meet."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Self

RUNS = Path(__file__).parents[2] / ".demo"

_LOCK = "running"
_LOGS_KEPT = 5
"""How many finished runs may leave their logs: enough to look into the last failures, bounded for good."""


class RunFolder:
    """The folder of one run; a context manager that makes it and clears up.

    Attributes:
        path: where it is, once entered.
        keep_logs: leave the logs behind, because the run failed.
    """

    def __init__(self, runs: Path = RUNS) -> None:
        self._runs = runs
        self.keep_logs = False

    def __enter__(self) -> Self:
        self._runs.mkdir(parents=True, exist_ok=True)
        _sweep(self._runs)
        unlocked = Path(tempfile.mkdtemp(prefix="new-", dir=self._runs))
        self._lock = (unlocked / _LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = unlocked.rename(self._runs / unlocked.name.replace("new-", "run-"))
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        with self._lock:
            if kind is not None or self.keep_logs:
                _keep_logs_only(self.path)
            else:
                shutil.rmtree(self.path, ignore_errors=True)


def _sweep(runs: Path) -> None:
    """Clear up after runs that could not do it themselves, and drop the oldest logs."""
    over = sorted((run for run in runs.glob("run-*") if not _is_running(run)), key=_modified)
    for run in over[:-_LOGS_KEPT]:
        shutil.rmtree(run, ignore_errors=True)
    for run in over[-_LOGS_KEPT:]:
        _keep_logs_only(run)


def _modified(run: Path) -> float:
    with contextlib.suppress(FileNotFoundError):  # another run may sweep as well
        return run.stat().st_mtime
    return 0.0


def _is_running(run: Path) -> bool:
    """A live run holds the lock in its folder; the kernel lets go of it however the run ended."""
    try:
        with (run / _LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _keep_logs_only(run: Path) -> None:
    for parent, folders, files in os.walk(run, topdown=False):
        for name in files:
            if not name.endswith(".log") or Path(parent).name == "data":  # Kafka's data are named so as well
                Path(parent, name).unlink(missing_ok=True)
        for name in folders:
            with contextlib.suppress(OSError):  # a log is in it
                Path(parent, name).rmdir()
