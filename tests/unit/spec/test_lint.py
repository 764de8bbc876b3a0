from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.support.refusals import recorded
from twinstream.errors import SpecError
from twinstream.spec.file.model import Spec
from twinstream.spec.lint.lint import OPERATIONS, costs, lint
from twinstream.spec.lint.relations import scope_fields, when
from twinstream.spec.load import loads

TODAY = date(2026, 5, 1)


def spec(order: Any, kinds: str = "abc", declared: Any = None, **more: Any) -> Spec:
    """A comparison file with a kind for each letter, or with those declared."""
    sides = {"reference": {"topic": "r"}, "candidate": {"topic": "c"}}
    declared = declared or {kind: {"where": {"type": kind}} for kind in kinds}
    return loads(json.dumps({"version": 1, "name": "t", **sides, "kinds": declared, "order": order, **more}))


def test_a_report_is_plain_data() -> None:
    report = lint(spec({"barrier": "a", "inner": {"per_key": ["k"]}}, "ab"), TODAY).to_dict()
    assert json.loads(json.dumps(report)) == report
    assert report["kinds"] == ["a", "b"]
    assert report["order"] == "in order per k between equal a barriers"
    assert report["matrix"] == [
        {"first": "a", "second": "a", "when": "always"},
        {"first": "a", "second": "b", "when": "always"},
        {"first": "b", "second": "b", "when": "k equal"},
    ]
    assert report["costs"][1] == {
        "kind": "b",
        "steps": [{"operation": "epoch", "times": 1}, {"operation": "queue", "times": 1}],
        "nanoseconds": OPERATIONS["epoch"][0] + OPERATIONS["queue"][0],
    }
    assert report["sharding"]["possible"] is False
    assert report["refused"] == []


def test_kinds_that_are_left_out_are_not_in_the_matrix() -> None:
    ignored = {"a": {"where": {"t": 1}, "ignore": True}, "b": {}}
    report = lint(spec("total", declared=ignored), TODAY)
    assert report.kinds == ("b",)
    assert report.matrix == (("b", "b", "always"),)


def told(spec: Spec) -> list[str]:
    """What the report says of an order, and the key of each kind."""
    report = lint(spec, TODAY)
    keys = {kind: ", ".join(scope_fields(spec.order, kind)) for kind in report.kinds}
    steps = {
        cost.kind: [f"{times} × {name}" if times > 1 else name for name, times in cost.steps]
        for cost in report.costs
    }
    return [
        f"order: {report.order}",
        *(f"{pair.first} and {pair.second}: {pair.when}" for pair in report.matrix if pair.when != "never"),
        *(f"key of {kind}: {fields}" for kind, fields in keys.items() if fields),
        *(f"index for {kind}: {', '.join(names)}" for kind, names in steps.items()),
        f"division: {report.division.text}",
    ]


RECORDED = recorded([Path(__file__).with_name("orders.txt")])


@pytest.mark.parametrize("claim", RECORDED)
def test_an_order_amounts_to_what_stands_beside_it(claim: str) -> None:
    text, said, _ = RECORDED[claim]
    assert told(loads(text)) == said.splitlines()


def test_a_schema_file_that_no_record_can_be_read_with_is_refused(tmp_path: Path) -> None:
    (tmp_path / "k.avsc").write_text("{}")
    declared = spec("total", decode={"format": "avro", "schema_file": str(tmp_path / "k.avsc")})
    with pytest.raises(SpecError, match=r"k\.avsc: .*is not an Avro schema"):
        lint(declared, TODAY)


def test_what_a_function_costs_is_no_number() -> None:
    assert [cost.nanoseconds for cost in costs(spec({"callable": "os.path:samefile"}, "a"))] == [None]


def test_fields_inside_each_other_cost_what_they_cost() -> None:
    order = {"barrier": "a", "inner": {"by_key": ["k"], "inner": {"per_key": ["k.m"]}}}
    assert [cost.kind for cost in costs(spec(order, "ab"))] == ["a", "b"]


def test_a_condition_names_the_kinds_as_they_are_asked_for() -> None:
    order = spec({"dependent": [{"pair": ["a", "b"], "same": [{"first": "k", "second": "m"}]}]}).order
    assert (when(order, "a", "b"), when(order, "b", "a")) == ("a.k = b.m", "b.m = a.k")
