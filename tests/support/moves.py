"""Orders that can be divided by key, and random streams for a comparison that is moved."""

from __future__ import annotations

import json
import random

from twinstream.core.events import Side

CLOSE = "identity: [k]\nequality: {tolerance: {v: {abs: 1}}}"
ORDERS = {
    "per_key": "{per_key: [k]}",
    "unordered": "unordered",
    "named": "unordered\nidentity: [k, n]",
    "changed": "{per_key: [k]}\nidentity: [k, n]",
    "bags": "{by_key: [k], inner: unordered}\nidentity: [k]",
    "days": "{by_key: [k], inner: {barrier: day, inner: unordered}}",
    "rules": "{dependent: [{pair: [ride, ride], same: [k]}, {pair: [day, ride], same: [k]}]}",
    "close": "{by_key: [k], inner: unordered}\n" + CLOSE,
    "close_days": "{by_key: [k], inner: {barrier: day, inner: unordered}}\n" + CLOSE,
    "times": "{per_key: [k]}\noverdue: {clock: event_time, field: n, unit: s, after: 600s, proves: true}",
}
KINDS = "kinds: {day: {where: {type: day}}, ride: {}}"
Written = tuple[Side, int, bytes]
"""The side, partition and record of an event."""


def streams(rng: random.Random) -> list[Written]:
    """Two streams with faults, as they are read: each key in one partition, which is another on each side."""
    size = rng.choice([20, 100, 300, 500])
    keys = rng.choice([1, 2, 3, 8])
    events = [
        {
            "k": rng.randrange(keys),
            "n": n,
            "v": rng.randrange(3),
            "type": "ride" if rng.random() < 0.9 else "day",
        }
        for n in range(size)
    ]
    if rng.random() < 0.5:
        for event in events:
            event["n"] //= 10
    other = [dict(event) for event in events]
    for _ in range(rng.choice([0, 1, 3, 6, 12])):
        place = rng.randrange(len(other))
        fault = rng.choice(["drop", "copy", "change", "much", "near", "far", "far", "far"])
        event = other.pop(place)
        to = {"near": place + rng.randrange(-5, 6), "far": rng.randrange(len(other) + 1)}.get(fault, place)
        event |= {"change": {"v": event["v"] + 1}, "much": {"v": 9}}.get(fault, {})
        if fault != "drop":
            other[max(to, 0) : max(to, 0)] = [event, dict(event)] if fault == "copy" else [event]
    for _ in range(rng.choice([0, 0, 1, 4])):
        place = rng.randrange(len(other))
        some = other[place : place + 15]
        rng.shuffle(some)
        other[place : place + 15] = some
    queues = {Side.LEFT: events, Side.RIGHT: other}
    found: list[Written] = []
    lead = rng.choice([0.5, 0.5, 0.2, 0.9])
    while any(queues.values()):
        side = Side.LEFT if rng.random() < lead else Side.RIGHT
        if not queues[side]:
            side = side.other
        some = rng.randrange(1, 8)
        taken, queues[side] = queues[side][:some], queues[side][some:]
        found += [(side, event["k"] % (3 - side), json.dumps(event).encode()) for event in taken]
    return found
