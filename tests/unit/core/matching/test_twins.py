"""Twins propose partners; matching takes only those that are unmatched and minimal."""

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, record, spec

A, B, C = (record({"k": "a", "v": value}) for value in range(3))


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


DAYS = "{barrier: day, inner: {per_key: [k]}}"
KINDS = "kinds: {day: {where: {k: day}}, event: {}}\n"
DAY, NEXT = (record({"k": "day", "v": value}) for value in range(2))


def test_twins_are_matched_over_barriers() -> None:
    driver = Driver(spec(DAYS, KINDS))
    driver.feed(LEFT, [A, B, DAY, C, NEXT, A])
    driver.feed(RIGHT, [A, B, DAY, C, NEXT])
    assert (driver.comparison.matched, driver.held(LEFT)) == (5, [5])
    assert not driver.comparison.diverged


@pytest.mark.parametrize("right", [[DAY, A], [A, NEXT, DAY], [B, DAY, A]])
def test_no_twin_is_matched_over_a_barrier_that_one_side_lacks(right: list[bytes]) -> None:
    driver = Driver(spec(DAYS, KINDS))
    driver.feed(LEFT, [A, B, DAY, C])
    driver.feed(RIGHT, right)
    driver.comparison.review()
    assert driver.comparison.diverged


@pytest.mark.parametrize("order", ["{per_key: [k]}", "unordered", "total"])
def test_equal_records_of_one_side_match_as_often_as_they_came(order: str) -> None:
    driver = Driver(spec(order))
    driver.feed(LEFT, [A, A, A])
    driver.feed(RIGHT, [A, A])
    assert (driver.comparison.matched, driver.comparison.unmatched(LEFT)) == (2, 1)
    driver.feed(RIGHT, [A])
    assert (driver.comparison.matched, driver.held(LEFT), driver.comparison.diverged) == (3, [], False)
