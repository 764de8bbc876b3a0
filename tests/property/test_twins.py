"""A record that matches with its twin, unread, ends as one that is read and fed like any other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.searching import examples
from tests.support.streams import LEFT, RIGHT, Driver, record, spec

KINDS = "kinds: {day: {where: {k: day}}, event: {}}\n"
ORDERS = {
    "total": "",
    "unordered": "",
    "{per_key: [k]}": "",
    "{barrier: day, inner: {per_key: [k]}}": KINDS,
    "{barrier: day, inner: unordered}": KINDS,
    "{by_key: [z], inner: {barrier: day, inner: {per_key: [k]}}}": KINDS,
}
RECORDS = [record({"k": key, "v": value, "z": 1}) for key in ("a", "b") for value in range(3)]
DAY = record({"k": "day", "z": 1})
SIDE = st.lists(st.sampled_from([*RECORDS, DAY]), max_size=24)
CUTS = st.lists(st.tuples(st.sampled_from([LEFT, RIGHT]), st.integers(1, 7)), max_size=20)


@pytest.mark.parametrize("order", ORDERS)
@examples(600)
@given(left=SIDE, moves=st.lists(st.tuples(st.integers(0, 23), st.integers(0, 6)), max_size=3), cuts=CUTS)
def test_twins_change_nothing_but_the_work(
    order: str, left: list[bytes], moves: list[tuple[int, int]], cuts: list[tuple[Any, int]]
) -> None:
    right = list(left)
    for place, what in moves:
        if place < len(right):
            right[place : place + 1] = [[], [*RECORDS, DAY][what : what + 1]][what % 2]
    rest = {LEFT: left, RIGHT: right}
    by_twins, by_reading = Driver(spec(order, ORDERS[order])), Driver(spec(order, ORDERS[order]))
    by_reading.comparison.feeding.looks_up_twins = False
    for side, count in [*cuts, (LEFT, 24), (RIGHT, 24)]:
        records, rest[side] = rest[side][:count], rest[side][count:]
        for driver in (by_twins, by_reading) if records else ():
            driver.feed(side, records)
            driver.comparison.review()
        assert _told(by_twins) == _told(by_reading)


def _told(driver: Driver) -> list[Any]:
    comparison = driver.comparison
    found = [(one.finding.kind, one.finding.left, one.finding.right) for one in comparison.provisional()]
    accounts = [account.state() for account in comparison.accounts]
    counts = [
        comparison.matched,
        comparison.diverged,
        comparison.ledger.matched_by_kind,
        len(comparison.holes),
    ]
    return [*counts, accounts, found, [driver.held(side) for side in (LEFT, RIGHT)]]
