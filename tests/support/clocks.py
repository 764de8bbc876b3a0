"""A time of day that is wrong, for processes that are started with it, and that is set while they run.

libfaketime stands in for the C library's clocks in them. Their monotonic clock is left alone, as it is on a
machine whose clock somebody sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path


class TimeOfDay:
    """The clock of one machine, right until it is `set`. `environment` is for processes that run there."""

    def __init__(self, file: Path, wrong_by: int = 0) -> None:
        self._file = file
        self.set(wrong_by)

    def set(self, wrong_by: int) -> None:
        """Have it ahead by so many seconds, or behind."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{wrong_by:+d}")
        new.replace(self._file)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process needs to live by it."""
        return {
            "LD_PRELOAD": str(_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }


def _library() -> Path:
    """The library in the package, which itself is not imported: it is made to be used in one process."""
    package = find_spec("libfaketime")
    assert package is not None, "libfaketime is one of the locked requirements"
    assert package.origin is not None
    return Path(package.origin).parent / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"
