"""Rows that replace each other, in a running matcher: settled by what both versions say of their input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from tests.support.saying import VERSIONS
from tests.support.workers import Bench
from twinstream.core.events import Side
from twinstream.spec.decode.deletions import deletion

LEFT, RIGHT = Side
SPEC = (
    VERSIONS
    + """\
control: test.control
order: unordered
emits: {upsert: {key: [k], settled_by: input}}
overdue: {clock: input}
evidence: {matched: 1, seconds: 0}
show: [k, v]
"""
)


class Pipelines(Bench):
    """Two versions in update mode."""

    batch = 0

    def row(self, side: Side, key: str, value: int | None, at_ms: int = 0) -> None:
        """Write a row, or the deletion of one."""
        record = deletion(key.encode()) if value is None else orjson.dumps({"k": key, "v": value})
        self.source.append(side, 0, record, at_ms)

    def done(self, side: Side, consumed: int, **more: Any) -> None:
        """A version says that it has finished its next batch."""
        self.batch += 1
        self.finish(side, self.batch, consumed, mode="update", **more)


@pytest.fixture
def bench() -> Pipelines:
    return Pipelines(spec=SPEC)


def test_a_restart_forgets_neither_pending_rows_nor_what_was_settled(bench: Pipelines) -> None:
    bench.row(LEFT, "a", 1)
    bench.row(LEFT, "a", 2)
    bench.done(LEFT, 10)
    bench.settled()
    worker = bench.restarted()
    bench.row(RIGHT, "a", 2)
    bench.done(RIGHT, 10)
    assert bench.settled(worker).verdict == "EQUIVALENT"
    worker = bench.restarted()
    bench.row(RIGHT, "a", 2)  # The last batch once more.
    bench.done(RIGHT, 10)
    status = bench.settled(worker)
    assert (status.verdict, status.accounts.candidate.superseded) == ("EQUIVALENT", 1), status.reason
    bench.row(LEFT, "a", None)
    for side in Side:
        bench.done(side, 20)
    status = bench.settled(worker)
    assert (status.verdict, [one.kind for one in bench.reports().values()]) == ("DIVERGED", ["extra"])
    assert "the row that the reference has deleted" in next(iter(bench.reports().values())).text


def test_a_key_that_is_never_settled_holds_back_what_is_verified_and_the_status_says_so(
    bench: Pipelines,
) -> None:
    for side in Side:
        bench.row(side, "quiet", 1, at_ms=1_000)
    for consumed in range(10, 100, 10):
        for side, ahead in ((LEFT, 0), (RIGHT, 5)):
            bench.row(side, "hot", consumed + ahead, at_ms=1_000 * consumed)
            bench.done(side, consumed + ahead)
            bench.run()
    status = bench.settled()
    assert (status.verdict, status.matched) == ("PENDING", 1)
    assert "a key has had no final row for 80 s" in status.reason
    assert status.unmatched.reference == 1
    assert status.verified_up_to.reference == {"0": 1}


WINDOWS = SPEC.replace("[k], settled_by: input", "[k], settled_by: {watermark: end}").replace(
    "{clock: input}", "{clock: input, window_end: end}"
)


class Windowed(Pipelines):
    """Two versions whose keys are windows that a watermark closes."""

    def window(self, side: Side, key: str, end: int, value: int) -> None:
        self.source.append(side, 0, orjson.dumps({"k": key, "end": end, "v": value}), 0)

    def reach(self, side: Side, watermark: int) -> None:
        """A version says that its watermark has come so far, in two batches: the second one proves it."""
        for _ in range(2):
            self.done(side, watermark, watermark=watermark)


def test_windows_are_compared_when_both_watermarks_have_passed_them() -> None:
    bench = Windowed(spec=WINDOWS)
    for side, values in ((LEFT, (1, 2, 3)), (RIGHT, (3,))):
        for value in values:
            bench.window(side, "a", 10, value)
    bench.window(LEFT, "lost", 10, 1)
    bench.window(LEFT, "open", 20, 1)
    bench.reach(LEFT, 15)
    status = bench.settled()
    assert (status.verdict, status.matched) == ("PENDING", 0)
    worker = bench.restarted()
    bench.reach(RIGHT, 15)
    status = bench.settled(worker)
    assert (status.verdict, status.matched, status.unmatched.reference) == ("DIVERGED", 1, 1)
    (report,) = bench.reports().values()
    assert (report.kind, report.reference["k"]) == ("missing", "lost")


def test_a_row_of_a_window_that_was_settled_is_a_difference_once_its_batch_is_finished() -> None:
    bench = Windowed(spec=WINDOWS)
    for side in Side:
        bench.window(side, "a", 10, 1)
        bench.reach(side, 15)
    assert bench.settled().verdict == "EQUIVALENT"
    bench.window(RIGHT, "a", 10, 2)
    bench.reach(RIGHT, 15)
    status = bench.settled()
    assert (status.verdict, [one.kind for one in bench.reports().values()]) == ("DIVERGED", ["extra"])


NIGHTS = """\
version: 1
name: test
reference: {topic: test.reference}
candidate: {topic: test.candidate}
kinds: {night: {where: {k: night}}, row: {}}
order: {barrier: night, inner: unordered}
emits: {upsert: {key: [k], settled_by: barrier}}
evidence: {matched: 1, seconds: 0}
"""


def test_rows_before_a_barrier_are_not_overdue_however_long_it_takes() -> None:
    bench = Pipelines(spec=NIGHTS)
    bench.row(LEFT, "a", 1)
    bench.row(LEFT, "a", 2)
    for minute in range(10):
        for side in Side:
            bench.row(side, "b", minute, at_ms=60_000 * minute)
    status = bench.settled()
    assert (status.verdict, status.suspicions, status.unmatched.reference) == ("PENDING", 0, 2)
    bench.row(RIGHT, "a", 2, at_ms=600_000)
    bench.row(LEFT, "night", 0, at_ms=600_000)
    status = bench.settled()
    assert (status.verdict, status.suspicions) == ("PENDING", 0), status.reason
    bench.row(RIGHT, "night", 0, at_ms=600_000)
    status = bench.settled()
    assert (status.verdict, status.matched) == ("EQUIVALENT", 3)


def test_whole_tables_are_compared_when_both_versions_have_consumed_the_same_input() -> None:
    bench = Pipelines(spec=SPEC.replace("upsert", "complete"))

    def table(side: Side, batch: int, consumed: int, rows: dict[str, int]) -> None:
        for key, value in rows.items():
            headers = [("twinstream-batch", b"%d" % batch)]
            bench.source.append(side, 0, orjson.dumps({"k": key, "v": value}), 0, headers)
        bench.batch = batch - 1
        bench.done(side, consumed)

    table(LEFT, 0, 10, {"a": 1, "b": 1})
    table(LEFT, 1, 20, {"a": 2})
    table(RIGHT, 0, 15, {"a": 1, "b": 1})
    assert bench.settled().matched == 0
    worker = bench.restarted()
    table(RIGHT, 1, 20, {"a": 2})
    status = bench.settled(worker)
    assert (status.verdict, status.matched, status.accounts.reference.superseded) == ("EQUIVALENT", 1, 2)
    for side in Side:
        table(side, 2, 30, {"a": 2, "b": 1 + side})
    assert bench.settled(worker).verdict == "DIVERGED"
    assert [one.kind for one in bench.reports().values()] == ["changed"]


def is_even(row: Mapping[str, Any]) -> bool:
    """Whether `v` is one of the right values."""
    return bool(row["v"] % 2 == 0)


def test_another_right_value_says_what_the_table_holds_already() -> None:
    any_of = f"equality: {{any_of: {{v: '{__name__}:is_even'}}}}\n"
    bench = Pipelines(spec=SPEC + any_of)
    for side, value in ((LEFT, 2), (RIGHT, 4)):
        bench.row(side, "a", value)
        bench.done(side, 10)
    status = bench.settled()
    assert (status.verdict, status.matched) == ("EQUIVALENT", 1), status.reason
    worker = bench.restarted()
    bench.row(RIGHT, "a", 6)
    for side in Side:
        bench.done(side, 20)
    status = bench.settled(worker)
    assert (status.verdict, status.matched, status.accounts.candidate.superseded) == ("EQUIVALENT", 1, 1)
    bench.row(RIGHT, "a", 7)
    for side in Side:
        bench.done(side, 30)
    assert bench.settled(worker).verdict == "DIVERGED"


# -- what is asked of intermediate rows --------------------------------------------------------------------


def test_rows_and_deletions_of_windows_that_a_watermark_settled_are_found_on_each_side() -> None:
    asked = "settled_by: {watermark: end}, intermediate: {final_after_settled: true, gate: undecided}"
    bench = Windowed(spec=WINDOWS.replace("settled_by: {watermark: end}", asked))
    for side in Side:
        bench.window(side, "a", 10, 1)
        bench.reach(side, 15)
    (check,) = bench.settled().checks
    assert (check.id, check.property) == ("intermediate.final_after_settled", "final_after_settled")
    assert check.candidate is not None
    assert (check.candidate.state, check.candidate.checked) == ("holds", 1)
    worker = bench.restarted()
    for side in Side:
        bench.window(side, "a", 10, 2)
        bench.source.append(side, 0, deletion(b'{"k":"a","end":10}'), 0)
        bench.reach(side, 20)
    status = bench.settled(worker)
    assert status.verdict == "DIVERGED", "even if both versions wrote it"
    for found in (status.checks[0].reference, status.checks[0].candidate):
        assert found is not None
        assert [(one.position.offset, one.problem) for one in found.first] == [
            (1, "is of a window that was closed"),
            (2, "is of a window that was closed"),
        ]
