"""What a worker says of what happens to the topics themselves, while it runs and while it is away."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from loadtest.memory import MemorySource
from tests.support.workers import Bench
from twinstream.core.events import Side

EVENTS = [("a", number) for number in range(10)]
LEFT, RIGHT = Side


def _record(number: int, key: str = "a") -> bytes:
    return b'{"k": "%s", "n": %d}' % (key.encode(), number)


def _create_anew(source: MemorySource, records: int = 0) -> None:
    source.create_anew(RIGHT)
    for number in range(records):
        source.append(RIGHT, 0, _record(number))


def _take_two_records(source: MemorySource) -> None:
    for number in (11, 12):
        source.append(LEFT, 0, _record(number))
    source.retain(LEFT, 0, 12)


def _add_a_partition(source: MemorySource) -> None:
    for side in Side:
        source.add_partition(side)
        source.append(side, 1, _record(1, key="b"))


OF_BOTH = "of test.reference partition 0 (reference)"
ANOTHER = "test.candidate partition 0 (candidate) was deleted and created anew"
BELOW = "was next, but the partition ends below it"


@pytest.mark.parametrize("running", [True, False], ids=["running", "after a pause"])
@pytest.mark.parametrize(
    ("do", "told"),
    [
        pytest.param(
            _create_anew,
            [ANOTHER, f"offset 10 of test.candidate partition 0 (candidate) {BELOW}"],
            id="a topic created anew, with both offsets",
        ),
        pytest.param(
            partial(_create_anew, records=12),
            ["begins there at 0 and ends at 12"],
            id="one that has grown as long all the same",
        ),
        pytest.param(
            lambda source: source.cut_off(LEFT, 0, 4),
            [f"offset 10 {OF_BOTH} {BELOW}"],
            id="a partition cut off below what was read",
        ),
        pytest.param(
            _take_two_records,
            [f"Kafka no longer has offsets 10–11 {OF_BOTH};"],
            id="records that retention took",
        ),
        pytest.param(
            _add_a_partition,
            [
                f"test.{name} partition 1 ({name}) was added, which begins at offset 0"
                for name in ("reference", "candidate")
            ],
            id="a partition that was added",
        ),
        pytest.param(
            lambda source: source.set_cleanup_policy(RIGHT, "compact,delete"),
            ["test.candidate (candidate) is compacted now (cleanup.policy compact,delete)"],
            id="a topic that becomes compacted",
        ),
    ],
)
def test_what_is_done_to_a_topic_is_a_hole_that_says_what(
    bench: Bench, do: Callable[[MemorySource], None], told: list[str], running: bool
) -> None:
    worker = bench.started()
    bench.write_both(*EVENTS)
    assert bench.run().verdict == "EQUIVALENT"
    if not running:
        worker.stop()
    do(bench.source)
    if not running:
        bench.started()
    bench.run()
    status = bench.run()
    assert status.verdict == "INCONCLUSIVE"
    reasons = [hole.reason for hole in status.holes]
    assert all(any(one in reason for reason in reasons) for one in told), reasons
    assert status.matched == (11 if do is _add_a_partition else 10)


def test_a_change_is_noted_once_and_stays_noted_over_a_restart(bench: Bench) -> None:
    bench.write_both(*EVENTS)
    bench.run()
    assert bench.run(bench.restarted()).hole_count == 0
    bench.source.add_partition(Side.LEFT)
    assert bench.run().hole_count == 1
    assert bench.run().hole_count == 1
    assert bench.run(bench.restarted()).hole_count == 1


def test_a_topic_that_is_gone_degrades_health_and_is_a_hole_when_it_comes_back(bench: Bench) -> None:
    bench.write_both(*EVENTS)
    bench.run()
    bench.source.delete(Side.RIGHT)
    status = bench.run()
    assert status.verdict == "EQUIVALENT"
    assert status.health.reasons == ["the candidate's topic test.candidate is not there any more"]
    bench.source.create_anew(Side.RIGHT)
    status = bench.run()
    assert (status.verdict, status.health.status) == ("INCONCLUSIVE", "ok")


def test_a_compacted_topic_is_refused_at_the_start(bench: Bench) -> None:
    bench.source.set_cleanup_policy(Side.LEFT, "compact")
    reason = bench.refused().reason
    assert "the reference's topic test.reference has cleanup.policy compact" in reason
    bench.source.set_cleanup_policy(Side.LEFT, "delete")
    bench.started()
