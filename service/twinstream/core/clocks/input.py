"""The clock of the input: the progress of a version, by its own control records.

After each micro-batch a version writes "I have finished batch b: the input is consumed up to these offsets,
with this watermark, and my output is in the topic up to these". That is a *fact* once we have read the output
up to there: then we have seen everything that the version made of that input. So it proves, where all other
clocks only suspect:

- an event that comes from one input record should have come when `consumed` is past that record;
- an event of a window should have come when the watermark had passed the end of the window in an *earlier*
  batch: the batch in which it passes may be the one before the window is written.

A control record takes effect when every partition is read up to its `written`, in the order of its query's
batches. They are cumulative, so a lost one only costs time. A side that is silent, stopped or behind revokes
nothing, and makes no event overdue: only input that it has consumed counts.

**Queries.** A version may have several queries; each query that reads the input in question must have come so
far. A query counts once its records name the compared topic. Only records of its newest run count: those that
an earlier run still writes are ignored. So are those of a batch before the last one, and of the last one run
again with less input: they are late, or the checkpoint was put back, and what was reported is as true as
before. A new query that begins at a lower batch than another query of its version has reached, and reads the
same input, replaces that query: its checkpoint was lost, and nobody knows which events it writes again or
leaves out. That is a hole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from twinstream.core.clocks.event_time import TimeOf
from twinstream.core.events import Side

PENDING_LIMIT = 1000
"""Records of a query that wait to take effect; above it, an odd number, every second is dropped: they are
cumulative, and the newest stays."""
RUNS_LIMIT = 100
"""Earlier runs of a query that are remembered by name."""

InputPartition = tuple[str, int]
"""Topic and partition of the input."""
InputPosition = tuple[str, int, int]
"""The record of the input that a row comes from: its topic, partition and offset."""


class Input(NamedTuple):
    """The parameters of the clock of the input in the comparison file.

    `place_of` reads from the mark of an event the input record that it comes from, None if the mark cannot be
    read. It is None where rows replace each other: none of them comes from one record.
    `window_end_of` reads the end of the window of an event, where the file names such a field.
    """

    place_of: Callable[[Any], InputPosition | None] | None
    window_end_of: TimeOf | None


class DroppedRows(NamedTuple):
    """The `rows` that a run has dropped as late of the input below `consumed`, from batch `since` on."""

    rows: int
    since: int
    consumed: Mapping[InputPartition, int]


class Finished(NamedTuple):
    """A batch that a query reports as finished.

    `consumed` and `written` are next offsets: of the input, and of the compared topic; `written` is None if
    the record does not name that topic. `since` are the first offsets that the batch itself has consumed,
    where the record has them. `at` is the offset of the record in the control topic, if it is known. `late`
    is None where the version does not know it.
    """

    query: str
    run: str
    batch: int
    consumed: Mapping[InputPartition, int]
    watermark_ms: int | None
    written: Mapping[int, int] | None
    since: Mapping[InputPartition, int] = MappingProxyType({})
    at: int | None = None
    late: DroppedRows | None = None

    def row(self) -> list[Any]:
        """What waits of it in the state of its query."""
        written = list(map(list, (self.written or {}).items()))
        return [self.run, self.batch, rows_of(self.consumed), self.watermark_ms, written]


class NewestRun:
    """The newest run of a query: only its batches count, each later than the `last`.

    A run begins with the `last` batch of the run before, or a later one.
    """

    def __init__(self, run: str = "", earlier: Sequence[str] = (), last: int = -1) -> None:
        self.run, self._earlier, self.last = run, list(earlier), last

    def take(self, fact: Finished) -> bool:
        """Note a control record; returns whether it counts."""
        if fact.run in self._earlier or fact.batch < self.last + (fact.run == self.run):
            return False
        if fact.run != self.run:
            self._earlier = [*self._earlier, self.run][-RUNS_LIMIT:]
            self.run = fact.run
        self.last = fact.batch
        return True

    def row(self) -> list[Any]:
        """The arguments that make another one like it, as plain data."""
        return [self.run, list(self._earlier), self.last]


class Effect(NamedTuple):
    """A batch that took effect: all input consumed by then, and where its output ends.

    `passed_ms` is the largest watermark of a batch before it.
    """

    batch: int
    consumed: Mapping[InputPartition, int]
    written: Mapping[int, int]
    passed_ms: int | None = None


class WaitsFor(NamedTuple):
    """The reason why a record waits: its batch, an output partition, the offset needed and the one read."""

    query: str
    batch: int
    partition: int
    written: int
    read: int


class InputProgress:
    """The control records of both versions, and the progress that has taken effect.

    >>> progress = InputProgress()
    >>> progress.note(Side.LEFT, Finished("q", "r", 0, {("clicks", 0): 10}, None, {0: 3}))
    >>> progress.read(Side.LEFT, {0: 2}), progress.consumed(Side.LEFT)
    ([], {})
    >>> progress.read(Side.LEFT, {0: 3}), progress.consumed(Side.LEFT)
    ([('q', 0)], {('clicks', 0): 10})
    """

    def __init__(self) -> None:
        self._sides: tuple[dict[str, _Query], dict[str, _Query]] = ({}, {})

    def note(self, side: Side, fact: Finished) -> str | None:
        """Note a control record of a version; it takes effect by `read`.

        Returns a sentence if output may have been left out. Complexity: O(q) in the queries of the version.
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
        """The reason why a new query is an old one with a new checkpoint; the old one is forgotten."""
        for old in tuple(queries.values()):
            last = old.newest.last
            if last > fact.batch and old.inputs & fact.consumed.keys():
                del queries[old.name]
                return (
                    f"query {fact.query} begins at batch {fact.batch}, while query {old.name} of this "
                    f"version had reached batch {last} of the same input: it was created anew, and may "
                    "have written again or left out what lies between"
                )
        return None

    def read(self, side: Side, positions: Mapping[int, int]) -> list[tuple[str, int]]:
        """Note the positions in the output of a version; returns the queries and batches that take effect."""
        return [
            (query.name, batch)
            for query in self._sides[side].values()
            for batch in query.take_effect(positions)
        ]

    def consumed(self, side: Side) -> dict[InputPartition, int]:
        """By input partition, the offset below which a version has consumed all records, as far as is proven.

        All output for these was read.

        Complexity: O(p) in the partitions of all queries.
        """
        found: dict[InputPartition, int] = {}
        queries = self._sides[side].values()
        for place in {place for query in queries for place in query.consumed}:
            found[place] = min(query.consumed.get(place, 0) for query in queries if place[0] in query.topics)
        return found

    def watermark_ms(self, side: Side) -> int | None:
        """The watermark that a version had passed in a batch before its last, as far as is proven."""
        passed = [query.passed_ms for query in self._sides[side].values() if query.has_watermark]
        return None if not passed or None in passed else min(mark for mark in passed if mark is not None)

    def effects(self, side: Side) -> list[Effect]:
        """The batches of a version that took effect at its last `read`, those of each query in order."""
        return [effect for query in self._sides[side].values() for effect in query.effects]

    def queries(self, side: Side) -> int:
        """The number of queries of a version whose control records name the compared topic."""
        return len(self._sides[side])

    def awaited(self, side: Side, positions: Mapping[int, int]) -> Iterator[WaitsFor]:
        """The reasons why the next record of each query waits."""
        for query in self._sides[side].values():
            for fact in list(query.pending)[:1]:
                written = fact.written or {}
                if (partition := lacking(written, positions)) is not None:
                    read = positions.get(partition, 0)
                    yield WaitsFor(query.name, fact.batch, partition, written[partition], read)

    def state(self) -> list[Any]:
        """The state as plain data."""
        return [[query.row() for query in side.values()] for side in self._sides]

    def restore(self, state: list[Any]) -> None:
        """Take over the `state`."""
        for side, rows in zip(self._sides, state, strict=True):
            side.update({row["name"]: _Query.of(row) for row in rows})


class _Query:
    """One query of a version.

    `newest` is the run that reports, `batch` the last one that took effect. `consumed` is as of that,
    `passed_ms` is the largest watermark of a batch before it. `effects` are the batches that took effect at
    the last look; they are of no use after a restart, and not part of the state.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.newest = NewestRun()
        self.batch = -1
        self.pending: deque[Finished] = deque()
        self.inputs: set[InputPartition] = set()
        self.topics: set[str] = set()
        self.consumed: dict[InputPartition, int] = {}
        self.watermark_ms: int | None = None
        self.passed_ms: int | None = None
        self.has_watermark = False
        self.effects: list[Effect] = []

    def note(self, fact: Finished) -> None:
        if self._goes_back(fact) or not self.newest.take(fact):
            return  # What an earlier run reported before the newest one began is true, and stays.
        self.inputs |= fact.consumed.keys()
        self.topics = {topic for topic, _ in self.inputs}
        self.has_watermark = self.has_watermark or fact.watermark_ms is not None
        self.pending.append(fact)
        if len(self.pending) > PENDING_LIMIT:
            self.pending = deque(list(self.pending)[::2])

    def _goes_back(self, fact: Finished) -> bool:
        """Whether a batch was run again with less input than it was reported with."""
        told = self.pending[-1].consumed if self.pending else self.consumed
        return fact.batch <= self.newest.last and any(
            offset < told.get(place, 0) for place, offset in fact.consumed.items()
        )

    def take_effect(self, positions: Mapping[int, int]) -> Iterator[int]:
        self.effects = []
        while self.pending and lacking(self.pending[0].written or {}, positions) is None:
            fact = self.pending.popleft()
            if fact.batch > self.batch:
                self.passed_ms = _larger(self.passed_ms, self.watermark_ms)
            self.batch = fact.batch
            self.consumed |= fact.consumed
            self.effects.append(Effect(fact.batch, dict(self.consumed), fact.written or {}, self.passed_ms))
            self.watermark_ms = _larger(self.watermark_ms, fact.watermark_ms)
            yield fact.batch

    def row(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "newest": self.newest.row(),
            "batch": self.batch,
            "inputs": [list(place) for place in sorted(self.inputs)],
            "consumed": rows_of(self.consumed),
            "watermarks": [self.watermark_ms, self.passed_ms],
            "has_watermark": self.has_watermark,
            "pending": [fact.row() for fact in self.pending],
        }

    @classmethod
    def of(cls, row: dict[str, Any]) -> _Query:
        query = cls(row["name"])
        query.newest, query.batch = NewestRun(*row["newest"]), row["batch"]
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


def lacking(written: Mapping[int, int], positions: Mapping[int, int]) -> int | None:
    """A partition that is not yet read up to what was `written`; None if all are."""
    return next((p for p, offset in sorted(written.items()) if positions.get(p, 0) < offset), None)


def _larger(one: int | None, other: int | None) -> int | None:
    return max((mark for mark in (one, other) if mark is not None), default=None)


def rows_of(offsets: Mapping[InputPartition, int]) -> list[list[Any]]:
    """Offsets of the input as plain data."""
    return [[topic, partition, offset] for (topic, partition), offset in offsets.items()]


def offsets_of(rows: Iterable[Sequence[Any]]) -> dict[InputPartition, int]:
    """The offsets of the input from their `rows_of`."""
    return {(topic, partition): offset for topic, partition, offset in rows}
