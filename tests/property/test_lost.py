"""What is given up is counted: no verdict without a difference that stands for it, and no event twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.streams import Driver, waiting_events
from tests.support.worlds import World, world, worlds
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side

cuts = st.lists(st.booleans(), min_size=1, max_size=8)
limits = st.integers(1, 8)
"""Far below what a comparison file may ask for, so that small scopes are lost, also within one another."""


def told(driver: Driver) -> dict[str, Any]:
    comparison = driver.comparison
    comparison.refresh()
    return {
        "diverged": comparison.diverged,
        "holes": list(comparison.holes),
        "booked": dict(comparison.differences.closed_by_kind),
        "total": comparison.differences.closed_by_kind.total() + len(comparison.provisional()),
        "accounts": [dict(vars(account)) for account in comparison.accounts],
        "matched": comparison.matched,
        "unmatched": [comparison.unmatched(side) for side in Side],
        "waits": [comparison.ledger.waits(side) for side in Side],
    }


def check_counts(driver: Driver) -> None:
    """Each difference stands for events of its own, and these are what the accounts call divergent."""
    comparison, named = driver.comparison, driver.places()
    for side, account in zip(Side, comparison.accounts, strict=True):
        assert account.divergent == sum(1 for owner, _ in named if owner is side)
        held = len(waiting_events(comparison, side))
        assert comparison.ledger.waits(side) == held
        assert comparison.unmatched(side) == held or comparison.open_scopes.gave_up


EPOCH_BEYOND_THE_LIMIT = world('{"barrier": ["b"], "inner": "unordered"}', "L:a/v=0 L:b R:a/v=1 R:b")
"""The barrier that proves the difference lies behind the limit."""
A_SIDE_PAST_THE_NEXT_BARRIER = world(
    '{"barrier": ["b"], "inner": "unordered"}',
    "L:a/v=0 L:b R:a/v=1 R:b L:a/v=0 L:b/v=1 L:a/v=2 L:a/v=3 R:b/v=1 R:a/v=3 R:a/v=2 L:b R:b",
)
"""A barrier ends what was lost, and the side that has come to it first has gone on before a restart."""


@example(EPOCH_BEYOND_THE_LIMIT, [False], 1)
@example(A_SIDE_PAST_THE_NEXT_BARRIER, [False], 3)
@given(worlds(most=16), cuts, limits)
def test_what_is_lost_is_counted_once_and_the_same_after_restarts_as_without(
    given: World, cuts: list[bool], limit: int
) -> None:
    driver, steady = given.driver(), given.driver()
    for one in (driver, steady):
        one.comparison = Comparison(replace(one.comparison.rules, scope_limit=limit))
    for batch in given.batches(cuts):
        for one in (driver, steady):
            one.take([batch], review=True)
            check_counts(one)
        before = told(driver)
        assert before == told(steady)
        assert before["total"] > 0 or not before["diverged"]
        driver.restart()
        assert told(driver) == before
    for one in (driver, steady):
        one.end()
        check_counts(one)
    assert told(driver) == told(steady)
