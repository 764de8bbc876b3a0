"""What this clone fetches or builds once, and keeps: in folders that are complete if they exist.

A folder is filled under another name and renamed at the end. Two processes that ask at once are fine: the
second waits for the first.
"""

from __future__ import annotations

import fcntl
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache"
"""Inside the clone and outside of any run's data; git ignores it."""


def tell(text: str) -> None:
    """Tell who waits what is being done."""
    print(text, file=sys.stderr, flush=True)


def filled(folder: Path, fill: Callable[[Path], object]) -> Path:
    """Return a folder, which `fill` fills first, under another name, if it does not exist."""
    if not folder.is_dir():
        with locked(folder.with_name(f"{folder.name}.lock")):
            if not folder.is_dir():
                unfinished = folder.with_name(f"{folder.name}.unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                fill(unfinished)
                unfinished.rename(folder)
    return folder


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Wait until no other process is in here with this file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def last_line(said: str) -> str:
    """What a program said last, which is why it failed."""
    return (said.strip().splitlines() or ["it said nothing"])[-1]
