"""Runs that wait ahead of the index are paired as a whole, or enter it in their order."""

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core import feeding
from twinstream.core.arrivals import whole_runs
from twinstream.core.events import Side
from twinstream.core.matching.lanes import LanesIndex

PER_KEY = spec("{per_key: [k]}")


def events(key: str, *numbers: int) -> list[bytes]:
    return [record({"k": key, "v": number}) for number in numbers]


def in_index(driver: Driver) -> list[int]:
    """The numbers of unmatched events of both sides that have entered the index."""
    index = driver.comparison.index
    assert isinstance(index, LanesIndex)
    return [sum(1 for _ in index.unmatched(side)) for side in Side]


def test_equal_runs_are_paired_however_they_are_cut_and_never_enter_the_index() -> None:
    driver = Driver(PER_KEY)
    driver.feed(LEFT, events("a", *range(40)))
    for cut in (range(15), range(15, 20), range(20, 45)):
        driver.feed(RIGHT, events("a", *cut))
    driver.feed(LEFT, events("a", *range(40, 60)))
    assert (driver.comparison.matched, in_index(driver)) == (45, [0, 0])
    assert (driver.held(LEFT), driver.held(RIGHT)) == (list(range(45, 60)), [])


def test_records_of_events_that_are_ahead_are_known_without_reading_them() -> None:
    driver = Driver(PER_KEY)
    driver.feed(LEFT, events("a", *range(5, 20)))
    records = events("a", *range(3, 30))
    forms = driver.comparison.known(RIGHT, 0, records).forms
    assert forms is not None
    assert [form and form[3] for form in forms] == [None, None, *records[2:17], *[None] * 10]
    assert driver.comparison.known(RIGHT, 1, records).forms is None, "it may be another event"


def test_where_twins_lie_before_and_behind_a_run_all_are_known() -> None:
    driver = Driver(PER_KEY)
    driver.feed(LEFT, [*events("a", 0, 1), *events("b", *range(4))])
    assert in_index(driver) == [6, 0], "they are too few to wait ahead"
    driver.feed(LEFT, events("a", *range(2, 20)))
    records = [*events("a", *range(20)), *events("b", 0)]
    known = driver.comparison.known(RIGHT, 0, records)
    assert known.forms is not None
    assert [form and form[3] for form in known.forms] == records


def test_a_run_that_does_not_wait_enters_behind_those_of_its_side_that_do() -> None:
    driver = Driver(PER_KEY)
    driver.feed(LEFT, events("b", *range(10)), partition=1)
    driver.feed(RIGHT, events("a", *range(10)))
    driver.feed(LEFT, events("a", *range(20, 30)))
    assert driver.comparison.diverged, "the runs of partition 0 differ, so the next one does not wait"
    driver.feed(LEFT, events("b", *range(10, 20)), partition=1)
    driver.feed(RIGHT, events("b", *range(20)), partition=1)
    assert driver.comparison.matched == 20


def test_a_difference_is_found_when_the_run_comes_that_shows_it() -> None:
    driver = Driver(PER_KEY)
    driver.feed(LEFT, events("a", *range(20)))
    driver.feed(RIGHT, events("a", *range(10)))
    assert not driver.comparison.diverged
    driver.feed(RIGHT, events("a", 11, 10, *range(12, 20)))
    assert driver.comparison.diverged


def test_runs_wait_ahead_over_looks_while_the_other_side_has_no_unmatched_event() -> None:
    driver = Driver(PER_KEY)
    driver.feed(LEFT, events("a", *range(1000)))
    driver.look()
    assert (in_index(driver), driver.held(LEFT)) == ([0, 0], list(range(1000)))
    driver.feed(RIGHT, events("a", *range(400)))
    assert (in_index(driver), driver.held(LEFT)) == ([0, 0], list(range(400, 1000)))


@pytest.mark.parametrize("more", ["overdue: {proves: true}", "overdue: {clock: event_time, field: v}"])
def test_runs_enter_at_a_look_where_a_clock_judges_events_one_by_one(more: str) -> None:
    driver = Driver(spec("{per_key: [k]}", more))
    driver.feed(LEFT, events("a", *range(20)))
    driver.look()
    assert in_index(driver) == [20, 0]


def test_a_partner_in_another_partition_is_found_at_the_next_look() -> None:
    driver = Driver(spec("unordered"))
    driver.feed(LEFT, events("a", *range(20)), partition=0)
    driver.look()
    driver.feed(RIGHT, events("a", *range(20)), partition=1)
    driver.look()
    assert driver.comparison.matched == 20
    driver.feed(LEFT, events("b", *range(20)), partition=0)
    driver.feed(RIGHT, events("b", *range(5)), partition=1)
    driver.look()
    assert (driver.comparison.matched, driver.held(LEFT)) == (25, list(range(25, 40)))


def test_runs_of_hardly_an_event_enter_at_a_look() -> None:
    driver = Driver(PER_KEY)
    driver.feed(LEFT, events("a", *range(8)))
    for number in range(8, 20):
        driver.feed(LEFT, events("a", number))
    assert in_index(driver) == [0, 0]
    driver.look()
    assert in_index(driver) == [20, 0]


def test_events_ahead_that_are_too_many_enter_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "MOST", 50)
    driver = Driver(PER_KEY)
    driver.feed(LEFT, events("a", *range(50)))
    assert in_index(driver) == [0, 0]
    driver.feed(LEFT, events("a", *range(50, 60)))
    assert in_index(driver) == [60, 0]


def test_what_both_sides_have_ahead_is_compared_before_it_is_saved() -> None:
    driver = Driver(PER_KEY)
    driver.feed(LEFT, [*events("a", *range(20)), *events("b", *range(20))])
    driver.feed(RIGHT, events("b", *range(20)), partition=1)
    driver.restart()
    assert driver.comparison.matched == 20
    driver.feed(RIGHT, events("a", *range(20)), partition=1)
    assert driver.comparison.matched == 40


def test_a_limit_is_reached_only_by_what_has_no_partner() -> None:
    driver = Driver(spec("unordered", "limits: {unmatched_events: 100}"))
    for side in Side:
        driver.feed(side, events("a", *range(60)), partition=side)
    assert (driver.comparison.matched, driver.comparison.holes) == (60, [])


def test_a_lost_copy_does_not_hide_behind_fresh_ones_that_wait_ahead() -> None:
    driver = Driver(spec("unordered", "overdue: {after: 1s}"))
    for second in range(10):
        for side in Side:
            count = 10 if second == 1 and side is RIGHT else 20
            driver.feed(side, events("a", *[0] * count), [1000 * second] * count)
        survey = driver.look(float(second))
    assert survey.suspicions == 10


def test_a_clock_of_event_times_judges_events_that_were_ahead_at_a_look() -> None:
    driver = Driver(spec("{per_key: [k]}", "overdue: {clock: event_time, field: v, unit: ms, after: 1s}"))
    driver.feed(LEFT, events("a", *range(40)))
    driver.comparison.ledger.held[LEFT].settle()
    driver.feed(RIGHT, events("b", 5000, 5001))
    assert driver.look().suspicions == 40


def test_facts_of_the_rest_of_a_run_are_its_own() -> None:
    driver = Driver(PER_KEY)
    driver.feed(LEFT, events("a", *range(20)), [7, *range(100, 119)])
    assert (driver.look().oldest_ms, driver.comparison.ledger.held[LEFT].until(50)) == (7, 1)
    driver.feed(RIGHT, events("a", 0))
    assert (driver.look().oldest_ms, driver.comparison.ledger.held[LEFT].until(50)) == (100, 0)


def test_nothing_enters_once_no_more_events_are_kept() -> None:
    driver = Driver(PER_KEY)
    driver.feed(LEFT, events("a", *range(20)))
    driver.comparison.overflow("the memory limit")
    driver.feed(RIGHT, events("a", 7))
    driver.look()
    assert in_index(driver) == [0, 0]
    assert driver.waiting(LEFT) == list(range(20))


def test_runs_that_differ_again_and_again_are_left_alone_longer_and_longer() -> None:
    driver = Driver(spec("unordered"))
    waited = 0
    for number in range(100):
        numbers = range(20 * number, 20 * number + 20)
        driver.feed(LEFT, events("a", *numbers))
        waited += in_index(driver) == [0, 0]
        driver.feed(RIGHT, events("a", *reversed(numbers)))
    assert driver.comparison.matched == 2000
    assert waited < 10


def test_the_time_that_each_event_waited_is_told_of_a_run_as_of_an_event() -> None:
    driver = Driver(PER_KEY)
    runs = []
    for read_at, numbers in ((1.0, range(20)), (2.0, range(20, 30))):
        forms, _ = driver.codec.forms(events("a", *numbers))
        runs.append(whole_runs.Run(forms, 0, numbers, numbers, read_at))
        assert not driver.comparison.feed(LEFT, runs[-1])
    forms = [form for run in runs for form in run.forms]
    late = whole_runs.Run(forms[:25], 0, range(25), range(25), 3.0)
    assert driver.comparison.feed(RIGHT, late) == {1.0: 20, 2.0: 5}
