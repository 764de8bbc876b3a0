"""What was fed may turn out not to be what was to be compared: then what was found in it decides nothing."""

from __future__ import annotations

from tests.support.streams import LEFT, RIGHT, Driver, spec
from twinstream.core.accounting.proven import Proven


def _value(number: int) -> bytes:
    return b'{"k": "a", "v": %d}' % number


def _driver(order: str = "total", vouched_at: int = 10) -> Driver:
    driver = Driver(spec(order))
    driver.comparison.proven.vouch(vouched_at)
    return driver


def _differ(driver: Driver, moment: int, *, closed: bool = True) -> None:
    """The right side lacks the first of the next 40 values, or of two of them."""
    driver.comparison.certainty.moment = moment
    first, count = driver.offsets[LEFT], 40 if closed else 2
    driver.feed(LEFT, [_value(number) for number in range(first, first + count)])
    driver.feed(RIGHT, [_value(number) for number in range(first + 1, first + count)])
    driver.comparison.review()


def test_a_difference_becomes_sure_when_it_is_vouched_for() -> None:
    driver = _driver()
    _differ(driver, 11)
    driver.comparison.proven.vouch(11)
    assert driver.comparison.proven.for_sure
    driver.comparison.disown()
    assert driver.comparison.proven.for_sure


def test_an_open_scope_is_tainted_only_if_it_was_opened_in_what_is_disowned() -> None:
    for moment, tainted in ((10, False), (11, True)):
        driver = _driver()
        _differ(driver, moment, closed=False)
        driver.comparison.disown()
        assert [found.tainted for found in driver.comparison.provisional()] == [tainted]


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
