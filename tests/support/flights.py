"""Flights of a month in two versions, the second with three bugs at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

CARRIERS = ("AA", "B6", "DL", "EV", "UA", "US")
PLANES = 12
"""Of each carrier."""
START = datetime(2013, 3, 1, tzinfo=UTC)
FORWARD = (START + timedelta(days=9)).date()
"""The day on which the clocks went forward."""
ROUNDED, SWAPPED = "UA", "N2-07"
"""The carrier whose air times are rounded, and the plane whose flights are swapped."""
FILE = """
version: 1
name: flights
reference: {topic: flights.v1, version: "2.4.1"}
candidate: {topic: flights.v2, version: "2.5.0"}
order: {per_key: [plane]}
identity: [id]
show: [id, carrier, plane, dep, air_time]
"""
Flight = dict[str, Any]


def flights(count: int, seed: int = 7) -> list[Flight]:
    """Flights of a month, in the order of their departure."""
    random = Random(seed)
    return [
        {
            "id": number,
            "carrier": CARRIERS[number % len(CARRIERS)],
            "plane": f"N{number % len(CARRIERS)}-{number // len(CARRIERS) % PLANES:02}",
            "dep": (START + timedelta(days=30) * number / count).isoformat(timespec="seconds"),
            "air_time": round(random.uniform(30, 400), 3),
        }
        for number in range(count)
    ]


def with_three_bugs(right: list[Flight]) -> list[Flight]:
    """A day's departures an hour late, a carrier's times rounded, and the flights of a plane swapped."""
    wrong = [dict(flight) for flight in right]
    for flight in wrong:
        if datetime.fromisoformat(flight["dep"]).date() == FORWARD:
            flight["dep"] = (datetime.fromisoformat(flight["dep"]) + timedelta(hours=1)).isoformat()
        elif flight["carrier"] == ROUNDED:
            flight["air_time"] = round(flight["air_time"], 1)
    late = [place for place, flight in enumerate(wrong) if flight["plane"] == SWAPPED]
    for one, other in zip(late[::2], late[1::2], strict=False):
        wrong[one], wrong[other] = wrong[other], wrong[one]
    return wrong
