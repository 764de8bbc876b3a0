from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, batches, record, spec
from twinstream.core.arrivals.run import Run
from twinstream.core.comparison import Comparison
from twinstream.core.diagnosis.resync import Lengths
from twinstream.core.diagnosis.scope import NOTHING, Explanation, Scope
from twinstream.core.events import CanonicalForm, Event, Form, Side
from twinstream.core.open_scopes import CREDIT_OF_A_REVIEW, CREDIT_OF_AN_EVENT
from twinstream.core.order import Lanes
from twinstream.core.rules import Rules

EVENT = Event(Form("a", b"x", "event", b"x"), 0, 0, 0, 0.0)


RULES = Rules(canonical=bytes, order=Lanes())


def scope(*, moment: int = 0, tainted: bool = False, disputed: bool = False, lost: bool = False) -> Scope:
    driver = Driver(spec("total"))
    driver.take(batches("L:a1 R:b1"))
    (opened,) = driver.comparison.scopes
    made = Scope(opened.owner, opened.order, 0, RULES)
    made.moment, made.tainted, made.disputed = moment, tainted, disputed
    made.add(LEFT, EVENT)
    if lost:
        made.lose(NOTHING)
    return made


def whole_of(part: Scope, *, moment: int = 9, tainted: bool = False, disputed: bool = False) -> Scope:
    """A scope that has taken over a part of it."""
    whole = Scope(part.owner, part.order, 0, RULES)
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


def numbered(numbers: Iterable[int]) -> list[bytes]:
    return [record({"v": number}) for number in numbers]


def test_where_everything_differs_what_is_spent_on_explanations_follows_the_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Driver(spec("{per_key: [k]}"))
    aside, costs = driver.comparison.open_scopes, []
    explain = aside.explain

    def noted(scope: Scope, *, whole: bool, lengths: Lengths | None = None) -> Explanation:
        explanation = explain(scope, whole=whole, lengths=lengths)
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


@pytest.mark.parametrize("ahead", [LEFT, RIGHT])
@pytest.mark.parametrize("order", ["total", "{dependent: [['*', '*']]}"])
def test_a_scope_is_lost_where_both_pieces_in_step_outgrow_the_limit(ahead: Side, order: str) -> None:
    """However far one side is ahead."""
    driver = Driver(spec(order, "limits: {scope_events: 100}"))
    driver.feed(ahead, numbered(range(120)))
    driver.feed(ahead.other, numbered(range(1000, 1050)))
    driver.comparison.review()
    assert [one.lost for one in driver.comparison.scopes] == [False]
    driver.feed(ahead.other, numbered([1050]))
    driver.comparison.review()
    assert [one.lost for one in driver.comparison.scopes] == [True]
    driver.comparison.settle()
    assert driver.comparison.ledger.waiting == 0


def test_of_a_side_far_ahead_a_difference_reads_only_as_much_as_the_other_has_written() -> None:
    read: list[bytes] = []

    def canonical(content: bytes) -> CanonicalForm:
        read.append(content)
        return CanonicalForm(content)

    comparison = Comparison(Rules(canonical=canonical, order=Lanes()))
    for side, count in ((LEFT, 5000), (RIGHT, 100)):
        contents = [
            b"%d" % (-number if number == 50 and side is RIGHT else number) for number in range(count)
        ]
        forms = [Form("a", content, "event", content) for content in contents]
        comparison.feed(side, Run(forms, 0, range(count), [0] * count, 0.0))
    comparison.review()
    assert (comparison.matched, comparison.unmatched(LEFT)) == (99, 4900)
    assert len(read) < 1000
