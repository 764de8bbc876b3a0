"""JSON: read fast if that loses nothing, and exactly otherwise.

A record is decoded by orjson and written again. If that gives the same bytes, except for the spaces that some
writers put after separators, decoding lost nothing: a duplicate member would be gone, a rounded number would
have other digits. `twinstream.core.canonical.parse` reads all other records; it also knows why a record is
not JSON.
"""

from __future__ import annotations

from typing import Any

import orjson

from twinstream.core import canonical as exact
from twinstream.core.canonical import DEPTH_LIMIT
from twinstream.errors import DecodeError

_loads, _dumps = orjson.loads, orjson.dumps
FRAME = 5
"""The bytes before a record of a schema registry: 0, and the id of its schema."""
SHORT = 2 * DEPTH_LIMIT
"""Records up to this many bytes cannot be nested too deep."""


def decode(record: bytes, around: int = 0) -> Any:
    """Read a JSON value without losing anything: numbers are int, float or Decimal, and exact.

    `around` is how many levels enclose the value that counts. Raises DecodeError.
    """
    try:
        value = _loads(record)
        written = _dumps(value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        if record.startswith(b"\0") and record[FRAME : FRAME + 1] in (b"{", b"["):
            raise DecodeError("begins as a record of a schema registry, which `json` cannot read") from None
        return exact.parse(record, around)
    return value if lossless(record, written) else exact.parse(record, around)


def lossless(record: bytes, written: bytes) -> bool:
    """Whether a record lost nothing in decoding, given the text written from its decoded value."""
    if written != record and written != record.replace(b'": ', b'":').replace(b", ", b","):
        return False
    return len(record) <= SHORT or record.count(b"{") + record.count(b"[") <= DEPTH_LIMIT
