"""The rows that each attempt wrote of each batch of a query, and whether the attempts agree.

See `replays` for the theory, and for the letters n, N and M.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from sortedcontainers import SortedDict

from twinstream.core.arrivals.leaders import COVERED, FULL, ROOM, CloseTo, Leaders
from twinstream.core.events import PartitionOffset


class Attempt(NamedTuple):
    """The writer of a record: one attempt of one task of one execution of a micro-batch of a query."""

    query: str
    batch: int
    execution: str
    task: int
    attempt: int


class Cell:
    """A form of which an execution has several copies: the number that each attempt wrote, and N."""

    __slots__ = ("counts", "total")

    def __init__(self, counts: dict[int, int], total: int) -> None:
        self.counts, self.total = counts, total


class Execution:
    """One execution of a batch. Attempts are named by their index in `attempts`.

    `rows` maps the hash of a form to the attempt that wrote its only copy, or to its cell. `lent` are, by
    leader, the attempts that wrote a copy of it with another content.
    """

    __slots__ = ("attempts", "lent", "places", "rows", "siblings")

    def __init__(self) -> None:
        self.attempts: list[tuple[int, int]] = []
        self.places: dict[tuple[int, int], int] = {}
        self.siblings: dict[int, list[int]] = {}
        self.rows: dict[bytes, int | Cell] = {}
        self.lent: dict[bytes, set[int]] = {}

    def place(self, task: int, attempt: int) -> int:
        """The index of an attempt, which is added if it is new."""
        place = self.places.setdefault((task, attempt), len(self.attempts))
        if place == len(self.attempts):
            self.attempts.append((task, attempt))
            self.siblings.setdefault(task, []).append(place)
        return place

    def count(self, form: bytes) -> int:
        """N of a form."""
        held = self.rows.get(form)
        if held is None:
            return 0
        return held.total if isinstance(held, Cell) else 1

    def add(self, place: int, form: bytes, copies: int = 1) -> None:
        """Note rows of an attempt. Complexity: O(1) for each attempt of its task."""
        held = self.rows.get(form)
        if held is None and copies == 1:
            self.rows[form] = place
            return
        if not isinstance(held, Cell):
            held = Cell({} if held is None else {held: 1}, 0 if held is None else 1)
            self.rows[form] = held
        counts = held.counts
        largest = max(counts.get(other, 0) for other in self.siblings[self.attempts[place][0]])
        counts[place] = counts.get(place, 0) + copies
        held.total += max(0, counts[place] - largest)

    def count_with(self, place: int, form: bytes) -> int:
        """N of a form with one more row of an attempt."""
        held = self.rows.get(form)
        if held is None:
            return 1
        counts = held.counts if isinstance(held, Cell) else {held: 1}
        largest = max(counts.get(other, 0) for other in self.siblings[self.attempts[place][0]])
        return self.count(form) + (counts.get(place, 0) == largest)

    def has_lent(self, place: int, leader: bytes) -> bool:
        """Whether another content stands for a leader beside the rows of an attempt.

        Those of other attempts of its task do not stand beside them, but in their place.
        """
        task = self.attempts[place][0]
        return any(one == place or self.attempts[one][0] != task for one in self.lent.get(leader, ()))

    def contains(self, other: Execution) -> bool:
        """Whether no form has more copies in the other."""
        return all(other.count(form) <= self.count(form) for form in other.rows)

    def whole(self) -> bool:
        """Whether each task has one attempt that wrote all rows that any attempt of it wrote."""
        retried = {task: set(places) for task, places in self.siblings.items() if len(places) > 1}
        for held in self.rows.values() if retried else ():
            counts = held.counts if isinstance(held, Cell) else {held: 1}
            for task in {self.attempts[place][0] for place in counts} & retried.keys():
                mine = {place: counts.get(place, 0) for place in self.siblings[task]}
                largest = max(mine.values())
                retried[task] -= {place for place, count in mine.items() if count < largest}
        return all(retried.values())


@dataclass(slots=True, eq=False)
class MicroBatch:
    """One batch of one query: its executions.

    `waits` are, while it is open, the partitions that have not gone on to a later batch behind its last row;
    once any has since it was opened, `passed` is the number of the look that shows it to be read, else 0
    (see `replays`). `place` is that of its first row; for a retried batch, that of the last row since then
    that raised M. It is `mixed` if a row was taken for a copy of a close one, and that came itself. `saved`
    is the number of its `rows` in the last snapshot of any kind. It `counts` if one of its rows lies behind
    the start of the comparison. `leaders` stand for rows that are `CloseTo` others. `starts` is by partition
    the offset of its first row since it was opened.
    """

    place: PartitionOffset
    waits: set[int]
    executions: dict[str, Execution] = field(default_factory=dict)
    retried: bool = False
    refuted: bool = False
    mixed: bool = False
    passed: int = 0
    counts: bool = False
    rows: int = 0
    saved: int = 0
    leaders: Leaders = field(default_factory=Leaders)
    starts: dict[int, int] = field(init=False)
    _agreed: tuple[int, bool] = (0, True)

    def __post_init__(self) -> None:
        self.starts = dict([self.place])

    @property
    def weight(self) -> int:
        """The memory that it takes, in rows."""
        return self.rows + self.leaders.weight

    def add(self, attempt: Attempt, form: bytes, place: PartitionOffset, near: CloseTo | None = None) -> bool:
        """Note a row; returns whether it raises M."""
        execution, at = self._writer(attempt, place)
        if near is not None:
            form = self.leaders.take(form, near, partial(self._room, execution, at))
            if form != near.own:
                execution.lent.setdefault(form, set()).add(at)
        before = self._most(form)
        execution.add(at, form)
        self.rows += 1
        raised = execution.count(form) > before
        if raised and self.retried:
            self.place = place
            self.mixed = self.mixed or (near is not None and execution.has_lent(at, near.own))
        return raised

    def _most(self, form: bytes) -> int:
        """M of a form."""
        return max(execution.count(form) for execution in self.executions.values())

    def _room(self, execution: Execution, at: int, form: bytes) -> int:
        """The count that one more row of an attempt raises (see `leaders`); before any retry that is M."""
        if not self.retried or (count := execution.count_with(at, form)) > self._most(form):
            return FULL
        return ROOM if count > execution.count(form) else COVERED

    def _writer(self, attempt: Attempt, place: PartitionOffset) -> tuple[Execution, int]:
        """The execution of an attempt, and the index of the attempt in it."""
        execution = self.executions.get(attempt.execution)
        if execution is None:
            execution = self.executions[attempt.execution] = Execution()
            self._note_retry(place, first=len(self.executions) == 1)
        known = len(execution.attempts)
        at = execution.place(attempt.task, attempt.attempt)
        if at == known:
            self._note_retry(place, first=len(execution.siblings[attempt.task]) == 1)
        return execution, at

    def _note_retry(self, place: PartitionOffset, *, first: bool) -> None:
        if not first:
            self.retried, self.place = True, place

    def agrees(self) -> bool:
        """Whether one execution, with one attempt of each of its tasks, has written all of M.

        True if the batch does not count, false if it is `mixed`. Complexity: O(n) in the rows of a retried
        batch that has grown.
        """
        if not self.retried or not self.counts:
            return True
        if self.mixed:
            return False
        if self._agreed[0] != self.rows:
            self._agreed = (self.rows, self._has_complete())
        return self._agreed[1]

    def _has_complete(self) -> bool:
        executions = list(self.executions.values())
        return any(
            all(one is other or one.contains(other) for other in executions) and one.whole()
            for one in executions
        )


class Query:
    """One query: the batches that are remembered, and its progress in each partition.

    `front` is the newest batch read in a partition, `last` that of the last row. All rows of batches below
    `complete` are read. Batches up to `forgotten` are forgotten. `fresh` are the open batches that no row of
    a later one has passed. `requests` are the looks whose ends are not read, each with its number and the
    newest batch when it was requested.
    """

    __slots__ = ("batches", "complete", "forgotten", "fresh", "front", "last", "open", "requests", "told")

    def __init__(self) -> None:
        self.batches: dict[int, MicroBatch] = {}
        self.open = SortedDict[int, MicroBatch]()
        self.fresh: set[int] = set()
        self.front: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.complete = self.forgotten = -1
        self.requests: list[tuple[int, int]] = []
        self.told = False

    @property
    def newest(self) -> int:
        """The newest batch of which a row was read."""
        return max(self.front.values(), default=-1)
