"""What both versions put out: random events, reordered as far as that is allowed, and up to two faults."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from tests.simulation.scheduler import Scheduler
from tests.support.orders import KINDS, Event, Order, dependent

APART = 60
"""Events between two faults, so that neither can be part of the other's explanation."""
TAIL_ROUNDS = 16
FAULTS = ("drop", "duplicate", "field", "reorder", "garbage")
POISON = b"poison"
"""A record that every matcher falls over."""


def draw_events(scheduler: Scheduler, *, unique: bool) -> list[Event]:
    size, keys = scheduler.number(5, 130), scheduler.number(1, 3)
    rare = scheduler.one_of((0.05, 0.2))
    return [
        {
            "type": "e" if scheduler.chance(rare) else scheduler.one_of(KINDS[:3]),
            "k": scheduler.number(1, keys),
            "n": number if unique else number // 3 % 7,
            "ts": number if unique else number // 5 % 11,
            "v": 0,
        }
        for number in range(size)
    ]


def tail(number: int, keys: set[int]) -> list[Event]:
    """Equal events on both sides behind the last fault, so that the explanation of each is final."""
    kinds = ("e", *"abc" * TAIL_ROUNDS, "e")
    return [
        {"type": kind, "k": key, "n": number, "ts": number, "v": 0}
        for number, (kind, key) in enumerate(product(kinds, sorted(keys)), number)
    ]


def reordered(scheduler: Scheduler, order: Order, events: Sequence[Event]) -> list[Event]:
    """The same, with neighbours swapped that may be."""
    found = list(events)
    for _ in range(len(found) * scheduler.one_of((0, 1, 3))):
        place = scheduler.number(0, len(found) - 2)
        if not dependent(order, found[place], found[place + 1]):
            found[place], found[place + 1] = found[place + 1], found[place]
    return found


def plant(scheduler: Scheduler, order: Order, events: list[Any], place: int) -> list[str]:
    """One fault at or behind a place; what it is called, or nothing where there is no room for it."""
    if place >= len(events):
        return []
    fault = scheduler.one_of(FAULTS)
    if fault == "drop":
        del events[place]
    elif fault == "duplicate":
        events.insert(place, events[place])
    elif fault == "field":
        events[place] = {**events[place], "v": 1}
    elif fault == "garbage":
        events.insert(place, b"garbage")
    else:
        return _swap(order, events, place)
    return [f"{fault} at {place}"]


def _swap(order: Order, events: list[Any], place: int) -> list[str]:
    for here in range(place, min(place + 20, len(events) - 1)):
        if dependent(order, events[here], events[here + 1]):
            events[here], events[here + 1] = events[here + 1], events[here]
            return [f"reorder at {here}"]
    return []
