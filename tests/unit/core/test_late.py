"""The partner of an event that was proven to be missing comes after all."""

from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.state.merge import merged
from twinstream.core.state.snapshot import delta, snapshot

SECOND = 1000
AT_END = (True, True)
PROVES = "overdue: {after: 60s, proves: true}"


def event(name: str, value: int = 0) -> bytes:
    return record({"k": name, "v": value})


def both(driver: Driver, start: int, stop: int) -> None:
    """Both sides write the same distinct event each second."""
    for second in range(start, stop):
        for side in (LEFT, RIGHT):
            driver.feed(side, [event("tick", second)], [second * SECOND])


def survey(driver: Driver) -> None:
    driver.comparison.survey(AT_END)


def missing(more: str = "", order: str = "unordered") -> Driver:
    """The left's event `a` is proven to be missing."""
    driver = Driver(spec(order, f"{PROVES}\n{more}"))
    driver.feed(LEFT, [event("a")], [0])
    both(driver, 0, 100)
    survey(driver)
    assert driver.kinds() == ["missing"]
    return driver


def come_late(driver: Driver, second: int = 100) -> None:
    driver.feed(RIGHT, [event("a")], [second * SECOND])


def test_a_late_partner_marks_the_divergence_with_its_delay_and_is_no_second_one() -> None:
    driver = missing()
    come_late(driver)
    both(driver, 100, 200)
    survey(driver)
    (found,) = driver.findings()
    assert (found.finding.kind, found.late) == ("missing", 100.0)
    assert driver.comparison.diverged
    assert driver.comparison.differences.closed_by_kind == {"missing": 1}
    assert [account.divergent for account in driver.comparison.accounts] == [1, 1]
    assert [driver.held(side) for side in (LEFT, RIGHT)] == [[], []]


def test_a_newcomer_is_late_only_once_it_is_itself_proven_to_have_no_partner() -> None:
    driver = missing()
    come_late(driver)
    survey(driver)
    (found,) = driver.findings()
    assert found.late is None
    assert driver.held(RIGHT) == [100]


def test_a_fresh_partner_goes_before_an_overdue_one() -> None:
    driver = missing()
    come_late(driver)
    driver.feed(LEFT, [event("a")], [101 * SECOND])
    both(driver, 102, 200)
    survey(driver)
    (found,) = driver.findings()
    assert found.late is None
    assert driver.comparison.matched == 198 + 1


@pytest.mark.parametrize("keep", ["records", "hashes"])
def test_events_that_lack_all_fields_of_the_identity_are_not_about_one_thing(keep: str) -> None:
    driver = Driver(spec("unordered", f"identity: [id, region]\nkeep: {keep}"))
    driver.feed(LEFT, [event("lost"), record({"id": 1, "v": 0})])
    driver.feed(RIGHT, [event("surplus"), record({"id": 1, "v": 1})])
    driver.end()
    assert driver.kinds() == ["changed", "extra", "missing"]


def test_a_late_partner_is_told_at_the_end_of_both_sides() -> None:
    driver = missing()
    come_late(driver)
    driver.end()
    (found,) = driver.findings()
    assert (found.finding.kind, found.late) == ("missing", 100.0)


def test_each_partner_is_late_once_and_what_is_more_is_extra() -> None:
    driver = missing()
    come_late(driver)
    come_late(driver, 110)
    driver.end()
    assert [(found.finding.kind, found.late) for found in driver.findings()] == [
        ("missing", 100.0),
        ("extra", None),
    ]


def test_the_left_can_be_late_as_well() -> None:
    driver = Driver(spec("unordered", PROVES))
    driver.feed(RIGHT, [event("a")], [0])
    both(driver, 0, 100)
    survey(driver)
    driver.feed(LEFT, [event("a")], [130 * SECOND])
    driver.end()
    (found,) = driver.findings()
    assert (found.finding.kind, found.late) == ("extra", 130.0)


def test_a_partner_is_late_after_a_restart_too() -> None:
    driver = missing()
    driver.restart()
    come_late(driver)
    driver.restart()
    both(driver, 100, 200)
    survey(driver)
    (found,) = driver.findings()
    assert (found.finding.kind, found.late) == ("missing", 100.0)


def test_what_may_come_late_is_saved_when_it_changes() -> None:
    driver = missing()
    whole = snapshot(driver.comparison)
    unchanged = delta(driver.comparison)
    assert (unchanged["lone"], unchanged["strays"]) == (None, None)
    assert merged(whole, [unchanged])["lone"] == whole["lone"]
    come_late(driver)
    driver.end()
    claimed = delta(driver.comparison)
    assert merged(whole, [unchanged, claimed, delta(driver.comparison)])["lone"] == claimed["lone"]


def test_an_event_whose_order_counts_has_changed_places_and_is_not_late() -> None:
    driver = missing(order="{per_key: [k]}")
    come_late(driver)
    both(driver, 100, 200)
    survey(driver)
    (found,) = driver.findings()
    assert (found.finding.kind, found.late) == ("reordered", None)


def test_a_late_event_of_another_value_is_no_partner() -> None:
    more = "identity: [k]\nequality: {tolerance: {v: {abs: 1}}}"
    driver = missing(more)
    driver.feed(RIGHT, [event("a", 5)], [100 * SECOND])
    driver.end()
    assert driver.kinds() == ["extra", "missing"]
    assert [found.late for found in driver.findings()] == [None, None]
