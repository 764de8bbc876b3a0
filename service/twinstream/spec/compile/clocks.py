"""Compiles `overdue`: how the time, or the input record, of an event is read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

from twinstream.core.clocks.event_time import EventTime
from twinstream.core.clocks.input import Input, InputPosition
from twinstream.errors import DecodeError
from twinstream.spec.codec.codec import Codec
from twinstream.spec.decode.headers import input_position
from twinstream.spec.decode.times import UNITS, milliseconds
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import read

_MILLISECOND = timedelta(milliseconds=1)
_CENTURY = (946_684_800_000, 4_102_444_800_000)
"""The years 2000 to 2099, in milliseconds. They span less than a factor of 1000, so at most one unit fits."""


def clock_of(spec: Spec, codec: Codec) -> EventTime | Input | None:
    """The clock that measures how far each side has come; None for Kafka's timestamps."""
    overdue = spec.overdue
    if overdue.clock == "event_time" and overdue.field is not None:
        return EventTime(
            time_of(spec, codec, overdue.field),
            overdue.after // _MILLISECOND,
            overdue.max_jump // _MILLISECOND,
            overdue.idle_after.total_seconds(),
        )
    if overdue.clock == "input":
        window_end = overdue.window_end
        place_of = _place if spec.folding is None else None
        return Input(place_of, None if window_end is None else time_of(spec, codec, window_end))
    return None


def _place(mark: str) -> InputPosition | None:
    """The position of an event's input record; None if its mark cannot be read."""
    try:
        return input_position(mark)
    except DecodeError:
        return None


def time_of(spec: Spec, codec: Codec, field: str) -> Callable[[bytes], int | None]:
    """A reader of the time in a field, in milliseconds; None where it is no time."""
    path, unit = spec.path_of(field), UNITS[spec.overdue.unit]

    def read_time(record: bytes) -> int | None:
        return milliseconds(read(codec.decode(record), path), unit)

    return read_time


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
