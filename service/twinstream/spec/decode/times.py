"""Reads a time in milliseconds from a field: a number in a declared unit, or a text of ISO 8601."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import ceil
from typing import Any

_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = {"s": Decimal(1000), "ms": Decimal(1), "us": Decimal("0.001")}
"""By name, how many milliseconds each unit has in which numbers count time since 1970."""
_BEYOND = 1 << 60
"""No time in milliseconds is that far from 1970."""
_DIGITS = 25
"""A number of more digits is none in any unit."""


def milliseconds(value: Any, unit: Decimal) -> int | None:
    """A time since 1970, rounded up: a number of units of so many milliseconds, or a text of ISO 8601.

    A text without an offset is UTC. None for anything else.

    >>> milliseconds(1.5, Decimal(1000)), milliseconds("1970-01-01T01:00:00.001+01:00", Decimal(1))
    (1500, 1)
    """
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite() or number.adjusted() > _DIGITS:
        return None
    found = ceil(number * unit)
    return found if abs(found) < _BEYOND else None


def _of_text(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return -((_EPOCH - aware) // _MILLISECOND)
