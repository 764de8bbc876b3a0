"""A chain of checkpoints, whole, deltas and sweeps, always stands for what the comparison holds."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.searching import examples
from tests.support.streams import Driver, record, spec
from twinstream.checkpoints.format import decode, encode
from twinstream.checkpoints.plan import SavePlanner
from twinstream.core.accounting.event_rows import event_columns, rows_of
from twinstream.core.accounting.unmatched import UnmatchedEvents
from twinstream.core.arrivals import whole_runs
from twinstream.core.comparison import Comparison
from twinstream.core.events import PartitionOffset, Side, place_in_side
from twinstream.core.state.merge import merged
from twinstream.core.state.restore import restore
from twinstream.core.state.snapshot import Sweep, begin_sweep, delta, snapshot, sweeping

MOST_DELTAS, SWEPT = 2, 3
ORDERS = {
    "unordered": "unordered",
    "keys": "{per_key: [k]}",
    "rules": "{dependent: [{pair: [ride, ride], same: [k]}]}",
    "days": "{barrier: day, inner: {per_key: [k]}}",
    "days in each partition": "{barrier: day, inner: unordered, copies: per_partition}",
}
KINDS = "kinds: {day: {where: {k: day}}, ride: {}}\n"

keys = st.sampled_from([0, 1, 2, "day"])
events = st.tuples(st.sampled_from(list(Side)), st.integers(0, 1), keys, st.integers(0, 3))
steps = st.lists(st.one_of(events, st.sampled_from(["save", *Side])), max_size=60)
"""An event that comes, a save, or a side whose topic is created anew."""


class Chain:
    """Checkpoints of a comparison as its worker writes them, with a sweep every few deltas."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.bodies = driver, list[bytes]()
        self._journal, self._sequence = SavePlanner(MOST_DELTAS), 0

    def save(self) -> None:
        comparison, plan = self.driver.comparison, self._journal.begin()
        sweep = Sweep(SWEPT, plan.first) if plan.sweeping else None
        state = snapshot(comparison) if plan.after is None else delta(comparison, sweep)
        dropped = self._journal.dropping(swept=plan.sweeping and not sweeping(comparison))
        self._sequence += 1
        body = encode(state)
        self.bodies = [*self.bodies[dropped:], body]
        self._journal.saved(self._sequence, len(body), dropped)
        if self._journal.grown():
            begin_sweep(comparison)
            self._journal.begin_sweep()

    def state(self) -> dict[str, Any]:
        whole, *deltas = map(decode, self.bodies)
        return merged(whole, deltas)


def places(held: UnmatchedEvents) -> list[PartitionOffset]:
    return list(map(place_in_side, held))


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@given(taken=steps)
def test_after_every_save_the_chain_has_all_that_is_held_in_its_order(order: str, taken: list[Any]) -> None:
    driver = Driver(spec(order, KINDS))
    chain = Chain(driver)
    for step in [*taken, "save"]:
        if isinstance(step, Side):
            driver.create_anew(step, partitions=2)
            continue
        if step != "save":
            side, partition, key, number = step
            driver.feed(side, [record({"k": key, "v": number})], partition=partition)
            continue
        driver.comparison.review()
        chain.save()
        state = chain.state()
        for side in Side:
            columns = state["held"][side]
            saved = zip(columns["partitions"], columns["offsets"], strict=True)
            assert list(saved) == places(driver.comparison.ledger.held[side])
    restored = Comparison(driver.comparison.rules)
    restore(restored, chain.state(), driver.codec.form, 0.0)
    for held in (*driver.comparison.ledger.held, *restored.ledger.held):
        assert held.first_open() == dict(sorted(places(held), reverse=True))
    again, state = snapshot(restored), snapshot(driver.comparison)
    assert set(again.pop("recent")) == set(state.pop("recent"))
    for kept, known in zip(again.pop("homes"), state.pop("homes"), strict=True):
        assert sorted(kept) == sorted(known)
    assert again == state


runs = st.tuples(st.sampled_from(list(Side)), st.integers(0, 1), st.integers(1, 30), st.booleans())


@examples(200)
@given(least=st.sampled_from([1, whole_runs.LEAST]), taken=st.lists(runs | st.just("save"), max_size=40))
def test_after_every_save_the_chain_has_all_that_waits_ahead(least: int, taken: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_runs, "LEAST", least)
        patch.setattr(whole_runs, "LEAST_IN_THE_MEAN", min(least, whole_runs.LEAST_IN_THE_MEAN))
        driver, written = Driver(spec("{per_key: [k]}")), Counter[tuple[Side, int]]()
        chain = Chain(driver)
        for step in [*taken, "save"]:
            if step != "save":
                side, partition, count, changed = step
                first = written[side, partition]
                written[side, partition] += count
                numbers = range(first, first + count)
                records = [
                    record({"k": partition, "v": -number if changed else number}) for number in numbers
                ]
                driver.feed(side, records, [number * 37 % 101 for number in numbers], partition)
                driver.comparison.review()
                continue
            chain.save()
            assert _by_partition(chain.state()["held"]) == _by_partition(
                [event_columns(driver.comparison.ledger.held[side]) for side in Side]
            )
            _compare_facts(driver.comparison)
        restored = Comparison(driver.comparison.rules)
        restore(restored, chain.state(), driver.codec.form, 0.0)
        assert [restored.ledger.held[side].first_open() for side in Side] == [
            driver.comparison.ledger.held[side].first_open() for side in Side
        ]


def _by_partition(held: list[dict[str, Any]]) -> list[list[Any]]:
    """The rows of both sides, each partition in its order."""
    return [sorted(rows_of(columns), key=itemgetter(1)) for columns in held]


def _compare_facts(comparison: Comparison) -> None:
    """What is told of the unmatched events of each side is what a list of them tells."""
    for side in Side:
        held = comparison.ledger.held[side]
        events = list(held)
        assert len(held) == len(events) == comparison.unmatched(side)
        assert held.size_bytes == sum(len(event[0][3]) for event in events)
        assert held.oldest_ms() == min((event[3] for event in events), default=None)
        for moment_ms in (10, 50, 100):
            assert held.until(moment_ms) == sum(1 for event in events if event[3] <= moment_ms)


def test_many_saves_leave_few_bodies_and_little_of_what_is_settled() -> None:
    driver = Driver(spec("unordered"))
    chain = Chain(driver)
    for number in range(100):
        driver.feed(Side.LEFT, [record({"k": 0, "v": number})])
        if number >= 5:
            driver.feed(Side.RIGHT, [record({"k": 0, "v": number - 5})])
        chain.save()
        assert len(chain.bodies) <= 8
    assert len(driver.held(Side.LEFT)) == 5
