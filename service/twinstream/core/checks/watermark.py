"""`watermark: never_back`: the watermark of a query never goes back, by its control records.

Records of a query count in the order of its batches. What an earlier run still writes is passed over, and so
is a batch that was heard of. A batch that a new run does again may repeat its watermark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from twinstream.core.checks.property import Finding, Property
from twinstream.core.clocks.input import Finished, NewestRun


class NeverBack(Property):
    """Judges the control records of one side that name the compared topic."""

    of_records = True

    def __init__(self) -> None:
        self._queries: dict[str, _Query] = {}

    def hear(self, fact: Finished) -> Iterator[Finding]:
        """Judge a control record by the one before it of its query."""
        if fact.written is None:
            return
        query = self._queries.setdefault(fact.query, _Query())
        if not query.newest.take(fact):
            return
        before, now = query.watermark_ms, fact.watermark_ms
        if now is not None:
            query.watermark_ms = now
            if before is not None and now < before:
                text = f"has a watermark {before - now:,} ms below that of batch {query.batch_before}"
                yield Finding(0, -1 if fact.at is None else fact.at, text)
            query.batch_before = fact.batch

    def unsettled(self) -> str | None:
        """Without a control record nothing is known."""
        return None if self._queries else NOTHING_HEARD

    def state(self, *, whole: bool) -> dict[str, Any]:  # noqa: ARG002
        """The state as plain data."""
        return {"queries": [[name, *query.row()] for name, query in self._queries.items()]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state."""
        self._queries = {name: _Query(*row) for name, *row in state["queries"]}


NOTHING_HEARD = "no control record of this version has been heard that names this topic"


class _Query:
    """The records of one query: its newest run, and the last watermark with its batch."""

    def __init__(self, newest: Sequence[Any] = (), watermark_ms: int | None = None, before: int = -1) -> None:
        self.newest = NewestRun(*newest)
        self.watermark_ms, self.batch_before = watermark_ms, before

    def row(self) -> list[Any]:
        return [self.newest.row(), self.watermark_ms, self.batch_before]
