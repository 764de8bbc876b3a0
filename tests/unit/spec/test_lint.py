from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from twinstream.spec.file.model import Spec
from twinstream.spec.lint.lint import OPERATIONS, costs, lint
from twinstream.spec.lint.sharding import Division, division
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


STEPS: list[tuple[Any, dict[str, list[str]]]] = [
    ("unordered", {"a": ["bag"], "b": ["bag"]}),
    ("total", {"a": ["queue"]}),
    ({"per_key": ["k"]}, {"a": ["queue"]}),
    ({"barrier": ["a"], "inner": "unordered"}, {"a": ["barrier"], "b": ["epoch", "bag"]}),
    (
        {"by_key": ["k"], "inner": {"barrier": ["a"], "inner": "total"}},
        {"a": ["key", "barrier"], "b": ["key", "epoch", "queue"]},
    ),
    (
        {
            "parallel": {
                "x": {"kinds": ["a"], "order": {"callable": "os.path:samefile"}},
                "y": {"kinds": ["b", "c"], "order": "total"},
            }
        },
        {"a": ["branch", "function"], "b": ["branch", "queue"]},
    ),
    ({"dependent": [["a", "a"], ["b", "b"]]}, {"a": ["queue"], "b": ["queue"], "c": ["bag"]}),
    (
        {
            "dependent": [
                ["a", "b"],
                {"pair": ["b", "c"], "same": ["k"]},
                {"pair": ["c", "c"], "within": {"field": "ts", "less_than": 1}},
            ]
        },
        {"a": ["rules", "rule"], "b": ["rules", "rule", "rule"], "c": ["rules", "rule", "rule with times"]},
    ),
]


@pytest.mark.parametrize(("order", "expected"), STEPS, ids=lambda value: str(value)[:40])
def test_the_steps_are_those_of_the_index_that_the_service_builds(
    order: Any, expected: dict[str, list[str]]
) -> None:
    found = {cost.kind: cost for cost in costs(spec(order))}
    for kind, operations in expected.items():
        steps = [step.operation for step in found[kind].steps for _ in range(step.times)]
        assert steps == operations


def test_what_a_function_costs_is_no_number() -> None:
    assert [cost.nanoseconds for cost in costs(spec({"callable": "os.path:samefile"}, "a"))] == [None]


def test_fields_inside_each_other_cost_what_they_cost() -> None:
    order = {"barrier": "a", "inner": {"by_key": ["k"], "inner": {"per_key": ["k.m"]}}}
    assert [cost.kind for cost in costs(spec(order, "ab"))] == ["a", "b"]


DIVISIONS: list[tuple[Any, bool]] = [
    ("unordered", True),
    ("total", False),
    ({"per_key": ["k", "m"]}, True),
    ({"by_key": ["k"], "inner": {"barrier": "a", "inner": "total"}}, True),
    ({"barrier": "a", "inner": {"per_key": ["k"]}}, False),
    ({"barrier": "a", "inner": {"per_key": ["k"]}, "copies": "per_partition"}, True),
    ({"barrier": "a", "inner": "total", "copies": "per_partition"}, False),
    ({"dependent": [{"pair": ["a", "b"], "same": ["k", "m"]}, {"pair": ["b", "b"], "same": ["m"]}]}, True),
    ({"dependent": [{"pair": ["a", "b"], "same": ["k"]}, {"pair": ["b", "b"], "same": ["m"]}]}, False),
    ({"dependent": [{"pair": ["a", "b"], "same": ["k"]}, ["b", "b"]]}, False),
    ({"callable": "os.path:samefile"}, False),
    (
        {"parallel": {"x": {"kinds": ["a"], "order": "unordered"},
                      "y": {"kinds": ["b", "c"], "order": {"per_key": ["k"]}}}},
        True,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("order", "possible"), DIVISIONS, ids=lambda value: str(value)[:40])
def test_work_is_divided_where_no_event_depends_on_one_of_another_part(order: Any, possible: bool) -> None:
    found = division(spec(order, co_partitioned=True))
    if possible:
        assert found == Division(True, "by partition (`serve --shards N`), as `co_partitioned` says")
    else:
        assert found == Division(
            False, "not at all: events of all keys and partitions can depend on each other"
        )
