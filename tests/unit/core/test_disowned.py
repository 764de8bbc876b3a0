"""What was fed may turn out not to be what was to be compared: then what was found in it decides nothing."""

from __future__ import annotations

from tests.support.retries import attempt
from tests.support.streams import LEFT, RIGHT, Driver, spec


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
    assert driver.comparison.ledger.doubted == {doubted.number}
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


def test_a_difference_that_is_held_for_open_batches_is_dropped_with_what_is_disowned() -> None:
    retries = _driver("total\nduplicates: {policy: replays, horizon: 10}\n").comparison.retries
    assert retries is not None
    retries.sides[LEFT].feed(attempt("1/e/0.0"), b"x", 0, 0)
    assert retries.hold(10, None)
    retries.drop_held(10)
    assert retries.held
    retries.held.clear()
    assert retries.hold(11, None)
    retries.drop_held(10)
    assert not retries.held
