"""What is told about an order agrees with what it means."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.orders import KINDS, Event, Order, dependent, events, needed, orders, spec_of
from twinstream.spec.lint.relations import holds, links, scope_fields, when, why

Case = tuple[Order, Event, Event]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """An order, and two events under it."""
    order = draw(orders())
    return order, draw(events(order)), draw(events(order))


@given(cases())
def test_a_link_holds_for_two_events_where_they_are_dependent_and_nowhere_else(case: Case) -> None:
    order, one, other = case
    declared = spec_of(order).order
    found = list(links(declared, one["type"], other["type"]))
    assert any(holds(link, one, other) for link in found) == dependent(order, one, other)


@given(cases())
def test_what_is_told_of_two_kinds_is_true_of_their_events(case: Case) -> None:
    order, one, other = case
    told = when(spec_of(order).order, one["type"], other["type"])
    if told in {"always", "never"}:
        assert dependent(order, one, other) == (told == "always")


@given(cases())
def test_events_of_different_keys_are_independent(case: Case) -> None:
    order, one, other = case
    keys = [set(scope_fields(spec_of(order).order, event["type"])) for event in (one, other)]
    assert keys[0] <= needed(order, one["type"])
    if any(one[field] != other[field] for field in keys[0] & keys[1]):
        assert not dependent(order, one, other)


@given(cases())
def test_for_dependent_events_there_is_always_a_reason(case: Case) -> None:
    order, one, other = case
    if dependent(order, one, other):
        declared = spec_of(order, KINDS).order
        reason = why(declared, one["type"], other["type"], one, other, {"k": "1", "m": "1"})
        assert reason.text.strip()
        assert reason.text != "The declared order relates them"
