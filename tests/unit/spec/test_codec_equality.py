"""What `equality` makes of two records: each rule by itself, then together."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.streams import spec
from twinstream.spec.codec.codec import Codec


def codec(equality: str, more: str = "", order: str = "total") -> Codec:
    return Codec(spec(order, f"equality: {equality}\n{more}"))


def equal(reader: Codec, one: str, other: str) -> bool:
    forms = [reader.form(record.encode()) for record in (one, other)]
    same = reader.canonical(forms[0].content) == reader.canonical(forms[1].content)
    assert not same or forms[0].route == forms[1].route
    return same


def table(claim: str) -> list[tuple[str, str, str, bool]]:
    """The rows of `equality.txt` under a claim: a rule, two values, and whether they are equal by it."""
    text = Path(__file__).with_name("equality.txt").read_text(encoding="utf-8")
    section = text.partition(f"== {claim}\n")[2].partition("\n== ")[0]
    rows = re.findall(r"^(.*?) *\| (.*) (equals|is not) (.*?)(?:  # .*)?$", section, re.MULTILINE)
    return [(rule, one, other, says == "equals") for rule, one, says, other in rows]


NULLS = table("null is absent where it is declared so")
RULES = [
    *table("only what is compared counts"),
    *table("arrays are compared as declared"),
    *NULLS,
    *table("a tolerance is for two numbers"),
]


@pytest.mark.parametrize(("equality", "one", "other", "same"), RULES)
def test_only_what_differs_by_the_declared_equality_counts(
    equality: str, one: str, other: str, same: bool
) -> None:
    assert equal(codec(equality), one, other) is same


@pytest.mark.parametrize(("_", "one", "other", "_same"), NULLS)
def test_null_is_not_absent_unless_it_is_declared_so(_: str, one: str, other: str, _same: bool) -> None:
    assert not equal(codec("{}"), one, other)


# -- quantum ---------------------------------------------------------------------------------------------


def test_how_long_a_number_is_spelled_decides_nothing() -> None:
    zeros = "0" * 1_000
    for rule, one, other in (
        ("quantum: {a: 1}", "0.5", f"0.5{zeros}"),
        ("quantum: {a: 7}", "1e600", f"1{zeros[:600]}"),
        ("tolerance: {a: {abs: 1}}", "1e600", f"1{zeros[:600]}"),
    ):
        assert equal(codec(f"{{{rule}}}"), f'{{"a":{one}}}', f'{{"a":{other}}}')


ROUNDED = table("numbers are rounded to the nearest multiple")


@pytest.mark.parametrize(
    "equality", ["{{quantum: {{a: {}}}}}", "{{quantum: {{a: {}}}, absent_is_null: true}}"]
)
@pytest.mark.parametrize(("quantum", "one", "other", "same"), ROUNDED)
def test_numbers_are_rounded_to_the_nearest_multiple(
    equality: str, quantum: str, one: str, other: str, same: bool
) -> None:
    reader = codec(equality.format(quantum))
    assert equal(reader, f'{{"a":{one}}}', f'{{"a":{other}}}') is same
    nested = codec(equality.format(quantum).replace("a:", "l.a:", 1))
    assert equal(nested, f'{{"l":[{{"a":{one}}}]}}', f'{{"l":[{{"a":{other}}}]}}') is same


# -- tolerance -------------------------------------------------------------------------------------------

NEAR = table("two numbers are close within the tolerance exactly")


@pytest.mark.parametrize(("tolerance", "one", "other", "same"), NEAR)
def test_two_numbers_are_close_within_the_tolerance_exactly(
    tolerance: str, one: str, other: str, same: bool
) -> None:
    for field, shape in (("a", '{{"a":{}}}'), ("l.m.a", '{{"l":[0,{{"m":{{"a":{}}}}}]}}')):
        reader = codec(f"{{tolerance: {{{field}: {tolerance}}}}}")
        records = [shape.format(value) for value in (one, other)]
        assert equal(reader, *records)
        assert reader.close is not None
        assert reader.close(records[0].encode(), records[1].encode()) is same
        assert reader.close(records[1].encode(), records[0].encode()) is same


EXACT = table("the exact form keeps a tolerated number by its value")


@pytest.mark.parametrize(("equality", "one", "other", "same"), EXACT)
def test_the_exact_form_keeps_a_tolerated_number_by_its_value(
    equality: str, one: str, other: str, same: bool
) -> None:
    exact = codec(equality).exact
    assert exact is not None
    assert (exact(one.encode()) == exact(other.encode())) is same


def test_the_exact_form_tells_kinds_apart_that_are_not_compared_alike() -> None:
    kinds = "kinds: {a: {where: {t: a}}, b: {}}"
    exact = codec("{per_kind: {a: {ignore: [u]}, b: {tolerance: {v: {abs: 1}}}}}", kinds).exact
    assert exact is not None
    assert exact(b'{"t":"a","u":1}') == exact(b'{"t":"a","u":2}')
    assert exact(b'{"t":"b","v":1}') != exact(b'{"t":"b","v":2}')


def test_without_a_tolerance_nothing_is_asked_of_a_pair_and_no_form_is_more_exact() -> None:
    reader = codec("{quantum: {a: 1}}")
    assert (reader.close, reader.exact) == (None, None)


# -- keys ------------------------------------------------------------------------------------------------

KEYS = table("keys are compared as values")


@pytest.mark.parametrize("fields", ["k", "k, j", "o.k"])
@pytest.mark.parametrize(("_", "one", "other", "same"), KEYS)
def test_keys_are_compared_as_values(fields: str, _: str, one: str, other: str, same: bool) -> None:
    reader = codec("{}", order=f"{{per_key: [{fields}]}}")
    records = (f'{{"k":{key},"j":0,"o":{{"k":{key}}}}}'.encode() for key in (one, other))
    lanes = [reader.form(record).route for record in records]
    assert (lanes[0] == lanes[1]) is same


# -- absent_is_null --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "order", ["{per_key: [k]}", "{per_key: [k, j]}", "{per_key: [o.k]}", "{by_key: [k], inner: unordered}"]
)
def test_an_absent_key_is_null_where_null_is_absent(order: str) -> None:
    reader = codec("{absent_is_null: true}", order=order)
    assert equal(reader, '{"k":null,"j":1,"o":{"k":null}}', '{"j":1,"o":{}}')
    assert not equal(reader, '{"k":1,"j":1,"o":{"k":1}}', '{"j":1,"o":{}}')


def test_an_absent_identity_is_null_where_null_is_absent() -> None:
    reader = codec("{absent_is_null: true}", "identity: [i, o.i]")
    assert reader.identity is not None
    assert (
        reader.identity(b'{"i":null,"o":{"i":null}}')
        == reader.identity(b'{"o":{}}')
        == reader.identity(b"{}")
    )
    assert reader.identity(b'{"i":1}') != reader.identity(b"{}")


# -- kinds -----------------------------------------------------------------------------------------------

KINDS = "kinds: {a: {where: {t: a}}, b: {where: {t: b}}, c: {}}"


def test_the_equality_of_a_kind_takes_the_place_of_the_general_one() -> None:
    reader = codec("{ignore: [x], per_kind: {b: {ignore: [y]}}}", KINDS)
    assert equal(reader, '{"t":"a","x":1}', '{"t":"a","x":2}')
    assert not equal(reader, '{"t":"a","y":1}', '{"t":"a","y":2}')
    assert not equal(reader, '{"t":"b","x":1}', '{"t":"b","x":2}')
    assert equal(reader, '{"t":"b","y":1}', '{"t":"b","y":2}')


def test_kinds_that_are_compared_in_different_ways_are_never_equal() -> None:
    reader = codec("{per_kind: {c: {absent_is_null: true}}}", "kinds: {a: {where: {t: 1}}, c: {}}")
    assert not equal(reader, '{"t":1}', '{"t":1.5}')
    assert equal(reader, '{"t":null}', "{}")
    assert reader.form(b'{"t":1}').content != reader.form(b'{"t":true}').content


def test_a_tolerance_may_be_for_one_kind() -> None:
    reader = codec("{per_kind: {b: {tolerance: {x: {abs: 1}}}}}", KINDS)
    assert reader.close is not None
    assert reader.close(b'{"t":"b","x":1}', b'{"t":"b","x":2}')
    assert not reader.close(b'{"t":"b","x":1}', b'{"t":"b","x":3}')
    assert reader.close(b'{"t":"a","x":1}', b'{"t":"a","x":1}')
    assert not equal(reader, '{"t":"a","x":1}', '{"t":"a","x":2}')


# -- what is shown ---------------------------------------------------------------------------------------


def shown(equality: str, one: Any, other: Any) -> tuple[Any, Any]:
    return codec(equality).compared_pair(json.dumps(one).encode(), json.dumps(other).encode())


def test_what_is_shown_of_a_pair_differs_only_where_the_pair_does() -> None:
    pair = shown(
        "{tolerance: {a: {abs: 1}, l.b: {abs: 1}}}",
        {"a": 1, "l": [{"b": 1}, {"b": 5}]},
        {"a": 2, "l": [{"b": 2}, {"b": 7}]},
    )
    assert pair == ({"a": 1, "l": [{"b": 1}, {"b": 5}]}, {"a": 1, "l": [{"b": 1}, {"b": 7}]})


@pytest.mark.parametrize(
    ("one", "other"), [({"a": 1}, {}), ({"a": 1}, {"a": [1]}), ({"a": [1]}, {"a": [1, 2]}), ([], {})]
)
def test_values_of_other_shapes_are_shown_as_they_are(one: Any, other: Any) -> None:
    assert shown("{tolerance: {a: {abs: 1}}}", one, other) == (one, other)


def test_what_is_compared_is_rounded_sorted_and_without_what_is_ignored() -> None:
    reader = codec("{ignore: [i], quantum: {q: 0.01}, unordered: [u], sets: [s], absent_is_null: true}")
    record = b'{"i":1,"q":1.004,"u":[3,1,2],"s":[2,1,2],"n":null}'
    assert reader.compared(record) == {"q": 1, "u": [1, 2, 3], "s": [1, 2]}
