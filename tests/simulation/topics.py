"""How what was written lies in the topics: partitions, offsets with gaps, times and marks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson

from tests.simulation.comparisons import COPIED
from tests.simulation.numbers import Letters, again
from tests.simulation.saying import Spoken, spoken, written
from tests.simulation.scheduler import START_MS, Scheduler
from tests.simulation.streams import reordered
from tests.support.orders import Event, Order
from twinstream.core.events import Side
from twinstream.spec.decode.headers import Headers


class Row(NamedTuple):
    """A record of a topic; `letter` numbers what is compared of it, None where it is no event."""

    partition: int
    offset: int
    record: bytes
    timestamp_ms: int
    letter: int | None
    headers: Headers = ()


class Shape(NamedTuple):
    """How a stream lies in its topic; keys that are `away` stand in another partition than by rights."""

    partitions: int
    step_ms: int
    order: Order
    keyed: bool
    away: frozenset[int] = frozenset()

    def places(self, event: Event, home: int) -> Sequence[int]:
        """The partitions in which an event stands, by its key, by chance, or, as a barrier, in each."""
        if self.order in COPIED and event["type"] == "e":
            return range(self.partitions)
        if not self.keyed:
            return (home,)
        return ((event["k"] + (event["k"] in self.away)) % self.partitions,)


def lay(scheduler: Scheduler, stream: Sequence[Any], letters: Letters, shape: Shape) -> list[Row]:
    following = dict.fromkeys(range(shape.partitions), 0)
    homes: dict[int | None, int] = {}
    gaps = scheduler.one_of((0.0, 0.0, 0.1))
    rows = []
    for number, event in enumerate(stream):
        garbage = isinstance(event, bytes)
        record = event if garbage else orjson.dumps(event)
        letter = None if garbage else letters.of(event)
        home = homes.setdefault(letter, scheduler.number(0, shape.partitions - 1))
        for partition in (home,) if garbage else shape.places(event, home):
            offset = following[partition] + scheduler.chance(gaps)
            following[partition] = offset + 1
            rows.append(Row(partition, offset, record, START_MS + number * shape.step_ms, letter))
    return rows


class Speaking(NamedTuple):
    """What versions do that say how far they are: `retries`, one of them `uneven`, with another content.

    `exact`: what is written by then comes of what they say they have consumed. `tolerant`: numbers of a retry
    are a little different.
    """

    retries: bool
    uneven: bool
    exact: bool
    tolerant: bool


def lay_speaking(
    scheduler: Scheduler,
    streams: tuple[Sequence[Any], Sequence[Any]],
    letters: Letters,
    shapes: Sequence[Shape],
    how: Speaking,
) -> tuple[tuple[list[Row], list[Row]], tuple[list[Spoken], list[Spoken]]]:
    """The rows of both sides with their marks, a replay as no event, and what the versions say."""
    retried = partial(_written_again, scheduler, shapes[0].order, how) if how.retries else None
    sides: tuple[list[Row], list[Row]] = ([], [])
    said: tuple[list[Spoken], list[Spoken]] = ([], [])
    for side in Side:
        uneven = how.uneven and side is Side.RIGHT
        wrote = written(scheduler, streams[side], retried, uneven=uneven, exact=how.exact)
        rows = lay(scheduler, [one.event for one in wrote], letters, shapes[side])
        numbers = [(row.timestamp_ms - START_MS) // shapes[side].step_ms for row in rows]
        for number, row in zip(numbers, rows, strict=True):
            letter = None if wrote[number].replay else row.letter
            sides[side].append(row._replace(headers=wrote[number].headers, letter=letter))
        places = [(number, row.partition, row.offset) for number, row in zip(numbers, rows, strict=True)]
        said[side].extend(spoken(side, wrote, places))
    return sides, said


def _written_again(scheduler: Scheduler, order: Order, how: Speaking, batch: Sequence[Any]) -> list[Any]:
    """A batch as an execution of it writes it that is killed before its end."""
    wrote = reordered(scheduler, order, batch)
    return again(scheduler.apart(f"batch {wrote[0]['n']}"), wrote) if how.tolerant else wrote
