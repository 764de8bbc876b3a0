"""Finding the processes that come of a test, by a mark in the environment that all descendants inherit."""

from __future__ import annotations

import uuid
from pathlib import Path

MARK = "TWINSTREAM_TEST_MARK"


def new_mark() -> dict[str, str]:
    """An environment variable for a process that is started, whose family can then be found."""
    return {MARK: uuid.uuid4().hex}


def marked(mark: dict[str, str]) -> dict[int, str]:
    """The living processes that carry a mark: process id and command line."""
    wanted = f"{MARK}={mark[MARK]}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found[int(entry.name)] = command
            except OSError:
                continue  # it ended while we looked
    return found
