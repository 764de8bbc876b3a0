"""A store that came back empty is told from a first start, by what Kafka remembers of the comparison."""

from __future__ import annotations

from copy import deepcopy

import pytest

from loadtest.memory import MemorySource, MemoryStorage
from tests.support.workers import SPEC, Bench
from twinstream.core.events import Side
from twinstream.explain.divergence import NAMES
from twinstream.status.comparison import ResetRequest

EVENTS = [("a", number) for number in range(30)]


def _after_a_run(*, diverged: bool = False, more: str = "", **source: int) -> Bench:
    """A comparison that ran, and of which the store has lost everything since."""
    bench = Bench(spec=SPEC + more, source=MemorySource(**source))
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


OTHER = SPEC + "limits: {recent_matches: 7}\n"


def _put_back(*, diverged: bool = True) -> Bench:
    """A comparison whose file was replaced by another one, and is put back; Kafka remembers its first run."""
    bench = _after_a_run(diverged=diverged)
    kept = bench.source.remembered()
    bench.clock.advance(10)
    bench.spec = OTHER
    bench.run(bench.started(), steps=20)
    bench.restarted().stop()
    bench.clock.advance(10)
    bench.spec = SPEC
    bench.source.remember(kept)  # As they are where the other file has other topics.
    return bench


@pytest.mark.parametrize("retained", [False, True])
def test_a_file_that_is_put_back_after_another_one_has_lost_nothing(*, retained: bool) -> None:
    bench = _put_back()
    bench.source._topics[Side.LEFT].rows[0].pop(5)
    worker = bench.worker()
    if retained:
        bench.source.retain(Side.LEFT, 0, 1)
        for _ in range(2):
            assert not worker.start()
            assert "no safe start: the reference has no records below offset 1 " in bench.status().reason
        return
    assert worker.start()
    status = bench.run(worker, steps=20)
    assert (status.verdict, status.matched, status.holes) == ("EQUIVALENT", 29, [])


def test_a_process_that_is_started_again_knows_that_its_file_came_after_another_one() -> None:
    bench = _put_back()
    bench.source.retain(Side.LEFT, 0, 1)
    for _ in range(2):
        assert "no safe start: the reference has no records below offset 1 " in bench.refused().reason


def test_what_kafka_remembers_of_an_earlier_run_of_the_file_is_no_loss_later() -> None:
    bench = _put_back()
    kept = bench.source.remembered()
    bench.source._topics[Side.LEFT].rows[0].pop(5)
    bench.run(bench.started(), steps=20)
    bench.source.remember(kept)  # The marks of the new run have not reached Kafka.
    worker = bench.restarted()
    bench.write_both(("a", 30))
    status = bench.run(worker, steps=20)
    assert (status.verdict, status.matched, status.holes) == ("EQUIVALENT", 30, [])
    assert bench.reset(worker, ResetRequest(id="r", by="ann", reason="mended", address="", start=None))
    bench.source.remember(kept)
    bench.restarted().stop()
    assert bench.run(bench.restarted(), steps=20).holes == []


def test_a_file_that_is_put_back_begins_anew_though_the_clock_was_set_back_meanwhile() -> None:
    bench = Bench()
    bench.write_both(*EVENTS)
    bench.run(bench.started(), steps=20)
    bench.restarted().stop()
    kept = bench.source.remembered()
    bench.clock.set(-3600)
    bench.spec = OTHER
    bench.run(bench.started(), steps=20)
    bench.restarted().stop()
    bench.spec = SPEC
    bench.source.remember(kept)  # As they are where the other file has other topics.
    bench.source.retain(Side.LEFT, 0, 1)
    assert "no safe start: the reference has no records below offset 1 " in bench.refused().reason


def test_a_reset_after_the_clock_was_set_back_is_remembered_as_of_the_run_of_the_file() -> None:
    bench = _put_back(diverged=False)
    worker = bench.started()
    bench.run(worker, steps=20)
    bench.clock.set(-3600)
    assert bench.reset(worker, ResetRequest(id="r", by="ann", reason="mended", address="", start=None))
    bench.run(bench.restarted(), steps=20)
    older = deepcopy(bench.storage)
    bench.source.cut_off(Side.LEFT, 0, 28)
    bench.source.cut_off(Side.RIGHT, 0, 28)
    status = bench.run(steps=20)
    assert (status.verdict, status.hole_count) == ("INCONCLUSIVE", 2)
    bench.restarted().stop()
    bench.storage = older
    bench.write_both(*(("c", number) for number in range(10)))
    assert bench.run(bench.restarted(), steps=20).verdict == "INCONCLUSIVE"


def test_a_store_that_went_back_to_before_a_change_of_the_file_has_lost_the_run_of_the_new_one() -> None:
    bench = Bench()
    bench.write_both(*EVENTS[:10])
    bench.run(bench.started(), steps=20)
    bench.restarted().stop()
    older = deepcopy(bench.storage)
    bench.clock.advance(10)
    bench.spec = OTHER
    worker = bench.started()
    bench.write(Side.LEFT, *EVENTS[10:])
    bench.write(Side.RIGHT, *EVENTS[11:])
    assert bench.run(worker, steps=20).verdict == "DIVERGED"
    worker.stop()
    for side in Side:
        bench.source.retain(side, 0, 12)
    bench.storage = older
    status = bench.run(bench.started(), steps=20)
    assert (status.verdict, status.hole_count) == ("INCONCLUSIVE", 3)
    assert status.holes[0].reason.startswith(
        "the state in the store was lost, and Kafka no longer has offsets 0–11 of "
    )
    assert "a difference had been found before the state in the store was lost" in status.holes[-1].reason


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
    bench.finds("INCONCLUSIVE", "stretches that were not checked had been noted (1)", bench.started())


def test_holes_noted_after_the_state_that_came_back_are_not_forgotten(bench: Bench) -> None:
    worker = bench.started()
    bench.write_both(*EVENTS)
    bench.run(worker)
    older = deepcopy(bench.storage)
    bench.source.set_cleanup_policy(Side.RIGHT, "compact")
    assert bench.run(worker).hole_count == 1
    bench.source.set_cleanup_policy(Side.RIGHT, "delete")
    worker.stop()
    bench.storage, older.lease = older, None
    bench.finds("INCONCLUSIVE", "stretches that were not checked had been noted (1)", bench.started())


def test_a_state_that_was_on_its_way_back_is_led_as_far_as_kafka_remembers() -> None:
    bench = _after_a_run(batch=10)
    worker = bench.started()
    worker.step()
    bench.clock.advance(5)
    worker.beat()
    older = deepcopy(bench.storage)
    bench.write_both(*(("a", number) for number in range(30, 60)))
    assert bench.run(worker, steps=20).verdict == "EQUIVALENT"
    worker.stop()
    bench.storage, older.lease = older, None
    worker = bench.started()
    verdicts = [(bench.run(worker, steps=1).matched, bench.status().verdict) for _ in range(8)]
    assert {verdict for matched, verdict in verdicts if matched < 60} == {"PENDING"}
    assert verdicts[-1] == (60, "EQUIVALENT")


@pytest.mark.parametrize("late", [False, True], ids=["found again", "its partner came"])
def test_a_difference_that_time_had_proven_is_awaited_and_not_taken_back(*, late: bool) -> None:
    by_time = SPEC.replace("{per_key: [k]}", "unordered\noverdue: {after: 5s, proves: true}")
    bench = Bench(spec=by_time, source=MemorySource())
    worker = bench.started()
    bench.write(Side.LEFT, *EVENTS)
    bench.write(Side.RIGHT, *EVENTS[1:])
    bench.write_both(("a", 30), at_ms=9000)
    bench.run(worker, steps=1)
    older = deepcopy(bench.storage)
    assert "DIVERGED" in {bench.run(worker, steps=1).verdict for _ in range(10)}
    worker.stop()
    bench.storage, older.lease = older, None
    if late:
        bench.write(Side.RIGHT, EVENTS[0])
    worker = bench.started()
    verdicts = [bench.run(worker, steps=1).verdict for _ in range(20)]
    assert "EQUIVALENT" not in verdicts
    assert (verdicts[-1], bench.status().hole_count) == (("INCONCLUSIVE", 1) if late else ("DIVERGED", 0))


@pytest.mark.parametrize("empty", [True, False])
def test_a_reset_that_has_not_begun_is_not_lost_in_silence(*, empty: bool) -> None:
    barriers = "kinds: {eod: {where: {k: eod}}, ride: {}}\norder: {barrier: eod, inner: {per_key: [k]}}"
    bench = Bench(spec=SPEC.replace("order: {per_key: [k]}", barriers), source=MemorySource())
    worker = bench.started()
    bench.write_both(*EVENTS)
    bench.run(worker)
    older = deepcopy(bench.storage)
    bench.reset(worker, ResetRequest(id="r", by="ann", reason="mended", address="", start={"at": "barrier"}))
    assert "no barrier has come" in bench.run(bench.restarted()).reason
    bench.storage, older.lease = MemoryStorage() if empty else older, None
    status = bench.run(bench.restarted())
    assert (status.reset_count, status.hole_count) == ((1, 0) if empty else (0, 1))
    assert ("no barrier has come" if empty else "a reset was lost") in status.reason


def test_a_partition_added_while_nothing_was_stored_is_a_hole() -> None:
    bench = _after_a_run()
    bench.source.add_partition(Side.RIGHT)
    bench.finds("INCONCLUSIVE", "partition 1 (candidate) was added", bench.started())


def test_topics_that_no_longer_fit_each_other_are_refused_also_where_nothing_is_stored() -> None:
    bench = _after_a_run(more="co_partitioned: true\n")
    bench.source.add_partition(Side.RIGHT)
    assert not bench.worker().start()
    assert "the topics have 1 and 2 partitions" in bench.status().health.reasons[0]


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


OFFSETS = SPEC + "start: {at: offsets, reference: {0: 10}, candidate: {0: 10}}\n"


def _began_behind_ten(*, reset: bool) -> Bench:
    """A comparison that began at offset 10 of both sides, by a reset or as its file says."""
    bench = Bench(SPEC if reset else OFFSETS)
    bench.write_both(*EVENTS[:10])
    worker = bench.started()
    if reset:
        bench.run(worker)
        assert bench.reset(worker, ResetRequest(id="r", by="ann", reason="x", address="", start="now"))
        worker = bench.restarted()
    bench.write_both(*EVENTS[10:])
    status = bench.run(worker)
    assert (status.verdict, status.matched) == ("EQUIVALENT", 20)
    worker.stop()
    return bench


def _compare_another_candidate(bench: Bench) -> None:
    """A file of the same name compares the same reference with another topic for a while."""
    spec, source = bench.spec, bench.source
    bench.spec, bench.source = SPEC.replace("test.candidate", "test.another"), MemorySource()
    bench.write_both(*EVENTS)
    worker = bench.started()
    assert bench.run(worker).verdict == "EQUIVALENT"
    worker.stop()
    source.remember({Side.LEFT: bench.source.remembered()[Side.LEFT], Side.RIGHT: {}})
    bench.spec, bench.source = spec, source


@pytest.mark.parametrize(("reset", "matched"), [(False, 20), (True, 30)], ids=["its file", "a reset"])
def test_a_file_that_is_rolled_back_begins_where_it_says_though_one_topic_was_compared_meanwhile(
    *, reset: bool, matched: int
) -> None:
    bench = _began_behind_ten(reset=reset)
    _compare_another_candidate(bench)
    status = bench.run(bench.started())
    assert (status.verdict, status.matched, status.reset_count) == ("EQUIVALENT", matched, 0)


@pytest.mark.parametrize("reset", [False, True], ids=["its file", "a reset"])
@pytest.mark.parametrize("side", Side)
def test_a_side_of_which_kafka_does_not_remember_the_start_is_a_hole(side: Side, *, reset: bool) -> None:
    bench = _began_behind_ten(reset=reset)
    bench.storage, bench.source._marks = MemoryStorage(), {**bench.source.remembered(), side: {}}
    for _ in range(2):
        status = bench.finds(
            "INCONCLUSIVE",
            f"Kafka does not remember from where on test.{NAMES[side]} ({NAMES[side]}) was compared",
            bench.restarted(),
        )
        assert (status.events.reference, status.events.candidate) == ((30, 20), (20, 30))[side]
        assert (status.hole_count, status.reset_count) == (1, int(reset))
