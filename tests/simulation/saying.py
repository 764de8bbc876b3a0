"""What both versions say of themselves: marks on their rows, and control records between them.

Event `n` comes from the input record at offset `n`. A version writes in batches, which it is free to cut
anywhere in its output; after each it says below which offset it has consumed everything. That is all that
it has consumed where it writes what comes of a stretch of the input before anything that comes behind it: a
start at the input needs that. Where it retries, an execution of a batch may have been killed before the
last one: it has written some of it, in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from tests.simulation.numbers import same
from tests.simulation.scheduler import Scheduler
from tests.support.saying import control_record
from twinstream.core.arrivals.attempts import Attempt
from twinstream.core.events import Side
from twinstream.spec.decode.headers import Headers, attempt_headers, input_header

SAYS: dict[str, Any] = {
    "reference": {"topic": "r", "version": "1"},
    "candidate": {"topic": "c", "version": "2"},
    "control": "said",
    "overdue": {"clock": "input"},
}
"""What a comparison file adds that hears it."""
RETRIES = {**SAYS, "duplicates": {"policy": "replays", "horizon": 5}}
"""And that tells what was written again."""
OTHER = 99_999
"""The number that an execution that was killed wrote in the place of the one that was right."""
Reorder = Callable[[Sequence[Any]], list[Any]]


class Spoken(NamedTuple):
    """A control record, and behind how many rows of its side it stands."""

    behind: int
    record: bytes


class Written(NamedTuple):
    """What a version writes: an event in a batch, and whether that is a replay."""

    event: Any
    batch: int
    execution: str
    replay: bool

    @property
    def headers(self) -> Headers:
        """Its marks; none where it is no event."""
        if isinstance(self.event, bytes):
            return ()
        attempt = Attempt("q", self.batch, self.execution, 0, 0)
        return [input_header("in", 0, self.event["n"]), *attempt_headers(attempt)]


def written(
    scheduler: Scheduler,
    stream: Sequence[Any],
    retried: Reorder | None,
    *,
    uneven: bool = False,
    exact: bool = False,
) -> list[Written]:
    """A stream in batches; `retried` is in which order an execution that was killed has written.

    `uneven`: of the first one that was killed it has written one event with another content. `exact`: a batch
    has what comes of a stretch of the input, and nothing of what comes behind it.
    """
    longest, found = scheduler.one_of((3, 10, 40)), []
    cut = _cut_by_input if exact else _cut
    for number, batch in enumerate(cut(scheduler, stream, longest)):
        killed: list[Any] = []
        events = not any(isinstance(one, bytes) for one in batch)
        if retried is not None and events and len(batch) > 1 and scheduler.chance(0.4):
            killed = retried(batch)[: scheduler.number(1, len(batch))]
        if uneven and killed:
            killed[-1], uneven = {**killed[-1], "v": OTHER}, False
        late = scheduler.number(0, len(killed))
        on_time, after = killed[: len(killed) - late], killed[len(killed) - late :]
        found += [Written(event, number, "killed", replay=False) for event in on_time]
        rest = list(on_time)
        for event in batch:
            place = next((place for place, one in enumerate(rest) if same(one, event)), None)
            if place is not None:
                del rest[place]
            found.append(Written(event, number, "last", replay=place is not None))
        for event in after:
            replay = any(same(event, one) for one in batch)
            found.append(Written(event, number, "killed", replay))
    return found


def _cut(scheduler: Scheduler, stream: Sequence[Any], longest: int) -> Iterator[Sequence[Any]]:
    start = 0
    while start < len(stream):
        end = start + scheduler.number(1, longest)
        yield stream[start:end]
        start = end


def _cut_by_input(scheduler: Scheduler, stream: Sequence[Any], longest: int) -> Iterator[Sequence[Any]]:
    """Batches of stretches of the input: each event is where it was, or nearer to its place in the input."""
    left = sorted({event["n"] for event in stream})
    while left:
        size = scheduler.number(1, longest)
        stretch, left = set(left[:size]), left[size:]
        yield [event for event in stream if event["n"] in stretch]


def spoken(side: Side, stream: Sequence[Written], places: Sequence[tuple[int, int, int]]) -> list[Spoken]:
    """The control records of a side; `places` are the rows: the place in the stream, partition and offset."""
    ends, said = dict.fromkeys({partition for _, partition, _ in places}, 0), []
    left = _left(stream)
    for behind, (number, partition, offset) in enumerate(places, 1):
        ends[partition] = offset + 1
        batch = stream[number].batch
        if behind == len(places) or stream[places[behind][0]].batch != batch:
            record = control_record("12"[side], batch, {"in": {0: left[number]}}, {"rc"[side]: ends}, rows=1)
            said.append(Spoken(behind, record))
    return said


def tells_all(rows: Sequence[bytes], said: Sequence[Spoken]) -> bool:
    """Whether nothing stands before a control record that comes of input behind what it says is consumed."""
    numbers = [orjson.loads(record)["n"] for record in rows]
    return all(max(numbers[: one.behind]) < consumed(one) for one in said)


def consumed(spoken: Spoken) -> int:
    """The offset below which all is consumed, as a control record says."""
    offset: int = orjson.loads(spoken.record)["consumed"]["in"]["0"]
    return offset


def _left(stream: Sequence[Written]) -> list[int]:
    """By place in a stream, the first input record of which something is still to be written behind it."""
    inputs = [None if isinstance(one.event, bytes) else one.event["n"] for one in stream]
    least = 1 + max((n for n in inputs if n is not None), default=-1)
    found = []
    for n in reversed(inputs):
        found.append(least)
        least = least if n is None else min(least, n)
    return found[::-1]
