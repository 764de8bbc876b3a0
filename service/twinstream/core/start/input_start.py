"""Finds where a comparison begins in its input: at the first record that both versions have consumed.

A version that was started late has written no events for earlier input. So the *cut* is, for each partition
of the input, the larger of the first offsets that the two versions have consumed; events that come from
records at the cut or behind it are compared (`input_cut`). This module finds the cut from control records.

**The first offset.** Control records contain the offset *up to* which a batch has consumed. So the first
known batch gives only its end, unless the record has its beginning (`since`): from there on the version has
consumed everything. That may be later than the truth, never earlier, so no event is compared that the other
version could not have written. If several queries of a version read an input, the one that began last counts.

**The readable output** limits the cut, too. Retention, or whoever started the service, may have cut off the
beginning of the output. The events that a version wrote after a batch are behind the `written` of that batch;
so the first offset comes from the first batch behind which all output can be read. In the same way reading
may begin at the `written` of the last batch that lies wholly before the cut: a reference that has run for
months is not read from its beginning. This requires that no output below `written` comes from input behind
`consumed`; a version that writes ahead of it cannot begin so.

**A query that was recreated** before the start causes no doubt, as it would later: it counts from its first
batch on, and the output of its predecessor is left out, since it lies before the end of that batch. Control
records about an output that is gone, a deleted topic of this name, are left out, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from twinstream.core.clocks.input import (
    RUNS_LIMIT,
    DroppedRows,
    Finished,
    InputPartition,
    NewestRun,
    offsets_of,
    rows_of,
)
from twinstream.core.events import Side

SAID_LIMIT = 1001
"""Batches of a query remembered during the search, an odd number; above it every second is dropped."""
_NAMES = ("reference", "candidate")

InputOffsets = Mapping[int, int]
"""By partition of the output, an offset."""
Firsts = dict[str, dict[InputPartition, int]]
"""By query and input partition, the first offset that the query is known to have consumed."""


class Opened(NamedTuple):
    """A start that was found: where to read from, where each query began, and the last batch of each run."""

    positions: Mapping[Side, InputOffsets]
    firsts: Mapping[Side, Firsts]
    lasts: Sequence[tuple[Side, Finished]]


def state_of(opened: Opened) -> dict[str, Any]:
    """A start as plain data."""
    return {
        "positions": [list(map(list, opened.positions[side].items())) for side in Side],
        "firsts": firsts_rows(opened.firsts),
        "newest": [[side.value, _row(fact)] for side, fact in opened.lasts],
    }


def opened_of(state: Mapping[str, Any]) -> Opened:
    """The start of a `state_of`."""
    positions = {side: dict(state["positions"][side]) for side in Side}
    return Opened(
        positions, firsts_of(state["firsts"]), [(Side(n), _fact(row)) for n, row in state["newest"]]
    )


def firsts_rows(firsts: Mapping[Side, Firsts]) -> list[Any]:
    """Where each query began, as plain data."""
    return [[[name, rows_of(of)] for name, of in firsts[side].items()] for side in Side]


def firsts_of(rows: Sequence[Any]) -> dict[Side, Firsts]:
    """Where each query began, from its `firsts_rows`."""
    return {side: {name: offsets_of(of) for name, of in rows[side]} for side in Side}


def _row(fact: Finished) -> list[Any]:
    late = fact.late and [fact.late.rows, fact.late.since, rows_of(fact.late.consumed)]
    return [fact.query, *fact.row(), rows_of(fact.since), fact.at, late]


def _fact(row: Sequence[Any]) -> Finished:
    query, run, batch, consumed, watermark_ms, written, since, at, late = row
    dropped = late and DroppedRows(late[0], late[1], offsets_of(late[2]))
    known = offsets_of(consumed), watermark_ms, dict(written), offsets_of(since)
    return Finished(query, run, batch, *known, at, dropped)


def first_of(firsts: Firsts, place: InputPartition) -> int | None:
    """The first offset that a version has consumed; None while one of its queries on the topic has none."""
    readers = [of for of in firsts.values() if any(topic == place[0] for topic, _ in of)]
    found = [of[place] for of in readers if place in of]
    return max(found) if found and len(found) == len(readers) else None


def known_firsts(firsts: Firsts) -> dict[InputPartition, int]:
    """By input partition, the first offset that a version has consumed, as far as it is known."""
    places = {place for of in firsts.values() for place in of}
    found = {place: first_of(firsts, place) for place in places}
    return {place: first for place, first in found.items() if first is not None}


class Sayings:
    """The control records of both versions during the search for the start.

    >>> sayings = Sayings()
    >>> for side, consumed in ((Side.LEFT, 900), (Side.LEFT, 1000), (Side.RIGHT, 950)):
    ...     sayings.hear(side, Finished("q", "r", consumed, {("clicks", 0): consumed}, None, {0: consumed}))
    >>> ends = dict.fromkeys(Side, {0: 1000})
    >>> sayings.open(dict.fromkeys(Side, {0: 0}), ends).positions
    {<Side.LEFT: 0>: {0: 900}, <Side.RIGHT: 1>: {0: 950}}
    """

    def __init__(self) -> None:
        self._sides: tuple[dict[str, _Query], dict[str, _Query]] = ({}, {})

    def hear(self, side: Side, fact: Finished) -> None:
        """Note a control record about the compared topic. Complexity: O(q) in the version's queries."""
        if fact.written is None:
            return
        queries = self._sides[side]
        if fact.query not in queries:
            replaced = [name for name, old in queries.items() if fact.batch == 0 and old.is_replaced_by(fact)]
            for name in replaced:
                del queries[name]
            queries[fact.query] = _Query(follows=bool(replaced))
        queries[fact.query].hear(fact)

    def open(self, readable: Mapping[Side, InputOffsets], ends: Mapping[Side, InputOffsets]) -> Opened | str:
        """The start; or, as a part of a sentence, the reason why it is not known yet.

        `readable` are the first offsets of the output that can be read, `ends` those behind the last.

        Complexity: O(n) in the noted batches.
        """
        usable: dict[Side, dict[str, list[Finished]]] = {}
        for side in Side:
            found = self._usable(side, readable[side], ends[side])
            if isinstance(found, str):
                return found
            usable[side] = found
        firsts = {side: self._firsts(side, usable[side], readable[side]) for side in Side}
        known = [known_firsts(firsts[side]) for side in Side]
        if not known[0].keys() & known[1].keys():
            return "the two versions have said what they have consumed, and none of it is of both"
        places = known[0].keys() | known[1].keys()
        low = {place: max(of[place] for of in known if place in of) for place in places}
        positions = {side: _positions(usable[side].values(), readable[side], low) for side in Side}
        return Opened(positions, firsts, self._lasts())

    def _usable(
        self, side: Side, readable: InputOffsets, ends: InputOffsets
    ) -> dict[str, list[Finished]] | str:
        """By query, the batches that count; or the reason why there are none."""
        if not self._sides[side]:
            return f"the {_NAMES[side]} has not said on the control topic what it has consumed"
        usable = {name: query.usable(readable, ends) for name, query in self._sides[side].items()}
        silent = next((name for name, said in usable.items() if not said), None)
        if silent is None:
            return usable
        return f"query {silent} of the {_NAMES[side]} has told of no batch behind which all can be read"

    def _firsts(self, side: Side, usable: Mapping[str, list[Finished]], readable: InputOffsets) -> Firsts:
        queries = self._sides[side]
        return {name: _firsts(said, whole=queries[name].is_whole(readable)) for name, said in usable.items()}

    def _lasts(self) -> list[tuple[Side, Finished]]:
        """The last batch of each run of each query, in an order in which no query looks recreated.

        Who hears them in this order knows the earlier runs, too, and ignores what these still write.
        """
        numbered = [
            (number, side, fact)
            for side in Side
            for query in self._sides[side].values()
            for number, fact in enumerate(query.lasts)
        ]
        ordered = sorted(numbered, key=lambda said: (said[0], said[2].batch))
        return [(side, fact) for _, side, fact in ordered]


class _Query:
    """The batches of one query, in order; `follows`: it replaced a query."""

    def __init__(self, *, follows: bool) -> None:
        self._follows = follows
        self._newest = NewestRun()
        self._said: list[Finished] = []
        self._last_of: dict[str, Finished] = {}

    def hear(self, fact: Finished) -> None:
        if not self._newest.take(fact):
            return
        if self._said and _went_back(self._said[-1], fact):
            self._said.clear()
            self._last_of.clear()
        self._said.append(fact)
        self._last_of[fact.run] = fact
        if len(self._said) == SAID_LIMIT:
            del self._said[1::2]
        if len(self._last_of) > RUNS_LIMIT:
            del self._last_of[next(iter(self._last_of))]

    @property
    def lasts(self) -> Iterable[Finished]:
        """The last noted batch of each run, whether its output is there or not."""
        return self._last_of.values()

    def is_replaced_by(self, fact: Finished) -> bool:
        """Whether a new query reads the same input, and this one had reached later batches."""
        last = self._said[-1]
        return last.batch > fact.batch and bool(last.consumed.keys() & fact.consumed.keys())

    def usable(self, readable: InputOffsets, ends: InputOffsets) -> list[Finished]:
        """The batches behind which all output can be read, and whose own output is there."""
        return [
            fact
            for fact in self._said
            if all(_written(fact, partition) >= offset for partition, offset in readable.items())
            and all(_written(fact, partition) <= end for partition, end in ends.items())
        ]

    def is_whole(self, readable: InputOffsets) -> bool:
        """Whether all of its output can be read, including that of the first noted batch."""
        return not self._follows and not any(readable.values())


def _written(fact: Finished, partition: int) -> int:
    return 0 if fact.written is None else fact.written.get(partition, 0)


def _went_back(before: Finished, fact: Finished) -> bool:
    """Whether the output ends earlier than before: then it is another topic of the same name."""
    return any(_written(fact, partition) < offset for partition, offset in (before.written or {}).items())


def _firsts(said: Sequence[Finished], *, whole: bool) -> dict[InputPartition, int]:
    """The offsets from which on a query has consumed all input, and its output for it can be read."""
    found: dict[InputPartition, int] = {}
    for number, fact in enumerate(said):
        for place, consumed in fact.consumed.items():
            if place not in found:
                found[place] = fact.since.get(place, consumed) if whole or number else consumed
    return found


def _positions(
    queries: Iterable[Sequence[Finished]], readable: InputOffsets, low: Mapping[InputPartition, int]
) -> dict[int, int]:
    """Where reading begins: behind the output of every query for input before `low`, the earliest cut."""
    floors = [_floor(said, low) for said in queries]
    return {
        partition: max(offset, min(0 if floor is None else _written(floor, partition) for floor in floors))
        for partition, offset in readable.items()
    }


def _floor(said: Sequence[Finished], low: Mapping[InputPartition, int]) -> Finished | None:
    """The last batch before the first one that may have gone beyond the cut."""
    floor = None
    for fact in said:
        if any(consumed > low.get(place, -1) for place, consumed in fact.consumed.items()):
            break
        floor = fact
    return floor
