"""The loop of a matcher, on a source, a store and a clock that the test drives."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from loadtest.memory import MemorySource, MemoryStore
from tests.support.registry import Registry, running
from tests.support.workers import SPEC, Bench
from twinstream.checkpoints import format as checkpoint
from twinstream.core.events import Side
from twinstream.errors import CheckpointError, Fenced, StoreError
from twinstream.intake.falls import Caution, Trail
from twinstream.matcher.schedule import PUT_OFF_SECONDS
from twinstream.ports import Checkpoint, Stored
from twinstream.status.comparison import Resumed

EVENTS = [(key, number) for number in range(20) for key in "abc"]
EMPTY = Stored(None, b"", (), {})


AVRO = """
version: 1
name: test
reference: {{topic: test.reference}}
candidate: {{topic: test.candidate}}
decode: {{format: avro, registry: "{url}"}}
order: total
evidence: {{matched: 1, seconds: 0}}
"""


def test_records_wait_while_their_schema_registry_is_away_and_none_is_lost() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}
    with running(Registry(schemas={7: {"schema": json.dumps(schema)}}, trouble=503)) as registry:
        bench = Bench(spec=AVRO.format(url=registry.url))
        for side in Side:
            for number in range(3):
                bench.source.append(side, 0, b"\0\0\0\0\x07" + bytes([2 * number]))
        status = bench.run()
        assert (status.verdict, status.health.status, status.events.reference) == ("PENDING", "degraded", 0)
        assert registry.url in status.health.reasons[0]
        registry.trouble = None
        status = bench.run(steps=6)
        assert (status.verdict, status.health.status, status.matched) == ("EQUIVALENT", "ok", 3)


@pytest.mark.parametrize("at_ms", [-(2**63), -1, 253_402_300_800_000, 1_790_000_000_000_000, 2**63 - 1])
def test_a_timestamp_outside_of_the_calendar_is_one_like_any_other(at_ms: int) -> None:
    bench = Bench(spec=SPEC + "limits: {lead: 1h}\n")
    bench.write_both(*EVENTS[:10])
    bench.write(Side.LEFT, ("z", 1), at_ms=at_ms)
    bench.write(Side.LEFT, ("y", 1), at_ms=-at_ms - 1)
    status = bench.run()
    assert (status.verdict, status.unmatched.reference) == ("EQUIVALENT", 2)
    bench.restarted()
    bench.write(Side.RIGHT, ("z", 1), ("y", 1), at_ms=at_ms)
    status = bench.run()
    assert (status.verdict, status.matched, status.verified_up_to.reference) == ("EQUIVALENT", 12, {"0": 12})


def test_a_missing_event_is_reported_with_its_record_and_stays_when_all_else_matches(bench: Bench) -> None:
    bench.write(Side.LEFT, *EVENTS)
    bench.write(Side.RIGHT, *(event for event in EVENTS if event != ("b", 1)))
    status = bench.run()
    (report,) = bench.reports().values()
    assert status.verdict == "DIVERGED"
    assert (report.kind, report.reference, report.candidate) == ("missing", {"k": "b", "n": 1}, None)
    assert status.verified_up_to.reference == {"0": 4}
    bench.write_both(*EVENTS)
    assert bench.run().divergences.total == 1


def test_a_provisional_divergence_is_shown_at_once_and_final_when_its_scope_closes(bench: Bench) -> None:
    bench.write(Side.LEFT, ("a", 1), ("a", 2))
    bench.write(Side.RIGHT, ("a", 2))
    bench.run()
    assert [report.provisional for report in bench.reports().values()] == [True]
    bench.write_both(*(("a", number) for number in range(3, 20)))
    bench.run()
    assert [report.provisional for report in bench.reports().values()] == [False]


def test_a_verdict_of_diverged_is_published_only_after_the_checkpoint_that_holds_it(bench: Bench) -> None:
    bench.run()
    bench.storage.down = "the store is away"
    bench.write(Side.LEFT, ("a", 1), ("a", 2))
    bench.write(Side.RIGHT, ("a", 2))
    bench.finds("INCONCLUSIVE", "announced once it is saved")
    bench.storage.down = None
    assert bench.run().verdict == "DIVERGED"


def test_a_store_that_is_away_degrades_health_and_matching_goes_on(bench: Bench) -> None:
    bench.started()
    bench.storage.down = "the store is away"
    bench.write_both(*EVENTS)
    status = bench.run()
    assert status.matched == 60
    assert (status.health.status, status.health.unreachable) == ("degraded", ["redis"])
    assert "the store is away (since" in status.health.reasons[0]
    bench.storage.down = None
    assert bench.run().health.status == "ok"
    assert bench.storage.stored.bodies


def test_a_topic_that_is_not_there_yet_is_awaited_and_kafka_is_not_blamed(bench: Bench) -> None:
    bench.source.delete(Side.RIGHT)
    status = bench.refused()
    assert (status.verdict, status.health.status, status.health.unreachable) == ("PENDING", "degraded", [])
    assert status.health.reasons == ["topic RIGHT: there is no such topic"]
    bench.source.create_anew(Side.RIGHT)
    bench.write_both(*EVENTS)
    assert bench.run().verdict == "EQUIVALENT"


def test_kafka_away_degrades_health_and_recovers(bench: Bench) -> None:
    bench.started()
    bench.source.down = "no broker answers"
    status = bench.run()
    assert (status.health.reasons, status.health.unreachable) == (["no broker answers"], ["kafka"])
    bench.source.down = None
    assert bench.run().health.status == "ok"


@pytest.mark.parametrize("away", ["source", "storage"])
def test_a_worker_waits_for_what_is_away_at_its_start_and_says_so(bench: Bench, away: str) -> None:
    part = getattr(bench, away)
    part.down = "it is away"
    worker = bench.worker()
    assert not worker.start()
    assert bench.status().verdict == "PENDING"
    assert bench.status().health.reasons == ["it is away"]
    part.down = None
    assert worker.start()


def test_a_second_worker_stands_by_until_the_first_lets_go(bench: Bench) -> None:
    first = bench.started()
    second = bench.worker()
    assert not second.start()
    assert "stands by" in bench.status().health.reasons[0]
    bench.storage.lease = None
    bench.run(first)
    assert not second.start(), "an idle worker takes its lease back"
    first.stop()
    assert second.start()


def test_a_worker_that_was_replaced_stops_at_its_next_checkpoint(bench: Bench) -> None:
    first = bench.started()
    bench.storage.lease = None
    bench.started()
    bench.write_both(*EVENTS)
    with pytest.raises(Fenced):
        bench.run(first)


def test_a_store_that_lost_everything_is_written_anew_by_an_idle_worker(bench: Bench) -> None:
    bench.write_both(*EVENTS)
    bench.run()
    bench.storage.stored, bench.storage.owner = EMPTY, None
    bench.run()
    assert bench.storage.stored.bodies


def test_undecodable_records_are_counted_and_beyond_the_budget_make_the_verdict_inconclusive() -> None:
    bench = Bench(spec=SPEC + "undecodable: {budget: 1}\n")
    bench.write_both(*EVENTS)
    bench.source.append(Side.RIGHT, 0, b"{not json")
    status = bench.run()
    assert (status.verdict, status.accounts.candidate.undecodable) == ("EQUIVALENT", 1)
    (record,) = status.undecodable
    assert record.reason.startswith("not JSON")
    assert (record.side, record.position.offset) == ("candidate", 60)
    for junk in (None, b'{"n": 1}'):
        bench.source.append(Side.RIGHT, 0, junk)
    status = bench.finds("INCONCLUSIVE", "undecodable.budget (1)")
    assert [record.reason for record in status.undecodable][1:] == [
        "a tombstone (a record without a value) is not an event",
        "field `k`, that the order needs, is missing",
    ]


NO_EVENTS = (
    b'{"k": 1',
    None,
    b'{"k": 1, "n": NaN}',
    b'{"k": 1, "k": 2, "n": 3}',
    b"[" * 5_000 + b"]" * 5_000,
    b'{"k": 1, "n": "\xff\xfe"}',
    b"",
    b'{"n": 1}',
    b"\x00\x01\x02",
    b'{"k": 1, "n": "\\ud800"}',
)


def test_thousands_of_records_that_are_no_events_are_counted_and_all_others_are_compared() -> None:
    bench = Bench(spec=SPEC + "undecodable: {budget: 250}\n")
    bench.write_both(*EVENTS)
    for number in range(10_000):
        bench.source.append(Side.RIGHT, 0, NO_EVENTS[number % len(NO_EVENTS)])
    bench.write(Side.LEFT, ("b", -1))
    bench.write_both(*(("b", number) for number in range(60)))
    status = bench.run(steps=20)
    assert (status.verdict, status.matched) == ("INCONCLUSIVE", 120)
    assert status.accounts.candidate.undecodable == 10_000
    (hole,) = status.holes
    assert hole.reason.startswith("more records than undecodable.budget (250) are no events")
    assert (hole.position.topic, hole.position.offset) == ("test.candidate", 60 + 250)
    assert [report.tainted for report in bench.reports().values()] == [True], "it is behind a hole"
    assert (len(status.undecodable), len(status.model_dump_json()) < 100_000) == (20, True)


def test_a_difference_counts_that_stands_before_the_undecodable_record_of_its_batch(bench: Bench) -> None:
    bench.write(Side.LEFT, ("a", 1), ("a", 2))
    bench.run()
    bench.write(Side.RIGHT, ("a", 2))
    bench.source.append(Side.RIGHT, 0, b"garbage")
    bench.write(Side.RIGHT, ("b", 1))
    status = bench.run()
    assert status.verdict == "DIVERGED"
    assert status.accounts.candidate.undecodable == 1


def test_a_matcher_beyond_its_memory_limit_keeps_nothing_more_and_says_so(bench: Bench) -> None:
    bench.caution = Caution(Trail(), memory_limit_bytes=1)
    bench.write_both(("a", 1))
    bench.finds("INCONCLUSIVE", "the memory limit of a matcher (1 bytes, ")


def test_the_status_says_where_the_log_begins_as_of_the_last_look(bench: Bench) -> None:
    bench.write_both(("a", 0), ("a", 1), ("a", 2))
    bench.run()
    assert bench.run().progress.reference[0].first == 0
    bench.source.retain(Side.LEFT, 0, 2)
    bench.run()
    status = bench.run()
    assert (status.progress.reference[0].first, status.progress.reference[0].position) == (2, 3)
    assert status.progress.candidate[0].first == 0


def test_the_lag_is_told_as_of_now_and_not_as_of_the_last_checkpoint(bench: Bench) -> None:
    worker = bench.started()
    bench.write_both(("a", 0))
    saved = bench.run(worker).checkpoint
    bench.write(Side.LEFT, ("a", 1), ("a", 2))
    worker.beat()
    status = bench.status()
    assert status.checkpoint.written_at == saved.written_at
    reference = status.progress.reference[0]
    assert (reference.position, reference.end, reference.lag) == (1, 3, 2)


def test_topics_that_have_lost_their_beginnings_are_no_safe_start(bench: Bench) -> None:
    bench.source.retain(Side.RIGHT, 0, 5)
    reason = bench.refused().reason
    assert "no safe start: the candidate has no records below offset 5 in partition 0" in reason


def test_a_damaged_checkpoint_is_refused_by_name(bench: Bench) -> None:
    bench.storage.stored = Stored(1, b"garbage", (b"garbage",), {})
    with pytest.raises(CheckpointError, match="not a Twinstream checkpoint"):
        bench.worker().start()


def test_state_of_another_version_is_refused_by_what_it_lacks(bench: Bench) -> None:
    bench.write_both(*EVENTS)
    bench.run()
    stored = bench.storage.stored
    head = checkpoint.decode(stored.head)
    del head["compared_from"]
    bench.storage.stored = stored._replace(head=checkpoint.encode(head))
    bench.storage.lease = None
    with pytest.raises(CheckpointError, match="has no 'compared_from', so another version wrote it: remove"):
        bench.worker().start()


def test_once_a_limit_was_reached_both_sides_are_counted_to_their_ends() -> None:
    bench = Bench(spec=SPEC + "limits: {unmatched_events: 1000}\n", source=MemorySource(batch=2000))
    bench.write(Side.LEFT, *(("a", number) for number in range(5000)))
    bench.write(Side.RIGHT, ("b", 0))
    status = bench.run(steps=50)
    assert (status.verdict, len(status.holes)) == ("INCONCLUSIVE", 1)
    assert "limits.unmatched_events (1000)" in status.reason
    assert (status.accounts.reference.consumed, status.accounts.candidate.consumed) == (5000, 1)


class _AnswersLost(MemoryStore):
    """A store whose next save takes effect, but whose answer does not arrive."""

    lose_answer = False

    def save(self, checkpoint: Checkpoint) -> None:
        super().save(checkpoint)
        if self.lose_answer:
            self.lose_answer = False
            raise StoreError("the answer was lost")


def test_a_save_whose_answer_was_lost_is_not_mistaken_for_the_next_one(bench: Bench) -> None:
    bench.store = store = _AnswersLost(bench.storage, "worker")
    bench.write_both(("a", 0))
    bench.started()
    store.lose_answer = True
    bench.run()
    bench.write(Side.LEFT, ("a", 1), ("a", 2))
    bench.write(Side.RIGHT, ("a", 2))
    status = bench.run()
    assert status.verdict == "DIVERGED"
    bench.store = None
    assert bench.restarted().comparison.diverged, "what was announced is in the checkpoint"
    assert bench.storage.stored.sequence == status.checkpoint.sequence


def test_a_changed_comparison_file_begins_anew_and_forgets_the_divergences_of_the_old_one(
    bench: Bench,
) -> None:
    worker = bench.started()
    bench.write(Side.LEFT, ("a", -1))
    bench.write_both(*(("a", number) for number in range(20)))
    bench.run()
    worker.stop()
    assert bench.storage.stored.divergences
    bench.spec = SPEC.replace("order: {per_key: [k]}", "order: unordered")
    again = bench.started()
    resumed = [one.divergences for one in bench.publisher.published if isinstance(one, Resumed)]
    assert (again.comparison.matched, bench.storage.stored.divergences, resumed[-1]) == (0, {}, ())
    assert bench.run().matched == 20


def test_a_checkpoint_after_the_first_holds_only_what_changed_and_all_of_them_are_restored(
    bench: Bench,
) -> None:
    bench.write(Side.LEFT, *EVENTS)
    bench.run()
    bench.write(Side.LEFT, ("z", 1))
    bench.run()
    base, delta = bench.storage.stored.bodies
    assert len(delta) < len(base)
    bench.write(Side.RIGHT, *EVENTS, ("z", 1))
    status = bench.run(bench.restarted())
    assert (status.verdict, status.matched) == ("EQUIVALENT", 61)


def test_what_is_old_goes_out_of_the_checkpoint_when_the_deltas_have_grown(bench: Bench) -> None:
    counts = []
    for number in range(100):
        bench.write_both(("a", number))
        bench.run(steps=1)
        counts.append(len(bench.storage.stored.bodies))
    assert 1 < max(counts) < 20
    assert any(after < before for before, after in pairwise(counts))
    assert bench.restarted().comparison.matched == 100


def test_a_store_that_went_back_to_an_older_state_gets_a_whole_base_at_once_with_all_divergences(
    bench: Bench,
) -> None:
    worker = bench.started()
    bench.write_both(*EVENTS)
    bench.run(worker)
    older = bench.storage.stored
    bench.write(Side.LEFT, ("a", -1))
    bench.write_both(*(("a", number) for number in range(20)))
    bench.run(worker)
    (known,) = bench.storage.stored.divergences
    bench.storage.stored = older
    bench.write_both(("c", 99))
    bench.run(worker)
    assert len(bench.storage.stored.bodies) == 1
    assert set(bench.storage.stored.divergences) == {known}
    assert bench.restarted().comparison.matched == worker.comparison.matched


def test_after_a_save_that_failed_a_whole_base_is_written(bench: Bench) -> None:
    bench.write(Side.LEFT, *EVENTS)
    bench.run()
    bench.storage.down = "the store is away"
    bench.write(Side.LEFT, ("y", 1))
    bench.run()
    bench.storage.down = None
    bench.write(Side.LEFT, ("z", 1))
    bench.run()
    assert len(bench.storage.stored.bodies) == 1
    bench.write(Side.RIGHT, *EVENTS, ("y", 1), ("z", 1))
    assert bench.run(bench.restarted()).matched == 62


class _PausedInside(MemoryStore):
    """A store in whose next answer the process is paused for a while."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.storage, "worker")
        self._clock, self.pause_seconds = bench.clock, 0.0

    def save(self, checkpoint: Checkpoint) -> None:
        super().save(checkpoint)
        self._clock.advance(self.pause_seconds)
        self.pause_seconds = 0.0


def test_a_pause_during_a_save_does_not_put_off_the_next_for_long(bench: Bench) -> None:
    bench.store = store = _PausedInside(bench)
    bench.started()
    store.pause_seconds = 600.0
    bench.write_both(*EVENTS)
    bench.run()
    bench.write_both(*EVENTS)
    bench.clock.advance(PUT_OFF_SECONDS)
    assert bench.run().verified_up_to.reference == {"0": 120}


def test_a_store_that_does_not_tell_its_memory_is_no_trouble(bench: Bench) -> None:
    worker = bench.started()
    bench.write_both(("a", 1))
    told = bench.run(worker).checkpoint.store_bytes
    assert told

    def refuse() -> int:
        raise StoreError("the user may not")

    worker._store.memory_bytes = refuse  # type: ignore[method-assign]
    bench.write_both(("a", 2))
    status = bench.run(worker)
    assert (status.checkpoint.store_bytes, status.health.status) == (told, "ok")


class _Hanging(MemoryStore):
    """A store that may hang: a call takes its time-outs, and to ask whether it answers a moment."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.storage, "worker")
        self._clock, self.hangs, self.hung_seconds = bench.clock, False, 0.0

    def _hang(self, seconds: float) -> None:
        if self.hangs:
            self._clock.advance(seconds)
            self.hung_seconds += seconds
            raise StoreError("no answer came")

    def answers(self) -> bool:
        self._hang(0.2)
        return super().answers()

    def save(self, checkpoint: Checkpoint) -> None:
        self._hang(4.0)
        super().save(checkpoint)

    def renew(self, sequence: int) -> bool:
        self._hang(4.0)
        return super().renew(sequence)


def test_since_when_a_verdict_holds_is_known_after_a_restart(bench: Bench) -> None:
    bench.write_both(*((1, number) for number in range(5)))
    bench.run()
    bench.write(Side.LEFT, (1, 5))
    bench.write_both((1, 6))
    before = bench.run()
    assert before.verdict == "DIVERGED"
    for _ in range(3):
        bench.run()
    bench.clock.advance(60)
    after = bench.run(bench.restarted())
    assert (after.verdict, after.since) == ("DIVERGED", before.since)


@pytest.mark.parametrize("seconds", [5, 50, 500])
def test_a_store_that_hung_is_used_again_within_seconds_and_has_not_stopped_matching_for_long(
    bench: Bench,
    seconds: int,
) -> None:
    bench.store = store = _Hanging(bench)
    worker = bench.started()
    bench.run(worker)

    def work(until: float) -> None:
        while bench.clock.monotonic() < until:
            bench.write_both(("a", 1))
            worker.step()
            bench.clock.advance(0.1)

    store.hangs = True
    began = bench.clock.monotonic()
    work(began + seconds)
    assert bench.status().health.unreachable == ["redis"]
    assert store.hung_seconds < 4.0 + 0.2 * seconds
    store.hangs = False
    work(bench.clock.monotonic() + 3.5)
    assert bench.status().health.status == "ok"
    assert bench.storage.stored.sequence == bench.status().checkpoint.sequence
