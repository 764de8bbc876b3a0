"""The worker on the clocks of event time and of the input: what it hears, judges, shows and keeps."""

from __future__ import annotations

import orjson
import pytest

from tests.support.saying import VERSIONS, control_record
from tests.support.workers import SPEC, Bench
from twinstream.core.events import Side
from twinstream.spec.decode.headers import input_header
from twinstream.spec.lint.topics import Topic
from twinstream.status.comparison import Frontier, ResetRequest

LEFT, RIGHT = Side
HEAD = (
    VERSIONS
    + """\
order: unordered
show: [n]
evidence: {matched: 1, seconds: 0}
"""
)
INPUT = f"{HEAD}control: test.control\noverdue: {{clock: input}}\n"
TIMED = f"{HEAD}overdue: {{clock: event_time, field: t, after: 10s, idle_after: 30s}}\n"
SECOND = 1000


class Clocked(Bench):
    """A bench whose events come from records of an input, or have times of their own."""

    def put_out(self, side: Side, *offsets: int) -> None:
        """Events that come from these records of the input."""
        for offset in offsets:
            headers = [input_header("in", 0, offset)]
            self.source.append(side, 0, orjson.dumps({"n": offset}), 0, headers)

    def batch(self, offset: int, *sides: Side) -> None:
        """Both versions finish a batch of one record of the input; these sides have an event of it."""
        for side in Side:
            self.put_out(side, *[offset][: side in sides])
            self.finish(side, offset, offset + 1)

    def timed(self, side: Side, *seconds: int, name: str = "tick", partition: int = 0) -> None:
        """Events with these times."""
        for second in seconds:
            record = orjson.dumps({"n": name, "t": second * SECOND})
            self.source.append(side, partition, record, second * SECOND)


@pytest.fixture
def bench() -> Clocked:
    return Clocked(spec=INPUT)


def test_records_of_other_versions_and_other_topics_say_nothing(bench: Clocked) -> None:
    bench.put_out(LEFT, 0)
    for version, topic in (("3", "test.candidate"), ("2", "elsewhere")):
        bench.source.say(control_record(version, 0, {"in": {0: 10}}, {topic: {0: 0}}))
    status = bench.settled()
    assert not status.divergences.total
    assert status.frontier.candidate.held_back_by == (
        "version 2 has said nothing about test.candidate on test.control yet"
    )


def test_a_record_that_cannot_be_read_degrades_health_until_the_next_and_is_no_hole(bench: Clocked) -> None:
    bench.source.say(b"{}")
    status = bench.settled()
    (reason,) = status.health.reasons
    assert reason.startswith("the newest record of test.control, at offset 0, cannot be used: no control")
    assert (status.hole_count, status.health.status) == (0, "degraded")
    bench.finish(LEFT, 0, 1)
    assert bench.settled().health.status == "ok"


def test_a_record_that_cannot_be_read_is_remembered_over_a_restart(bench: Clocked) -> None:
    bench.source.say(b"{}")
    health = bench.settled(bench.started()).health
    assert health.status == "degraded"
    worker = bench.restarted()
    assert bench.settled(worker).health == health
    bench.finish(LEFT, 0, 1)
    assert bench.settled(worker).health.status == "ok"


def test_numbers_that_nothing_counts_up_to_are_no_record_and_stop_no_matcher(bench: Clocked) -> None:
    worker, largest = bench.started(), 2**63 - 1
    bench.finish(RIGHT, largest, largest, written=largest, watermark=largest)
    assert bench.settled(worker).health.status == "ok"
    bench.finish(RIGHT, largest + 1, 1)
    (reason,) = bench.settled(worker).health.reasons
    assert "offset 1, cannot be used: no control record: `batch`" in reason
    assert bench.run(bench.restarted()).hole_count == 0, "what was said before is saved, and read again"


def test_on_the_clock_of_the_input_a_suspicion_says_that_the_input_was_consumed(bench: Clocked) -> None:
    for side, number, marked in ((LEFT, 1, True), (RIGHT, 1, False), (RIGHT, 2, True)):
        headers = [input_header("in", 0, number)] if marked else []
        bench.source.append(side, 0, orjson.dumps({"n": number, "t": 0}), 0, headers)
    for side in Side:
        bench.finish(side, 1, 10)
    told = "1 unmatched event is overdue: the other side has consumed its input without its partner"
    assert bench.settled().reason == f"Not decided: {told}."


MISSING = "topic test.control: there is no such topic"


def test_a_control_topic_that_is_deleted_is_named_until_it_is_there_again(bench: Clocked) -> None:
    bench.source.control_topic = None
    bench.write_both(("a", 1))
    status = bench.settled()
    assert (status.health.status, status.health.reasons, status.matched) == ("degraded", [MISSING], 1)
    bench.source.control_topic = Topic(1, "delete")
    assert bench.settled().health.status == "ok"
    bench.source.control_topic = None
    assert bench.settled().health.reasons == [MISSING]
    bench.source.control_topic = Topic(1, "delete")
    assert bench.settled().health.reasons == []


@pytest.mark.parametrize("restarts", [False, True])
def test_a_control_topic_that_is_created_anew_is_heard_though_an_output_topic_was_before(
    bench: Clocked, restarts: bool
) -> None:
    for offset in range(5):
        bench.batch(offset, *Side)
    bench.settled()
    for side in Side:
        bench.source.create_anew(side)
    bench.settled()
    bench.reset(bench.at_work, ResetRequest(id="r", by="ann", reason="anew", address=""))
    bench.settled(bench.restarted())
    bench.batch(5, *Side)
    assert bench.settled().verdict == "EQUIVALENT"
    bench.source.create_control_anew()
    if restarts:
        bench.restarted()
    bench.batch(6, LEFT)
    assert bench.settled().verdict == "DIVERGED"


@pytest.mark.parametrize(
    "steps",
    [
        ("outputs", "look", "control"),
        ("outputs", "control", "look"),
        ("control", "look", "outputs", "look"),
        ("control", "outputs", "look"),
    ],
)
def test_a_control_topic_that_is_created_anew_before_a_reset_is_heard_after_it(
    bench: Clocked, steps: tuple[str, ...]
) -> None:
    def outputs() -> None:
        for side in Side:
            bench.source.create_anew(side)

    for offset in range(50):
        bench.batch(offset, *Side)
    bench.settled()
    do = {"outputs": outputs, "control": bench.source.create_control_anew, "look": bench.settled}
    for step in steps:
        do[step]()
    bench.reset(bench.at_work, ResetRequest(id="r", by="ann", reason="anew", address=""))
    bench.settled(bench.restarted())
    for offset in range(50, 60):
        bench.batch(offset, LEFT, *[RIGHT] * (offset != 55))
    assert bench.settled().verdict == "DIVERGED"


def test_a_comparison_that_needs_no_control_topic_does_not_miss_it() -> None:
    bench = Clocked(spec=TIMED)
    bench.source.control_topic = None
    assert bench.settled(bench.started()).health.status == "ok"


UNRELIABLE = [
    (Topic(3, "delete"), "test.control has 3 partitions, and only one would be read: use a"),
    (Topic(1, "compact"), "test.control has cleanup.policy compact: compaction removes control records that"),
]


@pytest.mark.parametrize(("topic", "said"), UNRELIABLE)
def test_a_comparison_does_not_begin_on_a_control_topic_that_cannot_be_relied_on(
    bench: Clocked, topic: Topic, said: str
) -> None:
    bench.source.control_topic = topic
    status = bench.refused()
    assert status.health.status == "degraded"
    assert said in status.reason
    bench.source.control_topic = Topic(1, None)
    bench.started()


@pytest.mark.parametrize(("topic", "said"), UNRELIABLE)
def test_a_control_topic_that_becomes_unreliable_degrades_health_until_it_is_put_right(
    bench: Clocked, topic: Topic, said: str
) -> None:
    worker = bench.started()
    bench.source.control_topic = topic
    (reason,) = bench.settled(worker).health.reasons
    assert reason.startswith(said)
    worker.stop()
    worker = bench.started()
    assert bench.settled(worker).health.reasons == [reason]
    bench.source.control_topic = Topic(1, "delete")
    assert bench.settled(worker).health.status == "ok"


def test_a_query_created_anew_is_a_hole(bench: Clocked) -> None:
    bench.finish(RIGHT, 7, 70)
    bench.finish(RIGHT, 0, 3, query_id="anew")
    status = bench.settled()
    assert [hole.side for hole in status.holes] == ["candidate"]
    assert status.verdict == "INCONCLUSIVE"


def test_the_frontier_of_the_input_is_shown_with_what_it_waits_for(bench: Clocked) -> None:
    bench.finish(LEFT, 0, 7, watermark=60_000)
    bench.finish(LEFT, 1, 9, watermark=90_000)
    bench.finish(RIGHT, 4, 5, written=3)
    bench.put_out(RIGHT, 0)
    frontier = bench.settled().frontier
    assert frontier.reference == Frontier(at="in 0: 9, watermark 1970-01-01T00:01:00.000Z")
    assert frontier.candidate.held_back_by == (
        "batch 4 of query q has written partition 0 up to 3, which is read up to 1"
    )


def test_a_restart_goes_on_hearing_where_it_was(bench: Clocked) -> None:
    bench.put_out(LEFT, 0, 1)
    bench.put_out(RIGHT, 0)
    bench.finish(RIGHT, 0, 1, written=1)
    bench.settled()
    bench.source._control[0] = b"gone"
    bench.restarted()
    assert bench.settled().verdict == "EQUIVALENT"
    bench.finish(RIGHT, 1, 2, written=1)
    assert bench.settled().verdict == "DIVERGED"


def test_what_comes_late_is_told_under_the_same_name_and_first_seen_as_before(bench: Clocked) -> None:
    bench.put_out(LEFT, 0)
    for side in Side:
        bench.finish(side, 0, 1)
    bench.settled()
    (before,) = bench.reports().values()
    bench.put_out(RIGHT, 0)
    status = bench.settled()
    (after,) = bench.reports().values()
    text = f"{before.text} An equal event came 0 s later, which is too late to count."
    assert after == before.model_copy(update={"late": 0.0, "text": text})
    assert (status.verdict, status.divergences.total) == ("DIVERGED", 1)
    assert [status.accounts.reference.divergent, status.accounts.candidate.divergent] == [1, 1]
    bench.restarted()
    bench.settled()
    assert list(bench.reports().values()) == [after]


def say_late(bench: Clocked, *rows: int) -> None:
    """Each version finishes two batches of 10 records of the input; in the first it dropped so many rows."""
    for side, dropped in zip(Side, rows, strict=True):
        for batch, consumed, before in ((4, 10, 0), (5, 20, dropped)):
            late = {"rows": before, "since": 4, "before": batch}
            bench.finish(side, batch, consumed, since=10 if batch > 4 else 5, late=late)


def test_a_difference_tells_what_the_versions_dropped_as_late_where_that_differs(bench: Clocked) -> None:
    bench.put_out(LEFT, 5)
    say_late(bench, 0, 3)
    bench.settled()
    (report,) = bench.reports().values()
    assert (report.kind, report.provisional) == ("missing", False)
    assert report.text.endswith(
        "It comes from the input record in in partition 0 offset 5. Of the input in in partition 0 offsets "
        "5 to 9, the reference dropped 0 rows as late and the candidate 3: a different watermark or trigger "
        "is the likely cause."
    )


def test_a_difference_says_nothing_of_late_rows_where_both_versions_dropped_as_many(bench: Clocked) -> None:
    bench.put_out(LEFT, 5)
    say_late(bench, 3, 3)
    bench.settled()
    (report,) = bench.reports().values()
    assert "late" not in report.text


def test_late_rows_change_no_verdict(bench: Clocked) -> None:
    for side in Side:
        bench.put_out(side, 5)
    say_late(bench, 0, 3)
    assert bench.settled().verdict == "EQUIVALENT"


def test_a_restart_forgets_no_late_rows(bench: Clocked) -> None:
    say_late(bench, 0, 3)
    bench.settled()
    bench.source._control = [b"gone"] * len(bench.source._control)
    bench.restarted()
    bench.put_out(LEFT, 5)
    bench.settled()
    (report,) = bench.reports().values()
    assert "the reference dropped 0 rows as late and the candidate 3" in report.text


# -- event time --------------------------------------------------------------------------------------------


@pytest.fixture
def timed() -> Clocked:
    return Clocked(spec=TIMED)


def test_an_event_before_the_frontier_is_a_suspicion_until_its_partner_comes(timed: Clocked) -> None:
    timed.timed(LEFT, 5, name="a")
    for side in Side:
        timed.timed(side, *range(30))
    status = timed.settled()
    assert (status.verdict, status.suspicions) == ("INCONCLUSIVE", 1)
    assert "event times are at least 10 s ahead of it" in status.reason
    assert status.frontier.candidate == Frontier(at="1970-01-01T00:00:19.000Z")
    timed.timed(RIGHT, 5, name="a")
    assert timed.settled().verdict == "EQUIVALENT"


def test_a_partition_without_events_is_named_until_it_is_idle(timed: Clocked) -> None:
    for side in Side:
        timed.source.add_partition(side)
    for side in Side:
        timed.timed(side, *range(30))
    status = timed.settled()
    assert status.frontier.candidate == Frontier(held_back_by="partition 1 has no event time yet")
    for second in range(30, 50):
        for side in Side:
            timed.timed(side, second)
        status = timed.run()
    assert status.frontier.candidate.at == "1970-01-01T00:00:39.000Z"


def test_a_jump_that_does_not_count_is_shown(timed: Clocked) -> None:
    timed.timed(LEFT, 1, 2)
    timed.source.append(LEFT, 0, b'{"n":"later","t":4000000000}', 3000)
    frontier = timed.settled().frontier.reference
    assert frontier == Frontier(
        at="1969-12-31T23:59:52.000Z",
        held_back_by="1970-02-16T07:06:40.000Z in partition 0 is ahead by more than max_jump, and does not "
        "count",
    )


def test_times_that_count_another_unit_than_is_declared_are_told(timed: Clocked) -> None:
    for side in Side:
        for at in (1_767_225_600, 1_767_225_601):
            timed.source.append(side, 0, b'{"n":"tick","t":%d}' % at, 0)
    frontier = timed.settled().frontier.candidate
    assert frontier == Frontier(
        at="1970-01-21T10:53:35.601Z",
        held_back_by="as `unit: ms` says its times are of 1970-01-21T10:53:45.601Z: if they are numbers, "
        "write `overdue.unit: s`",
    )


def test_a_silent_side_says_so_and_makes_nothing_overdue(timed: Clocked) -> None:
    for side in Side:
        timed.timed(side, *range(30))
    for second in range(30, 60):
        timed.timed(LEFT, second)
        status = timed.run()
    assert status.suspicions == 0
    assert status.frontier.candidate == Frontier(
        at="1970-01-01T00:00:19.000Z", held_back_by="it has brought nothing for 30 s"
    )


def test_on_kafkas_clock_the_newest_record_is_shown() -> None:
    bench = Clocked(spec=HEAD)
    assert bench.settled().frontier.reference == Frontier(held_back_by="it has no record yet")
    bench.timed(LEFT, 3)
    assert bench.settled().frontier.reference == Frontier(at="1970-01-01T00:00:03.000Z")


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (1, "1 unmatched event is overdue: the other side went on for 60 s without its partner"),
        (2, "2 unmatched events are overdue: the other side went on for 60 s without their partners"),
    ],
)
def test_overdue_events_are_told_with_their_number(lost: int, told: str) -> None:
    bench = Bench(spec=SPEC.replace("order: {per_key: [k]}", "order: unordered"))
    for number in range(lost):
        bench.write(Side.LEFT, ("lost", number), at_ms=1_000)
    for at_ms in (2_000, 90_000):
        bench.write_both(("a", at_ms), at_ms=at_ms)
        bench.run()
    bench.clock.advance(60)
    bench.run()
    assert bench.run().reason == f"Not decided: {told}."
