from __future__ import annotations

import json
from itertools import combinations_with_replacement
from typing import Any

import pytest

from twinstream.spec.file.orders import Order
from twinstream.spec.lint.relations import scope_fields, when
from twinstream.spec.load import loads

KINDS = ("a", "b", "c", "e")


def declared_order(order: Any) -> Order:
    """The order as a comparison file with some kinds declares it."""
    sides = {"reference": {"topic": "r"}, "candidate": {"topic": "c"}}
    kinds = {kind: {"where": {"type": kind}} for kind in KINDS}
    spec = loads(json.dumps({"version": 1, "name": "t", **sides, "kinds": kinds, "order": order}))
    return spec.order


RULES: dict[str, tuple[Any, dict[str, str]]] = {
    "a bag": ("unordered", {}),
    "a sequence": ("total", dict.fromkeys(["aa", "ab", "ac", "bb", "bc", "cc"], "always")),
    "a key": (
        {"per_key": ["k", "m"]},
        dict.fromkeys(["aa", "ab", "ac", "bb", "bc", "cc"], "k equal and m equal"),
    ),
    "a barrier": (
        {"barrier": "a", "inner": {"per_key": ["k"]}},
        {
            **dict.fromkeys(["aa", "ab", "ac"], "always"),
            **dict.fromkeys(["bb", "bc", "cc"], "k equal"),
        },
    ),
    "a barrier for each key": (
        {"by_key": ["m"], "inner": {"barrier": "a", "inner": "unordered"}},
        dict.fromkeys(["aa", "ab", "ac"], "m equal"),
    ),
    "branches": (
        {
            "parallel": {
                "one": {"kinds": ["a", "c"], "order": "total"},
                "two": {"kinds": ["b", "e"], "order": {"per_key": ["k"]}},
            }
        },
        {"aa": "always", "ac": "always", "cc": "always", "bb": "k equal"},
    ),
    "rules": (
        {
            "dependent": [
                ["a", "a"],
                {"pair": ["b", "c"], "same": ["k", {"first": "m", "second": "ts"}]},
                {"pair": ["c", "b"], "before": {"field": "ts"}},
                {"pair": ["c", "c"], "within": {"field": "ts", "less_than": 0.5}},
                {"pair": ["c", "c"], "within": {"field": "ts", "less_than": 0.5}},
            ]
        },
        {
            "aa": "always",
            "bc": "k equal and b.m = c.ts or c.ts < b.ts",
            "cc": "|ts - ts| < 0.5",
        },
    ),
    "a function": (
        {"callable": "relations:related"},
        dict.fromkeys(["aa", "ab", "ac", "bb", "bc", "cc"], "relations:related says so"),
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_each_form_says_when_two_kinds_are_dependent(name: str) -> None:
    order, expected = RULES[name]
    declared = declared_order(order)
    for first, second in combinations_with_replacement("abc", 2):
        assert when(declared, first, second) == expected.get(first + second, "never")


def test_a_condition_names_the_kinds_as_they_are_asked_for() -> None:
    order = {"dependent": [{"pair": ["a", "b"], "same": [{"first": "k", "second": "m"}]}]}
    declared = declared_order(order)
    assert (when(declared, "a", "b"), when(declared, "b", "a")) == ("a.k = b.m", "b.m = a.k")


@pytest.mark.parametrize(
    ("order", "fields"),
    [
        ("total", {}),
        ({"per_key": ["k"]}, dict.fromkeys(KINDS, ("k",))),
        ({"by_key": ["k"], "inner": {"by_key": ["m"], "inner": "total"}}, {"a": ("k", "m")}),
        ({"by_key": ["k"], "inner": {"barrier": "a", "inner": {"per_key": ["m"]}}},
         {"a": ("k",), "b": ("k", "m")}),
        ({"dependent": [{"pair": ["a", "b"], "same": ["k", "m"]}, {"pair": ["a", "a"], "same": ["m"]}]},
         {"a": ("m",), "b": ("k", "m"), "c": ()}),
        ({"dependent": [{"pair": ["a", "*"], "same": ["k"]}, ["b", "b"]]},
         {"a": ("k",), "b": (), "c": ("k",)}),
    ],
)  # fmt: skip
def test_the_key_of_an_event_is_what_tells_it_from_those_it_never_depends_on(
    order: Any, fields: dict[str, tuple[str, ...]]
) -> None:
    declared = declared_order(order)
    assert {kind: scope_fields(declared, kind) for kind in fields} == fields
