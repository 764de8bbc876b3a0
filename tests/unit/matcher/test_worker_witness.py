"""A store that came back empty is told from a first start, by what Kafka remembers of the comparison."""

from __future__ import annotations

from copy import deepcopy

from loadtest.memory import MemorySource, MemoryStorage
from tests.support.workers import Bench
from twinstream.core.events import Side

EVENTS = [("a", number) for number in range(30)]


def _after_a_run(*, diverged: bool = False, **source: int) -> Bench:
    """A comparison that ran, and of which the store has lost everything since."""
    bench = Bench(source=MemorySource(**source))
    worker = bench.started()
    bench.write(Side.LEFT, *EVENTS)
    bench.write(Side.RIGHT, *(EVENTS[:5] + EVENTS[6:] if diverged else EVENTS))
    status = bench.run(worker, steps=20)
    assert status.verdict == ("DIVERGED" if diverged else "EQUIVALENT")
    worker.stop()
    bench.storage = MemoryStorage()
    return bench


def test_a_comparison_whose_store_is_empty_is_read_again_and_undecided_until_it_has_come_as_far() -> None:
    bench = _after_a_run()
    began = bench.status().started_at
    bench.clock.advance(1000)
    bench.source.down = None
    worker = bench.started()
    worker.beat()
    status = bench.status()
    assert status.verdict == "PENDING"
    assert (
        "the state in the store was lost, and everything is read again: the reference has come to offset 0 "
        "of 30 in partition 0"
    ) in status.reason
    status = bench.run(worker)
    assert (status.verdict, status.matched, status.started_at) == ("EQUIVALENT", 30, began)


def test_a_store_that_fell_back_to_an_older_state_passes_nothing_until_it_has_come_as_far() -> None:
    bench = Bench(source=MemorySource(batch=10))
    worker = bench.started()
    bench.write(Side.LEFT, *EVENTS[:10])
    bench.write(Side.RIGHT, *EVENTS[:10])
    assert bench.run(worker, steps=20).verdict == "EQUIVALENT"
    older = deepcopy(bench.storage)
    bench.write(Side.LEFT, *EVENTS[10:])
    bench.write(Side.RIGHT, *EVENTS[11:])
    assert bench.run(worker, steps=20).verdict == "DIVERGED"
    worker.stop()
    before = set(bench.reports())
    bench.storage, older.lease = older, None
    bench.clock.advance(1000)
    worker = bench.started()
    worker.beat()
    status = bench.status()
    assert status.verdict == "PENDING"
    assert "the reference has come to offset 10 of 30 in partition 0" in status.reason
    assert bench.run(worker, steps=20).verdict == "DIVERGED"
    assert set(bench.reports()) == before


def test_a_divergence_that_is_not_found_again_is_a_hole() -> None:
    bench = _after_a_run(diverged=True)
    bench.source._topics[Side.LEFT].rows[0].pop(5)
    bench.write(Side.LEFT, ("a", 30))
    bench.write(Side.RIGHT, ("a", 30), ("a", 31))
    bench.finds(
        "INCONCLUSIVE", "a difference had been found before the state in the store was lost", bench.started()
    )


def test_what_kafka_has_no_longer_is_a_hole_with_the_exact_gap() -> None:
    bench = _after_a_run()
    for side in Side:
        bench.source.retain(side, 0, 12)
    status = bench.run(bench.started())
    assert (status.verdict, status.matched) == ("INCONCLUSIVE", 18)
    assert status.holes[0].reason == (
        "the state in the store was lost, and Kafka no longer has offsets 0–11 of "
        "test.reference partition 0 (reference), from which it would be read again"
    )


def test_holes_that_were_noted_before_are_not_forgotten(bench: Bench) -> None:
    worker = bench.started()
    bench.write_both(*EVENTS)
    bench.source.add_partition(Side.LEFT)
    assert bench.run(worker).hole_count == 1
    worker.stop()
    bench.storage = MemoryStorage()
    bench.finds("INCONCLUSIVE", "1 stretches that were not checked had been noted", bench.started())


def test_a_topic_created_anew_meanwhile_is_a_hole() -> None:
    bench = _after_a_run()
    marks = bench.source.remembered()
    bench.source.create_anew(Side.RIGHT)
    bench.source.remember(marks)
    bench.finds("INCONCLUSIVE", "offset 30 was next, and the new topic begins there at 0", bench.started())


def test_a_crash_on_the_way_back_does_not_forget_where_it_leads() -> None:
    bench = _after_a_run(batch=5)
    bench.started().step()
    for _ in range(2):
        bench.clock.advance(5)
        assert bench.at_work is not None
        bench.at_work.beat()
        assert "is read again" in bench.status().reason
        bench.restarted()
    assert bench.run(steps=20).verdict == "EQUIVALENT"


def test_a_memory_that_cannot_be_written_hinders_nothing(bench: Bench) -> None:
    bench.write_both(*EVENTS)
    bench.run()
    bench.source.down = "no broker answers"
    bench.run()
    bench.source.down = None
    assert bench.run().verdict == "EQUIVALENT"
    assert bench.source.remembered()[Side.LEFT][0].offset == 30
