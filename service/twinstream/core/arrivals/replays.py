"""Replays: distinguishes the events that a retry wrote again from those that the pipeline wrote twice.

Spark's Kafka sink is at-least-once: a retried task, or a micro-batch that is run again, writes events again.
If records name the *attempt* that wrote them, a copy by another attempt can be distinguished from a real one.
Within one batch of one query let

    n(e, t, a, x)   how often attempt a of task t of execution e has written the canonical form x,
    N(e, x)         the sum over the tasks t of e of max over a of n(e, t, a, x),
    M(x)            max over e of N(e, x): the copies that the batch wrote.

An event is *new* if it raises M, else it is a *replay*. So copies inside one attempt are always new, and so
are copies of several tasks, since each task has its own rows; the order in which a retry writes its rows does
not matter. The first copy counts as the event: matching never takes an event back.

**Do the attempts agree?** An attempt that was killed has written a part of its rows. So they agree if one
execution, with one attempt of each of its tasks, has written all of M: all other attempts are parts of it. If
there is none, the batch has written rows that no single run of it would: a non-deterministic replay. Nobody
knows which of its rows count, so it is a hole.

**Where numbers have a tolerance**, rows of one form are equal only if they are close, and closeness is not
transitive. So there x is not a form but a *leader*, a row of the batch (see `leaders`): a retry that differs
within the tolerance is a replay, and one that differs by more is another row.

**When is that decided?** While a batch is being written, it is normal that two attempts do not contain each
other. It is decided when the batch is *closed*:

- when the batch is reported as finished (`finish`), or the side has ended (`end`);
- when the last row of the query in each partition is of a later batch. Partitions are those that the topic is
  known to have, and those in which the query had rows;
- when everything up to a later batch is known to be read, even if a partition is idle: a *look* at the ends
  of the topic was requested behind a row of it (`note_request`), and is read to these (`note_read`);
- when it is forgotten.

Looks are numbered, since several may be requested before the ends of the first are read. A row that raises M
of a closed batch opens it again. Then a look proves nothing before a row of a later batch was read since.
A partition that goes back to an earlier batch, since the query was started again from there, is waited for
anew.

**Differences before that.** A difference found while a batch is open may be caused by a retry that has not
come yet. So it is held (`Certainty.needs`) until the batches are closed that its proof lies in or behind, and
decides nothing if one of them ends as a hole (see `proofs`).

**Rows before the start** are no events, but part of the output of an attempt: a batch may lie on both sides
of the start, and its attempts agree on all of it or not. So its rows are noted (`note_before`). A batch that
lies before the start as a whole is no hole, whatever its attempts have written. If a row lies before the
start by its content, so do all its copies, and an equal row of the batch behind the start is another one; if
it does by its place, an equal one behind the start may be a copy.

**Memory.** For each row the hash of its form, about 100 bytes; for a leader also the record, which counts as
more rows. A batch is forgotten when each partition is `horizon` batches further, so a partition that is read
late loses nothing; above `ROWS_LIMIT` rows, when the query as a whole is. A row of a forgotten batch cannot
be judged: it counts as an event, and is a hole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import repeat
from typing import Any, NamedTuple

from twinstream.core.accounts import Hole
from twinstream.core.arrivals.attempts import Attempt, MicroBatch, Query
from twinstream.core.arrivals.leaders import HASH_BYTES, CloseTo
from twinstream.core.arrivals.replays_state import query_state, restored_query
from twinstream.core.arrivals.run import Run
from twinstream.core.events import Close, PartitionOffset, Side, in_kafka
from twinstream.core.proofs import MicroBatchId, Starts
from twinstream.core.relation import Relation

ROWS_LIMIT = 4_000_000
"""Rows of a side that are remembered beyond the horizon of the active query: some 400 MB."""
REQUESTS_KEPT = 64
"""Requests of looks whose ends are not read yet. Of more, every second one is forgotten."""
_NAMES = ("reference", "candidate")
_NO_ATTEMPT = "no attempt has come to all of it yet"
_BEFORE = b"before"
"""The salt that gives an event before the start another hash than an equal one behind it."""


class NotAgreed(NamedTuple):
    """A hole in the replays of a side, and for a closed batch its `starts`, where the hole begins."""

    hole: Hole
    starts: Starts
    batch: MicroBatchId | None = None


class Closed(NamedTuple):
    """The batches whose attempts agree, and the holes."""

    agreed: list[MicroBatchId]
    holes: list[NotAgreed]


class Alike(NamedTuple):
    """The data that decide whether an event equals others of its canonical form: content, record, rule."""

    content: bytes
    record: bytes
    close: Close


class WrittenRow(NamedTuple):
    """A record: the attempt that wrote it, the letter that its replays share, and its place.

    `alike` is given where events of one form may be unequal.
    """

    attempt: Attempt | None
    letter: bytes
    place: PartitionOffset
    alike: Alike | None = None


def written_rows(run: Run, relation: Relation) -> Iterator[WrittenRow]:
    """The records of a run, each with the data that identify its replays; equal as the `relation` says.

    Where a barrier has a copy in each partition, equal rows of two partitions are different ones: they are
    copies, or events whose place among these decides what they may be paired with. So are equal rows of
    different records of the input, where the run has marks: a clock judges them by these.
    """
    canonical, close, has_copies = relation.canonical, relation.close, relation.copied
    marks = run.marks or repeat(None, len(run.forms))
    for attempt, form, offset, mark in zip(run.attempts or (), run.forms, run.offsets, marks, strict=True):
        place = run.partition, offset
        if attempt is None:
            yield WrittenRow(None, b"", place)
            continue
        where = b" in %d" % run.partition if has_copies else b""
        where += b"" if mark is None else b" of %a" % (mark,)
        alike = None if close is None else Alike(form[1] + where, form[3], close)
        yield WrittenRow(attempt, canonical(form[1]) + where, place, alike)


class Replays:
    """The batches of one side. `unmarked` counts the records that do not name their attempt.

    `requested` is the number of the last look that was requested, over all processes that follow each other.

    >>> from twinstream.core.arrivals.attempts import Attempt
    >>> replays = Replays(Side.RIGHT, horizon=10)
    >>> first, retry = Attempt("q", 7, "e", 0, 0), Attempt("q", 7, "e", 0, 1)
    >>> rows = [WrittenRow(attempt, b"x", (0, 0)) for attempt in (first, first, retry, retry, retry)]
    >>> list(map(replays.feed, rows))
    [True, True, False, False, True]
    """

    def __init__(self, side: Side, horizon: int) -> None:
        self._side, self._horizon = side, horizon
        self._queries: dict[str, Query] = {}
        self._expected: frozenset[int] = frozenset()
        self._rows = 0
        self._closed = Closed([], [])
        self.unmarked = self.requested = self._read = 0

    def expect(self, partitions: Iterable[int]) -> None:
        """Set the partitions of the topic."""
        self._expected = frozenset(partitions)

    # -- rows ----------------------------------------------------------------------------------------------

    def feed(self, row: WrittenRow) -> bool:
        """Take a record; returns whether its event is new. Complexity: O(1), about 3 µs."""
        attempt = row.attempt
        if attempt is None:
            self.unmarked += 1
            return True
        query = self._reach(attempt, row.place[0])
        if attempt.batch <= query.forgotten:
            self._miss(attempt, query, row.place)
            return True
        return self._add(query, attempt, row)

    def note_before(self, row: WrittenRow, *, by_place: bool) -> None:
        """Note a record before the start: `by_place`, or by its content, and then so are all its copies."""
        if (attempt := row.attempt) is None:
            return
        query = self._reach(attempt, row.place[0])
        if attempt.batch > query.forgotten:
            self._add(query, attempt, row, behind=False, salt=b"" if by_place else _BEFORE)

    def _reach(self, attempt: Attempt, partition: int) -> Query:
        """The query of an attempt; notes that a row of it was read in a partition."""
        query = self._queries.get(attempt.query)
        if query is None:
            query = self._queries[attempt.query] = Query()
        if query.last.get(partition) != attempt.batch:
            self._turn(attempt.query, query, partition, attempt.batch)
        return query

    def _add(
        self, query: Query, attempt: Attempt, row: WrittenRow, *, behind: bool = True, salt: bytes = b""
    ) -> bool:
        """Add a row to its batch; returns whether it is new."""
        form, near, alike = _hashed(row.letter, salt), None, row.alike
        if alike is not None:
            near = CloseTo(_hashed(alike.content, salt), alike.record, alike.close)
        number, place = attempt.batch, row.place
        partition = place[0]
        batch = query.batches.get(number)
        if batch is None:
            batch = query.batches[number] = query.open[number] = MicroBatch(
                place, self._behind(query, number)
            )
            if number < query.newest:
                batch.passed = self.requested + 1
            else:
                query.fresh.add(number)
        batch.counts = batch.counts or behind
        leaders = batch.leaders.weight
        raised = batch.add(attempt, form, place, near)
        self._rows += 1 + batch.leaders.weight - leaders
        if number in query.open:
            batch.waits.add(partition)
            batch.starts.setdefault(*place)
        elif raised and not batch.refuted:
            query.open[number] = batch
            query.fresh.add(number)
            batch.waits, batch.starts, batch.passed = self._behind(query, number), dict([place]), 0
        return raised

    def _behind(self, query: Query, number: int) -> set[int]:
        """The partitions whose last row is not of a later batch."""
        partitions = self._expected | query.last.keys()
        return {partition for partition in partitions if query.last.get(partition, -1) <= number}

    def _turn(self, name: str, query: Query, partition: int, number: int) -> None:
        """Note that a partition goes on with another batch.

        An open batch waits for a partition whose last row is of no later batch: so of those that have been
        passed, only the ones in between can stop waiting. Complexity: O(log n) in the open batches, O(1) for
        each of these.
        """
        front, last = query.front.get(partition), query.last.get(partition, -1)
        if front is None or number < last:
            for other, batch in query.open.items():
                if other >= number:
                    batch.waits.add(partition)
        query.last[partition] = number
        query.front[partition] = number if front is None else max(front, number)
        fresh = {other for other in query.fresh if other < number}
        query.fresh -= fresh
        for other in sorted(fresh.union(query.open.irange(last, number, (True, False)))):
            batch = query.open[other]
            batch.passed = batch.passed or self.requested + 1
            batch.waits.discard(partition)
            if not batch.waits:
                self._close(name, query, other)
        self._forget_old(name, query)
        if self._rows > ROWS_LIMIT:
            self._shrink(name, query)

    def _miss(self, attempt: Attempt, query: Query, place: PartitionOffset) -> None:
        """Report a row of a forgotten batch as a hole, once for each query: the verdict needs no more."""
        if query.told:
            return
        query.told = True
        reason = (
            f"query {attempt.query} of the {_NAMES[self._side]} wrote batch {attempt.batch} again "
            f"({_at(place)}) when it was {query.newest - attempt.batch:,} batches further; only the last "
            f"{self._horizon:,} are remembered (duplicates.horizon), so its copies are not recognized"
        )
        self._closed.holes.append(NotAgreed(Hole.at(place, self._side, reason), {}))

    # -- closing -------------------------------------------------------------------------------------------

    def finish(self, name: str, number: int) -> None:
        """Note that a query has finished a batch, and that all rows up to it were read."""
        query = self._queries.get(name)
        if query is not None:
            self._close_below(name, query, number + 1)

    def note_request(self, number: int) -> None:
        """Note that a look at the ends of the topic is requested; numbers grow."""
        self.requested = number
        for query in self._queries.values():
            known = query.requests[-1][1] if query.requests else query.complete
            if query.newest > known:
                query.requests.append((number, query.newest))
            if len(query.requests) > REQUESTS_KEPT:
                del query.requests[1::2]

    def note_read(self, number: int) -> None:
        """Note that the side is read to the ends that a look found, or a later one.

        A row read before the request belongs to a batch that began after all earlier ones were written.
        """
        if number <= self._read:
            return
        self._read = number
        for name, query in self._queries.items():
            for other in [other for other, batch in query.open.items() if 0 < batch.passed <= number]:
                self._close(name, query, other)
            read = [newest for asked, newest in query.requests if asked <= number]
            del query.requests[: len(read)]
            if read and read[-1] > query.complete:
                query.complete = read[-1]
                self._forget_old(name, query)

    def end(self) -> None:
        """Close all batches: the side has ended."""
        for name, query in self._queries.items():
            self._close_below(name, query, query.newest + 1)

    def _close_below(self, name: str, query: Query, number: int) -> None:
        for other in sorted(other for other in query.open if other < number):
            self._close(name, query, other)

    def _close(self, name: str, query: Query, number: int) -> None:
        """Close a batch, and decide whether it is a hole."""
        batch, named = query.open.pop(number), (self._side, name, number)
        query.fresh.discard(number)
        if batch.agrees():
            self._closed.agreed.append(named)
            return
        batch.refuted = True
        rows = "and its rows are close to each other" if batch.mixed else "with different rows"
        reason = (
            f"query {name} of the {_NAMES[self._side]} wrote batch {number} several times {rows} "
            f"({_at(batch.place)}), so it is not known which of them count"
        )
        hole = Hole.at(batch.place, self._side, reason)
        self._closed.holes.append(NotAgreed(hole, batch.starts, named))

    def _forget_old(self, name: str, query: Query) -> None:
        partitions = self._expected | query.front.keys()
        slowest = min(max(query.front.get(partition, -1), query.complete) for partition in partitions)
        self._forget(name, query, slowest - self._horizon)

    def _forget(self, name: str, query: Query, newest: int) -> None:
        """Forget the batches up to the newest one named."""
        if newest <= query.forgotten:
            return
        self._close_below(name, query, newest + 1)
        for number in [number for number in query.batches if number <= newest]:
            self._rows -= query.batches.pop(number).weight
        query.forgotten = newest

    def _shrink(self, name: str, query: Query) -> None:
        """Forget batches behind the horizon of the newest one, then idle queries: there are too many rows."""
        self._forget(name, query, query.newest - self._horizon)
        del self._queries[name]
        self._queries[name] = query
        for other, idle in self._queries.items():
            if self._rows <= ROWS_LIMIT or idle is query:
                return
            self._forget(other, idle, idle.newest)

    # -- reading -------------------------------------------------------------------------------------------

    def open(self) -> Iterator[tuple[MicroBatchId, Starts]]:
        """The open batches, each with its first offset by partition."""
        return (
            ((self._side, name, number), batch.starts)
            for name, query in self._queries.items()
            for number, batch in query.open.items()
        )

    def disagreeing(self) -> Iterator[str]:
        """A sentence for each open batch whose attempts do not agree so far."""
        for name, query in self._queries.items():
            for number, batch in query.open.items():
                if not batch.agrees():
                    why = "its rows are close to each other" if batch.mixed else _NO_ATTEMPT
                    yield f"query {name} of the {_NAMES[self._side]} writes batch {number} again, and {why}"

    def take_closed(self) -> Closed:
        """The results of the batches that were closed since the last call, and the other holes since then."""
        closed, self._closed = self._closed, Closed([], [])
        return closed

    # -- state ---------------------------------------------------------------------------------------------

    def state(self, *, whole: bool = True) -> dict[str, Any]:
        """The state as plain data; unless `whole`, only the batches that have changed since the last one.

        Complexity: O(n) in the rows of the batches.
        """
        return {
            "unmarked": self.unmarked,
            "requested": self.requested,
            "expected": sorted(self._expected),
            "queries": [query_state(name, query, whole=whole) for name, query in self._queries.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`."""
        self.unmarked, self.requested = state["unmarked"], state.get("requested", 0)
        self._expected |= frozenset(state["expected"])
        self._queries = {row["name"]: restored_query(row) for row in state["queries"]}
        batches = (batch for query in self._queries.values() for batch in query.batches.values())
        self._rows = sum(batch.weight for batch in batches)


def _at(place: PartitionOffset) -> str:
    return f"partition {place[0]} offset {in_kafka(place[1])}"


def _hashed(data: bytes, salt: bytes) -> bytes:
    return blake2b(data, digest_size=HASH_BYTES, salt=salt).digest()
