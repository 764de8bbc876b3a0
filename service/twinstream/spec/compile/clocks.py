"""Compiles `overdue`: how the time, or the input record, of an event is read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import ceil, isfinite
from typing import Any

from twinstream.core.clocks.event_time import EventTime
from twinstream.core.clocks.input import Input
from twinstream.errors import DecodeError
from twinstream.spec.codec.codec import Codec
from twinstream.spec.decode.headers import InputPosition, input_position
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import read

_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = {"s": Decimal(1000), "ms": Decimal(1), "us": Decimal("0.001")}
"""By name, how many milliseconds each unit has in which numbers count time since 1970."""
_CENTURY = (946_684_800_000, 4_102_444_800_000)
"""The years 2000 to 2099, in milliseconds. They span less than a factor of 1000, so at most one unit fits."""
_BEYOND = 1 << 60
"""No time in milliseconds is that far from 1970."""


def clock_of(spec: Spec, codec: Codec) -> EventTime | Input | None:
    """The clock that measures how far each side has come; None for Kafka's timestamps."""
    overdue = spec.overdue
    if overdue.clock == "event_time" and overdue.field is not None:
        return EventTime(
            _time_of(spec, codec, overdue.field),
            overdue.after // _MILLISECOND,
            overdue.max_jump // _MILLISECOND,
            overdue.idle_after.total_seconds(),
        )
    if overdue.clock == "input":
        window_end = overdue.window_end
        return Input(_place, None if window_end is None else _time_of(spec, codec, window_end))
    return None


def _place(mark: str) -> InputPosition | None:
    """The position of an event's input record; None if its mark cannot be read."""
    try:
        return input_position(mark)
    except DecodeError:
        return None


def _time_of(spec: Spec, codec: Codec, field: str) -> Callable[[bytes], int | None]:
    path, unit = spec.path_of(field), UNITS[spec.overdue.unit]

    def time_of(record: bytes) -> int | None:
        return milliseconds(read(codec.decode(record), path), unit)

    return time_of


def milliseconds(value: Any, unit: Decimal) -> int | None:
    """A time since 1970, rounded up: a number of units of so many milliseconds, or a text of ISO 8601.

    A text without an offset is UTC. None for anything else.

    >>> milliseconds(1.5, Decimal(1000)), milliseconds("1970-01-01T01:00:00.001+01:00", Decimal(1))
    (1500, 1)
    """
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or not isfinite(value):
        return None
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return ceil(number * unit) if abs(number) < _BEYOND else None


def other_unit(time_ms: int, unit: str) -> str | None:
    """The unit in which the number of a time falls in this century, if it does not in its own unit.

    >>> other_unit(1_767_225_600, "ms"), other_unit(1_767_225_600_000, "ms"), other_unit(5_000, "ms")
    ('s', None, None)
    """
    fitting = unit_of(time_ms / UNITS[unit])
    return None if fitting == unit else fitting


def unit_of(number: Decimal) -> str | None:
    """The one unit in which a number is a time of this century; None if there is none."""
    return next((unit for unit, ms in UNITS.items() if _CENTURY[0] <= number * ms < _CENTURY[1]), None)


def _of_text(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return -((_EPOCH - aware) // _MILLISECOND)
