"""Keys and branches whose inside is more than a sequence or a bag: here, days."""

from __future__ import annotations

from tests.support.rides import ride
from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.events import Side
from twinstream.core.matching.keyed import KeyedIndex

DAYS = "{barrier: day, inner: unordered}"
BY_KEY = f"{{by_key: [k], inner: {DAYS}}}"
KINDS = "kinds: {month: {where: {t: month}}, day: {where: {t: day}}, ride: {}}\n"


MONTH = record({"t": "month"})


def test_an_event_of_a_key_that_the_side_ahead_lacks_is_a_difference_at_once() -> None:
    driver = Driver(spec(f"{{barrier: month, inner: {BY_KEY}}}", KINDS))
    driver.feed(LEFT, [ride(1, 1), MONTH])
    driver.feed(RIGHT, [ride(1, 1)])
    assert not driver.comparison.diverged
    driver.feed(RIGHT, [ride(1, 2)])
    assert driver.comparison.diverged


def test_a_key_is_forgotten_when_nothing_of_it_waits_any_more() -> None:
    driver = Driver(spec(BY_KEY, KINDS + "overdue: {after: 60s, proves: true}"))
    driver.feed(LEFT, [ride(0, 99)], [0])
    for second in range(99):
        for side in Side:
            driver.feed(side, [ride(second, second)], [second * 1000])
    index = driver.comparison.index
    assert isinstance(index, KeyedIndex)
    assert list(index._parts) == [99]
    driver.comparison.survey((True, True))
    assert driver.kinds() == ["missing"]
    assert not index._parts
