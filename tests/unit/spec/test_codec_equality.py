"""What `equality` makes of two records: each rule by itself, then together."""

from __future__ import annotations

import json
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


# -- ignore and compare_only -----------------------------------------------------------------------------

LEFT_OUT: list[tuple[str, str, str, bool]] = [
    ("{ignore: [t]}", '{"a":1,"t":1}', '{"a":1.0}', True),
    ("{ignore: [m.h]}", '{"m":{"h":1,"x":[1]}}', '{"m":{"x":[1]}}', True),
    ("{ignore: [m.h]}", '{"m":{}}', "{}", False),
    ("{ignore: [m.h]}", '{"m":5}', '{"m":6}', False),
    ("{ignore: [l.t]}", '{"l":[{"t":1},{"a":1}]}', '{"l":[{},{"a":1,"t":2}]}', True),
    ("{ignore: [l.t]}", '{"l":[{"t":1}]}', '{"l":[]}', False),
    ("{ignore: [l.t]}", '{"l":[[{"t":1}]]}', '{"l":[[{}]]}', True),
    ("{compare_only: [a]}", '{"a":1,"b":2}', '{"a":1}', True),
    ("{compare_only: [a.b]}", '{"a":{"b":1,"c":2}}', '{"a":{"b":1}}', True),
    ("{compare_only: [a.b]}", '{"a":{"b":null}}', '{"a":{}}', False),
    ("{compare_only: [a.b]}", '{"a":{"c":1}}', "{}", True),
    ("{compare_only: [a.b, a.c]}", '{"a":{"b":1,"c":2,"d":3}}', '{"a":{"c":2,"b":1}}', True),
    ("{compare_only: [l.p]}", '{"l":[{"p":1,"q":1},{}]}', '{"l":[{"p":1},{"q":2}]}', True),
    ("{compare_only: [l.p]}", '{"l":[{"p":1},{}]}', '{"l":[{"p":1}]}', False),
    ("{compare_only: [l.p]}", '{"l":[{"p":1},{"p":2}]}', '{"l":[{"p":2},{"p":1}]}', False),
    (
        "{compare_only: [l.p], unordered: [l]}",
        '{"l":[{"p":1,"q":1},{"p":2}]}',
        '{"l":[{"p":2},{"p":1}]}',
        True,
    ),
    ("{compare_only: [l.p, l.q]}", '{"l":[{"p":1,"q":2}]}', '{"l":[{"q":2,"p":1,"r":3}]}', True),
]


@pytest.mark.parametrize(("equality", "one", "other", "same"), LEFT_OUT)
def test_only_what_is_compared_counts(equality: str, one: str, other: str, same: bool) -> None:
    assert equal(codec(equality), one, other) is same


# -- quantum ---------------------------------------------------------------------------------------------

ROUNDED: list[tuple[str, str, str, bool]] = [
    ("0.01", "1.004", "1", True),
    ("0.01", "1.006", "1.01", True),
    ("0.01", "-1.006", "-1.01", True),
    ("0.01", "1.004", "1.006", False),
    ("0.01", "2.675", "2.68", True),  # the double below it is 2.67499…
    ("0.01", "2.665", "2.66", True),  # half to even
    ("0.01", "1.005", "1", True),
    ("0.01", "1.015", "1.02", True),
    ("0.01", "1.00500000000000000001", "1.01", True),
    ("0.01", "0.0049999999999999999999", "0", True),
    ("0.01", "-0.004", "0", True),
    ("0.05", "1.12", "1.1", True),
    ("0.05", "1.125", "1.1", True),
    ("0.05", "1.13", "1.15", True),
    ("0.3", "0.4", "0.3", True),
    ("0.3", "1e22", "9999999999999999999999.9", True),
    ("1", "0.5", "0", True),
    ("1", "1.5", "2", True),
    ("1", "123456789012345678901234567890.5", "123456789012345678901234567890", True),
    ("10", "1700000000004", "1700000000000", True),
    ("10", "1700000000005", "1700000000000", True),
    ("10", "1700000000015", "1700000000020", True),
    ("1000", "999.5", "1e3", True),
    ("0.01", "1e-999999999", "1e-999999998", False),
    ("0.01", "1e-900", "0", True),
    ("0.01", "1e999999999", "10e999999998", True),
    ("0.01", "1e999999999", "11e999999998", False),
    ("0.01", "true", "1", False),
    ("0.01", '"1.004"', '"1"', False),
    ("0.01", "null", "0", False),
    ("0.01", "[1.004,[2.001]]", "[1,[2]]", True),
    ("0.01", '[{"x":1.004}]', '[{"x":1}]', False),
]


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


def test_a_quantum_too_small_for_a_float_rounds_all_the_same() -> None:
    reader = codec("{quantum: {a: '1e-500'}}")
    assert equal(reader, '{"a":1.4e-500}', '{"a":1e-500}')
    assert not equal(reader, '{"a":1.6e-500}', '{"a":1e-500}')
    assert equal(reader, '{"a":0.1}', '{"a":0.1}')


# -- tolerance -------------------------------------------------------------------------------------------

NEAR: list[tuple[str, str, str, bool]] = [
    ("{abs: 0.5}", "1", "1.5", True),
    ("{abs: 0.5}", "1", "1.50000000000000000001", False),
    ("{abs: 0.1}", "0.3", "0.2", True),  # in doubles 0.3 - 0.2 is below 0.1, 0.7 - 0.6 above
    ("{abs: 0.1}", "0.7", "0.6", True),
    ("{rel: 0.1}", "10", "9", True),
    ("{rel: 0.1}", "9", "10", True),
    ("{rel: 0.1}", "10", "8.99", False),
    ("{rel: 0.1}", "-10", "-9", True),
    ("{rel: 2}", "-10", "10", True),
    ("{rel: 0.5}", "0", "0", True),
    ("{abs: 1, rel: 0.1}", "10", "8", True),
    ("{abs: 1, rel: 0.1}", "10", "7.99", False),
    ("{rel: 0.1}", "1e400", "1.1e400", True),
    ("{abs: 1}", "1e999999999", "1e999999999", True),
    ("{abs: 1}", "0e999999999", "1", True),
    ("{abs: 1}", "123456789012345678901234567890", "123456789012345678901234567891", True),
    ("{abs: 1}", "[1,[2]]", "[2,[1.5]]", True),
    ("{abs: 1}", "[1,[2]]", "[2,[0.5]]", False),
    ("{abs: 1}", '"a"', '"a"', True),
]


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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "true"),
        ("1", '"1"'),
        ("1", "null"),
        ("[1]", "[1,2]"),
        ("[1]", "1"),
        ("1", "1e999999999"),
        ('"a"', '"b"'),
    ],
)
def test_a_tolerance_is_for_two_numbers(one: str, other: str) -> None:
    assert not equal(codec("{tolerance: {a: {abs: 5}}}"), f'{{"a":{one}}}', f'{{"a":{other}}}')


def test_a_tolerated_number_must_be_there() -> None:
    assert not equal(codec("{tolerance: {a: {abs: 5}}}"), '{"a":0}', "{}")


@pytest.mark.parametrize(
    ("equality", "one", "other", "same"),
    [
        ("{tolerance: {a: {abs: 5}}}", '{"a":3,"b":1}', '{"b":1.0,"a":3.0}', True),
        ("{tolerance: {a: {abs: 5}}}", '{"a":3}', '{"a":3.5}', False),
        ("{tolerance: {a: {abs: 5}}}", '{"a":3,"b":1}', '{"a":3,"b":2}', False),
        ("{tolerance: {a: {abs: 5}}, ignore: [t]}", '{"a":3,"t":1}', '{"a":3.0,"t":2}', True),
        ("{tolerance: {a: {abs: 5}}, quantum: {q: 1}}", '{"a":3,"q":1}', '{"a":3,"q":1.2}', True),
        ("{tolerance: {a: {abs: 5}}, absent_is_null: true}", '{"a":3,"b":null}', '{"a":3}', True),
    ],
)
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


# -- arrays ----------------------------------------------------------------------------------------------

ARRAYS: list[tuple[str, str, str, bool]] = [
    ("{unordered: [a]}", "[1,2,2]", "[2,1,2.0]", True),
    ("{unordered: [a]}", "[1,2,2]", "[1,1,2]", False),
    ("{unordered: [a]}", "[[1,2],[3]]", "[[3],[1,2]]", True),
    ("{unordered: [a]}", "[[1,2]]", "[[2,1]]", False),
    ("{unordered: [a]}", '[{"x":1,"y":2},null]', '[null,{"y":2,"x":1}]', True),
    ("{unordered: [a]}", "5", "5", True),
    ("{unordered: [a]}", '{"x":1}', '{"x":2}', False),
    ("{unordered: [a]}", "[true,1]", "[1,true]", True),
    ("{unordered: [a]}", "[true]", "[1]", False),
    ("{sets: [a]}", "[1,2,2]", "[2,1.0,1]", True),
    ("{sets: [a]}", "[1]", "[1,2]", False),
    ("{sets: [a]}", "[]", "null", False),
    ("{unordered: [a.t]}", '[{"t":[1,2]}]', '[{"t":[2,1]}]', True),
    ("{unordered: [a.t]}", '[{"t":[1]},{"t":[2]}]', '[{"t":[2]},{"t":[1]}]', False),
    ("{unordered: [a, a.t]}", '[{"t":[1,2]},{"t":[3]}]', '[{"t":[3]},{"t":[2,1]}]', True),
    ("{unordered: [a], sets: [a.t]}", '[{"t":[1,1]},{"t":[]}]', '[{"t":[]},{"t":[1]}]', True),
    ("{sets: [a], unordered: [a.t]}", '[{"t":[1,2]},{"t":[2,1]}]', '[{"t":[2,1]}]', True),
    ("{unordered: [a], quantum: {a: 1}}", "[1.2,5]", "[5.1,0.9]", True),
    ("{sets: [a], quantum: {a.p: 1}}", '[{"p":1.2},{"p":0.9}]', '[{"p":1}]', True),
    ("{unordered: [a], ignore: [a.i]}", '[{"i":1,"p":2},{"p":1}]', '[{"p":1},{"i":9,"p":2}]', True),
]


@pytest.mark.parametrize(("equality", "one", "other", "same"), ARRAYS)
def test_arrays_are_compared_as_declared(equality: str, one: str, other: str, same: bool) -> None:
    assert equal(codec(equality), f'{{"a":{one}}}', f'{{"a":{other}}}') is same


# -- absent_is_null --------------------------------------------------------------------------------------

NULLS: list[tuple[str, str, bool]] = [
    ('{"a":null}', "{}", True),
    ('{"a":{"b":null}}', '{"a":{}}', True),
    ('{"a":{"b":null}}', "{}", False),
    ('{"a":[null]}', '{"a":[]}', False),
    ('{"a":[{"b":null}]}', '{"a":[{}]}', True),
    ('{"a":[[{"b":null}]]}', '{"a":[[{}]]}', True),
    ("null", "{}", False),
    ('{"a":0}', "{}", False),
]


@pytest.mark.parametrize(("one", "other", "same"), NULLS)
def test_null_is_absent_where_it_is_declared_so(one: str, other: str, same: bool) -> None:
    assert equal(codec("{absent_is_null: true}"), one, other) is same
    assert not equal(codec("{}"), one, other)


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
