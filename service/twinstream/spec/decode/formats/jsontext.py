"""JSON: read fast where that loses nothing, and exactly everywhere else.

A record is decoded by orjson and written again. If that gives the same bytes, but for the spaces that some
writers put after separators, nothing was lost in decoding: a duplicate member would be gone, a rounded number
have other digits. All others are read by `twinstream.core.canonical.parse`, which also knows why a record is
none.
"""

from __future__ import annotations

from typing import Any

import orjson

from twinstream.core import canonical as exact
from twinstream.core.canonical import DEPTH_LIMIT

_loads, _dumps = orjson.loads, orjson.dumps
SHORT = 2 * DEPTH_LIMIT
"""Bytes that are too few to be nested too deep."""


def decode(record: bytes, around: int = 0) -> Any:
    """Read a JSON value without losing anything: numbers are int, float or Decimal, and exact.

    `around` is how many levels are around the value that counts. Raises DecodeError.
    """
    try:
        value = _loads(record)
        written = _dumps(value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return exact.parse(record, around)
    return value if lossless(record, written) else exact.parse(record, around)


def lossless(record: bytes, written: bytes) -> bool:
    """Whether a record that decodes to what is written as `written` has lost nothing."""
    if written != record and written != record.replace(b'": ', b'":').replace(b", ", b","):
        return False
    return len(record) <= SHORT or record.count(b"{") + record.count(b"[") <= DEPTH_LIMIT
