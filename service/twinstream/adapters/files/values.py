"""Turns values of a Python program into events, for tests that have no file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

import orjson

from twinstream.adapters.files.jsonl import LineShape, check_values_suffice
from twinstream.core.events import Side
from twinstream.errors import InputError
from twinstream.ports import Line

_NAMES = {Side.LEFT: "reference", Side.RIGHT: "candidate"}
_LONGEST_INTEGER = 1 << 53


def read_values(values: Iterable[Any], side: Side, shape: LineShape, first: int = 0) -> Iterator[Line]:
    """The events of one side, after the `first` that came before."""
    name = _NAMES[side]
    check_values_suffice(shape, name)
    for offset, value in enumerate(values, first):
        number = offset + 1
        try:
            record = record_of(value, shape.format)
        except (TypeError, ValueError) as error:
            raise InputError(name, number, str(error)) from None
        yield Line(side, record, 0, offset, 0, name, number, number)


def record_of(value: Any, form: str = "json") -> bytes:
    """The record of a value: bytes are one already, every other value is written in the format.

    In the format json, values are those of JSON, with exact decimals and integers of any size; times, dates
    and UUIDs become texts. Raises TypeError or ValueError, with a sentence, for a value that cannot be
    written.

    >>> record_of({"taxi": 7, "fare": Decimal("3.10")})
    b'{"taxi":7,"fare":3.10}'
    """
    if isinstance(value, bytes):
        return value
    if form == "utf8" and isinstance(value, str):
        return value.encode()
    if form != "json":
        wanted = "text or bytes" if form == "utf8" else "bytes"
        raise TypeError(f"a record in the format {form} is given as {wanted}, not as {type(value).__name__}")
    return _json(value)


def _json(value: Any) -> bytes:
    try:
        text = _dumps(value)
    except TypeError as error:
        if "64-bit" not in str(error):
            raise TypeError(f"cannot be written as JSON: {error.__cause__ or error}") from None
    else:
        if b"null" not in text:
            return text
    return _dumps(_exact(value))


def _dumps(value: Any) -> bytes:
    # By itself orjson crashes over a data class with slots of which a field is not set.
    return orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATACLASS)


def _plain(value: Any) -> Any:
    """A decimal as an exact JSON number, and a data class as its members that are set and not private."""
    if isinstance(value, Decimal) and value.is_finite():
        return orjson.Fragment(str(value))
    if _is_data(value):
        names = vars(value) if hasattr(value, "__dict__") else [one.name for one in fields(value)]
        return {name: getattr(value, name) for name in names if name[0] != "_" and hasattr(value, name)}
    shown = value if isinstance(value, Decimal) else type(value).__name__
    raise TypeError(f"{shown} is no JSON value")


def _is_data(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def _exact(value: Any) -> Any:
    """The value with integers that are too long for orjson replaced by their texts.

    Raises ValueError for NaN and infinities, which orjson would turn into null.
    """
    if isinstance(value, Enum):
        value = value.value
    elif _is_data(value):
        value = _plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no JSON number")
    if type(value) is int:
        return value if abs(value) < _LONGEST_INTEGER else orjson.Fragment(str(value))
    if isinstance(value, dict):
        return {name: _exact(member) for name, member in value.items()}
    return [_exact(item) for item in value] if isinstance(value, (list, tuple)) else value
