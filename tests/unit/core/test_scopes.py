from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, batches, record, spec
from twinstream.core.aside import CREDIT_OF_A_REVIEW, CREDIT_OF_AN_EVENT
from twinstream.core.events import Event, Form
from twinstream.core.scopes import MEETING_RUN, NOTHING, Explanation, Scope

EVENT = Event(Form("a", b"x", "event", b"x"), 0, 0, 0, 0.0)


def scope(*, moment: int = 0, tainted: bool = False, disputed: bool = False, lost: bool = False) -> Scope:
    driver = Driver(spec("total"))
    driver.take(batches("L:a1 R:b1"))
    (opened,) = driver.comparison.scopes
    made = Scope(opened.owner, opened.order, 0, bytes)
    made.moment, made.tainted, made.disputed = moment, tainted, disputed
    made.add(LEFT, EVENT)
    if lost:
        made.lose(NOTHING)
    return made


def whole_of(part: Scope, *, moment: int = 9, tainted: bool = False, disputed: bool = False) -> Scope:
    """A scope that has taken over a part of it."""
    whole = Scope(part.owner, part.order, 0, bytes)
    whole.moment, whole.tainted, whole.disputed = moment, tainted, disputed
    whole.absorb(part)
    return whole


def test_a_scope_has_the_events_of_both_sides() -> None:
    one = scope()
    one.add(LEFT, EVENT)
    one.add(RIGHT, EVENT)
    assert len(one) == 3
    assert len(whole_of(one)) == 3


def test_a_difference_is_as_old_as_the_oldest_of_its_parts() -> None:
    assert whole_of(scope(moment=3), moment=9).moment == 3
    assert whole_of(scope(moment=9), moment=3).moment == 3


@pytest.mark.parametrize(("whole", "part"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_difference_is_tainted_if_all_of_it_is_and_in_dispute_if_any_of_it_is(
    whole: bool, part: bool
) -> None:
    merged = whole_of(scope(tainted=part, disputed=part), tainted=whole, disputed=whole)
    assert merged.tainted == (whole and part)
    assert merged.disputed == (whole or part)


def test_of_a_lost_part_only_what_it_dropped_is_left_to_take_over() -> None:
    merged = whole_of(scope(lost=True, tainted=False, moment=3), tainted=True, moment=9)
    assert (len(merged), merged.tainted, merged.moment) == (0, True, 9)
    assert merged.dropped == ([EVENT], [])


def test_a_scope_is_pressing_when_it_is_new_and_when_its_sides_may_have_met() -> None:
    driver = Driver(spec("total"))
    driver.take(batches("L:a1 R:b1"))
    (one,) = driver.comparison.scopes
    assert one.pressing()
    driver.comparison.review()
    run = [record({"v": value}) for value in range(MEETING_RUN)]
    driver.feed(LEFT, run)
    driver.feed(RIGHT, run[:-1])
    assert (one.grown, one.pressing()) == (2 * MEETING_RUN - 1, False)
    driver.feed(RIGHT, run[-1:])
    assert one.pressing()
    driver.comparison.review()
    assert not driver.comparison.scopes


def test_sides_that_looked_as_if_they_had_met_and_had_not_are_not_pressing_again() -> None:
    driver = Driver(spec("total"))
    events = [record({"v": value}) for value in range(50)]
    driver.feed(LEFT, events[:40])
    driver.feed(RIGHT, events[24:40])  # fewer are gone if all of these have moved than if all before are
    driver.comparison.review()
    (one,) = driver.comparison.scopes
    driver.feed(LEFT, events[40:41])
    assert (one.grown, one.pressing()) == (1, False)
    driver.comparison.review()
    driver.feed(RIGHT, events[40:])
    driver.comparison.review()
    assert not driver.comparison.scopes, "what is not pressing is explained all the same"


def test_where_everything_differs_what_is_spent_on_explanations_follows_the_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Driver(spec("{per_key: [k]}"))
    aside, costs = driver.comparison.aside, []
    explain = aside.explain

    def noted(scope: Scope, *, whole: bool) -> Explanation:
        explanation = explain(scope, whole=whole)
        costs.append(scope.cost)
        return explanation

    monkeypatch.setattr(aside, "explain", noted)
    for batch in range(60):
        for side, value in ((LEFT, 0), (RIGHT, 1)):
            events = [record({"k": k, "v": [value, batch, n]}) for k in range(30) for n in range(5)]
            driver.feed(side, events)
        driver.comparison.review()
    assert len(aside.scopes) == 30
    assert sum(costs) < 60 * (CREDIT_OF_A_REVIEW + CREDIT_OF_AN_EVENT * 2 * 30 * 5) + max(costs)
    assert len({scope.explained_as for scope in aside.scopes}) == 30
    assert min(scope.explained_as for scope in aside.scopes) > len(costs) - 31, "each in its turn"
    driver.comparison.refresh()
    assert {scope.grown for scope in aside.scopes} == {0}


def test_a_piece_that_outgrows_the_limit_is_lost_though_nothing_presses() -> None:
    driver = Driver(spec("total", "limits: {scope_events: 100}"))
    driver.take(batches("L:a1 R:b1"))
    driver.comparison.review()
    driver.feed(LEFT, [record({"v": value}) for value in range(120)])
    driver.comparison.review()
    assert [one.lost for one in driver.comparison.scopes] == [True]
