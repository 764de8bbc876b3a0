"""What was fed may turn out not to be what was to be compared: then what was found in it decides nothing."""

from __future__ import annotations

from tests.support.streams import LEFT, RIGHT, Driver, spec
from twinstream.core.accounting.proven import Proven


def _value(number: int) -> bytes:
    return b'{"k": "a", "v": %d}' % number


def _driver(order: str = "total", vouched_at: int = 10) -> Driver:
    driver = Driver(spec(order))
    driver.comparison.vouch(vouched_at)
    return driver


def _differ(driver: Driver, moment: int, *, closed: bool = True) -> None:
    """The right side lacks the first of the next 40 values, or of two of them."""
    driver.comparison.moment = moment
    first, count = driver.offsets[LEFT], 40 if closed else 2
    driver.feed(LEFT, [_value(number) for number in range(first, first + count)])
    driver.feed(RIGHT, [_value(number) for number in range(first + 1, first + count)])
    driver.comparison.review()


def test_a_difference_in_what_was_vouched_for_is_sure_and_stays() -> None:
    driver = _driver()
    _differ(driver, 7)
    assert driver.comparison.diverged_for_sure
    driver.comparison.disown()
    assert driver.comparison.diverged_at == 7
    assert [found.tainted for found in driver.findings()] == [False]


def test_a_difference_in_what_is_disowned_decides_nothing() -> None:
    driver = _driver()
    _differ(driver, 11)
    assert driver.comparison.diverged
    assert not driver.comparison.diverged_for_sure
    driver.comparison.disown()
    assert not driver.comparison.diverged
    assert [found.tainted for found in driver.findings()] == [True]


def test_a_difference_becomes_sure_when_it_is_vouched_for() -> None:
    driver = _driver()
    _differ(driver, 11)
    driver.comparison.vouch(11)
    assert driver.comparison.diverged_for_sure
    driver.comparison.disown()
    assert driver.comparison.diverged_for_sure


def test_one_that_was_told_already_is_tainted_by_its_number() -> None:
    driver = _driver()
    _differ(driver, 5)
    _differ(driver, 11)
    told, doubted = driver.comparison.take_closed()
    assert driver.comparison.proven.doubted == {doubted.number}
    driver.comparison.disown()
    assert driver.comparison.take_tainted() == [doubted.number]
    assert driver.comparison.take_tainted() == []
    assert driver.comparison.diverged_at == 5
    assert told.number == 0


def test_an_open_scope_is_tainted_only_if_it_was_opened_in_what_is_disowned() -> None:
    for moment, tainted in ((10, False), (11, True)):
        driver = _driver()
        _differ(driver, moment, closed=False)
        driver.comparison.disown()
        assert [found.tainted for found in driver.comparison.provisional()] == [tainted]


def test_what_is_vouched_for_and_what_is_not_is_known_over_a_restart() -> None:
    driver = _driver()
    _differ(driver, 11)
    (found,) = driver.comparison.take_closed()
    driver.restart()
    assert driver.comparison.diverged
    assert not driver.comparison.diverged_for_sure
    driver.comparison.disown()
    assert not driver.comparison.diverged
    assert driver.comparison.take_tainted() == [found.number]


def test_a_difference_that_waits_for_open_batches_is_withdrawn_with_what_is_disowned() -> None:
    proven, needs = Proven(), frozenset({(LEFT, "query", 1)})
    for moment in (10, 11):
        proven.prove(moment, needs)
        proven.note(needs, moment, number=moment)
    proven.vouch(10)
    assert proven.doubted == {10, 11}
    assert proven.disown() == [11]
    proven.agree((LEFT, "query", 1))
    assert (proven.at, proven.doubted) == (10, set())
    proven.vouch(9)
    proven.disown()
    assert proven.at is None
