"""Counts the rows that a run of a query drops as late, as Spark tells it after each batch.

Spark counts for each operator with state the rows that came to it behind its watermark
(`numRowsDroppedByWatermark`). An aggregation gets its rows after those of one task and key were combined into
one, so there it counts these. Spark tells what a batch has dropped when it is over: of a batch that is
running, only what those before it dropped is known.
"""

from __future__ import annotations

from typing import Any

from twinstream.spec.decode.control import LateRows


class LateCount:
    """The rows that were dropped in consecutive batches of one run.

    Behind a batch that is not told of, the count begins anew.

    >>> count = LateCount("run", 5)
    >>> count.add(5, 2)
    >>> count.add(6, 1)
    >>> count.told
    LateRows(rows=3, since=5, before=7)
    >>> count.add(8, 1)
    >>> count.told
    LateRows(rows=1, since=8, before=9)
    """

    def __init__(self, run: str, first: int) -> None:
        self.run = run
        self._begin(first)

    def _begin(self, batch: int) -> None:
        self._rows, self._since, self._before = 0, batch, batch

    def add(self, batch: int, rows: int | None) -> None:
        """Add the rows that a batch has dropped, None if that is unknown; a batch is added once."""
        if batch < self._before:
            return
        if rows is None:
            self._begin(batch + 1)
            return
        if batch > self._before:
            self._begin(batch)
        self._rows += rows
        self._before = batch + 1

    @property
    def told(self) -> LateRows:
        """The count for a control record."""
        return LateRows(rows=self._rows, since=self._since, before=self._before)


def dropped_in(batch: int, query: Any) -> int | None:
    """The rows that a batch of a running query has dropped; None if Spark does not tell, or not any more.

    `query` is Spark's own object. It keeps its latest reports, of which an idle query makes one every few
    seconds: each is about the batch to come.
    """
    report = query.lastProgress()
    if report is not None and report.batchId() > batch:
        report = next((one for one in reversed(query.recentProgress()) if one.batchId() <= batch), None)
    if report is None or report.batchId() != batch:
        return None
    return sum(int(operator.numRowsDroppedByWatermark()) for operator in report.stateOperators())
