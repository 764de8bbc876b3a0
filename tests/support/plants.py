"""Flights of two runs, noise as a pipeline makes it, and faults that are planted at few places."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from operator import itemgetter
from random import Random
from typing import Any

Event = dict[str, Any]
Plant = Callable[[Random, list[Event]], object]

CARRIERS = ["AA", "UA", "DL", "B6"]


def flights(random: Random, count: int, routes: int = 60) -> list[Event]:
    """Rows like those of flights out of New York; a flight leaves once a minute at most."""
    lines = [
        {
            "carrier": random.choice(CARRIERS),
            "flight": 100 + n,
            "origin": random.choice(["JFK", "LGA", "EWR"]),
            "dest": random.choice(["LAX", "MIA", "BOS", "ORD"]),
        }
        for n in range(routes)
    ]
    return [_departed(random, random.choice(lines), minute) for minute in range(count)]


def _departed(random: Random, line: Event, minute: int) -> Event:
    late = max(-20, int(random.expovariate(1 / 15)) - 8)
    return {
        **line,
        "dep_delay": late,
        "arr_delay": late + random.randrange(-30, 30),
        "time": 1_357_000_000 + 60 * minute,
        "fuel": random.uniform(1000, 9000),
        "crew": random.sample(range(30), 3),
        "gate": random.choice(["A", "B", None]),
        "read_at": 1_700_000_000_000 + 37 * minute,
    }


def rerun(random: Random, events: list[Event], *, keep: str | None = "flight") -> list[Event]:
    """The same version again: another clock, last digits, and an order that is kept by one field alone."""
    copies: list[Event] = json.loads(json.dumps(events))
    for event in copies:
        event["read_at"] += random.randrange(1, 5000)
        event["fuel"] *= 1 + random.uniform(-1e-12, 1e-12)
    return [event for at in range(0, len(copies), 40) for event in _mixed(random, copies[at : at + 40], keep)]


def _mixed(random: Random, events: list[Event], keep: str | None) -> list[Event]:
    if keep is None:
        return random.sample(events, len(events))
    queues: dict[Any, list[Event]] = {}
    for event in events:
        queues.setdefault(event[keep], []).append(event)
    turns = random.sample([event[keep] for event in events], len(events))
    return [queues[turn].pop(0) for turn in turns]


def _swap(random: Random, events: list[Event], far: int = 200) -> None:
    """Two events of one flight change places."""
    while True:
        one = random.randrange(len(events))
        for other in range(one + 1, min(one + far, len(events))):
            if events[one]["flight"] == events[other]["flight"]:
                events[one], events[other] = events[other], events[one]
                return


def _some_swaps(random: Random, events: list[Event]) -> None:
    for _ in range(5):
        _swap(random, events)


def _swaps_at_a_time(random: Random, events: list[Event]) -> None:
    """All that stands in a twentieth of the run is mixed, so that some flight has another order."""
    length = len(events) // 20
    by_flight = itemgetter("flight")
    while True:
        start = random.randrange(len(events) - length)
        part = events[start : start + length]
        mixed = random.sample(part, length)
        if sorted(part, key=by_flight) != sorted(mixed, key=by_flight):
            events[start : start + length] = mixed
            return


def _swaps_at_a_key(random: Random, events: list[Event]) -> None:
    """Each two departures of one flight are exchanged, all the time."""
    flight = random.choice(events)["flight"]
    places = [n for n, event in enumerate(events) if event["flight"] == flight]
    for one, other in zip(places[::2], places[1::2], strict=False):
        events[one], events[other] = events[other], events[one]


def _once(change: Callable[[Event], object]) -> Plant:
    return lambda random, events: change(random.choice(events))


def _at_a_time(change: Callable[[Event], object], part: float) -> Plant:
    def plant(random: Random, events: list[Event]) -> None:
        length = int(part * len(events))
        start = random.randrange(len(events) - length)
        for event in events[start : start + length]:
            change(event)

    return plant


def _at_a_key(change: Callable[[Event], object]) -> Plant:
    def plant(random: Random, events: list[Event]) -> None:
        counts = Counter(event["carrier"] for event in events)
        few = [event for event in events if 2 * counts[event["carrier"]] <= len(events)]
        carrier = random.choice(few)["carrier"]
        for event in events:
            if event["carrier"] == carrier:
                change(event)

    return plant


def _sets(field: str, value: Callable[[Any], Any]) -> Callable[[Event], object]:
    return lambda event: event.update({field: value(event[field])})


def _no_gate(event: Event) -> None:
    event["gate"] = "C"


ORDER_PLANTS: Mapping[str, Plant] = {
    "a swap": _swap,
    "a swap of what stands far apart": lambda random, events: _swap(random, events, 5000),
    "five swaps": _some_swaps,
    "swaps at one time": _swaps_at_a_time,
    "swaps at one key": _swaps_at_a_key,
}
"""Events of one flight in another order, at so few places or so near to each other that it is no noise."""

FIELD_PLANTS: Mapping[str, Plant] = {
    "a delay": _once(_sets("dep_delay", lambda late: late + 1)),
    "a carrier": _once(_sets("carrier", lambda _: "ZZ")),
    "a time": _once(_sets("time", lambda time: time + 30)),
    "a gate": _once(_no_gate),
    "a null": lambda random, events: random.choice([e for e in events if e["gate"] is None]).pop("gate"),
    "an array": _once(_sets("crew", lambda crew: crew[::-1])),
    "a repeat": _once(_sets("crew", lambda crew: [*crew, crew[0]])),
    "much fuel": _once(_sets("fuel", lambda fuel: fuel + 500)),
    "a cent": _once(_sets("fuel", lambda fuel: fuel + 0.01)),
    "digits": _once(_sets("fuel", lambda fuel: fuel * (1 + 1e-10))),
    "delays at one time": _at_a_time(_sets("dep_delay", lambda late: late + 1), 0.6),
    "digits at one time": _at_a_time(_sets("fuel", lambda fuel: fuel * (1 + 1e-9)), 0.3),
    "arrays at one time": _at_a_time(_sets("crew", lambda crew: crew[::-1]), 0.1),
    "delays at one key": _at_a_key(_sets("dep_delay", lambda late: late + 1)),
    "cents at one key": _at_a_key(_sets("fuel", lambda fuel: fuel + 0.01)),
    "arrays at one key": _at_a_key(_sets("crew", lambda crew: crew[::-1])),
    "a loss": lambda random, events: events.pop(random.randrange(len(events))),
    "a copy": lambda random, events: events.append(dict(random.choice(events))),
}
"""What differs in one field of one event, at one time, or for one carrier; an event lost, and one twice."""
