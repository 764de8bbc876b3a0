"""Twins propose partners; matching takes only those that are unmatched and minimal."""

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.arrivals import twins as module
from twinstream.core.arrivals.twins import Twins
from twinstream.core.events import Event, Form

A, B, C = (record({"k": "a", "v": value}) for value in range(3))


def event(content: bytes) -> Event:
    return Event(Form("", content, "event", content), 0, 0, 0, 0.0)


def test_a_twin_is_given_away_once_and_only_to_the_other_side() -> None:
    memory, one = Twins(), event(A)
    memory.note(LEFT, [one])
    assert memory.of(LEFT, [A]) == [None]
    assert memory.of(RIGHT, [A, A, B]) == [one, None, None]


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMIT", 3)
    memory = Twins()
    for number in range(10):
        memory.note(LEFT, [event(b"%d" % number)])
    assert sum(twin is not None for twin in memory.of(RIGHT, [b"%d" % number for number in range(10)])) <= 4


def test_a_twin_that_is_not_minimal_is_not_matched() -> None:
    driver = Driver(spec("{per_key: [k]}"))
    driver.feed(LEFT, [A, B])
    driver.feed(RIGHT, [B])
    assert (driver.comparison.matched, driver.comparison.diverged) == (0, True)


def test_a_twin_that_has_left_otherwise_is_not_matched_again() -> None:
    driver = Driver(spec("{per_key: [k]}"))
    driver.feed(LEFT, [A])
    driver.feed(RIGHT, [b'{"v": 0, "k": "a"}'])
    driver.feed(RIGHT, [A])
    assert (driver.comparison.matched, driver.comparison.unmatched(RIGHT)) == (1, 1)


def test_a_run_of_twins_and_others_is_matched_in_its_order() -> None:
    driver = Driver(spec("{per_key: [k]}"))
    driver.feed(LEFT, [A, B])
    driver.feed(RIGHT, [A, B, C])
    driver.feed(LEFT, [C, A])
    assert (driver.comparison.matched, driver.comparison.unmatched(LEFT)) == (3, 1)
    assert not driver.comparison.diverged


@pytest.mark.parametrize("order", ["{per_key: [k]}", "unordered", "total"])
def test_equal_records_of_one_side_match_as_often_as_they_came(order: str) -> None:
    driver = Driver(spec(order))
    driver.feed(LEFT, [A, A, A])
    driver.feed(RIGHT, [A, A])
    assert (driver.comparison.matched, driver.comparison.unmatched(LEFT)) == (2, 1)
    driver.feed(RIGHT, [A])
    assert (driver.comparison.matched, driver.held(LEFT), driver.comparison.diverged) == (3, [], False)
