"""The clock of the input: how far a version has come, by its own control records.

After each micro-batch a version says "I have finished batch b: the input is consumed up to these offsets,
with this watermark, and my output stands in the topic up to these". That is a *fact* once we have read the
output up to there: everything that the version made of that input was then seen. So it proves, where all
other clocks only suspect:

- an event that comes from one input record should have come when `consumed` is past that record;
- an event that stands for a window should have come when the watermark had passed the end of the window in an
  *earlier* batch: the batch in which it passes may be the one before the window is written.

A record takes effect when every partition is read up to its `written`, in the order of its query's batches.
They are cumulative, so one that is lost costs nothing but time. A side that is silent, stopped or behind
takes nothing back, and makes nothing overdue: it has said what it has consumed.

**Queries.** A version may have several queries; each must have come that far that reads the input in
question. A query counts once its records name the topic that is compared. Of a query the newest run is heard:
what an earlier one still says is left out. A query that is new, begins at a lower batch than another one of
its version has reached and reads the same input stands in for it: its checkpoint was lost, and what it writes
again or leaves out cannot be told. That is a hole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from twinstream.core.clocks.event_time import TimeOf
from twinstream.core.events import Side

PENDING_LIMIT = 1000
"""Records of a query that wait to take effect; above it every second goes, since they are cumulative."""
RUNS_LIMIT = 100
"""Earlier runs of a query that are known by name."""

InputPartition = tuple[str, int]
"""Topic and partition of the input."""


class Input(NamedTuple):
    """What the comparison file says of the clock of the input.

    `place_of` reads the mark of an event: which input record it comes from, None where it names none.
    `window_end_of` reads the end of the window that an event stands for, where the file names such a field.
    """

    place_of: Callable[[Any], tuple[str, int, int] | None]
    window_end_of: TimeOf | None


class Finished(NamedTuple):
    """A batch that a query says it has finished.

    `consumed` and `written` are next offsets: of the input, and of the topic that is compared; `written` is
    None where the record does not name that topic. `since` are the first offsets that the batch itself has
    consumed, where that is told.
    """

    query: str
    run: str
    batch: int
    consumed: Mapping[InputPartition, int]
    watermark_ms: int | None
    written: Mapping[int, int] | None
    since: Mapping[InputPartition, int] = MappingProxyType({})


class WaitsFor(NamedTuple):
    """What a record waits for: its batch, a partition of the output, where that must and where it is read."""

    query: str
    batch: int
    partition: int
    written: int
    read: int


class InputProgress:
    """What both versions have said, and what of it holds.

    >>> progress = InputProgress()
    >>> progress.note(Side.LEFT, Finished("q", "r", 0, {("clicks", 0): 10}, None, {0: 3}))
    >>> progress.read(Side.LEFT, {0: 2}), progress.covers(Side.LEFT, ("clicks", 0), 7)
    ([], False)
    >>> progress.read(Side.LEFT, {0: 3}), progress.covers(Side.LEFT, ("clicks", 0), 7)
    ([('q', 0)], True)
    """

    def __init__(self) -> None:
        self._sides: tuple[dict[str, _Query], dict[str, _Query]] = ({}, {})

    def note(self, side: Side, fact: Finished) -> str | None:
        """Hear what a version says; a sentence where something may have been left out. It holds after `read`.

        Complexity: O(q) in its queries.
        """
        if fact.written is None:
            return None
        queries = self._sides[side]
        reason = None
        if fact.query not in queries:
            reason = self._recreated(queries, fact)
            queries[fact.query] = _Query(fact.query)
        queries[fact.query].note(fact)
        return reason

    @staticmethod
    def _recreated(queries: dict[str, _Query], fact: Finished) -> str | None:
        """Why a new query is an old one with a new checkpoint; the old one is forgotten."""
        for old in tuple(queries.values()):
            if old.last > fact.batch and old.inputs & fact.consumed.keys():
                del queries[old.name]
                return (
                    f"query {fact.query} begins at batch {fact.batch}, while query {old.name} of this "
                    f"version had reached batch {old.last} of the same input: it was created anew, and may "
                    "have written again or left out what lies between"
                )
        return None

    def read(self, side: Side, positions: Mapping[int, int]) -> list[tuple[str, int]]:
        """Note how far the output of a version is read; the queries and batches that took effect by that."""
        return [
            (query.name, batch)
            for query in self._sides[side].values()
            for batch in query.take_effect(positions)
        ]

    def covers(self, side: Side, place: InputPartition, offset: int) -> bool:
        """Whether all that a version makes of an input record was read. Complexity: O(q) in its queries."""
        return offset < self.consumed(side).get(place, 0)

    def consumed(self, side: Side) -> dict[InputPartition, int]:
        """By input partition the offset below which a version has consumed everything, as far as that holds.

        Complexity: O(p) in the partitions of all queries.
        """
        found: dict[InputPartition, int] = {}
        queries = self._sides[side].values()
        for place in {place for query in queries for place in query.consumed}:
            found[place] = min(query.consumed.get(place, 0) for query in queries if place[0] in query.topics)
        return found

    def watermark_ms(self, side: Side) -> int | None:
        """The watermark that a version had passed in an earlier batch than its last, as far as that holds."""
        passed = [query.passed_ms for query in self._sides[side].values() if query.has_watermark]
        return None if not passed or None in passed else min(mark for mark in passed if mark is not None)

    def heard(self, side: Side) -> bool:
        """Whether a version has said anything about the topic that is compared."""
        return bool(self._sides[side])

    def awaited(self, side: Side, positions: Mapping[int, int]) -> Iterator[WaitsFor]:
        """What the next record of each query waits for."""
        for query in self._sides[side].values():
            for fact in list(query.pending)[:1]:
                lacking = _lacking(fact, positions)
                if lacking is not None:
                    written = (fact.written or {})[lacking]
                    yield WaitsFor(query.name, fact.batch, lacking, written, positions.get(lacking, 0))

    def state(self) -> list[Any]:
        """The state as plain data."""
        return [[query.row() for query in side.values()] for side in self._sides]

    def restore(self, state: list[Any]) -> None:
        """Take over the `state`."""
        for side, rows in zip(self._sides, state, strict=True):
            side.update({row["name"]: _Query.of(row) for row in rows})


class _Query:
    """One query of a version.

    `last` is the largest batch that was heard of, `batch` the one that took effect. `consumed` holds as of
    it, `passed_ms` is the largest watermark of a batch before it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.run = ""
        self.old_runs: list[str] = []
        self.last = self.batch = -1
        self.pending: deque[Finished] = deque()
        self.inputs: set[InputPartition] = set()
        self.topics: set[str] = set()
        self.consumed: dict[InputPartition, int] = {}
        self.watermark_ms: int | None = None
        self.passed_ms: int | None = None
        self.has_watermark = False

    def note(self, fact: Finished) -> None:
        if fact.run in self.old_runs:
            return
        if fact.run != self.run:
            self.old_runs = [*self.old_runs, self.run][-RUNS_LIMIT:]
            self.run = fact.run
            self.pending.clear()
        elif fact.batch <= self.last:
            return
        self.last = fact.batch
        self._know(fact)
        self.pending.append(fact)
        if len(self.pending) > PENDING_LIMIT:
            self.pending = deque(list(self.pending)[1::2])

    def _know(self, fact: Finished) -> None:
        self.inputs |= fact.consumed.keys()
        self.topics = {topic for topic, _ in self.inputs}
        self.has_watermark = self.has_watermark or fact.watermark_ms is not None

    def take_effect(self, positions: Mapping[int, int]) -> Iterator[int]:
        while self.pending and _lacking(self.pending[0], positions) is None:
            fact = self.pending.popleft()
            if fact.batch > self.batch:
                self.passed_ms = _larger(self.passed_ms, self.watermark_ms)
            self.batch = fact.batch
            self.consumed |= fact.consumed
            self.watermark_ms = _larger(self.watermark_ms, fact.watermark_ms)
            yield fact.batch

    def row(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "run": self.run,
            "old_runs": list(self.old_runs),
            "batches": [self.last, self.batch],
            "inputs": [list(place) for place in sorted(self.inputs)],
            "consumed": rows_of(self.consumed),
            "watermarks": [self.watermark_ms, self.passed_ms],
            "has_watermark": self.has_watermark,
            "pending": [
                [fact.run, fact.batch, rows_of(fact.consumed), fact.watermark_ms, _pairs(fact.written or {})]
                for fact in self.pending
            ],
        }

    @classmethod
    def of(cls, row: dict[str, Any]) -> _Query:
        query = cls(row["name"])
        query.run, query.old_runs = row["run"], list(row["old_runs"])
        query.last, query.batch = row["batches"]
        query.inputs = {(topic, partition) for topic, partition in row["inputs"]}
        query.topics = {topic for topic, _ in query.inputs}
        query.consumed = offsets_of(row["consumed"])
        query.watermark_ms, query.passed_ms = row["watermarks"]
        query.has_watermark = row["has_watermark"]
        query.pending.extend(
            Finished(query.name, run, batch, offsets_of(consumed), watermark, dict(written))
            for run, batch, consumed, watermark, written in row["pending"]
        )
        return query


def _lacking(fact: Finished, positions: Mapping[int, int]) -> int | None:
    """A partition that is not read up to what a record says was written."""
    written = fact.written or {}
    return next((p for p, offset in sorted(written.items()) if positions.get(p, 0) < offset), None)


def _larger(one: int | None, other: int | None) -> int | None:
    return max((mark for mark in (one, other) if mark is not None), default=None)


def rows_of(offsets: Mapping[InputPartition, int]) -> list[list[Any]]:
    """Offsets of the input as plain data."""
    return [[topic, partition, offset] for (topic, partition), offset in offsets.items()]


def offsets_of(rows: Iterable[Sequence[Any]]) -> dict[InputPartition, int]:
    """What `rows_of` was given."""
    return {(topic, partition): offset for topic, partition, offset in rows}


def _pairs(offsets: Mapping[int, int]) -> list[list[int]]:
    return [[partition, offset] for partition, offset in offsets.items()]
