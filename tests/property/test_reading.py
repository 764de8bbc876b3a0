"""The fast readers say of every record what the exact reading says, or leave it to that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.events import Form
from twinstream.errors import DecodeError, SpecError
from twinstream.spec.codec.codec import IGNORED, Codec
from twinstream.spec.decode.formats.envelope import envelope
from twinstream.spec.file.model import Decode, Spec
from twinstream.spec.load import loads

SPEC = "version: 1\nname: x\nreference: {{topic: a}}\ncandidate: {{topic: b}}\norder: {}\nequality: {}\n{}\n"
PLAIN = [
    "unordered",
    "total",
    "{per_key: [a]}",
    "{per_key: [a, b]}",
    "{per_key: [b.d]}",
    "{by_key: [a], inner: unordered}",
]
OF_KINDS = [
    *PLAIN,
    "{barrier: e, inner: {per_key: [b]}}",
    "{barrier: e, inner: unordered}",
    "{barrier: e, inner: {by_key: [b], inner: unordered}}",
    "{parallel: {one: {kinds: [e], order: total}, two: {kinds: [r], order: {per_key: [b]}}}}",
    "{parallel: {one: {kinds: [e], order: unordered}, two: {kinds: [r], order: unordered}}}",
    "{barrier: e, inner: {per_key: [b, d]}}",
    "{dependent: [[e, r]]}",
    "{dependent: [[e, e], {pair: [e, r], same: [{first: b, second: d}]}]}",
    "{dependent: [[e, e], {pair: [r, r], same: [b]}]}",
    "{dependent: [{pair: [e, r], same: [b], within: {field: d, less_than: 1}}]}",
]
KINDS = [
    "kinds: {e: {where: {a: [e, 1]}}, i: {where: {a: x}, ignore: true}, r: {}}",
    "kinds: {e: {where: {a: e}}, r: {where: {a: [x, 1, '1', 7]}}}",
    "kinds: {r: {where: {a: x}}, e: {where: {a: [x, e]}}}",
    "kinds: {e: {where: {a: [e, true, null]}}, r: {}}",
    "kinds: {e: {where: {a: e, b: 1}}, r: {}}",
    "kinds: {e: {where: {b.d: e}}, r: {}}",
]
EQUALITIES = [
    *("{}", "{}", "{ignore: [c]}", "{ignore: [c.d]}", "{compare_only: [a, b, d]}", "{absent_is_null: true}"),
    *(
        "{ignore: [c], absent_is_null: true}",
        "{quantum: {c: 0.1}}",
        "{unordered: [c]}",
        "{tolerance: {c: {abs: 1}}}",
    ),
]


def _specs() -> Iterator[Spec]:
    for equality in EQUALITIES:
        texts = [SPEC.format(order, equality, "") for order in PLAIN]
        texts += [SPEC.format(order, equality, kinds) for order in OF_KINDS for kinds in KINDS]
        for text in texts:
            with suppress(SpecError):
                yield loads(text)


SPECS = list(_specs())

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), st.text(max_size=5)
)
inner = st.one_of(
    scalars, st.lists(scalars, max_size=2), st.dictionaries(st.text(max_size=2), scalars, max_size=2)
)
values = st.one_of(
    scalars, st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("dx"), inner, max_size=2)
)
telling = st.sampled_from(["e", "e", "x", "x", 1, "1", 7, 1.0, True, None])
flat = st.fixed_dictionaries(
    {"a": telling, "b": telling, "d": st.integers(0, 3)}, optional={"c": st.one_of(telling, scalars)}
)
objects = st.one_of(flat, st.dictionaries(st.sampled_from("abcd"), values, max_size=4))
separators = st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")])
numbers = st.sampled_from(
    ["1", "1.0", "1e0", "-0", "0.10000000000000000001", "1e16", "1e400", "18446744073709551616"]
)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """JSON objects as different writers write them, some with a member twice, some damaged."""
    text = json.dumps(draw(objects), separators=draw(separators), ensure_ascii=draw(st.booleans()))
    kind = draw(st.sampled_from(["plain", "plain", "number", "twice", "cut"]))
    if kind == "number":
        text = f'{{"a":{draw(numbers)},"b":"x"}}'
    elif kind == "twice":
        text = '{"a":1,"b":2,"a":3}'
    elif kind == "cut":
        text = text[:-1]
    return text.encode("utf-8", "surrogatepass")


def _exactly(codec: Codec, record: bytes) -> Form | None:
    try:
        return codec.form(record)
    except DecodeError:
        return None


def _check(spec: Spec, batch: list[Any]) -> None:
    codec = Codec(spec)
    forms, refused = codec.forms(batch)
    expected = [_exactly(codec, record) for record in batch]
    assert [tuple(form) for form in forms] == [tuple(form or IGNORED) for form in expected]
    assert [list(map(type, form)) for form in forms] == [
        list(map(type, form or IGNORED)) for form in expected
    ]
    out = [(place, form) for place, form in enumerate(expected) if form is None or form is IGNORED]
    assert [(place, reason is None) for place, reason in refused] == [(n, form is IGNORED) for n, form in out]


@given(spec=st.sampled_from(SPECS), batch=st.lists(records(), min_size=3, max_size=10))
def test_forms_are_those_of_the_exact_reading(spec: Spec, batch: list[bytes]) -> None:
    _check(spec, [*batch, *batch])


@st.composite
def alike(draw: st.DrawFn) -> list[bytes]:
    """Records of one shape, as those of a topic are; members may be absent, and awkward ones among them."""
    names = draw(st.permutations(["a", "b", "c", "d", "é", ""]))
    members = draw(st.dictionaries(st.sampled_from(names), st.sampled_from(MEMBERS)))
    written = draw(st.sampled_from([(",", ":"), (",", ":"), (", ", ": ")]))
    one = st.fixed_dictionaries({}, optional={name: members.get(name, telling) for name in names})
    texts = [
        json.dumps(
            {name: value[name] for name in names if name in value}, separators=written, ensure_ascii=False
        )
        for value in draw(st.lists(one, min_size=6, max_size=16))
    ]
    batch = [text.encode("utf-8", "surrogatepass") for text in texts]
    for awkward in draw(st.lists(records(), max_size=3)):
        batch.insert(draw(st.integers(0, len(batch))), awkward)
    return batch


MEMBERS: list[st.SearchStrategy[Any]] = [
    st.text(max_size=5),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(10**6), 10**6).map(lambda cents: cents / 100),
    st.one_of(st.none(), st.booleans()),
    inner,
]


@given(spec=st.sampled_from(SPECS), batch=alike())
def test_forms_of_records_of_one_shape_are_those_of_the_exact_reading(spec: Spec, batch: list[bytes]) -> None:
    _check(spec, [*batch, *batch])


AWKWARD = [
    "1",
    "1.0",
    "true",
    '"1"',
    "null",
    '"x"',
    '"e"',
    "18446744073709551617",
    "[1]",
    '{"d":1}',
    '{"d":null}',
]


SHAPES = [
    '{"a":%s,"b":%s,"d":1,"c":0}',
    '{"d":1,"c":null,"b":%s,"a":%s}',
    '{"a":"e","d":1,"a":%s,"b":%s}',
    '{"a":%s,"b":%s,"d":[%s]}',
    '{"b":%s}',
    "[%s]",
    "%s",
]


@pytest.mark.parametrize("form", ["json", "msgpack"])
def test_awkward_records_have_the_forms_of_the_exact_reading_in_every_spec(
    form: Literal["json", "msgpack"],
) -> None:
    records = [_filled(shape, value) for shape in SHAPES for value in AWKWARD]
    written = records if form == "json" else [_in_msgpack(json.loads(record)) for record in records]
    for spec in SPECS:
        _check(spec.model_copy(update={"decode": Decode(format=form)}), [None, b"", *written])


def _in_msgpack(value: Any) -> bytes:
    try:
        packed: bytes = msgpack.packb(value)
    except OverflowError:
        packed = b"\xc1"
    return packed


WHOLE = [
    *("{per_key: [$key]}", "{per_key: [$key, b]}", "{per_key: [$timestamp]}", "{per_key: [$headers.h]}"),
    *(
        "{barrier: e, inner: {per_key: [$key]}}",
        "{barrier: e, inner: {by_key: [$partition], inner: unordered}}",
    ),
]
WHOLE_KINDS = [
    "",
    "kinds: {e: {where: {a: [e, 1]}}, i: {where: {a: x}, ignore: true}, r: {}}",
    "kinds: {e: {where: {$key: [e]}}, i: {where: {$key: x}, ignore: true}, r: {}}",
    "kinds: {e: {where: {$headers.h: e}}, r: {}}",
]


@pytest.mark.parametrize("order", WHOLE)
def test_awkward_whole_records_have_the_forms_of_the_exact_reading(order: str) -> None:
    values = [None, b"", *(_filled(shape, value) for shape in SHAPES for value in AWKWARD)]
    outsides: list[tuple[bytes | None, list[tuple[str, bytes | None]]]]
    outsides = [(b"e", []), (b"x", [("h", b"e")]), (None, [("h", None)]), (b"\xff", [("h", b"\xff")])]
    batch = [envelope(value, key, headers, 5, 1) for value in values for key, headers in outsides]
    for kinds in WHOLE_KINDS:
        for equality in EQUALITIES:
            with suppress(SpecError):
                _check(loads(SPEC.format(order, equality, kinds)), batch)


def _filled(shape: str, value: str) -> bytes:
    others = AWKWARD[AWKWARD.index(value) - 1 :] + AWKWARD
    return (shape % tuple([value, *others][: shape.count("%s")])).encode()


def _places(order: str, kinds: str, equality: str = "{}") -> bool:
    """Whether a spec has a fast reader."""
    codec = Codec(loads(SPEC.format(order, equality, kinds)))
    return codec._read != codec._exactly


@pytest.mark.parametrize("order", OF_KINDS)
def test_the_common_shapes_have_a_fast_reader(order: str) -> None:
    assert _places(order, KINDS[0])
    assert _places(order, KINDS[0], "{ignore: [c], absent_is_null: true}")
    assert _places(order, KINDS[0], "{quantum: {c: 1}}")
    assert not _places(order, KINDS[3])


def test_a_kind_is_told_by_a_member_and_not_by_what_python_takes_for_equal() -> None:
    codec = Codec(loads(SPEC.format("total", "{}", KINDS[0])))
    told = [b"1", b"1.0", b"true", b'"1"', b"null", b'"x"', b'"e"']
    forms, _ = codec.forms([b'{"a":%s}' % value for value in told])
    assert [form[2] for form in forms] == ["e", "e", "r", "r", "r", "", "e"]


def test_of_two_kinds_that_one_value_tells_the_first_is_meant() -> None:
    codec = Codec(loads(SPEC.format("total", "{}", "kinds: {r: {where: {a: x}}, e: {where: {a: [x, e]}}}")))
    forms, _ = codec.forms([b'{"a":"x"}', b'{"a":"e"}'])
    assert [form[2] for form in forms] == ["r", "e"]


@pytest.mark.parametrize("order", [*PLAIN, "{barrier: e, inner: {per_key: [b]}}"])
@pytest.mark.parametrize("equality", ["{}", "{ignore: [c]}", "{absent_is_null: true}"])
def test_a_number_that_orjson_rounds_is_read_the_exact_way(order: str, equality: str) -> None:
    codec = Codec(loads(SPEC.format(order, equality, "kinds: {e: {where: {a: e}}, r: {}}")))
    spelt = [b"18446744073709551616", b"18446744073709551617"]
    forms, _ = codec.forms([b'{"a":"r","b":{"d":1},"v":%s}' % number for number in spelt])
    assert codec.canonical(forms[0][1]) != codec.canonical(forms[1][1])
