"""A time of day that is wrong, for processes that are started with it, and that is set while they run.

A small library stands in for the C library's (`time_of_day.c`), since the clock of the machine itself is not
a test's to set. Monotonic clocks are left alone, as where somebody sets a clock.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

from deploy.embedded import prerequisites

SOURCE = Path(__file__).with_name("time_of_day.c")


class TimeOfDay:
    """The clock of one machine, right until it is `set`; it lives in a folder of its own.

    `environment` is for processes that run there.
    """

    def __init__(self, folder: Path, wrong_by: int = 0) -> None:
        folder.mkdir()
        self._library, self._file = folder / "time_of_day.so", folder / "wrong_by"
        compiler = prerequisites.ensure(prerequisites.COMPILER)
        command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", SOURCE, "-o", self._library]
        subprocess.run([*command, "-ldl"], check=True, timeout=60)
        self.set(wrong_by)

    def set(self, wrong_by: int) -> None:
        """Have it ahead by so many seconds, or behind."""
        nanoseconds = struct.pack("=q", wrong_by * 1_000_000_000)
        if not self._file.exists():
            self._file.write_bytes(nanoseconds)
        with self._file.open("r+b", buffering=0) as file:
            file.write(nanoseconds)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process needs to live by it."""
        return {"LD_PRELOAD": str(self._library), "TIME_OF_DAY": str(self._file)}
