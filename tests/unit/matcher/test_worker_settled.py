"""From where on a matcher compares all, and below which offset all is settled: what a contrast rests on."""

from __future__ import annotations

import pytest

from tests.support.workers import SPEC, Bench
from twinstream.core.events import Side
from twinstream.status.comparison import ComparisonStatus

LEFT, RIGHT = Side
EVENT_TIME = SPEC + "start: {at: event_time, field: n, from: 100}\n"


def reach(status: ComparisonStatus) -> list[tuple[int | None, int | None]]:
    """What is compared and settled of the only partition of each side."""
    return [(part.begin, part.settled) for (part,) in (status.progress.reference, status.progress.candidate)]


def test_what_is_divergent_is_settled_though_nothing_behind_it_is_verified(bench: Bench) -> None:
    bench.write_both((1, 1), (1, 2))
    bench.write(LEFT, (1, 3))
    bench.write(RIGHT, (1, 4))
    bench.write_both((1, 5), (1, 6))
    status = bench.settled()
    assert (status.divergences.total, status.closed_divergences.total) == (2, 0)
    assert reach(status) == [(0, 2), (0, 2)], "its scope is open"
    bench.write_both(*((1, number) for number in range(10, 80)))
    status = bench.settled()
    assert (status.closed_divergences.total, status.verified_up_to.reference) == (2, {"0": 2})
    assert reach(status) == [(0, 75), (0, 75)]


def test_nothing_is_settled_from_the_first_event_that_waits_on(bench: Bench) -> None:
    bench.write_both((1, 1), (2, 1))
    bench.write(LEFT, (1, 3))
    bench.write_both((2, 2))
    assert reach(bench.settled(bench.started())) == [(0, 2), (0, 3)]


def test_what_a_halted_comparison_leaves_out_is_not_settled() -> None:
    bench = Bench(spec=SPEC + "on_divergence: halt\n")
    bench.write_both((1, 1))
    bench.write(LEFT, (1, 3))
    bench.write(RIGHT, (1, 4))
    bench.write_both((1, 5), (1, 6))
    status = bench.settled(bench.started())
    assert (status.verdict, reach(status)) == ("DIVERGED", [(0, 1), (0, 1)])


@pytest.mark.parametrize("crash", [False, True])
def test_all_is_compared_from_behind_the_last_record_before_the_start(crash: bool) -> None:
    bench = Bench(spec=EVENT_TIME)
    bench.write(LEFT, (1, 7))
    bench.write_both((1, 99), (1, 100), (1, 101))
    bench.settled()
    if crash:
        bench.restarted()
    status = bench.settled()
    assert (status.matched, reach(status)) == (2, [(2, 4), (1, 3)])
