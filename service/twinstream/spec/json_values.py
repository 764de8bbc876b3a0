"""JSON values, read fast and exactly, and their canonical form."""

from __future__ import annotations

from typing import Any

import orjson

from twinstream.core import canonical as exact
from twinstream.spec.reading import SIMPLE, lossless, sorted_text

_loads, _dumps = orjson.loads, orjson.dumps


def decode(record: bytes) -> Any:
    """Read a JSON value without losing anything: numbers are int, float or Decimal, and exact.

    Raises DecodeError.
    """
    try:
        value = _loads(record)
        written = _dumps(value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return exact.parse(record)
    return value if lossless(record, written) else exact.parse(record)


def canonical_value(value: Any) -> bytes:
    """The canonical form of a value read by `decode`; agrees with `core.canonical` on every value."""
    if type(value) is dict and SIMPLE.issuperset(map(type, value.values())):
        return sorted_text(value)
    try:
        return sorted_text(_plain(value))
    except (OverflowError, orjson.JSONEncodeError):
        return exact.canonical(_exact(value))


def _plain(value: Any) -> Any:
    """The value with each number in the form that has its canonical text when orjson writes it.

    Raises OverflowError for numbers that orjson would write in another way.
    """
    kind = type(value)
    if kind in SIMPLE:
        return value
    if kind is dict:
        return {name: _plain(member) for name, member in value.items()}
    if kind is list:
        return [_plain(item) for item in value]
    if kind is float and (value == 0 or 1e-3 <= abs(value) < 1e15):
        return int(value) if value.is_integer() else value
    raise OverflowError


def _exact(value: Any) -> Any:
    """The same value with floats as the decimals that they were read from."""
    if isinstance(value, float):
        return exact.parse(_dumps(value))
    if isinstance(value, list):
        return [_exact(item) for item in value]
    if isinstance(value, dict):
        return {name: _exact(member) for name, member in value.items()}
    return value
