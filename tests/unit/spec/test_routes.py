from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from tests.support.streams import spec
from twinstream.core.order import BARRIER, Branches, Epochs, Keyed, Lanes, Order, Ruled
from twinstream.errors import DecodeError
from twinstream.spec.codec.routes import exact_time, routing_of

SIDE_BY_SIDE = """
  parallel:
    x: {kinds: [a, b], order: {barrier: a, inner: total}}
    y: {kinds: [c], order: total}
"""
KINDS = "kinds: {a: {where: {t: a}}, b: {where: {t: b}}, c: {}}"


@pytest.mark.parametrize(
    ("order", "compiled"),
    [
        ("unordered", Lanes()),
        ("{by_key: [k], inner: {per_key: [m]}}", Lanes()),
        ("{barrier: a, inner: {per_key: [k]}}", Epochs(Lanes())),
        ("{barrier: a, inner: unordered, copies: per_partition}", Epochs(Lanes(), copies=True)),
        ("{by_key: [k], inner: {barrier: a, inner: total}}", Keyed(Epochs(Lanes()))),
        ("{parallel: {x: {kinds: [a, b], order: total}, y: {kinds: [c], order: unordered}}}", Lanes()),
        (SIDE_BY_SIDE, Branches((Epochs(Lanes()), Lanes()))),
        ("{dependent: [[a, '*'], [b, b], {pair: [c, c], same: [k]}]}", Epochs(Lanes())),
        ("{dependent: [[a, a], [b, b], [a, b]]}", Lanes()),
        ("{dependent: [['*', '*']]}", Lanes()),
        ("{dependent: [[a, b]]}", Ruled(2)),
        ("{dependent: [[c, c], [a, b]]}", Branches((Lanes(), Ruled(2)))),
        ("{dependent: [{pair: [a, b], same: [k]}, {pair: [a, a], same: [k]}]}", Ruled(4)),
        ("{dependent: [{pair: [c, c], within: {field: ts, less_than: 1}}]}", Ruled(2)),
    ],
)
def test_an_order_is_brought_into_the_form_with_the_quickest_index(order: str, compiled: Order) -> None:
    assert routing_of(spec(order, KINDS)).order == compiled


@pytest.mark.parametrize(
    ("tolerant", "compiled"),
    [("c", Branches((Lanes(), Ruled(2)))), ("a", Ruled(2))],
)
def test_a_kind_with_a_tolerance_that_no_rule_names_is_a_bag_beside_the_rules(
    tolerant: str, compiled: Order
) -> None:
    near = f"identity: [t]\nequality: {{per_kind: {{{tolerant}: {{tolerance: {{v: {{abs: 1}}}}}}}}}}"
    assert routing_of(spec("{dependent: [[a, b]]}", f"{KINDS}\n{near}")).order == compiled


@pytest.mark.parametrize("inner", ["{barrier: b, inner: total}", "{dependent: [[b, '*']]}"])
def test_a_barrier_further_in_is_told_from_a_copy(inner: str) -> None:
    routing = routing_of(spec(f"{{barrier: a, copies: per_partition, inner: {inner}}}", KINDS))
    assert isinstance(routing.order, Epochs)
    assert [routing.route(kind, {}, b"") is BARRIER for kind in "abc"] == [True, False, False]


def test_barriers_with_copies_inside_others_are_one_list_of_barriers() -> None:
    copies = "copies: per_partition"
    order = f"{{barrier: a, {copies}, inner: {{barrier: [b], {copies}, inner: {{per_key: [k]}}}}}}"
    assert (
        spec(order, KINDS).order
        == spec(f"{{barrier: [a, b], {copies}, inner: {{per_key: [k]}}}}", KINDS).order
    )


@pytest.mark.parametrize(
    ("number", "time"),
    [(3, 3), (0.1, Fraction(1, 10)), (Decimal("1.50"), Fraction(3, 2)), (Decimal("0e9"), 0)],
)
def test_a_time_is_the_number_as_it_was_written(number: Any, time: Any) -> None:
    assert exact_time(number) == time


@pytest.mark.parametrize("value", ["3", None, True, [], float("nan"), float("inf"), Decimal("NaN")])
def test_what_is_no_number_is_no_time(value: Any) -> None:
    with pytest.raises(DecodeError, match="is not a number"):
        exact_time(value)


def test_a_number_too_long_to_be_written_out_is_no_time() -> None:
    for text in ("1e999999999", "1e-999999999"):
        with pytest.raises(DecodeError, match="more than 400 digits"):
            exact_time(Decimal(text))
