"""Comparison files with orders of any shape: what is written is what is read, wherever it stands."""

from __future__ import annotations

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from twinstream.errors import SpecError
from twinstream.spec.file.orders import nodes
from twinstream.spec.file.schema import comparison_schema
from twinstream.spec.load import digest, load, loads

KINDS = ("a", "b", "c", "d")
FIELDS = ("taxi", "meta.host", r"a\.b", "$key", "$headers.trace", r"\$oid")
SCHEMA = Draft202012Validator(comparison_schema())
numbers = st.sampled_from([1, 0.5, 0.01, 1e-9, "0.10000000000000000001", 10**30])


def fields(size: int = 2) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(FIELDS), min_size=1, max_size=size, unique=True)


@st.composite
def rules(draw: st.DrawFn, kinds: tuple[str, ...]) -> Any:
    one, other = (draw(st.sampled_from([*kinds, "*"])) for _ in range(2))
    if draw(st.booleans()):
        return [one, other]
    rule: dict[str, Any] = {"pair": [one, other], "same": list(draw(fields()))}
    field = draw(st.sampled_from(FIELDS))
    told_apart = one != other and "*" not in (one, other)
    if told_apart and draw(st.booleans()):
        rule["same"].append(draw(st.sampled_from([{"x": "y"}, {"first": "x", "second": "y"}])))
        rule["before"] = {"field": field}
    elif draw(st.booleans()):
        rule["within"] = {"field": field, "less_than": draw(numbers)}
    return rule


@st.composite
def orders(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, depth: int = 4) -> Any:
    """An order that breaks no law, for the kinds that reach it."""
    leaves = ["unordered", "total", "per_key", "callable", *(["dependent"] if kinds else [])]
    inner = ["by_key", *(["barrier", "parallel"] if kinds else [])] if depth else []
    match draw(st.sampled_from(leaves + 2 * inner)):
        case "per_key":
            return {"per_key": draw(fields())}
        case "callable":
            return {"callable": "operator:eq"}
        case "dependent":
            return {"dependent": draw(st.lists(rules(kinds), min_size=1, max_size=3))}
        case "by_key":
            return {"by_key": draw(fields()), "inner": draw(orders(kinds, depth - 1))}
        case "barrier":
            barriers = draw(st.lists(st.sampled_from(kinds), min_size=1, unique=True))
            rest = tuple(kind for kind in kinds if kind not in barriers)
            named = barriers[0] if len(barriers) == 1 and draw(st.booleans()) else barriers
            return {"barrier": named, "inner": draw(orders(rest, depth - 1))}
        case "parallel":
            cut = draw(st.integers(1, len(kinds)))
            parts = [part for part in (kinds[:cut], kinds[cut:]) if part]
            return {"parallel": {f"p{n}": draw(_branch(part, depth)) for n, part in enumerate(parts)}}
        case word:
            return word


@st.composite
def _branch(draw: st.DrawFn, kinds: tuple[str, ...], depth: int) -> Any:
    return {"kinds": list(kinds), "order": draw(orders(kinds, depth - 1))}


def file_with(order: Any) -> dict[str, Any]:
    kinds: dict[str, Any] = {kind: {"where": {"type": [kind, 1, None]}} for kind in KINDS}
    return {
        "version": 1,
        "name": "ads",
        "reference": {"topic": "ads.reference", "version": "1.0"},
        "candidate": {"topic": "ads.candidate"},
        "kinds": {**kinds, "rest": {"where": {"type": "rest"}, "ignore": True}},
        "order": order,
        "equality": {"quantum": {"fare": 0.01}, "per_kind": {"a": {"sets": ["tags"]}}},
        "overdue": {"after": "1500ms"},
        "known_differences": [
            {
                "id": "one",
                "when": {"divergences": ["missing"]},
                "owner": "me",
                "expires": "2026-12-31",
                "ceiling": {"share": 0.5},
            }
        ],
    }


def shuffled(node: Any, source: random.Random, *, fixed: bool = False) -> Any:
    """The same with the keys of every mapping in another order, but for kinds, whose order has a meaning."""
    if isinstance(node, list):
        return [shuffled(item, source) for item in node]
    if not isinstance(node, dict):
        return node
    keys = list(node)
    if not fixed:
        source.shuffle(keys)
    return {key: shuffled(node[key], source, fixed=key == "kinds" and "version" in node) for key in keys}


@given(orders())
def test_a_spec_written_and_read_again_is_the_same(order: Any) -> None:
    spec = loads(json.dumps(file_with(order)))
    again = loads(spec.model_dump_json())
    assert again == spec
    assert digest(again) == digest(spec)


@given(orders())
def test_every_order_fits_the_schema(order: Any) -> None:
    SCHEMA.validate(file_with(order))


@given(orders(), st.randoms(use_true_random=False))
def test_the_digest_is_of_the_meaning_alone(order: Any, source: random.Random) -> None:
    file = file_with(order)
    other = shuffled(file, source)
    with TemporaryDirectory() as folder:
        path = Path(folder, "other.yaml")
        path.write_text(yaml.safe_dump(other, sort_keys=False), encoding="utf-8")
        assert digest(load(path)) == digest(loads(json.dumps(file)))


@given(orders(), orders())
def test_two_orders_have_two_digests(one: Any, other: Any) -> None:
    specs = [loads(json.dumps(file_with(order))) for order in (one, other)]
    assert (specs[0] == specs[1]) == (digest(specs[0]) == digest(specs[1]))


@given(orders())
def test_every_order_can_be_told_in_words_and_lets_kinds_go_inward_only(order: Any) -> None:
    spec = loads(json.dumps(file_with(order)))
    assert spec.order_text
    assert spec.whole == any(field.startswith("$") for field in spec.order_fields)
    for node in nodes(spec.order, spec.compared_kinds):
        inside = [inner for inner in nodes(node.order, node.kinds, node.at) if inner.at != node.at]
        assert all(set(inner.kinds) <= set(node.kinds) for inner in inside)


FORMS = {"per_key", "by_key", "barrier", "parallel", "dependent", "callable"}


def forms_in(node: Any, at: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The places of the keys that name a form of order."""
    if not isinstance(node, dict):
        return []
    found = [(*at, key) for key in node if key in FORMS]
    for key, value in node.items():
        if key in {"inner", "order"}:
            found += forms_in(value, (*at, key))
        elif key == "parallel":
            found += [place for name in value for place in forms_in(value[name], (*at, key, name))]
    return found


@given(orders(), st.data())
def test_a_misspelt_form_is_named_with_its_line_however_deep(order: Any, data: st.DataObject) -> None:
    places = forms_in(order, ())
    assume(places)
    at = data.draw(st.sampled_from(places))
    node = order
    for part in at[:-1]:
        node = node[part]
    wrong = f"{at[-1][:-1]}_"
    node[wrong] = node.pop(at[-1])
    text = yaml.safe_dump(file_with(order), sort_keys=False)
    line = next(n for n, read in enumerate(text.splitlines(), 1) if f"{wrong}:" in read)
    key = ".".join(("order", *at[:-1], wrong))
    with pytest.raises(SpecError) as caught:
        loads(text, "ads.yaml")
    assert str(caught.value) == f"ads.yaml:{line}: `{key}`: is not an order; did you mean `{at[-1]}`?"
