"""What both versions wrote: random events, reordered as far as that is allowed, and up to two faults."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from tests.simulation.numbers import FURTHER
from tests.simulation.scheduler import Scheduler
from tests.support.orders import KINDS, Event, Order, dependent

APART = 60
"""Events between two faults, so that neither can be part of the other's explanation."""
TAIL_ROUNDS = 16
FAULTS = ("drop", "duplicate", "field", "reorder", "garbage")
MOVES = ("reorder", "reorder", "move", "stray")
"""What becomes of two that would change places: one may go further; a stray has another number, too."""
FURTHEST = 40
"""Events over which one may move."""
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


class Planted(NamedTuple):
    """A fault, the first and the last place that it touches, and the events that stood there."""

    fault: str
    begin: int
    end: int
    events: tuple[Event, ...] = ()

    def __str__(self) -> str:
        return f"{self.fault} at {self.begin}"


def plant(scheduler: Scheduler, order: Order, events: list[Any], place: int) -> Planted | None:
    """One fault at or behind a place; None where there is no room for it."""
    if place >= len(events):
        return None
    fault, end, event = scheduler.one_of(FAULTS), place, events[place]
    if fault == "drop":
        del events[place]
    elif fault == "duplicate":
        end = min(place + scheduler.aside(f"copy {place}", (0, 0, 1, 10)), len(events))
        events.insert(end, event)
    elif fault == "field":
        events[place] = further(event)
    elif fault == "garbage":
        events.insert(place, b"garbage")
    else:
        return _move(scheduler, order, events, place)
    return Planted(fault, place, end, (event,))


def further(event: Event) -> Event:
    """The event with another number, which no tolerance reaches."""
    return {**event, "v": event["v"] + FURTHER}


def _move(scheduler: Scheduler, order: Order, events: list[Any], place: int) -> Planted | None:
    fault = scheduler.aside(f"move {place}", MOVES)
    if fault == "reorder":
        return _swap(order, events, place)
    end = min(place + scheduler.aside(f"so far {place}", (1, 4, 20, FURTHEST)), len(events) - 1)
    moved = events[place]
    touched = tuple(events[place : end + 1])
    if not any(dependent(order, moved, passed) for passed in touched[1:]):
        return None
    events.insert(end, further(events.pop(place)) if fault == "stray" else events.pop(place))
    return Planted(fault, place, end, touched)


def _swap(order: Order, events: list[Any], place: int) -> Planted | None:
    for here in range(place, min(place + 20, len(events) - 1)):
        if dependent(order, events[here], events[here + 1]):
            events[here], events[here + 1] = events[here + 1], events[here]
            return Planted("reorder", here, here + 1, tuple(events[here : here + 2]))
    return None
