"""What the rest of the product asks a spec."""

from __future__ import annotations

import pickle
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.support.refusals import HEAD
from twinstream.spec.file.model import Spec
from twinstream.spec.file.orders import (
    Barrier,
    Branch,
    ByKey,
    CallableOrder,
    Dependent,
    PairRule,
    Parallel,
    PerKey,
    SamePair,
    Within,
)
from twinstream.spec.file.values import Date, Duration, Strict
from twinstream.spec.load import loads

KINDS = """\
kinds:
  end_of_day: {where: {type: eod}}
  heartbeat: {where: {type: hb}, ignore: true}
  gps: {where: {type: gps}}
  ride: {}
"""
PARALLEL = (
    "{parallel: {a: {kinds: [gps], order: {per_key: [taxi]}}, b: {kinds: [ride], order: unordered}, "
    "c: {kinds: [end_of_day], order: total}}}"
)


def spec(order: str = "total", more: str = "") -> Spec:
    return loads(f"{HEAD}{KINDS}order: {order}\n{more}")


@pytest.mark.parametrize(
    ("order", "fields"),
    [
        ("total", ()),
        ("{per_key: [taxi, $key]}", ("taxi", "$key")),
        ("{barrier: end_of_day, inner: {by_key: [a], inner: {per_key: [b, a]}}}", ("a", "b")),
        (
            "{dependent: [[ride, ride], {pair: [gps, ride], same: [a, {b: c}], before: {field: ts}}]}",
            ("a", "b", "c", "ts"),
        ),
        (PARALLEL, ("taxi",)),
    ],
)
def test_the_fields_that_the_order_reads_are_named_once(order: str, fields: tuple[str, ...]) -> None:
    assert spec(order).order_fields == fields


def test_every_deciding_field_is_listed_with_its_place() -> None:
    order = (
        "{barrier: end_of_day, inner: {dependent: [{pair: [gps, ride], same: [a, {b: c}]}, [ride, ride]]}}"
    )
    decisions = spec(order, "identity: [id, n]").decisions
    decided = [(decision.place, decision.at, decision.field) for decision in decisions]
    kind, rule = ("kinds", "end_of_day", "where", "type"), ("order", "inner", "dependent", 0, "same")
    assert decided[0] == ("kinds.end_of_day.where", kind, "type")
    assert decided[3:] == [
        ("order.inner.dependent.0.same", (*rule, 0), "a"),
        ("order.inner.dependent.0.same.1.first", (*rule, 1, "first"), "b"),
        ("order.inner.dependent.0.same.1.second", (*rule, 1, "second"), "c"),
        ("identity", ("identity", 0), "id"),
        ("identity", ("identity", 1), "n"),
    ]


def test_a_field_decides_for_the_kinds_that_it_is_read_of() -> None:
    rules = "{pair: [gps, '*'], same: [a]}, {pair: [gps, ride], same: [{b: c}]}"
    order = f"{{barrier: end_of_day, inner: {{dependent: [{rules}]}}}}"
    kinds = {
        (decision.what, decision.field): decision.kinds
        for decision in spec(order, "identity: [id]").decisions
    }
    assert kinds == {
        ("kind", "type"): ("gps", "ride"),
        ("order", "a"): ("gps", "ride"),
        ("order", "b"): ("gps",),
        ("order", "c"): ("ride",),
        ("identity", "id"): ("end_of_day", "gps", "ride"),
    }


def test_kinds_are_named_in_the_order_in_which_they_are_tried() -> None:
    assert spec().kind_names == ("end_of_day", "heartbeat", "gps", "ride")
    assert spec().compared_kinds == ("end_of_day", "gps", "ride")
    assert loads(f"{HEAD}order: total").kind_names == ("event",)


@pytest.mark.parametrize(
    "more",
    [
        "order: {per_key: [$key]}",
        "order: total\nidentity: [$headers.id]",
        "order: total\nkinds: {a: {where: {$partition: 0}}}",
        "kinds: {a: {}}\norder: {dependent: [{pair: [a, a], within: {field: $timestamp, less_than: 1}}]}",
    ],
)
def test_a_spec_that_reads_more_than_the_value_takes_the_whole_record(more: str) -> None:
    whole = loads(HEAD + more)
    assert whole.whole
    assert whole.path_of("meta.taxi") == ("$value", "meta", "taxi")
    assert whole.path_of("$headers.trace") == ("$headers", "trace")
    assert whole.path_of("$key") == ("$key",)
    assert whole.path_of(r"\$key") == ("$value", "$key")


def test_any_other_spec_takes_the_value_alone() -> None:
    assert not spec("{per_key: ['\\$key']}").whole
    assert spec().path_of("meta.taxi") == ("meta", "taxi")


def test_the_equality_of_a_kind_takes_the_place_of_the_whole() -> None:
    equality = spec(more="equality: {ignore: [x], absent_is_null: true, per_kind: {gps: {sets: [y]}}}")
    assert equality.equality_of("ride").ignore == ["x"]
    gps = equality.equality_of("gps")
    assert (gps.ignore, gps.absent_is_null, gps.sets) == ([], False, ["y"])


def test_an_order_can_be_built_from_its_parts() -> None:
    rule = PairRule(
        pair=("ride", "gps"),
        same=["taxi", SamePair(first="user", second="user_id")],
        within=Within(field="ts", less_than=Decimal("0.5")),
    )
    parallel = Parallel(
        parallel={
            "a": Branch(kinds=["ride", "gps"], order=Dependent(dependent=[("ride", "ride"), rule])),
            "b": Branch(kinds=["x"], order=CallableOrder(callable="a.b:c")),
        }
    )
    order = ByKey(by_key=["region"], inner=Barrier(barrier=["end_of_day"], inner=parallel))
    built = spec().model_copy(update={"order": order})
    assert Spec.model_validate(built.model_dump()) == built
    assert spec().model_copy(update={"order": PerKey(per_key=["taxi"])}).order_fields == ("taxi",)


def test_a_single_barrier_and_a_pair_of_names_have_short_forms() -> None:
    assert spec("{barrier: gps, inner: total}") == spec("{barrier: [gps], inner: total}")
    short, long = (
        spec(f"{{dependent: [{{pair: [ride, gps], same: [{{{names}}}]}}]}}")
        for names in ("user: user_id", "first: user, second: user_id")
    )
    assert short == long


@pytest.mark.parametrize(
    ("kind", "value", "meant"),
    [
        (Duration, timedelta(seconds=90), "90s"),
        (Duration, "90 s", "90s"),
        (Duration, "2h", "2h"),
        (Duration, 0.0005, "0.500ms"),
        (Duration, 0, "0s"),
        (Date, date(2026, 12, 31), "2026-12-31"),
    ],
)
def test_a_value_is_written_as_it_is_read(kind: Any, value: Any, meant: str) -> None:
    class Holder(Strict):
        held: kind

    (held,) = Holder(held=value).model_dump(mode="json").values()
    assert held == meant
    assert Holder(held=held) == Holder(held=value)


def test_a_spec_can_be_handed_to_another_process() -> None:
    order = "{barrier: end_of_day, inner: {dependent: [{pair: [gps, ride], same: [{a: b}]}]}}"
    built = spec(order, "equality: {quantum: {fare: 0.01}}")
    assert pickle.loads(pickle.dumps(built)) == built
