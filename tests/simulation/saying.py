"""What both versions say of their progress: marks on their rows, and control records between them.

Event `n` comes from the input record at offset `n`. A version writes in batches, which it is free to cut
anywhere in its output; after each it says below which offset it has consumed everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from tests.simulation.scheduler import Scheduler
from twinstream.core.events import Side
from twinstream.spec.marks import Headers, InputPosition

SAYS = {
    "reference": {"topic": "r", "version": "1"},
    "candidate": {"topic": "c", "version": "2"},
    "control": "said",
    "overdue": {"clock": "input"},
}
"""What a comparison file adds that hears it."""


class Spoken(NamedTuple):
    """A control record, and behind how many rows of its side it stands."""

    behind: int
    record: bytes


def marked(event: Any) -> Headers:
    """The mark of an event; none where it is no event."""
    return () if isinstance(event, bytes) else [InputPosition("in", 0, event["n"]).header]


def spoken(
    scheduler: Scheduler, side: Side, stream: Sequence[Any], places: Sequence[tuple[int, int, int]]
) -> list[Spoken]:
    """The control records of a side; `places` are the rows: the place in the stream, partition and offset."""
    longest = scheduler.one_of((3, 10, 40))
    ends, said, until = dict.fromkeys({partition for _, partition, _ in places}, 0), [], 0
    left = _left(stream)
    for behind, (number, partition, offset) in enumerate(places, 1):
        ends[partition] = offset + 1
        last = behind == len(places)
        if not last and (behind < until or places[behind][0] == number):
            continue
        until = behind + scheduler.number(1, longest)
        said.append(Spoken(behind, _record(side, len(said), left[number], ends)))
    return said


def _left(stream: Sequence[Any]) -> list[int]:
    """By place in a stream, the first input record of which something is still to be written behind it."""
    least = 1 + max((event["n"] for event in stream if not isinstance(event, bytes)), default=-1)
    found = []
    for event in reversed(stream):
        found.append(least)
        least = least if isinstance(event, bytes) else min(least, event["n"])
    return found[::-1]


def _record(side: Side, batch: int, consumed: int, ends: dict[int, int]) -> bytes:
    said = {
        "version": "12"[side],
        "query_id": "q",
        "run_id": "r",
        "batch": batch,
        "attempt": "e",
        "consumed": {"in": {0: consumed}},
        "written": {"rc"[side]: ends},
        "rows": 1,
    }
    return orjson.dumps(said, option=orjson.OPT_NON_STR_KEYS)
