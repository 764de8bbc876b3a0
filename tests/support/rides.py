"""Rides of taxis between ends of days, as the comparison files of many tests declare them."""

from __future__ import annotations

from tests.support.streams import record

KINDS = "kinds: {day: {where: {t: day}}, ride: {}}\n"


def ride(number: int, key: int = 0) -> bytes:
    return record({"t": "ride", "n": number, "k": key})


def day(number: int) -> bytes:
    return record({"t": "day", "n": number})
