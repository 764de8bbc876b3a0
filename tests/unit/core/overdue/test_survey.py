"""What a look at everything unmatched finds: suspicions, proofs, and how far each partition is settled."""

from __future__ import annotations

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.overdue.survey import Survey
from twinstream.core.state.restore import restore
from twinstream.core.state.snapshot import snapshot

SECOND = 1000
PROVES = "overdue: {after: 60s, proves: true}"
AT_END = (True, True)


def event(name: str, value: int = 0) -> bytes:
    return record({"k": name, "v": value})


def driver(more: str = "", order: str = "unordered") -> Driver:
    return Driver(spec(order, more))


def both(driver: Driver, start: int, stop: int, step: int = 1) -> None:
    """Both sides write the same distinct event each second."""
    for second in range(start, stop, step):
        for side in (LEFT, RIGHT):
            driver.feed(side, [event("tick", second)], [second * SECOND])


def lose(driver: Driver, name: str, second: int, value: int = 0) -> None:
    """The left writes an event that the right does not."""
    driver.feed(LEFT, [event(name, value)], [second * SECOND])


def test_an_overdue_event_is_a_suspicion_and_no_divergence() -> None:
    stream = driver()
    lose(stream, "a", 0)
    both(stream, 0, 60)
    assert stream.comparison.survey(AT_END).suspicions == 0
    both(stream, 60, 61)
    assert stream.comparison.survey(AT_END).suspicions == 1
    assert not stream.comparison.diverged


def test_a_suspicion_is_withdrawn_when_the_partner_comes() -> None:
    stream = driver()
    lose(stream, "a", 0)
    both(stream, 0, 100)
    assert stream.comparison.survey(AT_END).suspicions == 1
    stream.feed(RIGHT, [event("a")], [100 * SECOND])
    assert stream.comparison.survey(AT_END) == Survey()


def test_nothing_is_overdue_while_a_side_is_not_read_to_its_end() -> None:
    stream = driver(PROVES)
    lose(stream, "a", 0)
    both(stream, 0, 100)
    for at_end in ((True, False), (False, True)):
        assert stream.comparison.survey(at_end).suspicions == 0
        assert not stream.comparison.diverged


def test_where_the_clock_proves_an_overdue_event_is_missing_once() -> None:
    stream = driver(PROVES)
    lose(stream, "a", 0)
    both(stream, 0, 100)
    for _ in range(2):
        survey = stream.comparison.survey(AT_END)
    assert stream.kinds() == ["missing"]
    assert stream.comparison.diverged
    assert survey == Survey()


def test_a_proof_needs_a_match_of_an_event_that_arrived_later() -> None:
    stream = driver(PROVES)
    lose(stream, "a", 0)
    for second in range(1, 100):
        stream.feed(LEFT, [event("left", second)], [second * SECOND])
        stream.feed(RIGHT, [event("right", second)], [second * SECOND])
    assert stream.comparison.survey(AT_END).suspicions > 0
    assert not stream.comparison.diverged


def test_a_proof_needs_a_match_of_an_event_that_arrived_by_the_whole_time_later() -> None:
    stream = driver(PROVES)
    lose(stream, "a", 50)
    both(stream, 0, 100)
    for second in range(100, 120):
        stream.feed(LEFT, [event("left", second)], [second * SECOND])
        stream.feed(RIGHT, [event("right", second)], [second * SECOND])
    assert stream.comparison.survey(AT_END).suspicions == 1
    assert not stream.comparison.diverged
    both(stream, 120, 121)
    stream.comparison.survey(AT_END)
    assert stream.kinds() == ["missing"]


def test_what_matched_is_never_taken_for_newer_than_it_is() -> None:
    stream = driver()
    stream.feed(LEFT, [event("a"), event("b")], [10, 50])
    stream.feed(RIGHT, [event("a"), event("b"), event("other")], [70, 90, 95])
    assert stream.comparison.ledger.newest_matched_ms == [50, 90]


def test_an_overdue_event_and_a_fresh_one_of_its_identity_are_one_change() -> None:
    stream = driver(f"{PROVES}\nidentity: [k]")
    lose(stream, "a", 0, value=1)
    stream.feed(RIGHT, [event("other"), event("a", 2)], [99 * SECOND] * 2)
    both(stream, 0, 100)
    survey = stream.comparison.survey(AT_END)
    assert stream.kinds() == ["changed"]
    assert survey.suspicions == 0
    assert [stream.held(side) for side in (LEFT, RIGHT)] == [[], [0]]


def test_two_overdue_events_of_one_identity_are_one_change() -> None:
    stream = driver(f"{PROVES}\nidentity: [k]")
    lose(stream, "a", 0, value=1)
    stream.feed(RIGHT, [event("a", 2)], [0])
    both(stream, 0, 100)
    stream.comparison.survey(AT_END)
    assert stream.kinds() == ["changed"]


def hidden_copy(more: str) -> Driver:
    """A copy is lost, and fresh copies of the same event keep taking its place."""
    stream = driver(more)
    lose(stream, "a", 1000)
    for second in range(1001, 1200):
        stream.feed(LEFT, [event("a")], [second * SECOND])
        stream.feed(RIGHT, [event("a")], [second * SECOND])
    return stream


def test_a_lost_copy_behind_fresh_ones_is_a_suspicion_and_never_a_proof() -> None:
    stream = hidden_copy(PROVES)
    assert stream.comparison.survey(AT_END).suspicions == 1
    assert not stream.comparison.diverged


def test_fresh_copies_are_no_suspicion_before_the_oldest_is_overdue() -> None:
    stream = driver()
    both(stream, 900, 1000)
    lose(stream, "a", 1000)
    for second in range(1001, 1060):
        for side in (LEFT, RIGHT):
            stream.feed(side, [event("a")], [second * SECOND])
    assert stream.comparison.survey(AT_END).suspicions == 0


def test_a_fresh_event_of_a_sequence_is_no_copy_of_those_before_it() -> None:
    stream = driver(order="{per_key: [k]}")
    lose(stream, "a", 0, value=1)
    both(stream, 0, 100)
    lose(stream, "a", 100, value=2)
    stream.feed(RIGHT, [event("a", 1)], [100 * SECOND])
    assert stream.comparison.survey(AT_END).suspicions == 0


def test_it_still_is_after_a_restart() -> None:
    stream = hidden_copy("")
    fresh = Driver(stream.spec)
    restore(fresh.comparison, snapshot(stream.comparison), fresh.codec.form, 0.0)
    assert fresh.comparison.survey(AT_END).suspicions == 1


def test_exactly_the_overdue_copy_is_proven_where_timestamps_do_not_grow() -> None:
    stream = driver(PROVES)
    both(stream, 0, 1)
    lose(stream, "a", 90)
    lose(stream, "a", 0)
    both(stream, 1, 100)
    for _ in range(2):
        stream.comparison.survey(AT_END)
    (found,) = stream.findings()
    assert found.finding.left is not None
    assert found.finding.left[2] == 2
    assert stream.held(LEFT) == [1]


def test_a_survey_tells_the_first_unsettled_offset_and_the_oldest_time() -> None:
    stream = driver()
    both(stream, 0, 3)
    lose(stream, "a", 5)
    both(stream, 6, 9)
    stream.feed(RIGHT, [event("b")], [4 * SECOND])
    survey = stream.comparison.survey(AT_END)
    assert survey.first_open == ({0: 3}, {0: 6})
    assert survey.oldest_ms == 4 * SECOND
    assert stream.comparison.verified_up_to(LEFT, {0: 7, 1: 5}) == {0: 3, 1: 5}


def test_what_waits_is_weighed_by_side_wherever_it_waits() -> None:
    stream = driver(order="{per_key: [k]}")
    stream.feed(LEFT, [event("a", 1), event("b", 100)])
    stream.feed(RIGHT, [event("b", 20)])
    survey = stream.comparison.survey(AT_END)
    assert survey.held_bytes == [len(event("a", 1)) + len(event("b", 100)), len(event("b", 20))]


def test_more_bytes_than_may_be_held_are_one_hole() -> None:
    size = len(event("a", 1))
    stream = driver(f"limits: {{unmatched_bytes: {2 * size}}}")
    stream.feed(LEFT, [event("a", 1)])
    stream.feed(RIGHT, [event("a", 2)])
    stream.comparison.survey(AT_END)
    assert stream.comparison.holes == []
    stream.feed(LEFT, [event("a", 3)])
    for _ in range(2):
        stream.comparison.survey(AT_END)
    (hole,) = stream.comparison.holes
    assert hole.reason == (
        f"limits.unmatched_bytes ({2 * size}) was reached: what came after was not compared"
    )


def test_what_is_set_aside_is_not_settled() -> None:
    stream = driver(order="total")
    both(stream, 0, 3)
    lose(stream, "a", 3)
    both(stream, 4, 6)
    survey = stream.comparison.survey(AT_END)
    assert survey.first_open == ({0: 3}, {0: 3})
    assert survey.oldest_ms == 3 * SECOND


def test_a_time_in_the_future_proves_nothing_before_the_reader_has_waited_as_long() -> None:
    stream = driver(PROVES)
    lose(stream, "late", 0)
    both(stream, 0, 2)
    for side in (LEFT, RIGHT):
        stream.feed(side, [event("from a clock that is ahead", 3)], [3000 * SECOND])
    both(stream, 4, 6)
    assert stream.comparison.survey(AT_END, now_s=59.9).suspicions == 1
    assert stream.kinds() == []
    assert stream.comparison.survey(AT_END, now_s=60.0).suspicions == 0
    assert stream.kinds() == ["missing"]


def test_a_closing_scope_does_not_take_one_sides_times_for_the_others() -> None:
    """The candidate is late, and keeps its lateness: what the reference matched is as old as it says."""
    stream = driver(PROVES, order="{per_key: [k]}")
    lose(stream, "z", 10)
    late = 300
    for second in range(40):
        stream.feed(LEFT, [event("tick", second)], [second * SECOND])
    for second in range(1, 40):
        stream.feed(RIGHT, [event("tick", second)], [(late + second) * SECOND])
    stream.comparison.review()
    assert stream.kinds() == ["missing"]
    assert stream.comparison.ledger.newest_matched_ms == [39 * SECOND, (late + 39) * SECOND]


def test_after_a_halt_nothing_is_judged_any_more() -> None:
    stream = driver(f"{PROVES}\non_divergence: halt", order="{per_key: [k]}")
    lose(stream, "a", 0)
    both(stream, 0, 100)
    stream.feed(LEFT, [event("b", 1)], [100 * SECOND])
    stream.feed(RIGHT, [event("b", 2)], [100 * SECOND])
    assert stream.comparison.survey(AT_END).suspicions == 0
    assert stream.kinds() == []


def test_a_known_difference_that_time_has_proven_does_not_halt() -> None:
    known = "{id: K, when: {divergences: [missing]}, owner: us, expires: 2100-01-01, ceiling: {count: 1}}"
    stream = driver(f"{PROVES}\non_divergence: halt\nknown_differences: [{known}]")
    lose(stream, "a", 0)
    both(stream, 0, 100)
    stream.comparison.survey(AT_END)
    assert stream.comparison.accounts[LEFT].explained == 1
    assert not stream.comparison.halted
