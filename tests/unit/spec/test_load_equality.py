"""Every way in which an equality contradicts itself, the order, the kinds or the identity."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.support.refusals import HEAD, refusal
from twinstream.spec.load import loads

KINDS = "kinds: {day: {where: {type: day}}, hb: {where: {type: hb}, ignore: true}, ride: {}}\n"
PER_KEY = HEAD + "order: {per_key: [meta.taxi]}\n"
MUST = "so it must be compared as it is"


@pytest.mark.parametrize(
    ("equality", "message"),
    [
        ("null", "equality`: must be a mapping, but null was given"),
        ("{ignored: [n]}", "equality.ignored`: is not a key of this mapping; did you mean `ignore`?"),
        ("{ignore: n}", 'equality.ignore`: must be a list, but "n" was given'),
        ("{ignore: [a..b]}", "equality.ignore.0`: 'a..b' is no field path"),
        ("{ignore: [1]}", "equality.ignore.0`: must be a text, but 1 was given"),
        ("{ignore: ['']}", 'equality.ignore.0`: must not be empty, but "" was given'),
        ("{compare_only: a}", 'equality.compare_only`: must be a list, but "a" was given'),
        ("{compare_only: [a.]}", "equality.compare_only.0`: 'a.' is no field path"),
        (
            "{ignore: [a], compare_only: [b]}",
            "equality`: `ignore` and `compare_only` exclude each other; keep one of them",
        ),
        ("{quantum: [fare]}", 'equality.quantum`: must be a mapping, but ["fare"] was given'),
        (
            "{quantum: {fare: null}}",
            "equality.quantum.fare`: null is not a number; write it like 0.01 or 1e-6",
        ),
        ("{quantum: {fare: cent}}", 'equality.quantum.fare`: "cent" is not a number; write it like 0.01'),
        ("{quantum: {fare: true}}", "equality.quantum.fare`: true is not a number; write it like 0.01"),
        ("{quantum: {fare: .inf}}", "equality.quantum.fare`: Infinity is not a number"),
        ("{quantum: {fare: 1e9999}}", 'equality.quantum.fare`: "1E+9999" is not a number'),
        ("{quantum: {fare: '1e9999'}}", 'equality.quantum.fare`: "1e9999" is not a number'),
        ("{quantum: {fare: 0}}", "equality.quantum.fare`: must be more than 0, but 0 was given"),
        ("{quantum: {fare: -0.01}}", "equality.quantum.fare`: must be more than 0, but -0.01 was given"),
        ("{quantum: {fare.: 1}}", "equality.quantum.fare.`: 'fare.' is no field path"),
        ("{tolerance: {eta: 0.5}}", "equality.tolerance.eta`: must be a mapping, but 0.5 was given"),
        ("{tolerance: {eta: {}}}", "equality.tolerance.eta`: tolerates nothing; give `abs` or `rel` a value"),
        ("{tolerance: {eta: {abs: 0, rel: 0}}}", "equality.tolerance.eta`: tolerates nothing; give `abs` or"),
        (
            "{tolerance: {eta: {abs: null}}}",
            "equality.tolerance.eta.abs`: null is not a number; write it like",
        ),
        (
            "{tolerance: {eta: {abs: .nan}}}",
            "equality.tolerance.eta.abs`: NaN is not a number; write it like",
        ),
        (
            "{tolerance: {eta: {rel: -0.1}}}",
            "equality.tolerance.eta.rel`: must be 0 or more, but -0.1 was given",
        ),
        ("{tolerance: {.eta: {abs: 1}}}", "equality.tolerance..eta`: '.eta' is no field path"),
        ("{tolerance: [eta]}", 'equality.tolerance`: must be a mapping, but ["eta"] was given'),
        ("{tolerance: {eta: {abs: -1}}}", "equality.tolerance.eta.abs`: must be 0 or more, but -1 was given"),
        (
            "{tolerance: {eta: {ab: 1}}}",
            "equality.tolerance.eta.ab`: is not a key of this mapping; did you mean `abs`?",
        ),
        ("{unordered: items}", 'equality.unordered`: must be a list, but "items" was given'),
        ("{unordered: [a..b]}", "equality.unordered.0`: 'a..b' is no field path"),
        ("{sets: {tags: 1}}", 'equality.sets`: must be a list, but {"tags": 1} was given'),
        ("{sets: [a..b]}", "equality.sets.0`: 'a..b' is no field path"),
        ("{absent_is_null: 1}", "equality.absent_is_null`: must be true or false, but 1 was given"),
        ("{absent_is_null: NO}", 'equality.absent_is_null`: must be true or false, but "NO" was given'),
        ("{absent_is_null: maybe}", 'equality.absent_is_null`: must be true or false, but "maybe" was given'),
        (
            "{per_kind: {event: {ignor: [a]}}}",
            "equality.per_kind.event.ignor`: is not a key of this mapping; did you mean `ignore`?",
        ),
        ("{per_kind: [event]}", 'equality.per_kind`: must be a mapping, but ["event"] was given'),
        ("{per_kind: {event: null}}", "equality.per_kind.event`: must be a mapping, but null was given"),
        (
            "{per_kind: {event: {ignore: [a], compare_only: [b]}}}",
            "equality.per_kind.event`: `ignore` and `compare_only` exclude each other; keep one of them",
        ),
        (
            "{per_kind: {event: {quantum: {fare: -1}}}}",
            "equality.per_kind.event.quantum.fare`: must be more than 0, but -1 was given",
        ),
        ("{per_kind: {event: {per_kind: {}}}}", "equality.per_kind.event.per_kind`: is not a key of this"),
    ],
)
def test_a_wrong_equality_is_named_with_what_it_must_be(equality: str, message: str) -> None:
    assert f"ads.yaml:6: `{message}" in refusal(f"{HEAD}order: total\nequality: {equality}\n")


@pytest.mark.parametrize("form", ["ignore", "unordered", "sets"])
@pytest.mark.parametrize("field", ["meta", "meta.taxi", "meta.taxi.id"])
def test_what_decides_the_order_may_not_be_left_out_or_reordered(form: str, field: str) -> None:
    assert refusal(f"{PER_KEY}equality:\n  {form}:\n  - {field}") == (
        f"ads.yaml:8: `equality.{form}`: may not name `{field}`: `meta.taxi` decides the order "
        f"(`order.per_key`), {MUST}"
    )


@pytest.mark.parametrize("form", ["quantum: {meta.taxi: 1}", "tolerance: {meta.taxi: {abs: 1}}"])
def test_what_decides_the_order_may_not_be_rounded(form: str) -> None:
    name = form.partition(":")[0]
    assert f"ads.yaml:6: `equality.{name}`: may not name `meta.taxi`: `meta.taxi` decides" in refusal(
        f"{PER_KEY}equality: {{{form}}}"
    )


@pytest.mark.parametrize("compared", ["fare", "meta.taxi.id"])
def test_what_decides_must_be_among_the_only_fields_compared(compared: str) -> None:
    assert refusal(f"{PER_KEY}equality: {{compare_only: [{compared}]}}") == (
        f"ads.yaml:6: `equality.compare_only`: must name `meta.taxi`: `meta.taxi` decides the order "
        f"(`order.per_key`), {MUST}"
    )


@pytest.mark.parametrize("compared", ["meta", "meta.taxi"])
def test_comparing_a_field_or_what_holds_it_is_enough(compared: str) -> None:
    loads(f"{PER_KEY}equality: {{compare_only: [{compared}]}}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("order: total\nidentity: [x]", "`x` decides the identity (`identity`), so"),
        ("kinds: {ride: {where: {x: 1}}}\norder: total", "`x` decides the kind (`kinds.ride.where`), so"),
        ("order: {by_key: [x], inner: unordered}\n", "`x` decides the order (`order.by_key`), so"),
        (
            "order: {by_key: [a], inner: {per_key: [x]}}\n",
            "`x` decides the order (`order.inner.per_key`), so",
        ),
        (
            "order: {dependent: [{pair: [event, event], same: [x]}]}\n",
            "`x` decides the order (`order.dependent.0.same`), so",
        ),
        (
            "order: {dependent: [{pair: ['*', event], within: {field: x, less_than: 1}}]}\n",
            "`x` decides the order (`order.dependent.0.within.field`), so",
        ),
        (
            (
                "kinds: {a: {where: {t: 1}}, b: {}}\n"
                "order: {dependent: [{pair: [a, b], same: [{x: y}], before: {field: z}}]}\n"
            ),
            "`x` decides the order (`order.dependent.0.same.0.first`), so",
        ),
        (
            "kinds: {a: {where: {t: 1}}, b: {}}\norder: {dependent: [{pair: [a, b], before: {field: x}}]}\n",
            "`x` decides the order (`order.dependent.0.before.field`), so",
        ),
    ],
)
def test_every_place_that_decides_is_named(text: str, message: str) -> None:
    said = refusal(f"{HEAD}{text}\nequality: {{ignore: [x]}}\n")
    assert f"`equality.ignore`: may not name `x`: {message}" in said


NESTED = f"{HEAD}{KINDS}order: {{barrier: day, inner: {{per_key: [taxi]}}}}\n"


def test_the_equality_of_a_kind_may_not_leave_out_what_decides_for_it() -> None:
    assert refusal(f"{NESTED}equality: {{per_kind: {{ride: {{ignore: [taxi]}}}}}}") == (
        "ads.yaml:7: `equality.per_kind.ride.ignore`: may not name `taxi`: `taxi` decides the order "
        f"(`order.inner.per_key`), {MUST}"
    )
    assert "`equality.per_kind.ride.compare_only`: must name `type`: `type` decides the kind" in refusal(
        f"{NESTED}equality: {{per_kind: {{ride: {{compare_only: [taxi]}}}}}}"
    )


def test_the_equality_of_a_kind_may_leave_out_what_decides_for_others() -> None:
    loads(f"{NESTED}equality: {{per_kind: {{day: {{ignore: [taxi]}}}}}}")
    loads(f"{NESTED}equality: {{ignore: [taxi], per_kind: {{ride: {{}}}}}}")
    later = "kinds: {a: {where: {x: 1}}, b: {where: {y: 1}}}\norder: total\n"
    loads(f"{HEAD}{later}equality: {{per_kind: {{a: {{ignore: [y]}}}}}}")
    assert "may not name `x`" in refusal(f"{HEAD}{later}equality: {{per_kind: {{b: {{ignore: [x]}}}}}}")


def test_a_part_of_the_record_is_not_left_out_with_a_field_of_its_name() -> None:
    loads(f"{HEAD}order: {{per_key: [$key]}}\nequality: {{ignore: ['\\$key']}}")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("equality: {ignore: [$key]}", "`equality.ignore`: `$key` is not in the value, and only a field of"),
        ("equality: {compare_only: [$key]}", "`equality.compare_only`: `$key` is not in the value"),
        ("equality: {quantum: {$timestamp: 1}}", "`equality.quantum`: `$timestamp` is not in the value"),
        ("equality: {tolerance: {$timestamp: {abs: 1}}}", "`equality.tolerance`: `$timestamp` is not in the"),
        ("equality: {unordered: [$headers.a]}", "`equality.unordered`: `$headers.a` is not in the value"),
        ("equality: {sets: [$headers.a]}", "`equality.sets`: `$headers.a` is not in the value"),
        (
            "equality: {per_kind: {ride: {ignore: [$key]}}}",
            "`equality.per_kind.ride.ignore`: `$key` is not in",
        ),
        (
            "show: [a, $key]",
            (
                "`show`: `$key` is not in the value, and only a field of the value can be named here; "
                "a field of the value with this name is written `\\$key`"
            ),
        ),
    ],
)
def test_only_fields_of_the_value_are_compared_and_shown(more: str, message: str) -> None:
    assert f"ads.yaml:7: {message}" in refusal(f"{HEAD}{KINDS}order: total\n{more}")


@pytest.mark.parametrize(
    ("equality", "message"),
    [
        ("{ignore: [a, b, a]}", "equality.ignore`: names `a` twice"),
        ("{ignore: [a, a.b]}", "equality.ignore`: names `a.b` beside `a`, and one of them holds the other"),
        ("{compare_only: [a.b, a]}", "equality.compare_only`: names `a` beside `a.b`, and one of them holds"),
        ("{unordered: [a, a]}", "equality.unordered`: names `a` twice"),
        ("{sets: [a, a]}", "equality.sets`: names `a` twice"),
        ("{quantum: {a: 1, a.b: 1}}", "equality.quantum`: names `a.b` beside `a`"),
        (
            "{quantum: {a: 1}, tolerance: {a: {abs: 1}}}",
            "equality.tolerance`: `a` stands under `quantum` too (`a`); keep one of them",
        ),
        (
            "{tolerance: {a.b: {abs: 1}}, unordered: [a]}",
            "equality.unordered`: `a` stands under `tolerance` too (`a.b`); keep one of them",
        ),
        (
            "{tolerance: {a: {abs: 1}}, sets: [a]}",
            "equality.sets`: `a` stands under `tolerance` too (`a`); keep one of them",
        ),
        (
            "{unordered: [a.b], sets: [a.b]}",
            "equality.sets`: `a.b` stands under `unordered` too (`a.b`); keep one of them",
        ),
        (
            "{ignore: [a], quantum: {a.b: 1}}",
            "equality.quantum`: `a.b` is left out by `equality.ignore`; keep one of them",
        ),
        (
            "{ignore: [a], unordered: [a.b]}",
            "equality.unordered`: `a.b` is left out by `equality.ignore`; keep one",
        ),
        (
            "{ignore: [a], tolerance: {a: {abs: 1}}}",
            "equality.tolerance`: `a` is left out by `equality.ignore`; keep one of them",
        ),
        (
            "{compare_only: [b], tolerance: {a: {abs: 1}}}",
            "equality.tolerance`: `a` is left out, since `equality.compare_only` does not name it; name",
        ),
        (
            "{compare_only: [b], unordered: [a]}",
            "equality.unordered`: `a` is left out, since `equality.compare_only` does not name it; name",
        ),
        (
            "{compare_only: [b], sets: [a]}",
            "equality.sets`: `a` is left out, since `equality.compare_only` does not name it; name it there",
        ),
        (
            "{quantum: {a.b: 1}, tolerance: {a: {abs: 1}}}",
            "equality.tolerance`: `a` stands under `quantum` too (`a.b`); keep one of them",
        ),
        (
            "{tolerance: {a: {abs: 1}, a.b: {abs: 1}}}",
            "equality.tolerance`: names `a.b` beside `a`, and one of them holds the other; keep one",
        ),
        ("{ignore: [a], sets: [a]}", "equality.sets`: `a` is left out by `equality.ignore`; keep one"),
        (
            "{compare_only: [a.b], quantum: {a: 1}}",
            "equality.quantum`: `a` is left out, since `equality.compare_only` does not name it; name",
        ),
        (
            "{per_kind: {event: {ignore: [a], tolerance: {a: {rel: 0.1}}}}}",
            "equality.per_kind.event.tolerance`: `a` is left out by `equality.per_kind.event.ignore`; ke",
        ),
        ("{per_kind: {event: {ignore: [a, a]}}}", "equality.per_kind.event.ignore`: names `a` twice"),
    ],
)
def test_no_field_is_treated_in_two_ways(equality: str, message: str) -> None:
    assert f"ads.yaml:6: `{message}" in refusal(f"{HEAD}order: total\nequality: {equality}")


@pytest.mark.parametrize(
    "equality",
    [
        "{unordered: [items, items.tags]}",
        "{unordered: [items.tags], sets: [items]}",
        "{unordered: [items], quantum: {items.price: 0.01}}",
        "{unordered: [items], ignore: [items.id]}",
        "{unordered: [items], compare_only: [items.price]}",
    ],
)
def test_an_array_may_hold_what_is_treated_by_itself(equality: str) -> None:
    loads(f"{HEAD}order: total\nequality: {equality}")


def test_show_names_no_field_twice() -> None:
    assert "ads.yaml:8: `show`: names `a` twice" in refusal(f"{HEAD}order: total\nshow:\n- a\n- a")


@pytest.mark.parametrize(
    ("per_kind", "message"),
    [
        ("{rid: {}}", "`equality.per_kind.rid`: `rid` is not a declared kind; did you mean `ride`?"),
        ("{zzz: {}}", "`equality.per_kind.zzz`: `zzz` is not a declared kind"),
        (
            "{hb: {}}",
            "`equality.per_kind.hb`: `hb` is left out of the comparison by `kinds.hb.ignore`; keep one o",
        ),
    ],
)
def test_the_equality_of_a_kind_is_of_one_that_is_compared(per_kind: str, message: str) -> None:
    text = f"{HEAD}{KINDS}order: total\nequality:\n  per_kind: {per_kind}"
    assert f"ads.yaml:8: {message}" in refusal(text)


@pytest.mark.parametrize("wanted", ["null", "[1, null]"])
def test_a_kind_may_not_tell_null_from_absent_where_both_are_equal(wanted: str) -> None:
    text = f"{HEAD}kinds: {{a: {{where: {{x: {wanted}}}}}, b: {{}}}}\norder: total\n"
    assert refusal(f"{text}equality: {{absent_is_null: true}}") == (
        "ads.yaml:7: `equality.absent_is_null`: may not be true: `kinds.a.where` tells a `x` that is null "
        "from one that is absent; keep one of them"
    )
    loads(text)
    loads(f"{text.replace('null', '2')}equality: {{absent_is_null: true}}")


TOLERANCE = "equality: {tolerance: {eta: {abs: 0.5}}}\n"


@pytest.mark.parametrize(
    ("order", "kind"),
    [
        ("unordered", "day"),
        ("{by_key: [taxi], inner: unordered}", "day"),
        ("{barrier: day, inner: unordered}", "ride"),
        ("{parallel: {x: {kinds: [ride], order: unordered}, y: {kinds: [day], order: total}}}", "ride"),
        ("{dependent: [[ride, ride], [day, '*']]}", "day"),
        ("{callable: 'a.b:c'}", "day"),
    ],
)
def test_a_tolerance_needs_a_partner_that_is_known_without_it(order: str, kind: str) -> None:
    text = f"{HEAD}{KINDS}order: {order}\n{TOLERANCE}"
    assert refusal(text) == (
        f"ads.yaml:7: `equality.tolerance`: which `{kind}` events match must be known before a number may "
        "differ: write `quantum: {eta: …}`, or `identity`, or an order that is a sequence (`total`, "
        "`per_key`)"
    )
    loads(f"{text}identity: [id]")


@pytest.mark.parametrize(
    "order",
    [
        "total",
        "{per_key: [taxi]}",
        "{by_key: [region], inner: total}",
        "{barrier: day, inner: {per_key: [taxi]}}",
        "{parallel: {x: {kinds: [ride], order: total}, y: {kinds: [day], order: {per_key: [a]}}}}",
    ],
)
def test_in_a_sequence_a_number_may_differ(order: str) -> None:
    loads(f"{HEAD}{KINDS}order: {order}\n{TOLERANCE}")


def test_a_tolerance_of_one_kind_asks_for_the_sequence_of_that_kind_only() -> None:
    order = "order: {parallel: {x: {kinds: [ride], order: total}, y: {kinds: [day], order: unordered}}}\n"
    tolerance = "tolerance: {eta: {rel: 1e-3}}"
    loads(f"{HEAD}{KINDS}{order}equality: {{per_kind: {{ride: {{{tolerance}}}}}}}")
    assert "which `day` events match must be known" in refusal(
        f"{HEAD}{KINDS}{order}equality: {{per_kind: {{day: {{{tolerance}}}}}}}"
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.01", "0.01"),
        ("0.1", "0.1"),
        ("1e-9", "1e-9"),
        ("250", "250"),
        ("1e3", "1000"),
        (f"{10**40}", f"{10**40}"),
        ("'0.10000000000000000001'", "0.10000000000000000001"),
    ],
)
def test_a_number_is_the_decimal_that_is_written(text: str, number: str) -> None:
    spec = loads(f"{HEAD}order: total\nequality: {{quantum: {{fare: {text}}}}}")
    assert spec.equality.quantum == {"fare": Decimal(number)}
