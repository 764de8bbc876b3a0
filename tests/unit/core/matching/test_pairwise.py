"""A dependence that only a function knows: here, that two events have one key."""

from __future__ import annotations

import json

import pytest

from tests.support.orders import as_callable
from tests.support.rides import KINDS
from tests.support.streams import LEFT, RIGHT, Batch, Driver, batches, record, spec
from twinstream.core.diagnosis.looks import MEETING_RUN
from twinstream.core.events import Side

FUNCTION = json.dumps(as_callable({"per_key": ["k"]}))
BY_KEY = f"{{by_key: [k], inner: {FUNCTION}}}"
BETWEEN_DAYS = f"{{barrier: day, inner: {FUNCTION}}}"
orders = pytest.mark.parametrize(
    "order", [FUNCTION, BY_KEY, BETWEEN_DAYS], ids=["alone", "inside a key", "between days"]
)


def run(start: int, stop: int, key: str = "a") -> list[bytes]:
    return [record({"k": key, "v": value}) for value in range(start, stop)]


@orders
def test_what_waits_waits_after_a_restart(order: str) -> None:
    driver = Driver(spec(order, KINDS))
    driver.take(batches("L:a1 L:b1 L:a2"))
    driver.restart()
    driver.take(batches("R:b1 R:a1 R:a2"))
    assert (driver.comparison.matched, driver.comparison.diverged) == (3, False)


@orders
@pytest.mark.parametrize("with_restart", [False, True])
def test_behind_a_difference_the_sides_meet_again(order: str, with_restart: bool) -> None:
    driver = Driver(spec(order, KINDS))
    driver.take([Batch(LEFT, run(0, 10)), Batch(RIGHT, run(1, 10))], review=True)
    assert len(driver.comparison.scopes) == 1
    if with_restart:
        driver.findings()
        driver.restart()
    end = 1 + MEETING_RUN
    driver.take([Batch(LEFT, run(10, end + 3)), Batch(RIGHT, run(10, end))], review=True)
    assert not driver.comparison.scopes
    assert driver.kinds() == ["missing"]
    driver.feed(RIGHT, run(end, end + 3))
    assert driver.comparison.matched == MEETING_RUN + 3
    assert [driver.held(side) for side in Side] == [[], []]
