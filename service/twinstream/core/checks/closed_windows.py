"""`closed_windows`: no row for a window that was closed, by the control records of its version.

A control record of batch b says that all rows of the batches up to b stand below `written`, and that b had
the watermark w. A window that ends at w or before is closed by b; its row may still be written in the batch
behind b (see `clocks.input`). So a row is late if it stands at or behind `written` of a batch, and an
*earlier* batch had a watermark at its window's end or later.

A record takes effect once its partitions are read up to `written`. It makes an *edge*, with the time up to
which windows are closed behind it. Records are heard apart from the rows, maybe later than them. So a row
waits until an edge lies behind it; then all edges before it have taken effect, and it is judged for good. A
row that is late by what is known already is found at once.

A version need not name a partition before it has written a row there. So all rows of a partition that was
never named are behind each edge. One that was named, and is not any more, tells nothing new.

A row before the first edge was not judged, since nothing is known to be closed there. A version that has
several queries with watermarks on one topic cannot be judged at all: nobody says which one a row is of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from twinstream.core.checks.property import Finding, Property, Row
from twinstream.core.checks.watermark import NOTHING_HEARD
from twinstream.core.clocks.input import Finished, NewestRun, lacking

WAITING_LIMIT = 1_000_000
"""Rows that wait for a control record, about 100 bytes each: what a service reads in several seconds."""
EDGES_LIMIT = 100_000
"""Control records that wait for rows: those of eleven days, with a batch every ten seconds."""
SILENCE_MS = 300_000
"""Rows that wait so long, by Kafka's time, miss their control record: no batch is written so slowly."""
_LATE = "is of a window that was closed"


class _Waiting(NamedTuple):
    offset: int
    end_ms: int
    timestamp_ms: int


class _Edge(NamedTuple):
    """Behind these offsets all windows that end at `closed_ms` or before are closed; None: not known."""

    written: Mapping[int, int]
    closed_ms: int | None


class ClosedWindows(Property):
    """The fact of a row is the end of its window, in milliseconds since 1970.

    `_closed_ms` is by partition the time up to which windows are closed behind the last edge that names it;
    `_closed_elsewhere_ms` is that of the partitions in which no edge has told of a row.

    Complexity: O(1) a row, and once in each look with an edge O(n) in the rows that still wait.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, deque[_Waiting]] = {}
        self._closed_ms: dict[int, int | None] = {}
        self._closed_elsewhere_ms: int | None = None
        self._edges: deque[_Edge] = deque()
        self._records = _Records()
        self._newest_ms = 0
        self._begun = False
        self._lost: str | None = None

    def take(self, row: Row) -> Finding | None:
        """Report a row that is late by what is known, or let it wait."""
        self._newest_ms = max(self._newest_ms, row.timestamp_ms)
        if self._is_closed(row.partition, row.fact):
            return Finding(row.partition, row.offset, _LATE)
        waiting = self._waiting.setdefault(row.partition, deque())
        waiting.append(_Waiting(row.offset, row.fact, row.timestamp_ms))
        if len(waiting) > WAITING_LIMIT:
            waiting.popleft()
            self._lost = f"more than {WAITING_LIMIT:,} rows of a partition waited for a control record"
        return None

    def _is_closed(self, partition: int, end_ms: int) -> bool:
        closed_ms = self._closed_ms.get(partition, self._closed_elsewhere_ms)
        return closed_ms is not None and end_ms <= closed_ms

    def hear(self, fact: Finished) -> Iterator[Finding]:
        """Note a control record; it is judged by `look`."""
        edge = self._records.edge(fact)
        if edge is not None:
            self._edges.append(edge)
            if len(self._edges) > EDGES_LIMIT:
                self._edges.popleft()
                self._lost = f"more than {EDGES_LIMIT:,} control records waited for the rows of their batches"
        return iter(())

    def look(self, positions: Mapping[int, int]) -> Iterator[Finding]:
        """Judge the rows that the edges read up to have decided; all rows below the positions were taken."""
        taken = False
        while self._edges and lacking(self._edges[0].written, positions) is None:
            taken = self._begun = True
            yield from self._pass(self._edges.popleft())
        if taken:
            for partition in self._waiting:
                yield from self._late_ones(partition)

    def _pass(self, edge: _Edge) -> Iterator[Finding]:
        for partition, written in edge.written.items():
            waiting = self._waiting.get(partition, deque())
            while waiting and waiting[0].offset < written:
                row = waiting.popleft()
                if self._is_closed(partition, row.end_ms):
                    yield Finding(partition, row.offset, _LATE)
            if written > 0 or partition in self._closed_ms:
                self._closed_ms[partition] = edge.closed_ms
        self._closed_elsewhere_ms = edge.closed_ms

    def _late_ones(self, partition: int) -> Iterator[Finding]:
        waiting = self._waiting[partition]
        late = [row for row in waiting if self._is_closed(partition, row.end_ms)]
        if late:
            kept = (row for row in waiting if not self._is_closed(partition, row.end_ms))
            self._waiting[partition] = deque(kept)
        return (Finding(partition, row.offset, _LATE) for row in late)

    def unsettled(self) -> str | None:
        """Why windows cannot be told to be closed."""
        if self._lost is not None:
            return self._lost
        if self._records.several:
            return "several queries of this version write this topic, each with a watermark of its own"
        if not self._records.heard:
            return f"{NOTHING_HEARD}, and has a watermark"
        if not self._begun:
            return "no control record of this version has taken effect: the rows up to it are not read yet"
        oldest_ms = min((rows[0].timestamp_ms for rows in self._waiting.values() if rows), default=None)
        if oldest_ms is not None and self._newest_ms - oldest_ms > SILENCE_MS:
            return f"rows of more than {SILENCE_MS // 60_000} min wait for the control record of their batch"
        return None

    def state(self, *, whole: bool) -> dict[str, Any]:  # noqa: ARG002
        """The state as plain data."""
        waiting = [
            [partition, *map(list, zip(*rows, strict=True))]
            for partition, rows in self._waiting.items()
            if rows
        ]
        return {
            "waiting": waiting,
            "closed_ms": [list(item) for item in self._closed_ms.items()],
            "closed_elsewhere_ms": self._closed_elsewhere_ms,
            "edges": [[list(edge.written.items()), edge.closed_ms] for edge in self._edges],
            "records": self._records.row(),
            "newest_ms": self._newest_ms,
            "begun": self._begun,
            "lost": self._lost,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state."""
        self._waiting = {
            partition: deque(map(_Waiting._make, zip(*columns, strict=True)))
            for partition, *columns in state["waiting"]
        }
        self._closed_ms = dict(state["closed_ms"])
        self._closed_elsewhere_ms = state.get("closed_elsewhere_ms")  # An earlier version saved none.
        self._edges = deque(_Edge(dict(written), closed_ms) for written, closed_ms in state["edges"])
        self._records = _Records(*state["records"])
        self._newest_ms, self._begun, self._lost = state["newest_ms"], state["begun"], state["lost"]


class _Records:
    """The control records of one side, in the order of the batches of its one query.

    `several`: there is more than one query with a watermark.
    """

    def __init__(
        self,
        query: str = "",
        newest: Sequence[Any] = (),
        watermark_ms: int | None = None,
        passed_ms: int | None = None,
        several: bool = False,
    ) -> None:
        self._query, self._newest = query, NewestRun(*newest)
        self._watermark_ms, self._passed_ms = watermark_ms, passed_ms
        self.several = several

    @property
    def heard(self) -> bool:
        return self._newest.last >= 0

    def edge(self, fact: Finished) -> _Edge | None:
        """The edge that a record makes, None if it does not count.

        A batch without a watermark closes nothing, but a row behind it is late for what was closed before.
        """
        told_ms = fact.watermark_ms
        if fact.written is None or (told_ms is None and fact.query != self._query):
            return None
        self.several = self.several or bool(self._query and fact.query != self._query)
        before = self._newest.last
        if self.several or not self._newest.take(fact):
            return None
        self._query = fact.query
        if fact.batch > before:
            self._passed_ms = self._watermark_ms
        if told_ms is not None and (self._watermark_ms is None or told_ms > self._watermark_ms):
            self._watermark_ms = told_ms
        return _Edge(fact.written, self._passed_ms)

    def row(self) -> list[Any]:
        return [self._query, self._newest.row(), self._watermark_ms, self._passed_ms, self.several]
