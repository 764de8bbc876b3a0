"""A comparison begins anew: where it was asked to, in one step, and with nothing left of what was before."""

from __future__ import annotations

from typing import Any

import pytest

from loadtest.memory import MemorySource, MemoryStorage, MemoryStore
from tests.support.saying import VERSIONS
from tests.support.workers import SPEC, Bench, answers, ask
from twinstream.core.events import Side
from twinstream.errors import StoreError
from twinstream.matcher.reset_commit import TAKE_SECONDS
from twinstream.matcher.worker import Worker
from twinstream.ports import Asked
from twinstream.starting.reset_model import PATIENCE_SECONDS
from twinstream.status.comparison import Reset, ResetRefused, ResetRequest

EVENTS = [("a", number) for number in range(40)]


def request(start: Any = None, identifier: str = "r-1") -> ResetRequest:
    return ResetRequest(id=identifier, by="ann", reason="mended", address="127.0.0.1", start=start)


def diverged(spec: str = SPEC, **source: int) -> tuple[Bench, Worker]:
    """A comparison that has found one event missing, and has gone on."""
    bench = Bench(spec, source=MemorySource(**source))
    worker = bench.started()
    bench.write(Side.LEFT, *EVENTS)
    bench.write(Side.RIGHT, *EVENTS[:5], *EVENTS[6:])
    assert bench.run(worker, steps=20).verdict == "DIVERGED"
    return bench, worker


def refusal(bench: Bench) -> str:
    """The last answer is a refusal: its reason."""
    last = answers(bench.storage)[-1]
    assert isinstance(last, ResetRefused), last
    assert not last.open
    return last.reason


def test_a_comparison_that_is_reset_begins_anew_where_its_file_says_and_forgets_what_it_found() -> None:
    bench, worker = diverged()
    before = bench.status()
    assert bench.reset(worker, request())
    waiting = bench.status()
    assert (waiting.verdict, waiting.health.status, waiting.reset_count) == ("PENDING", "degraded", 1)
    status = bench.run(bench.restarted(), steps=20)
    assert (status.verdict, status.matched) == ("DIVERGED", before.matched)
    assert status.started_at > before.started_at
    assert [record.by for record in status.resets] == ["ann"]


def test_the_record_says_who_when_why_from_where_and_what_the_verdict_was() -> None:
    bench, worker = diverged()
    before = bench.status()
    assert bench.reset(worker, request("now"))
    record = next(said for said in bench.publisher.published if isinstance(said, Reset))
    assert record.model_dump(exclude={"at", "before"}) == {
        "id": "r-1",
        "comparison": "test",
        "by": "ann",
        "reason": "mended",
        "address": "127.0.0.1",
        "start": {"at": "offsets", "reference": {"0": 40}, "candidate": {"0": 39}},
    }
    assert record.at == bench.clock.now()
    assert record.before.model_dump() == {
        "verdict": "DIVERGED",
        "since": before.since,
        "started_at": before.started_at,
        "matched": 39,
        "divergences": 1,
        "positions": {"reference": {"0": 40}, "candidate": {"0": 39}},
    }


def test_it_begins_now_with_what_both_put_out_from_now_on() -> None:
    bench, worker = diverged()
    assert bench.reset(worker, request("now"))
    worker = bench.restarted()
    bench.write_both(*EVENTS[:7])
    status = bench.run(worker)
    assert (status.verdict, status.matched, status.divergences.total) == ("EQUIVALENT", 7, 0)
    assert bench.storage.stored.divergences == {}
    worker.stop()
    status = bench.run(bench.restarted())
    assert (status.verdict, status.matched, status.reset_count) == ("EQUIVALENT", 7, 1)


def test_now_waits_for_a_moment_at_which_nothing_waits_for_its_partner() -> None:
    bench, worker = diverged()
    bench.write(Side.LEFT, ("b", 1))
    bench.run(worker)
    assert not bench.reset(worker, request("now"))
    bench.write(Side.RIGHT, ("b", 1))
    worker.step()
    assert worker.begin_anew()


def test_now_is_refused_where_one_side_may_still_put_out_what_lies_before_the_start() -> None:
    bench, worker = diverged()
    assert bench.reset(worker, request({"at": "event_time", "field": "n", "from": 1_000}))
    worker = bench.restarted()
    bench.write(Side.LEFT, ("b", 1))
    assert bench.run(worker).accounts.reference.before_start == 41
    assert not bench.reset(worker, request("now", "r-2"))
    assert refusal(bench) == (
        "`now` cannot be its start, since of what lies before its own start (`start: event_time`) one side "
        "may still write more: name a barrier, an event time or offsets as `start`"
    )
    bench.write(Side.RIGHT, ("b", 1))
    assert bench.run(worker).verdict == "PENDING"


def test_now_is_refused_when_no_such_moment_comes_nothing_changes_and_another_request_has_waited() -> None:
    bench, worker = diverged()
    bench.write(Side.LEFT, ("b", 1))
    bench.run(worker)
    assert not bench.reset(worker, request("now"))
    assert not bench.reset(worker, request(identifier="r-2"))
    assert bench.storage.request is not None
    bench.clock.advance(PATIENCE_SECONDS)
    assert not worker.begin_anew()
    assert refusal(bench) == (
        "`now` needs a moment at which no event waits for a partner, and in 10 s there was none (1 of the "
        "reference, 0 of the candidate): try again, let both versions rest, or name a barrier, an event time "
        "or offsets as `start`"
    )
    assert bench.run(worker).verdict == "DIVERGED"
    assert worker.begin_anew()
    assert [one.id for one in answers(bench.storage)] == ["r-1", "r-2"]


def test_partners_of_what_was_not_checked_may_still_come_and_are_waited_for() -> None:
    bench, worker = diverged()
    bench.source.add_partition(Side.LEFT)
    bench.run(worker)
    assert bench.status().hole_count == 1
    assert not bench.reset(worker, request("now"))
    bench.clock.advance(61)
    assert worker.begin_anew()


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
@pytest.mark.parametrize("again", [False, True])
def test_how_long_they_are_waited_for_is_no_matter_of_the_time_of_day(jump: float, again: bool) -> None:
    bench, worker = diverged()
    bench.source.add_partition(Side.LEFT)
    bench.run(worker)
    bench.write_both(("b", 1))
    bench.run(worker)
    if again:
        worker.stop()
        worker = bench.restarted()
    bench.clock.set(jump)
    assert not bench.reset(worker, request("now"))
    bench.clock.advance(61)
    assert worker.begin_anew()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("duplicates: {policy: replays}\n", "a retry may write again"),
        ("on_divergence: halt\n", "it has halted"),
    ],
)
def test_now_is_refused_where_the_matcher_does_not_follow_all_that_is_put_out(more: str, why: str) -> None:
    bench = Bench(SPEC + more)
    worker = bench.started()
    bench.write(Side.LEFT, *EVENTS)
    bench.write(Side.RIGHT, *EVENTS[:5], *EVENTS[6:])
    bench.run(worker, steps=20)
    assert not bench.reset(worker, request("now"))
    assert why in refusal(bench)


@pytest.mark.parametrize(
    ("start", "why"),
    [
        ({"at": "earliest"}, "no safe start: the reference has no records below offset 3"),
        ({"at": "offsets", "reference": {"0": 1}, "candidate": {"0": 1}}, "the first that can be read is 3"),
        ({"at": "barrier"}, "only where the outermost form of `order` is a barrier"),
        ({"at": "event_time", "field": "n"}, "`at: event_time` needs `from`"),
        ({"at": "event_time", "field": "$key", "from": 1}, "more of each record than is read"),
        ({"at": "input"}, "`input` needs `control`"),
    ],
)
def test_a_start_that_cannot_be_is_refused_with_the_reason_and_nothing_changes(
    start: dict[str, Any], why: str
) -> None:
    bench, worker = diverged()
    bench.source.retain(Side.LEFT, 0, 3)
    before = bench.storage.stored
    assert not bench.reset(worker, request(start))
    assert why in refusal(bench)
    assert bench.storage.stored == before


def test_a_reset_to_topics_that_cannot_be_compared_is_refused_and_nothing_changes() -> None:
    bench, worker = diverged()
    bench.source.set_cleanup_policy(Side.LEFT, "compact")
    before = bench.storage.stored
    assert not bench.reset(worker, request())
    assert "compaction removes records that are to be compared" in refusal(bench)
    assert bench.storage.stored == before


def test_a_start_that_needs_no_look_at_the_topics_is_taken_while_kafka_is_away() -> None:
    bench, worker = diverged()
    bench.source.down = True
    assert bench.reset(worker, request({"at": "event_time", "field": "n", "from": 10.5}))


def test_it_begins_at_the_start_that_was_named_also_after_restarts() -> None:
    bench, worker = diverged()
    assert bench.reset(worker, request({"at": "event_time", "field": "n", "from": 10.5}))
    for _ in range(2):
        worker = bench.restarted()
        status = bench.run(worker, steps=20)
        assert (status.verdict, status.matched, status.accounts.reference.before_start) == (
            "EQUIVALENT",
            29,
            11,
        )
        worker.stop()


def test_a_reset_without_a_start_goes_back_to_that_of_the_file() -> None:
    bench, worker = diverged()
    assert bench.reset(worker, request("now"))
    worker = bench.restarted()
    bench.run(worker)
    assert bench.reset(worker, request(identifier="r-2"))
    status = bench.run(bench.restarted(), steps=20)
    assert (status.verdict, status.events.reference, status.reset_count) == ("DIVERGED", 40, 2)
    assert [record.id for record in status.resets] == ["r-1", "r-2"]


def test_a_comparison_without_a_safe_start_can_be_given_one() -> None:
    bench = Bench()
    bench.write_both(*EVENTS)
    bench.source.retain(Side.LEFT, 0, 3)
    worker = bench.worker()
    assert not worker.start()
    assert not bench.reset(worker, request("now"))
    assert "it has not begun" in refusal(bench)
    start = {"at": "offsets", "reference": {"0": 3}, "candidate": {"0": 3}}
    assert bench.reset(worker, request(start))
    assert bench.run(bench.restarted()).matched == 37


def test_a_standby_takes_no_request_and_the_owner_does() -> None:
    bench, worker = diverged()
    standby = bench.worker()
    assert not standby.start()
    assert not bench.reset(standby, request())
    assert answers(bench.storage) == []
    assert worker.begin_anew()


def test_requests_are_looked_for_once_a_second() -> None:
    bench, worker = diverged()
    assert not worker.begin_anew()
    ask(bench.storage, request())
    assert not worker.begin_anew()
    bench.clock.advance(TAKE_SECONDS)
    assert worker.begin_anew()


def test_a_request_that_was_refused_and_that_a_fail_over_brings_back_is_not_taken_again() -> None:
    bench, worker = diverged()
    bench.write(Side.LEFT, ("b", 1))
    bench.run(worker)
    ask(bench.storage, request("now"))
    brought_back = bench.storage.request
    assert not worker.begin_anew()
    bench.clock.advance(PATIENCE_SECONDS)
    assert not worker.begin_anew()
    assert "there was none" in refusal(bench)
    bench.storage.request = brought_back
    bench.write(Side.RIGHT, ("b", 1))
    bench.run(worker)
    assert not worker.begin_anew()
    assert bench.status().reset_count == 0


def test_what_is_no_request_of_this_version_is_left_aside() -> None:
    bench, worker = diverged()
    bench.storage.request = Asked("ticket", b'{"id": 1}')
    assert not worker.begin_anew()
    assert answers(bench.storage) == []
    assert bench.reset(worker, request())


def test_while_its_store_is_away_a_comparison_is_not_reset() -> None:
    bench, worker = diverged()
    bench.write(Side.LEFT, ("b", 1))
    bench.run(worker)
    assert not bench.reset(worker, request("now"))
    bench.storage.down = "redis is away"
    bench.write(Side.RIGHT, ("b", 1))
    bench.run(worker)
    assert not worker.begin_anew()
    bench.storage.down = None
    assert answers(bench.storage) == [], "nobody could be told"
    assert not bench.reset(worker, request(identifier="r-2"))
    assert "redis is away" in refusal(bench), "nothing was saved since"
    assert bench.run(worker).verdict == "DIVERGED"


def test_a_store_that_fails_in_the_middle_ends_the_worker_and_nobody_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, worker = diverged()

    def fail(*_: object) -> None:
        raise StoreError("redis is away")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "save", fail)
        with pytest.raises(StoreError, match="redis is away"):
            bench.reset(worker, request())
    (answer,) = answers(bench.storage)
    assert isinstance(answer, ResetRefused)
    assert answer.open
    assert bench.run(bench.restarted()).verdict == "DIVERGED"


# -- the second witness ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "matched"),
    [
        ({"at": "offsets", "reference": {"0": 6}, "candidate": {"0": 5}}, 34),
        ({"at": "event_time", "field": "n", "from": 10}, 30),
    ],
)
def test_a_comparison_that_was_reset_and_whose_store_is_empty_is_read_again_from_the_new_start(
    start: dict[str, Any], matched: int
) -> None:
    bench, worker = diverged()
    assert bench.reset(worker, request(start))
    worker = bench.restarted()
    assert bench.run(worker, steps=20).matched == matched
    worker.stop()
    bench.storage = MemoryStorage()
    status = bench.run(bench.started(), steps=20)
    assert (status.verdict, status.matched, status.reset_count) == ("EQUIVALENT", matched, 1)


def test_a_reset_that_found_no_safe_start_is_not_remembered_as_one_when_the_store_is_empty() -> None:
    bench = Bench()
    worker = bench.started()
    bench.write_both(*EVENTS)
    bench.run(worker, steps=20)
    assert bench.reset(worker, request())
    for side, first in ((Side.LEFT, 20), (Side.RIGHT, 10)):
        bench.source.retain(side, 0, first)
    bench.storage.lease = None
    assert "no safe start" in bench.refused().reason
    bench.storage = MemoryStorage()
    assert bench.run(bench.started(), steps=20).verdict == "INCONCLUSIVE"


def test_a_living_owner_whose_store_has_lost_the_reset_leaves_nothing_of_the_old_comparison() -> None:
    bench, worker = diverged()
    older = bench.storage.stored
    assert older.divergences
    assert bench.reset(worker, request("now"))
    worker = bench.restarted()
    bench.write_both(*EVENTS[:5])
    bench.run(worker)
    bench.storage.stored = older
    bench.run(worker)
    worker.stop()
    assert bench.storage.stored.divergences == {}
    status = bench.run(bench.started())
    assert (status.verdict, status.matched, status.reset_count) == ("EQUIVALENT", 5, 1)


def test_a_reset_that_the_store_has_lost_is_a_hole_and_the_old_comparison_goes_on() -> None:
    bench, worker = diverged()
    older = bench.storage.stored
    assert bench.reset(worker, request("now"))
    worker = bench.restarted()
    bench.write_both(*EVENTS[:5])
    bench.run(worker)
    worker.stop()
    bench.storage.stored = older
    status = bench.run(bench.restarted(), steps=20)
    assert (status.verdict, status.reset_count) == ("DIVERGED", 0)
    assert (
        status.holes[0].reason
        == "a reset was lost, since the state in the store was lost in part: reset it again"
    )


def test_a_store_without_the_last_reset_but_with_another_of_its_number_has_lost_it() -> None:
    bench, worker = diverged()
    older = bench.storage.stored
    assert bench.reset(worker, request("now"))
    worker = bench.restarted()
    bench.write_both(*EVENTS[:5])
    assert bench.run(worker).verdict == "EQUIVALENT"
    worker.stop()
    primary, bench.storage.stored = bench.storage.stored, older
    start = {"at": "offsets", "reference": {"0": 0}, "candidate": {"0": 0}}
    assert bench.reset(bench.restarted(), request(start, "r-2"))
    assert bench.run(bench.restarted(), steps=20).verdict == "DIVERGED"
    bench.storage.stored = primary
    worker = bench.restarted()
    status = bench.run(worker, steps=20)
    assert (status.verdict, status.reset_count) == ("INCONCLUSIVE", 1)
    (hole,) = status.holes
    assert hole.reason == "a reset was lost, since the state in the store was lost in part: reset it again"
    start = {"at": "offsets", "reference": {"0": 30}, "candidate": {"0": 29}}
    assert bench.reset(worker, request(start, "r-3"))
    assert bench.run(bench.restarted(), steps=20).holes == []


def test_a_reset_that_has_the_number_of_a_lost_one_begins_where_it_was_asked_to() -> None:
    bench, worker = diverged()
    older = bench.storage.stored
    assert bench.reset(worker, request("now"))
    worker = bench.restarted()
    for event in EVENTS[:5]:
        bench.write_both(event)
        bench.run(worker, steps=20)
    worker.stop()
    bench.storage.stored = older
    worker = bench.restarted()
    ends = {side: {"0": bench.source.topics()[side].ends[0]} for side in Side}
    start = {"at": "offsets", "reference": ends[Side.LEFT], "candidate": ends[Side.RIGHT]}
    assert bench.reset(worker, request(start, "r-2"))
    worker = bench.restarted()
    bench.write_both(*EVENTS[5:7])
    status = bench.run(worker)
    assert (status.verdict, status.matched, status.reset_count) == ("EQUIVALENT", 2, 1)


def test_a_reset_that_is_asked_for_again_is_done_once_and_its_record_is_the_answer() -> None:
    bench, worker = diverged()
    assert bench.reset(worker, request("now"))
    made = next(said for said in bench.publisher.published if isinstance(said, Reset))
    worker = bench.restarted()
    bench.write_both(*EVENTS[:7])
    bench.run(worker)
    assert not bench.reset(worker, request("now"))
    assert answers(bench.storage) == [made, made]
    status = bench.run(worker)
    assert (status.matched, status.reset_count) == (7, 1)


# -- what versions said before ---------------------------------------------------------------------------

HEARS = (
    f"{VERSIONS}control: test.control\norder: unordered\nshow: [k, n]\nevidence: {{matched: 1, seconds: 0}}\n"
)
BY_INPUT = f"{HEARS}overdue: {{clock: input}}\n"
TABLE = f"{BY_INPUT}emits: {{upsert: {{key: [k], settled_by: input}}}}\n"


def both_finish(bench: Bench, number: int, **right: object) -> None:
    """Both versions write the same event, and have finished its batch."""
    bench.write_both(("a", number))
    bench.finish(Side.LEFT, number, number + 1, watermark=10 * number)
    bench.finish(Side.RIGHT, number, number + 1, **{"watermark": 10 * number, **right})


@pytest.mark.parametrize("start", ["now", {"at": "offsets", "reference": {0: 5}, "candidate": {0: 5}}])
def test_a_query_that_was_created_anew_before_the_start_is_no_hole(start: Any) -> None:
    bench = Bench(spec=BY_INPUT)
    worker = bench.started()
    for number in range(5):
        both_finish(bench, number)
    bench.finish(Side.RIGHT, 0, 5, query_id="anew")
    assert bench.settled(worker).hole_count == 1
    bench.clock.advance(61)
    bench.settled(worker)
    assert bench.reset(worker, request(start=start))
    worker = bench.restarted()
    both_finish(bench, 5, query_id="anew")
    assert (bench.settled(worker).verdict, bench.status().hole_count) == ("EQUIVALENT", 0)


def test_a_watermark_that_went_back_before_the_start_violates_nothing() -> None:
    bench = Bench(spec=f"{HEARS}checks: [{{id: never-back, watermark: never_back}}]\n")
    worker = bench.started()
    both_finish(bench, 3)
    both_finish(bench, 4, watermark=5)
    assert bench.settled(worker).checks[0].candidate.violations == 1
    bench.reset(worker, request(start="now"))
    worker = bench.restarted()
    both_finish(bench, 5, watermark=6)
    assert bench.settled(worker).checks[0].candidate.violations == 0
    both_finish(bench, 6, watermark=5)
    assert bench.settled(worker).checks[0].candidate.violations == 1


def test_what_was_said_of_a_topic_is_not_taken_as_said_of_the_one_that_was_created_anew() -> None:
    bench = Bench(spec=TABLE)
    worker = bench.started()
    for number in range(3):
        both_finish(bench, number)
    bench.settled(worker)
    for side in Side:
        bench.source.create_anew(side)
    bench.clock.advance(2)
    assert "created anew" in bench.settled(worker).holes[0].reason
    bench.reset(worker, request(start=None))
    worker = bench.restarted()
    for number in (3, 4, 5):  # The candidate writes of two input records what the reference does of each.
        bench.write(Side.LEFT, ("a", number))
        bench.finish(Side.LEFT, number, number + 1)
    bench.write(Side.RIGHT, ("a", 4))
    bench.finish(Side.RIGHT, 3, 5)
    bench.settled(worker)
    bench.write(Side.RIGHT, ("a", 5))
    bench.finish(Side.RIGHT, 4, 6)
    assert bench.settled(worker).verdict == "EQUIVALENT"
