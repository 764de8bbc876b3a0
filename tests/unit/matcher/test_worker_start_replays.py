"""Where a comparison begins, and what a retry has written on both sides of that."""

from __future__ import annotations

import orjson
import pytest

from tests.support.retries import attempt
from tests.support.saying import VERSIONS
from tests.support.workers import Bench
from twinstream.core.events import Side
from twinstream.spec.decode.headers import attempt_headers, input_header
from twinstream.status.comparison import ComparisonStatus

LEFT, RIGHT = Side
SPEC = (
    VERSIONS
    + """\
control: test.control
kinds: {end: {where: {t: end}}, row: {}}
order: {barrier: end, inner: unordered}
duplicates: {policy: replays}
overdue: {clock: input}
evidence: {matched: 1, seconds: 0}
"""
)
STARTS = {
    "input": "start: {at: input}\n",
    "event_time": "start: {at: event_time, field: n, from: 5}\n",
    "barrier": "start: barrier\n",
}


class Retrying(Bench):
    """A bench with two versions that write a row for some records of their input, and retry."""

    def put_out(self, side: Side, marks: str, *rows: int | str) -> None:
        """Rows of an attempt ``BATCH/EXECUTION/TASK.ATTEMPT``: numbers of records, as texts of barriers."""
        for row in rows:
            value = {"t": "row" if isinstance(row, int) else "end", "n": int(row)}
            headers = [input_header("in", 0, value["n"]), *attempt_headers(attempt(marks))]
            self.source.append(side, 0, orjson.dumps(value), 0, headers)


@pytest.fixture(params=STARTS)
def bench(request: pytest.FixtureRequest) -> Retrying:
    return Retrying(spec=SPEC + STARTS[request.param])


def _rest(bench: Retrying) -> ComparisonStatus:
    """What follows behind the start is the same on both sides, and all is read."""
    for side in Side:
        bench.put_out(side, "2/e/0.0", 10, 11, "12")
        bench.finish(side, 2, 20, since=10)
    return bench.settled(bench.started())


@pytest.mark.parametrize("bench", ["input", "event_time"], indirect=True)
def test_a_retry_that_differs_only_by_what_lies_before_the_start_is_a_hole(bench: Retrying) -> None:
    bench.put_out(LEFT, "1/e/0.0", 6)
    bench.finish(LEFT, 1, 10, since=5)
    bench.put_out(RIGHT, "1/killed/0.0", 6, 7)
    bench.put_out(RIGHT, "1/e/0.0", 2, 6)
    bench.finish(RIGHT, 1, 10, since=0)
    status = _rest(bench)
    assert (status.verdict, status.hole_count) == ("INCONCLUSIVE", 1), status.reason
    assert "wrote batch 1 several times with different rows" in status.holes[0].reason


@pytest.mark.parametrize("bench", ["input", "event_time"], indirect=True)
def test_a_retry_that_differs_in_a_batch_that_lies_before_the_start_is_none(bench: Retrying) -> None:
    bench.put_out(LEFT, "0/e/0.0", 6)
    bench.finish(LEFT, 1, 10, since=5)
    bench.put_out(RIGHT, "0/killed/0.0", 1)
    bench.put_out(RIGHT, "0/e/0.0", 2)
    bench.finish(RIGHT, 0, 3, since=0)
    bench.put_out(RIGHT, "1/e/0.0", 4, 6)
    bench.finish(RIGHT, 1, 10, since=3)
    status = _rest(bench)
    assert (status.verdict, status.matched) == ("EQUIVALENT", 4), status.reason


@pytest.mark.parametrize("bench", ["barrier"], indirect=True)
def test_what_lies_before_the_barrier_and_is_written_again_behind_it_is_a_replay(bench: Retrying) -> None:
    for side in Side:
        bench.put_out(side, "1/e/0.0", 1, "5", 6)
    bench.put_out(RIGHT, "1/killed/0.0", 1)
    for side in Side:
        bench.finish(side, 1, 10, since=0)
    status = _rest(bench)
    assert (status.verdict, status.accounts.candidate.replayed) == ("EQUIVALENT", 1), status.reason


@pytest.mark.parametrize("again", [(0, 1), (1, 0)])
def test_equal_rows_of_different_input_may_be_written_again_in_any_order(again: tuple[int, int]) -> None:
    bench = Retrying(spec=SPEC.replace("{barrier: end, inner: unordered}", "unordered"))

    def write(side: Side, marks: str, *inputs: int) -> None:
        for at in inputs:
            headers = [input_header("in", 0, at), *attempt_headers(attempt(marks))]
            bench.source.append(side, 0, b'{"t": "row", "n": 7}', 0, headers)

    write(RIGHT, "1/killed/0.0", 0)
    write(RIGHT, "1/e/0.0", *again)
    bench.finish(RIGHT, 1, 2, since=0)
    write(LEFT, "1/e/0.0", 0)
    bench.finish(LEFT, 1, 1, since=0)
    assert bench.settled(bench.started()).divergences.total == 0
    write(LEFT, "2/e/0.0", 1)
    bench.finish(LEFT, 2, 2, since=1)
    status = bench.settled()
    assert (status.matched, status.divergences.total, status.holes) == (2, 0, [])
