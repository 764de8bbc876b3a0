"""Replays: what a pipeline that retries has written again, told from what it has really put out twice.

Spark's Kafka sink is at-least-once: a retried task, or a micro-batch that is run again, writes events again.
Where records say which *attempt* wrote them, a copy that another attempt wrote is told from a real one.
Within one batch of one query let

    n(e, t, a, x)   how often attempt a of task t of execution e has written the canonical form x,
    N(e, x)         the sum over the tasks t of e of max over a of n(e, t, a, x),
    M(x)            max over e of N(e, x): what the batch put out.

An event is *new* where it raises M, else it is a *replay*. So copies inside one attempt are always new, and
so are copies of several tasks, since each task has rows of its own; in which order a retry writes its rows
does not matter. What was written first stands: matching never takes an event back.

**Do the attempts agree?** An attempt that was killed has written a part of its rows. So they agree where one
execution, with one attempt of each of its tasks, has written all of M: all else is part of it. Where there is
none the batch has put out what no run of it would: a non-deterministic replay. Which of its rows count cannot
be known, so it is a hole.

**When is that decided?** While a batch is being written, two parts that do not contain each other are usual.
It is decided when the batch is *closed*:

- when it is told that the batch is finished (`finish`), or that the side has ended (`end`);
- when a later batch of the query was read in each partition, behind the last row of this one. Partitions are
  those that the topic is known to have, and those in which the query had rows;
- when everything up to a later batch is known to be read (`looked`), though a partition is idle;
- when it is forgotten.

A row that raises M of a closed batch opens it again.

**What may be said before?** A difference that shows while a batch is open may be the work of a retry that has
not come yet. So it is held (`Retries.hold`) until the batches are closed that were open when it was found,
and dropped if one of them ends as a hole.

**Memory.** Of each row the hash of its form, about 100 bytes. A batch is forgotten when each partition is
`horizon` batches further, so a partition that is read late loses nothing; above `ROWS_LIMIT` rows when the
query as a whole is. A row of a forgotten batch cannot be judged: it is taken as an event, and is a hole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from twinstream.core.accounts import Hole
from twinstream.core.events import Side

ROWS_LIMIT = 4_000_000
"""Rows remembered of a side beyond the horizon of the query that is written: some 400 MB."""
_HASH_BYTES = 16
_NAMES = ("reference", "candidate")

Place = tuple[int, int]
"""Partition and offset of a record."""


class Attempt(Protocol):
    """What wrote a record; `twinstream.spec.marks.Attempt` is one."""

    @property
    def query(self) -> str: ...  # noqa: D102
    @property
    def batch(self) -> int: ...  # noqa: D102
    @property
    def execution(self) -> str: ...  # noqa: D102
    @property
    def task(self) -> int: ...  # noqa: D102
    @property
    def attempt(self) -> int: ...  # noqa: D102


class _Cell:
    """A form of which an execution has several copies: how many each attempt wrote, and N."""

    __slots__ = ("counts", "total")

    def __init__(self, counts: dict[int, int], total: int) -> None:
        self.counts, self.total = counts, total


class _Execution:
    """One execution of a batch. Attempts are known by their place in `attempts`.

    `rows` maps the hash of a form to the attempt that wrote its only copy, or to its cell.
    """

    __slots__ = ("attempts", "places", "rows", "siblings")

    def __init__(self) -> None:
        self.attempts: list[tuple[int, int]] = []
        self.places: dict[tuple[int, int], int] = {}
        self.siblings: dict[int, list[int]] = {}
        self.rows: dict[bytes, int | _Cell] = {}

    def place(self, task: int, attempt: int) -> int:
        """The place of an attempt, a new one if need be."""
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
        return held.total if isinstance(held, _Cell) else 1

    def add(self, place: int, form: bytes, copies: int = 1) -> None:
        """Note rows of an attempt. Complexity: O(1) for each attempt of its task."""
        held = self.rows.get(form)
        if held is None and copies == 1:
            self.rows[form] = place
            return
        if not isinstance(held, _Cell):
            held = _Cell({} if held is None else {held: 1}, 0 if held is None else 1)
            self.rows[form] = held
        counts = held.counts
        largest = max(counts.get(other, 0) for other in self.siblings[self.attempts[place][0]])
        counts[place] = counts.get(place, 0) + copies
        held.total += max(0, counts[place] - largest)

    def contains(self, other: _Execution) -> bool:
        """Whether no form has more copies in the other."""
        return all(other.count(form) <= self.count(form) for form in other.rows)

    def whole(self) -> bool:
        """Whether of each task one attempt wrote all that any attempt of it wrote."""
        retried = {task: set(places) for task, places in self.siblings.items() if len(places) > 1}
        for held in self.rows.values() if retried else ():
            counts = held.counts if isinstance(held, _Cell) else {held: 1}
            for task in {self.attempts[place][0] for place in counts} & retried.keys():
                mine = {place: counts.get(place, 0) for place in self.siblings[task]}
                largest = max(mine.values())
                retried[task] -= {place for place, count in mine.items() if count < largest}
        return all(retried.values())


class _Batch:
    """One batch of one query: its executions, and while it is open the partitions that it waits for.

    `place` is that of its first row; of a batch that was retried, of the last that raised M since then.
    `saved` is how many of its `rows` the last snapshot of any kind had.
    """

    __slots__ = ("_agreed", "executions", "place", "refuted", "retried", "rows", "saved", "waits")

    def __init__(self, place: Place, waits: Iterable[int]) -> None:
        self.executions: dict[str, _Execution] = {}
        self.place = place
        self.waits = set(waits)
        self.retried = self.refuted = False
        self.rows = self.saved = 0
        self._agreed = (0, True)

    def add(self, attempt: Attempt, form: bytes, place: Place) -> bool:
        """Note a row; whether it raises M."""
        execution = self.executions.get(attempt.execution)
        if execution is None:
            execution = self.executions[attempt.execution] = _Execution()
            self._note_retry(place, first=len(self.executions) == 1)
        before = max(other.count(form) for other in self.executions.values())
        known = len(execution.attempts)
        at = execution.place(attempt.task, attempt.attempt)
        if at == known:
            self._note_retry(place, first=len(execution.siblings[attempt.task]) == 1)
        execution.add(at, form)
        self.rows += 1
        raised = execution.count(form) > before
        if raised and self.retried:
            self.place = place
        return raised

    def _note_retry(self, place: Place, *, first: bool) -> None:
        if not first:
            self.retried, self.place = True, place

    def agrees(self) -> bool:
        """Whether one execution, with one attempt of each of its tasks, has written all of M.

        Complexity: O(n) in the rows of a batch that was retried, where it has grown.
        """
        if not self.retried:
            return True
        if self._agreed[0] != self.rows:
            self._agreed = (self.rows, self._has_complete())
        return self._agreed[1]

    def _has_complete(self) -> bool:
        executions = list(self.executions.values())
        return any(
            all(one is other or one.contains(other) for other in executions) and one.whole()
            for one in executions
        )


class _Query:
    """One query: the batches that are remembered, and how far it was read in each partition.

    `front` is the newest batch read in a partition, `last` that of the last row. All rows of batches below
    `complete` are read. Batches up to `forgotten` are forgotten.
    """

    __slots__ = ("batches", "complete", "forgotten", "front", "last", "newest_seen", "open", "told")

    def __init__(self) -> None:
        self.batches: dict[int, _Batch] = {}
        self.open: dict[int, _Batch] = {}
        self.front: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.complete = self.forgotten = self.newest_seen = -1
        self.told = False

    @property
    def newest(self) -> int:
        """The newest batch of which a row was read."""
        return max(self.front.values(), default=-1)


class Closed(NamedTuple):
    """A batch that was closed; `hole` where its attempts do not agree."""

    query: str
    batch: int
    hole: Hole | None


class Replays:
    """The batches of one side. `unmarked` counts the records that did not say what wrote them.

    >>> from twinstream.spec.marks import Attempt
    >>> replays = Replays(Side.RIGHT, horizon=10)
    >>> first, retry = Attempt("q", 7, "e", 0, 0), Attempt("q", 7, "e", 0, 1)
    >>> [replays.feed(attempt, b"x", 0, 0) for attempt in (first, first, retry, retry, retry)]
    [True, True, False, False, True]
    """

    def __init__(self, side: Side, horizon: int) -> None:
        self._side, self._horizon = side, horizon
        self._queries: dict[str, _Query] = {}
        self._expected: frozenset[int] = frozenset()
        self._rows = 0
        self._closed: list[Closed] = []
        self._holes: list[Hole] = []
        self.unmarked = 0

    def expect(self, partitions: Iterable[int]) -> None:
        """Name the partitions of the topic."""
        self._expected = frozenset(partitions)

    # -- rows ----------------------------------------------------------------------------------------------

    def feed(self, attempt: Attempt | None, letter: bytes, partition: int, offset: int) -> bool:
        """Take an event of a canonical form; whether it is new. Complexity: O(1), about 3 µs."""
        if attempt is None:
            self.unmarked += 1
            return True
        query = self._queries.get(attempt.query)
        if query is None:
            query = self._queries[attempt.query] = _Query()
        number, place = attempt.batch, (partition, offset)
        if query.last.get(partition) != number:
            self._turn(attempt.query, query, partition, number)
        if number <= query.forgotten:
            self._miss(attempt, query, place)
            return True
        batch = query.batches.get(number)
        if batch is None:
            partitions = self._expected | query.front.keys()
            behind = [other for other in partitions if query.front.get(other, -1) <= number]
            batch = query.batches[number] = query.open[number] = _Batch(place, behind)
        form = blake2b(letter, digest_size=_HASH_BYTES).digest()
        raised = batch.add(attempt, form, place)
        self._rows += 1
        if number in query.open:
            batch.waits.add(partition)
        elif raised and not batch.refuted:
            query.open[number] = batch
            batch.waits = {partition}
        return raised

    def _turn(self, name: str, query: _Query, partition: int, number: int) -> None:
        """A partition goes on with another batch."""
        front = query.front.get(partition)
        if front is None:
            for other, batch in query.open.items():
                if other >= number:
                    batch.waits.add(partition)
        query.last[partition] = number
        query.front[partition] = number if front is None else max(front, number)
        for other, batch in tuple(query.open.items()):
            if other < number:
                batch.waits.discard(partition)
                if not batch.waits:
                    self._close(name, query, other)
        self._forget_old(name, query)
        if self._rows > ROWS_LIMIT:
            self._shrink(name, query)

    def _miss(self, attempt: Attempt, query: _Query, place: Place) -> None:
        """A row of a forgotten batch. One is told of each query: the verdict has no use for more."""
        if query.told:
            return
        query.told = True
        reason = (
            f"query {attempt.query} of the {_NAMES[self._side]} has written of batch {attempt.batch} again, "
            f"{_at(place)}, when it was {query.newest - attempt.batch} batches further; no more than "
            f"{self._horizon} are remembered (duplicates.horizon), so what is a copy there is not known"
        )
        self._holes.append(Hole(reason, self._side, *place))

    # -- closing -------------------------------------------------------------------------------------------

    def finish(self, name: str, number: int) -> None:
        """A query has finished a batch, and all rows up to it were read."""
        query = self._queries.get(name)
        if query is not None:
            self._close_below(name, query, number + 1)

    def looked(self, *, at_end: bool) -> None:
        """Note a look at the ends of the topic; `at_end`: all that stood there at the look before is read.

        A row that had been read by then belongs to a batch that began after all earlier ones were written.
        """
        for name, query in self._queries.items():
            if at_end and query.newest_seen > query.complete:
                query.complete = query.newest_seen
                self._close_below(name, query, query.complete)
                self._forget_old(name, query)
            query.newest_seen = query.newest

    def end(self) -> None:
        """Nothing more will come."""
        for name, query in self._queries.items():
            self._close_below(name, query, query.newest + 1)

    def _close_below(self, name: str, query: _Query, number: int) -> None:
        for other in sorted(other for other in query.open if other < number):
            self._close(name, query, other)

    def _close(self, name: str, query: _Query, number: int) -> None:
        """Decide a batch."""
        batch, hole = query.open.pop(number), None
        if not batch.agrees():
            batch.refuted = True
            reason = (
                f"query {name} of the {_NAMES[self._side]} has written batch {number} several times, and not "
                f"the same each time ({_at(batch.place)}): which of its rows count is not known"
            )
            hole = Hole(reason, self._side, *batch.place)
        self._closed.append(Closed(name, number, hole))

    def _forget_old(self, name: str, query: _Query) -> None:
        partitions = self._expected | query.front.keys()
        slowest = min(max(query.front.get(partition, -1), query.complete) for partition in partitions)
        self._forget(name, query, slowest - self._horizon)

    def _forget(self, name: str, query: _Query, newest: int) -> None:
        """Forget the batches up to the newest one named."""
        if newest <= query.forgotten:
            return
        self._close_below(name, query, newest + 1)
        for number in [number for number in query.batches if number <= newest]:
            self._rows -= query.batches.pop(number).rows
        query.forgotten = newest

    def _shrink(self, name: str, query: _Query) -> None:
        """Too many rows: forget what is behind the horizon of the newest batch, then idle queries."""
        self._forget(name, query, query.newest - self._horizon)
        del self._queries[name]
        self._queries[name] = query
        for other, idle in self._queries.items():
            if self._rows <= ROWS_LIMIT or idle is query:
                return
            self._forget(other, idle, idle.newest)

    # -- reading -------------------------------------------------------------------------------------------

    def open(self) -> Iterator[tuple[str, int]]:
        """Query and number of each open batch."""
        return ((name, number) for name, query in self._queries.items() for number in query.open)

    def disagreeing(self) -> Iterator[str]:
        """A sentence for each open batch whose attempts do not agree so far."""
        for name, query in self._queries.items():
            for number, batch in query.open.items():
                if not batch.agrees():
                    yield (
                        f"query {name} of the {_NAMES[self._side]} writes batch {number} again, and no "
                        "attempt has come to all of it yet"
                    )

    def take_closed(self) -> list[Closed]:
        """The batches that were closed since the last call."""
        closed, self._closed = self._closed, []
        return closed

    def take_holes(self) -> list[Hole]:
        """What could not be judged since the last call, without the closed batches."""
        holes, self._holes = self._holes, []
        return holes

    # -- state ---------------------------------------------------------------------------------------------

    def snapshot(self, *, whole: bool = True) -> dict[str, Any]:
        """The state as plain data; unless `whole`, only the batches that have changed since the last one.

        Complexity: O(n) in the rows of the batches.
        """
        return {
            "unmarked": self.unmarked,
            "expected": sorted(self._expected),
            "queries": [_query_state(name, query, whole=whole) for name, query in self._queries.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `snapshot`."""
        self.unmarked = state["unmarked"]
        self._expected |= frozenset(state["expected"])
        self._queries = {row["name"]: _restored_query(row) for row in state["queries"]}
        batches = (batch for query in self._queries.values() for batch in query.batches.values())
        self._rows = sum(batch.rows for batch in batches)


class Retries:
    """The replays of both sides, and the difference that is held until open batches are closed."""

    def __init__(self, horizon: int) -> None:
        self.sides = tuple(Replays(side, horizon) for side in Side)
        self.held_at: int | None = None
        self._held_for: set[tuple[int, str, int]] = set()

    def hold(self, moment: int) -> bool:
        """Whether a difference that was proven at a moment has to wait for an open batch."""
        if self.held_at is None:
            self._held_for = {(side, *batch) for side in Side for batch in self.sides[side].open()}
        if not self._held_for:
            return False
        self.held_at = moment if self.held_at is None else min(self.held_at, moment)
        return True

    def settle(self, side: Side) -> tuple[int | None, list[Hole]]:
        """What closed batches of a side decide: the moment of a difference that counts now, and holes.

        With a hole what was held is dropped, and never counts.
        """
        holes = self.sides[side].take_holes()
        for name, number, hole in self.sides[side].take_closed():
            if hole is not None:
                holes.append(hole)
            if (side, name, number) in self._held_for:
                self._held_for.discard((side, name, number))
                if hole is not None:
                    self.held_at = None
                    self._held_for.clear()
        if self.held_at is None or self._held_for:
            return None, holes
        moment, self.held_at = self.held_at, None
        return moment, holes

    @property
    def unmarked(self) -> int:
        """Records of both sides that did not say what wrote them."""
        return sum(replays.unmarked for replays in self.sides)

    def disagreeing(self) -> list[str]:
        """A sentence for each open batch whose attempts do not agree so far."""
        return [sentence for replays in self.sides for sentence in replays.disagreeing()]

    def snapshot(self, *, whole: bool = True) -> dict[str, Any]:
        """The state as plain data; unless `whole`, only the batches that have changed since the last one."""
        return {
            "sides": [replays.snapshot(whole=whole) for replays in self.sides],
            "held_at": self.held_at,
            "held_for": [list(batch) for batch in sorted(self._held_for)],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `snapshot`."""
        for replays, kept in zip(self.sides, state["sides"], strict=True):
            replays.restore(kept)
        self.held_at = state["held_at"]
        self._held_for = {(side, name, number) for side, name, number in state["held_for"]}


def merged(states: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Snapshots of `Retries`, of which the first is whole, as one that is."""
    sides = []
    for side, last in enumerate(states[-1]["sides"]):
        known: dict[tuple[str, int], Any] = {}
        for state in states:
            for query in state["sides"][side]["queries"]:
                known.update(((query["name"], batch["number"]), batch) for batch in query["batches"])
        queries = [
            {**query, "batches": [known[query["name"], row["number"]] for row in query["remembered"]]}
            for query in last["queries"]
        ]
        sides.append({**last, "queries": queries})
    return {**states[-1], "sides": sides}


def _at(place: Place) -> str:
    return f"partition {place[0]} offset {place[1]}"


def _query_state(name: str, query: _Query, *, whole: bool) -> dict[str, Any]:
    changed = [row for row in query.batches.items() if whole or row[1].saved < row[1].rows]
    for _, batch in changed:
        batch.saved = batch.rows
    return {
        "name": name,
        "front": [[partition, front, query.last[partition]] for partition, front in query.front.items()],
        "complete": query.complete,
        "forgotten": query.forgotten,
        "newest_seen": query.newest_seen,
        "told": query.told,
        "remembered": [_batch_state(number, batch, query) for number, batch in query.batches.items()],
        "batches": [
            {
                "number": number,
                "executions": [_execution_state(name, one) for name, one in batch.executions.items()],
            }
            for number, batch in changed
        ],
    }


def _batch_state(number: int, batch: _Batch, query: _Query) -> dict[str, Any]:
    return {
        "number": number,
        "place": list(batch.place),
        "open": number in query.open,
        "waits": sorted(batch.waits),
        "retried": batch.retried,
        "refuted": batch.refuted,
    }


def _restored_query(state: dict[str, Any]) -> _Query:
    query = _Query()
    query.front = {partition: front for partition, front, _ in state["front"]}
    query.last = {partition: last for partition, _, last in state["front"]}
    query.complete, query.forgotten = state["complete"], state["forgotten"]
    query.newest_seen, query.told = state["newest_seen"], state["told"]
    for row, kept in zip(state["remembered"], state["batches"], strict=True):
        batch = query.batches[row["number"]] = _Batch(tuple(row["place"]), row["waits"])
        batch.retried, batch.refuted = row["retried"], row["refuted"]
        if row["open"]:
            query.open[row["number"]] = batch
        for one in kept["executions"]:
            batch.executions[one["name"]] = _restored_execution(one, batch)
        batch.saved = batch.rows
    return query


def _restored_execution(state: dict[str, Any], batch: _Batch) -> _Execution:
    execution = _Execution()
    for task, attempt in state["attempts"]:
        execution.place(task, attempt)
    for place, forms in zip(state["places"], state["records"], strict=True):
        for form in _cut(forms):
            execution.add(place, form)
        batch.rows += len(forms) // _HASH_BYTES
    several = state["several"]
    for place, copies, form in zip(
        several["places"], several["copies"], _cut(several["records"][0]), strict=True
    ):
        execution.add(place, form, copies)
        batch.rows += copies
    return execution


def _execution_state(name: str, execution: _Execution) -> dict[str, Any]:
    """The rows of an execution: joined hashes for each attempt, and apart those with several copies."""
    single = sorted(
        ((held, form) for form, held in execution.rows.items() if isinstance(held, int)), key=itemgetter(0)
    )
    groups = [(place, b"".join(map(itemgetter(1), rows))) for place, rows in groupby(single, itemgetter(0))]
    several = [
        (place, copies, form)
        for form, held in execution.rows.items()
        if isinstance(held, _Cell)
        for place, copies in held.counts.items()
    ]
    return {
        "name": name,
        "attempts": [list(attempt) for attempt in execution.attempts],
        "places": [place for place, _ in groups],
        "records": [forms for _, forms in groups],
        "several": {
            "places": [place for place, _, _ in several],
            "copies": [copies for _, copies, _ in several],
            "records": [b"".join(form for _, _, form in several)],
        },
    }


def _cut(forms: bytes) -> Iterator[bytes]:
    """The hashes that were joined."""
    return (forms[start : start + _HASH_BYTES] for start in range(0, len(forms), _HASH_BYTES))
