"""Compiles the cut of a comparison file: which events lie before its start, and which after."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any

from twinstream.core.order import Time
from twinstream.core.start.cut import BarrierCut, Cut, EventTimeCut
from twinstream.core.start.input_cut import InputCut
from twinstream.errors import DecodeError
from twinstream.spec.codec.codec import Codec
from twinstream.spec.codec.routes import exact_time
from twinstream.spec.compile.clocks import unit_of
from twinstream.spec.decode.headers import input_position
from twinstream.spec.decode.times import UNITS
from twinstream.spec.describe import trait
from twinstream.spec.file.model import Spec
from twinstream.spec.file.orders import Barrier
from twinstream.spec.file.paths import ABSENT, read
from twinstream.spec.file.start import instant

HELD_LIMIT = 200_000
"""Events of a side held until a barrier is found; at most a quarter of `limits.unmatched_events`."""


def cut_of(spec: Spec, codec: Codec) -> Cut | None:
    """The cut of a comparison file, None if everything read is compared.

    From now on the codec asks no function of the user about events that are known to lie before it.
    """
    codec.judge_behind(lambda _: False)
    if spec.start.at == "event_time":
        return _at_a_time(spec, codec)
    if spec.start.at == "barrier":
        assert isinstance(spec.order, Barrier), "a law asks for it"
        limit = min(HELD_LIMIT, spec.limits.unmatched_events // 4)
        return BarrierCut(codec.canonical, limit, spec.order.barrier, codec.close)
    if spec.start.at == "input":
        return InputCut(input_position)
    return None


def _at_a_time(spec: Spec, codec: Codec) -> EventTimeCut:
    first, time_of = spec.start.first_compared(), _time_of(spec)
    text = first.isoformat() if isinstance(first, datetime) else f"{first:f}"
    start: Any = first if isinstance(first, datetime) else Fraction(first)

    def is_before(value: Any) -> bool:
        try:
            return bool(time_of(value) < start)
        except DecodeError:
            return True  # It is no event, as the cut says.

    codec.judge_behind(is_before)
    return EventTimeCut(lambda record: time_of(codec.decode(record)), start, text, _milliseconds(first))


def _milliseconds(first: datetime | Decimal) -> int | None:
    """A time as Kafka counts it; a number counts only if exactly one unit makes it a time of this century."""
    if isinstance(first, datetime):
        return floor(first.timestamp() * 1000)
    unit = unit_of(first)
    return None if unit is None else floor(first * UNITS[unit])


def _time_of(spec: Spec) -> Callable[[Any], datetime | Time]:
    """A reader of the time of a value: an instant if `from` is one, else a number. Raises DecodeError."""
    field = spec.start.field
    assert field is not None, "a start by event time names a field"
    path = spec.path_of(field)
    of_value = _instant_of if isinstance(spec.start.from_, str) else exact_time

    def time_of(value: Any) -> datetime | Time:
        member = read(value, path)
        if member is ABSENT:
            raise DecodeError(f"field `{field}`, that tells what lies before the start, is missing")
        try:
            return of_value(member)
        except DecodeError as error:
            raise DecodeError(f"field `{field}` tells what lies before the start, and {error}") from None

    return time_of


def _instant_of(member: Any) -> datetime:
    moment = instant(member) if isinstance(member, str) else None
    if moment is None:
        raise DecodeError(f"it is not a time like 2026-01-01T00:00:00Z ({trait(member)})")
    return moment
