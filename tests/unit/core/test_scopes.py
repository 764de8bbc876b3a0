from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, Driver, batches, record, spec
from twinstream.core.events import Event, Form
from twinstream.core.scopes import Scope

EVENT = Event(Form("a", b"x", "event", b"x"), 0, 0, 0, 0.0)


def scope(*, moment: int = 0, tainted: bool = False, disputed: bool = False, lost: bool = False) -> Scope:
    driver = Driver(spec("total"))
    driver.take(batches("L:a1 R:b1"))
    (opened,) = driver.comparison.scopes
    made = Scope(opened.owner, opened.order, 0, bytes)
    made.moment, made.tainted, made.disputed = moment, tainted, disputed
    made.add(LEFT, EVENT)
    if lost:
        made.lose()
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


def test_what_has_a_lost_part_is_lost() -> None:
    merged = whole_of(scope(lost=True))
    assert merged.lost
    assert not whole_of(scope()).lost
    merged.add(LEFT, EVENT)
    assert len(merged) == 0


def test_a_small_scope_is_due_whenever_it_grew() -> None:
    driver = Driver(spec("total"))
    driver.take(batches("L:a1 R:b1"))
    (one,) = driver.comparison.scopes
    for text in ("L:c1", "R:c1"):
        assert one.due()
        driver.comparison.review()
        assert not one.due()
        driver.take(batches(text))


def test_a_large_scope_is_due_when_it_grew_by_an_eighth() -> None:
    driver = Driver(spec("total"))
    driver.feed(LEFT, [record({"v": value}) for value in range(4000)])
    driver.feed(RIGHT, [record({"v": -1})])
    (one,) = driver.comparison.scopes
    driver.comparison.review()
    driver.feed(LEFT, [record({"v": value}) for value in range(4000, 4400)])
    assert not one.due()
    driver.feed(LEFT, [record({"v": value}) for value in range(4400, 4600)])
    assert one.due()
