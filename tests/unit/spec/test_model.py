"""What the rest of the product asks a spec."""

from __future__ import annotations

import json
import pickle
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.refusals import HEAD, recorded
from twinstream.spec.file import orders
from twinstream.spec.file.model import Spec
from twinstream.spec.file.start import Start
from twinstream.spec.file.values import Date, Duration, Strict, dotted
from twinstream.spec.load import loads

KINDS = """\
kinds:
  end_of_day: {where: {type: eod}}
  heartbeat: {where: {type: hb}, ignore: true}
  gps: {where: {type: gps}}
  ride: {}
"""


def spec(order: str = "total", more: str = "") -> Spec:
    return loads(f"{HEAD}{KINDS}order: {order}\n{more}")


DECISIONS = recorded([Path(__file__).with_name("decisions.txt")])


@pytest.mark.parametrize("claim", DECISIONS)
def test_every_deciding_field_is_listed_with_its_place_and_its_kinds(claim: str) -> None:
    declared = loads(DECISIONS[claim].text)
    told = [f"the order reads {', '.join(declared.order_fields) or 'nothing'}"]
    for decision in declared.decisions:
        place, kinds = f"{dotted(decision.at)} ({decision.place})", ", ".join(decision.kinds)
        told.append(f"{decision.what}: {decision.field} at {place} of {kinds}")
    assert told == DECISIONS[claim].said.splitlines()


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
    rule = orders.PairRule(
        pair=("ride", "gps"),
        same=["taxi", orders.SamePair(first="user", second="user_id")],
        within=orders.Within(field="ts", less_than=Decimal("0.5")),
    )
    parallel = orders.Parallel(
        parallel={
            "a": orders.Branch(
                kinds=["ride", "gps"], order=orders.Dependent(dependent=[("ride", "ride"), rule])
            ),
            "b": orders.Branch(kinds=["x"], order=orders.CallableOrder(callable="a.b:c")),
        }
    )
    order = orders.ByKey(by_key=["region"], inner=orders.Barrier(barrier=["end_of_day"], inner=parallel))
    built = spec().model_copy(update={"order": order})
    assert Spec.model_validate(built.model_dump()) == built
    assert spec().model_copy(update={"order": orders.PerKey(per_key=["taxi"])}).order_fields == ("taxi",)


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


@pytest.mark.parametrize(
    ("begin", "warm_up"),
    [
        ("2026-03-01T12:00:00Z", "5s"),
        ("1700000000.12345678901234567", "0.30000000000000000001"),
        ("0.1", "1e-30"),
        (10**40, 5),
    ],
)
def test_a_start_is_read_back_from_json_as_the_same_start(begin: Any, warm_up: Any) -> None:
    start = Start.model_validate({"at": "event_time", "field": "t", "from": begin, "warm_up": warm_up})
    assert Start.model_validate(json.loads(json.dumps(start.as_written()))) == start
