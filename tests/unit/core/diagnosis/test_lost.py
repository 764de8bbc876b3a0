"""A scope beyond `limits.scope_events`: what it found is booked, all else is counted and stays unmatched."""

from __future__ import annotations

import pytest

from tests.support.rides import KINDS, day, ride
from tests.support.streams import LEFT, RIGHT, Driver, spec
from twinstream.core.events import Side

LIMIT = "limits: {scope_events: 32}\n"
LANES = "{barrier: day, inner: {per_key: [k]}}"
KNOWN = (
    "known_differences: [{id: R-1, when: {divergences: [%s]}, owner: me, expires: 2030-01-01,"
    " ceiling: {count: 99}}]\n"
)


def totals(driver: Driver) -> tuple[int, int]:
    """The divergences that are booked, and all that are told."""
    booked = driver.comparison.differences.closed_by_kind.total()
    return booked, booked + len(driver.comparison.provisional())


def accounts(driver: Driver) -> list[tuple[int, int, int, int]]:
    """Of each side what was consumed, matched, divergent and is unmatched."""
    comparison = driver.comparison
    return [
        (account.consumed, comparison.matched, account.divergent, comparison.unmatched(side))
        for side, account in zip(Side, comparison.accounts, strict=True)
    ]


def differ(driver: Driver, key: int = 0) -> None:
    """One ride is equal, and 16 more of each side do not meet: too many; 23 of the left are not looked at."""
    driver.feed(LEFT, [ride(number, key=key) for number in range(40)])
    driver.feed(RIGHT, [ride(1, key=key), *(ride(number, key=key) for number in range(100, 116))])


def lost(more: str = "") -> Driver:
    driver = Driver(spec(LANES, KINDS + LIMIT + more))
    differ(driver)
    driver.comparison.review()
    assert [scope.lost for scope in driver.comparison.scopes] == [True]
    return driver


def test_what_a_lost_scope_had_found_is_a_difference_and_all_else_is_unmatched() -> None:
    driver = lost()
    assert driver.comparison.diverged
    assert totals(driver) == (16, 16)
    assert driver.kinds() == ["missing"] * 16
    assert accounts(driver) == [(40, 1, 16, 23), (17, 1, 0, 16)]
    assert [driver.held(side) for side in Side] == [[], []]


def test_the_rest_is_never_verified() -> None:
    driver = lost()
    for side in Side:
        driver.feed(side, [day(1), ride(99)])
    driver.comparison.survey((True, True))
    assert driver.comparison.verified_up_to(LEFT, {0: 42}) == {0: 0}
    assert driver.comparison.verified_up_to(RIGHT, {0: 19}) == {0: 1}


def test_the_hole_says_that_the_rest_is_not_explained() -> None:
    (hole,) = lost().comparison.holes
    assert hole.reason == (
        "a difference spread over more than limits.scope_events (32): the rest of what it touches is"
        " counted as unmatched, and not explained"
    )


def test_what_was_found_before_a_lost_scope_became_part_of_a_larger_one_is_booked_too() -> None:
    driver = lost()
    driver.feed(LEFT, [ride(1, key=1), ride(2, key=1), ride(1, key=2)])
    driver.feed(RIGHT, [ride(2, key=1)])
    driver.comparison.review()
    assert totals(driver) == (16, 17), "key 1 lacks a ride"
    driver.feed(RIGHT, [day(1), *(ride(number) for number in range(2, 40))])
    driver.feed(LEFT, [day(2)])
    driver.comparison.review()
    assert [scope.lost for scope in driver.comparison.scopes] == [True]
    assert driver.kinds() == ["missing"] * 18, "key 2 lacks one, too; what comes late of key 0 is not extra"
    assert totals(driver) == (18, 18)
    assert accounts(driver) == [(44, 2, 18, 24), (57, 2, 0, 55)]


def test_what_may_have_become_a_known_difference_decides_nothing() -> None:
    driver = lost(KNOWN % "extra")
    assert not driver.comparison.diverged
    assert not driver.comparison.in_dispute, "it will never be known better"
    assert [found.tainted for found in driver.findings()] == [True] * 16
    assert accounts(driver)[LEFT] == (40, 1, 16, 23)


def test_what_is_a_known_difference_is_explained() -> None:
    driver = lost(KNOWN % "missing")
    assert not driver.comparison.diverged
    assert totals(driver) == (0, 0)
    assert driver.comparison.accounts[LEFT].explained == 16
    assert driver.comparison.holes


@pytest.mark.parametrize("batches", [1, 2])
def test_a_scope_that_is_lost_where_it_opened_counts_however_its_events_come(batches: int) -> None:
    elsewhere = KNOWN.replace("[%s]", "[missing], where: {k: 7}")
    driver = Driver(spec(LANES, KINDS + LIMIT + elsewhere))
    driver.feed(LEFT, [*map(ride, range(40)), ride(1000), day(1)])
    rows = [ride(1000), day(1)]
    for number in range(batches):
        driver.feed(RIGHT, rows[number * 2 // batches : (number + 1) * 2 // batches])
    driver.comparison.review()
    assert driver.comparison.holes
    assert driver.comparison.diverged


def test_an_event_whose_equal_one_lies_behind_the_limit_is_no_difference() -> None:
    driver = Driver(spec(LANES, KINDS + LIMIT))
    driver.feed(LEFT, [*map(ride, range(40)), ride(1000), day(1)])
    driver.feed(RIGHT, [ride(1000), day(1)])
    driver.comparison.review()
    assert driver.comparison.diverged
    assert set(driver.kinds()) == {"missing"}


def test_what_is_given_up_fills_no_memory() -> None:
    driver = Driver(spec(LANES, KINDS + "limits: {scope_events: 32, unmatched_events: 100}\n"))
    differ(driver)
    driver.comparison.review()
    driver.feed(LEFT, [ride(number) for number in range(40, 1000)])
    driver.feed(LEFT, [ride(number, key=1) for number in range(50)])
    driver.feed(RIGHT, [ride(number, key=1) for number in range(50)])
    assert not driver.comparison.overflowing
    assert driver.comparison.matched == 51
    assert driver.comparison.ledger.waiting == 0
    driver.restart()
    assert (driver.comparison.ledger.waiting, driver.comparison.unmatched(LEFT)) == (0, 983)


def test_the_barrier_at_which_the_sides_meet_again_is_not_given_up() -> None:
    driver = Driver(spec(LANES, KINDS + LIMIT))
    driver.feed(LEFT, [day(1), *map(ride, range(40))])
    driver.feed(RIGHT, [day(2), *map(ride, range(100, 140))])
    driver.comparison.review()
    driver.feed(LEFT, [day(3), ride(1)])
    driver.feed(RIGHT, [ride(5), day(3)])
    assert (list(driver.comparison.scopes), driver.comparison.matched) == ([], 1)
    assert [driver.comparison.ledger.waits(side) for side in Side] == [1, 0]
    driver.feed(RIGHT, [ride(1)])
    assert [driver.comparison.ledger.waits(side) for side in Side] == [0, 0]
