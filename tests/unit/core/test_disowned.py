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


def test_a_difference_becomes_sure_when_it_is_vouched_for() -> None:
    driver = _driver()
    _differ(driver, 11)
    driver.comparison.vouch(11)
    assert driver.comparison.diverged_for_sure
    driver.comparison.disown()
    assert driver.comparison.diverged_for_sure


def test_an_open_scope_is_tainted_only_if_it_was_opened_in_what_is_disowned() -> None:
    for moment, tainted in ((10, False), (11, True)):
        driver = _driver()
        _differ(driver, moment, closed=False)
        driver.comparison.disown()
        assert [found.tainted for found in driver.comparison.provisional()] == [tainted]


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
