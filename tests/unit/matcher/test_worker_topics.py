"""What a worker says of what happens to the topics themselves, while it runs and while it is away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.workers import Bench
from twinstream.adapters.memory import MemorySource
from twinstream.core.events import Side
from twinstream.status.comparison import ComparisonStatus

EVENTS = [("a", number) for number in range(10)]


def _seen_running(do: Callable[[MemorySource], None]) -> ComparisonStatus:
    bench = Bench()
    bench.write_both(*EVENTS)
    assert bench.run().verdict == "EQUIVALENT"
    do(bench.source)
    bench.run()
    return bench.run()


def _seen_after_a_pause(do: Callable[[MemorySource], None]) -> ComparisonStatus:
    bench = Bench()
    worker = bench.started()
    bench.write_both(*EVENTS)
    assert bench.run(worker).verdict == "EQUIVALENT"
    worker.stop()
    do(bench.source)
    worker = bench.started()
    bench.run(worker)
    return bench.run(worker)


@pytest.fixture(params=[_seen_running, _seen_after_a_pause])
def after(request: pytest.FixtureRequest) -> Callable[[Callable[[MemorySource], None]], ComparisonStatus]:
    """The status after something was done to the topics."""
    seen: Callable[[Callable[[MemorySource], None]], ComparisonStatus] = request.param
    return seen


After = Callable[[Callable[[MemorySource], None]], ComparisonStatus]


def test_a_topic_created_anew_is_a_hole_with_both_offsets(after: After) -> None:
    status = after(lambda source: source.create_anew(Side.RIGHT))
    assert status.verdict == "INCONCLUSIVE"
    reasons = " ".join(hole.reason for hole in status.holes)
    assert "test.candidate partition 0 (candidate) was deleted and created anew" in reasons
    assert (
        "offset 10 of test.candidate partition 0 (candidate) was next, but the partition ends below it"
        in reasons
    )


def test_a_topic_created_anew_that_has_grown_as_long_is_a_hole_all_the_same(after: After) -> None:
    def create_anew(source: MemorySource) -> None:
        source.create_anew(Side.RIGHT)
        for number in range(12):
            source.append(Side.RIGHT, 0, b'{"k": "a", "n": %d}' % number)

    status = after(create_anew)
    assert status.verdict == "INCONCLUSIVE"
    assert "begins there at 0 and ends at 12" in status.holes[0].reason


def test_a_partition_cut_off_below_what_was_read_is_a_hole_with_both_offsets(after: After) -> None:
    status = after(lambda source: source.cut_off(Side.LEFT, 0, 4))
    assert status.verdict == "INCONCLUSIVE"
    assert status.holes[0].reason.startswith(
        "offset 10 of test.reference partition 0 (reference) was next, but the partition ends below it"
    )


def test_records_that_retention_took_are_a_hole_with_both_offsets(after: After) -> None:
    def take(source: MemorySource) -> None:
        source.append(Side.LEFT, 0, b'{"k": "a", "n": 11}')
        source.append(Side.LEFT, 0, b'{"k": "a", "n": 12}')
        source.retain(Side.LEFT, 0, 12)

    status = after(take)
    assert status.verdict == "INCONCLUSIVE"
    assert status.holes[0].reason.startswith(
        "Kafka no longer has offsets 10–11 of test.reference partition 0 (reference);"
    )


def test_a_partition_that_was_added_is_a_hole_and_is_read(after: After) -> None:
    def add(source: MemorySource) -> None:
        for side in Side:
            source.add_partition(side)
            source.append(side, 1, b'{"k": "b", "n": 1}')

    status = after(add)
    assert status.verdict == "INCONCLUSIVE"
    assert {hole.side for hole in status.holes} == {"reference", "candidate"}
    assert status.holes[0].reason.startswith(
        "test.reference partition 1 (reference) was added, which begins at offset 0"
    )
    assert status.matched == 11


def test_a_topic_that_becomes_compacted_is_a_hole(after: After) -> None:
    status = after(lambda source: source.set_cleanup_policy(Side.RIGHT, "compact,delete"))
    assert status.verdict == "INCONCLUSIVE"
    (hole,) = status.holes
    assert hole.reason.startswith(
        "test.candidate (candidate) is compacted now (cleanup.policy compact,delete)"
    )


def test_a_change_is_noted_once_and_stays_noted_over_a_restart(bench: Bench) -> None:
    bench.write_both(*EVENTS)
    bench.run()
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
    worker = bench.worker()
    assert not worker.start()
    assert bench.status().verdict == "PENDING"
    assert "the reference's topic test.reference has cleanup.policy compact" in bench.status().reason
    bench.source.set_cleanup_policy(Side.LEFT, "delete")
    assert worker.start()


def test_an_unchanged_topic_is_no_hole(bench: Bench) -> None:
    bench.write_both(*EVENTS)
    bench.run()
    assert bench.run().holes == []
    assert bench.run(bench.restarted()).holes == []
