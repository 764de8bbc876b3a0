"""Where a comparison begins that does not begin at the first records: what was written before, and the cut.

What lies before the cut differs from side to side, and must not matter. It is no event to `truth`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from tests.simulation.numbers import FURTHER, WITHIN
from tests.simulation.saying import Spoken, consumed
from tests.simulation.scheduler import Scheduler
from tests.simulation.topics import Row
from tests.support.orders import Event, Order
from twinstream.core.events import Side

AT_FIRST = 1_000
"""The event time from which on events are compared."""
Streams = tuple[list[Any], list[Any]]
Sides = tuple[list[Row], list[Row]]


class Beginning(NamedTuple):
    """A start, its members in the comparison file, and what both versions wrote, with what is before it.

    `earlier` is how many records of each side lie in front of all that is compared.
    """

    at: str
    file: dict[str, Any]
    streams: Streams
    earlier: tuple[int, int] = (0, 0)


def draw_beginning(
    scheduler: Scheduler, order: Order, streams: Streams, *, says: bool, tolerant: bool = False
) -> Beginning:
    """A start that fits the order, often the first records. `tolerant`: numbers are a little different."""
    fits = ["offsets", "event_time"]
    if isinstance(order, dict) and "barrier" in order and "copies" not in order:
        fits += ["barrier"] * 3
    if says:
        fits = ["input"] if not any(isinstance(one, bytes) for stream in streams for one in stream) else []
    at = scheduler.aside("start", (*fits, *["earliest"] * 5))
    if at == "offsets":
        return _behind(scheduler, streams)
    if at == "event_time":
        return _from_a_time(scheduler, streams)
    if at == "barrier":
        return _behind_a_barrier(scheduler, streams, tolerant=tolerant)
    if at == "input":
        return _of_both(scheduler, streams)
    return Beginning("earliest", {}, streams)


def _earlier(scheduler: Scheduler, side: Side) -> list[Event]:
    """What a version has written before: no event of it is one of the other."""
    return [
        {
            "type": scheduler.one_of("abce"),
            "k": scheduler.number(1, 3),
            "n": -2 - 2 * number - side,
            "ts": 0,
            "v": 0,
        }
        for number in range(scheduler.number(0, 20))
    ]


def _behind(scheduler: Scheduler, streams: Streams) -> Beginning:
    """From offsets on; which those are is a matter of how the topics lie (`offsets_of`)."""
    before = [[orjson.dumps(event) for event in _earlier(scheduler, side)] for side in Side]
    together = before[0] + streams[0], before[1] + streams[1]
    return Beginning("offsets", {}, together, (len(before[0]), len(before[1])))


def offsets_of(rows: Sides, earlier: tuple[int, int], partitions: tuple[int, int]) -> dict[str, Any]:
    """The start behind what is earlier."""
    offsets = []
    for side in Side:
        found = dict.fromkeys(range(partitions[side]), 0)
        found.update({row.partition: row.offset + 1 for row in rows[side][: earlier[side]]})
        offsets.append({str(partition): offset for partition, offset in found.items()})
    return {"start": {"at": "offsets", "reference": offsets[0], "candidate": offsets[1]}}


def _from_a_time(scheduler: Scheduler, streams: Streams) -> Beginning:
    """From an event time on; what is earlier may come late."""
    found: Streams = ([], [])
    for side in Side:
        timed = [
            one if isinstance(one, bytes) else {**one, "at": AT_FIRST + one["n"]} for one in streams[side]
        ]
        for number, event in enumerate(_earlier(scheduler, side)):
            place = scheduler.number(0, len(timed) // 2)
            timed.insert(place, orjson.dumps({**event, "at": AT_FIRST - 1 - number}))
        found[side].extend(timed)
    start = {"start": {"at": "event_time", "field": "at", "from": AT_FIRST}}
    return Beginning("event_time", start, found)


def _behind_a_barrier(scheduler: Scheduler, streams: Streams, *, tolerant: bool) -> Beginning:
    """From the first barrier on that both have: others were before it.

    Where numbers have a tolerance both have one before it that is alike but for a number, which is further
    away than that.
    """
    found: Streams = ([], [])
    for side in Side:
        before = [orjson.dumps(event) for event in _earlier(scheduler, side)]
        if tolerant:
            before.insert(len(before) // 2, _barrier(-100, FURTHER * side))
        found[side].extend([*before, _barrier(-1, WITHIN * side * tolerant), *streams[side]])
    return Beginning("barrier", {"start": {"at": "barrier"}}, found)


def _barrier(n: int, v: int) -> bytes:
    return orjson.dumps({"type": "e", "k": 1, "n": n, "ts": 0, "v": v})


def _of_both(scheduler: Scheduler, streams: Streams) -> Beginning:
    """From what both have consumed on: the candidate was started later."""
    later = scheduler.number(0, min(20, len(streams[1]) // 2))  # It has to say something.
    candidate = [event for event in streams[1] if event["n"] >= later]
    return Beginning("input", {"start": {"at": "input"}}, (streams[0], candidate))


def behind_the_input(rows: Sides, said: tuple[Sequence[Spoken], Sequence[Spoken]]) -> Sides:
    """What is compared of rows that begin where both have begun: what is before is no event.

    A version tells where a batch ended: so it has begun, as far as anybody knows, behind its first batch.
    """
    cut = max((consumed(spoken[0]) for spoken in said if spoken), default=0)
    return tuple(  # type: ignore[return-value]
        [row if orjson.loads(row.record)["n"] >= cut else row._replace(letter=None) for row in side]
        for side in rows
    )
