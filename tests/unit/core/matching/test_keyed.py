"""Keys and branches whose inside is more than a sequence or a bag: here, days."""

from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, Batch, Driver, record, spec
from twinstream.core.events import Side
from twinstream.core.matching.keyed import KeyedIndex
from twinstream.core.state.restore import restore
from twinstream.core.state.snapshot import snapshot

DAYS = "{barrier: day, inner: unordered}"
BY_KEY = f"{{by_key: [k], inner: {DAYS}}}"
KINDS = "kinds: {month: {where: {t: month}}, day: {where: {t: day}}, ride: {}}\n"


def ride(number: int, key: int = 0) -> bytes:
    return record({"t": "ride", "n": number, "k": key})


def day(key: int = 0) -> bytes:
    return record({"t": "day", "k": key})


MONTH = record({"t": "month"})


@pytest.mark.parametrize("fed", range(1, 7))
def test_a_key_that_is_set_aside_survives_a_restart_at_any_place(fed: int) -> None:
    driver = Driver(spec(BY_KEY, KINDS))
    left = [ride(1, 1), ride(2, 1), day(1), ride(3, 2), day(1), ride(4, 1), day(2)]
    right = [ride(1, 1), day(1), ride(3, 2), day(1), ride(4, 1), day(2)]
    driver.take([Batch(LEFT, left[:fed]), Batch(RIGHT, right[:fed])], review=True)
    driver.findings()
    fresh = Driver(driver.spec)
    restore(fresh.comparison, snapshot(driver.comparison), fresh.codec.form, 0.0)
    fresh.offsets, fresh.closed = list(driver.offsets), driver.closed
    fresh.take([Batch(LEFT, left[fed:]), Batch(RIGHT, right[fed:])], review=True)
    fresh.end()
    assert fresh.kinds() == ["missing"]
    assert fresh.comparison.matched == 6


def test_a_side_may_be_behind_in_keys_between_barriers() -> None:
    driver = Driver(spec(f"{{barrier: month, inner: {BY_KEY}}}", KINDS))
    events = [ride(1, 1), ride(1, 2), day(1), ride(2, 1), day(2), MONTH, ride(3, 1)]
    driver.feed(LEFT, events)
    driver.feed(RIGHT, [events[1], events[0], *events[2:]])
    assert (driver.comparison.matched, driver.comparison.diverged) == (7, False)


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
