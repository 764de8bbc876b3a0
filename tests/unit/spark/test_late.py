"""What is known of the rows that a batch has dropped, by the reports that Spark still has."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from twinstream.spark.late import LateCount, dropped_in
from twinstream.spec.decode.control import LateRows


@dataclass
class Operator:
    rows: int

    def numRowsDroppedByWatermark(self) -> int:  # noqa: N802
        return self.rows


@dataclass
class Report:
    """What Spark says of a batch; an idle query repeats the operators of the last one, without rows."""

    batch: int
    rows: tuple[int, ...] = (0,)

    def batchId(self) -> int:  # noqa: N802
        return self.batch

    def stateOperators(self) -> list[Operator]:  # noqa: N802
        return list(map(Operator, self.rows))


@dataclass
class Query:
    reports: list[Report]

    def lastProgress(self) -> Report | None:  # noqa: N802
        return self.reports[-1] if self.reports else None

    def recentProgress(self) -> list[Report]:  # noqa: N802
        return self.reports


@pytest.mark.parametrize(
    ("reports", "rows"),
    [
        ([Report(6, (9,)), Report(7, (2, 1))], 3),
        ([Report(7, ())], 0),
        ([Report(7), Report(7, (4,)), Report(8), Report(8)], 4),
        ([Report(8), Report(8)], None),
        ([Report(6, (9,)), Report(8)], None),
        ([Report(6, (9,))], None),
        ([], None),
    ],
    ids=["all operators", "no state", "idle since", "forgotten", "left out", "not told yet", "first batch"],
)
def test_a_batch_has_dropped_what_its_own_report_says(reports: list[Report], rows: int | None) -> None:
    assert dropped_in(7, Query(reports)) == rows


def test_a_count_goes_on_while_each_batch_is_told() -> None:
    count = LateCount("run", 5)
    for batch, rows in ((4, None), (5, 2), (6, 1), (6, 1)):
        count.add(batch, rows)
    assert count.told == LateRows(rows=3, since=5, before=7)


@pytest.mark.parametrize(
    ("batch", "rows", "told"),
    [(8, 4, LateRows(rows=4, since=8, before=9)), (7, None, LateRows(rows=0, since=8, before=8))],
    ids=["a batch was left out", "a batch is not known"],
)
def test_a_count_begins_anew_behind_what_is_not_told(batch: int, rows: int | None, told: LateRows) -> None:
    count = LateCount("run", 5)
    count.add(5, 2)
    count.add(6, 1)
    count.add(batch, rows)
    assert count.told == told
