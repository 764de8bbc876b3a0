"""Standard output and standard error, which may be closed, or a full disk, while a command runs."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any


class Spared:
    """A stream whose text may get lost: what nobody can read stops nothing, and changes no exit code.

    Bytes go past it: who writes them to its `buffer` hears of an error.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, or lose it."""
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what waits, or lose it."""
        with suppress(OSError):
            self._stream.flush()


def spare_streams() -> None:
    """Let standard output and standard error lose what they cannot write; also if they were closed before."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name) or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
        setattr(sys, name, Spared(stream))
