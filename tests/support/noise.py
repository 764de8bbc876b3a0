"""Two equal runs of one pipeline, and noise that is planted in one of them."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any

from twinstream.adapters.files.jsonl import JSON, merge, shapes_of
from twinstream.adapters.files.values import read_values
from twinstream.calibration.proposals import Proposal
from twinstream.core.events import Side
from twinstream.offline.calibrate import Calibrated, Recording, calibrate, start_of
from twinstream.offline.check import equivalent
from twinstream.spec.file.model import Spec

Event = dict[str, Any]

PLANTED: Mapping[str, tuple[str, str | None]] = {
    "clock": ("equality.ignore", "processed_at"),
    "random id": ("equality.ignore", "meta.request"),
    "wobble": ("number", "temperature"),
    "array": ("equality.unordered", "items"),
    "null": ("equality.absent_is_null", None),
    "keys": ("order", None),
}
"""Each noise, and the key and the field of what must be proposed for it."""


def run_of(random: Random, count: int, *, named: bool = True) -> list[Event]:
    """The output of one run: events that have nothing random but what `random` says."""
    return [_event(random, number, named=named) for number in range(count)]


def _event(random: Random, number: int, *, named: bool) -> Event:
    skus = random.sample(range(50), random.randrange(2, 5))
    event = {
        "taxi": random.randrange(4),
        "city": random.choice(["Aachen", "Bonn", "Calw"]),
        "fare": random.randrange(100, 9000) / 100,
        "temperature": random.uniform(-20, 40),
        "note": None if number % 3 == 0 else random.choice(["late", "early"]),
        "items": [{"sku": sku, "price": random.randrange(1, 500) / 10} for sku in skus],
        "processed_at": 1_700_000_000_000 + 37 * number,
        "meta": {"request": f"{random.getrandbits(64):x}", "host": "h1"},
    }
    return {"ride": f"r{number}", **event} if named else event


def with_noise(random: Random, events: list[Event], noises: Iterable[str]) -> list[Event]:
    """The output of another run, which differs from the first by this noise alone, and by member order."""
    noises = set(noises)
    copies: list[Event] = json.loads(json.dumps(events))
    for event in copies:
        if "clock" in noises:
            event["processed_at"] += random.randrange(1, 5_000)
        if "random id" in noises:
            event["meta"]["request"] = f"{random.getrandbits(64):x}"
        if "wobble" in noises:
            event["temperature"] += random.choice([-1, 1]) * random.uniform(1e-11, 1e-10)
        if "array" in noises:
            event["items"].append(event["items"].pop(0))
        if "null" in noises and event["note"] is None:
            del event["note"]
    if "keys" in noises:
        copies = interleaved_anew(random, copies)
    return [dict(random.sample(list(event.items()), len(event))) for event in copies]


def interleaved_anew(random: Random, events: list[Event]) -> list[Event]:
    """Events in another order, in which those of each taxi keep theirs."""
    of_taxi: defaultdict[int, list[Event]] = defaultdict(list)
    for event in reversed(events):
        of_taxi[event["taxi"]].append(event)
    taxis = [event["taxi"] for event in events]
    random.shuffle(taxis)
    return [of_taxi[taxi].pop() for taxi in taxis]


def moved(one: list[Event], other: list[Event]) -> int:
    """The fewest events without which both runs have the same sequence of rides."""
    places = {event["ride"]: place for place, event in enumerate(other)}
    ends: list[int] = []  # of the ascending sequences of each length, the lowest end
    for event in one:
        at = bisect_left(ends, places[event["ride"]])
        ends[at : at + 1] = [places[event["ride"]]]
    return len(one) - len(ends)


def calibrated(one: list[Event], other: list[Event], spec: str | None = None, **more: Any) -> Calibrated:
    """What `calibrate` says of two runs; `spec` is the path of a starting file.

    `partition` gives that of each event; without it all are in one.
    """
    partition: Callable[[Event], int] = more.pop("partition", lambda _: 0)
    start = start_of(spec, {}, more.pop("identity", ()))
    recording, cut = Recording(start.spec, more.pop("limit", 200_000)), more.pop("cut", set())
    shapes = shapes_of(start.spec) if spec else JSON
    for side, events in zip(Side, (one, other), strict=True):
        lines = zip(read_values(events, side, shapes[side]), events, strict=False)
        recording.read(line._replace(partition=partition(event)) for line, event in lines)
        recording.cut |= cut
    return calibrate(recording, start, **more)


def equal_under(spec: Spec, one: list[Event], other: list[Event]) -> bool:
    """Whether a comparison file makes two runs equal, when they are checked under it."""
    sides = (read_values(run, side, JSON[side]) for run, side in zip((one, other), Side, strict=True))
    return equivalent(spec, merge(*sides, "alternate"))


def loosened(answer: Calibrated) -> list[Proposal]:
    """The proposals that make more runs equal, and not only say what events are about."""
    return [proposal for proposal in answer.found.draft.proposals if proposal.loosens]


def proposed(answer: Calibrated) -> set[tuple[str, str | None]]:
    """Key and field of all that is loosened; a number may be rounded or tolerated."""
    keys = {(proposal.key, proposal.field) for proposal in loosened(answer)}
    numbers = {"equality.quantum", "equality.tolerance"}
    return {("number" if key in numbers else key, field) for key, field in keys}
