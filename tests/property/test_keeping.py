"""With `keep: hashes` a comparison says what it says with the records, and holds nothing of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.property.test_orders import check_accounts
from tests.property.test_orders import outcome as plain_outcome
from tests.support.orders import Order
from tests.support.streams import Driver, spec
from tests.support.worlds import World, worlds
from twinstream.core.state.restore import restore
from twinstream.core.state.snapshot import snapshot
from twinstream.errors import SpecError

KNOWN = """known_differences:
  - {id: A, when: {divergences: [extra], where: {a: 1}}, owner: me, expires: 2030-01-01, ceiling: {count: 1}}
"""
cuts = st.lists(st.booleans(), min_size=8, max_size=8)


def timed(order: Order) -> bool:
    """Whether an order asks for times, of which a digest tells nothing."""
    return any(word in str(order) for word in ("within", "before"))


def outcome(driver: Driver) -> dict[str, Any]:
    """What a user can see of a comparison, with the events that prove its differences."""
    comparison = driver.comparison
    found = [*driver.findings(), *comparison.provisional()]
    return {
        **plain_outcome(driver),
        "survey": None,  # sizes differ
        "holes": len(comparison.holes),
        "diverged at": comparison.proven.at,
        "witnesses": sorted(
            (finding.kind, [(side, event[1:3]) for side, event in finding.witness]) for finding, *_ in found
        ),
    }


@given(worlds(), cuts, st.booleans())
def test_under_every_order_both_modes_say_the_same(
    world: World, cuts: Sequence[bool], identity: bool
) -> None:
    assume(not timed(world.order))
    more: dict[str, Any] = {"identity": ["k", "v"]} if identity else {}
    ordinary, hashed = world.driver(**more), world.driver(keep="hashes", **more)
    for batch in world.batches(cuts):
        for driver in (ordinary, hashed):
            driver.take([batch], review=True)
            check_accounts(driver)
        assert outcome(hashed) == outcome(ordinary)
    for driver in (ordinary, hashed):
        driver.end()
    assert outcome(hashed) == outcome(ordinary)


@given(worlds(), cuts, st.integers(0, 12))
def test_a_restart_changes_nothing_and_what_is_saved_holds_nothing_of_the_events(
    world: World, cuts: Sequence[bool], at: int
) -> None:
    assume(not timed(world.order))
    unlike = {"findings": None, "witnesses": None}
    whole, cut = world.driver(keep="hashes"), world.driver(keep="hashes")
    for number, batch in enumerate(world.batches(cuts)):
        for driver in (whole, cut):
            driver.take([batch], review=True)
        if number == at:
            state = snapshot(cut.comparison)
            held = [record for columns in state["held"] for record in columns["records"]]
            assert not any(b"{" in record and b"type" in record for record in held)
            fresh = world.driver(keep="hashes")
            restore(fresh.comparison, state, fresh.codec.form_again, 0.0)
            fresh.offsets = cut.offsets
            cut = fresh
    assert {**outcome(cut), **unlike} == {**outcome(whole), **unlike}


@pytest.mark.parametrize(
    ("order", "more", "said"),
    [
        ('{callable: "a:b"}', "", "`order.callable` needs the values"),
        ("{dependent: [{pair: [event, event], within: {field: ts, less_than: 1}}]}", "", "needs the times"),
        ("total", "equality: {tolerance: {n: {abs: 1}}}", "`equality.tolerance` needs the numbers"),
        (
            "{per_key: [a]}",
            KNOWN,
            "`known_differences.0.when.where` needs",
        ),
        ("total", "start: {at: event_time, field: ts, from: 5}", "`start.field` needs the time"),
        ("total", "overdue: {clock: event_time, field: ts, after: 60s}", "`overdue.field` needs the time"),
        ("{per_key: [a]}", "identity: [a.b]", "names `a.b`, beside `a` that it lies in or holds"),
    ],
)
def test_what_digests_cannot_tell_is_refused(order: str, more: str, said: str) -> None:
    with pytest.raises(
        SpecError, match="`keep`: with `keep: hashes` only digests of values are held"
    ) as told:
        spec(order, f"keep: hashes\n{more}")
    assert said in str(told.value)
