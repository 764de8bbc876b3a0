"""Tells whether a file has changed since it was read: mounted secrets are replaced, others rewritten."""

from __future__ import annotations

import os

FileStamp = tuple[int, int, int]
"""Inode, length and time of modification."""


def stamp(path: str) -> FileStamp:
    """The stamp to compare with next time. Raises OSError."""
    found = os.stat(path)  # noqa: PTH116 - asked for at each request, which a Path doubles
    return found.st_ino, found.st_size, found.st_mtime_ns
