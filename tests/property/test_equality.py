"""Two events are equal exactly when the comparison file says so, judged by a second reading of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from io import BytesIO
from itertools import permutations
from typing import Any

import fastavro
import msgpack
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from tests.support.protos import encode, file, message
from tests.support.spelling import Number, meaning, write
from twinstream.core.canonical import canonical
from twinstream.errors import DecodeError, SpecError
from twinstream.spec.codec.canonical import canonical_value
from twinstream.spec.codec.codec import Codec
from twinstream.spec.decode.formats import jsontext, messagepack, protobuf
from twinstream.spec.decode.formats.avro import Schema, body_of
from twinstream.spec.load import loads

Path = tuple[str, ...]
MISSING = object()


# -- the definition, pair by pair --------------------------------------------------------------------------


class Judge:
    """Whether two values are equal under an `equality`, as the comparison file has it.

    With `any_number`, two numbers under a tolerance are equal however far they are apart.
    """

    def __init__(self, equality: dict[str, Any], *, any_number: bool) -> None:
        self._ignore = _paths(equality, "ignore")
        self._only = _paths(equality, "compare_only") if "compare_only" in equality else None
        self._bags, self._sets = _paths(equality, "unordered"), _paths(equality, "sets")
        self._quanta = {_path(field): Fraction(by) for field, by in equality.get("quantum", {}).items()}
        self._near = {
            _path(field): Fraction(by["abs"]) for field, by in equality.get("tolerance", {}).items()
        }
        self._nulls, self._any_number = equality.get("absent_is_null", False), any_number

    def same(self, one: Any, other: Any) -> bool:
        return (
            self._parts(one, other, ()) if self._only is not None else self._full(one, other, (), named=True)
        )

    def _parts(self, one: Any, other: Any, at: Path, *, named: bool = True) -> bool:
        """Where only some of what is below a path is compared; objects on the way do not count themselves."""
        if isinstance(one, list) and isinstance(other, list):
            return self._arrays(one, other, at, named, self._parts)
        if isinstance(one, list) or isinstance(other, list):
            return False
        assert self._only is not None
        names = {path[len(at)] for path in self._only if path[: len(at)] == at and len(path) > len(at)}
        for name in names:
            below = (*at, name)
            judge: Callable[..., bool] = self._full_member if below in self._only else self._parts
            if not judge(self._member(one, name), self._member(other, name), below):
                return False
        return True

    def _full_member(self, one: Any, other: Any, at: Path) -> bool:
        return self._full(one, other, at, named=True)

    def _full(self, one: Any, other: Any, at: Path, *, named: bool) -> bool:
        if at in self._ignore:
            return True
        if one is MISSING or other is MISSING:
            return one is other
        if isinstance(one, Number) and isinstance(other, Number):
            return self._numbers(Fraction(one.text), Fraction(other.text), at)
        if isinstance(one, list) and isinstance(other, list):
            return self._arrays(one, other, at, named, self._full)
        if isinstance(one, dict) and isinstance(other, dict):
            return all(
                self._full(self._member(one, name), self._member(other, name), (*at, name), named=True)
                for name in {*one, *other}
            )
        return type(one) is type(other) and bool(one == other)

    def _numbers(self, one: Fraction, other: Fraction, at: Path) -> bool:
        if at in self._quanta:
            return _nearest(one, self._quanta[at]) == _nearest(other, self._quanta[at])
        if at in self._near:
            return self._any_number or abs(one - other) <= self._near[at]
        return one == other

    def _arrays(
        self, one: list[Any], other: list[Any], at: Path, named: bool, judge: Callable[..., bool]
    ) -> bool:
        def equal(x: Any, y: Any) -> bool:
            return judge(x, y, at, named=False)

        if named and at in self._sets:
            return all(any(equal(x, y) for y in other) for x in one) and all(
                any(equal(x, y) for x in one) for y in other
            )
        if len(one) != len(other):
            return False
        ways = permutations(other) if named and at in self._bags else [tuple(other)]
        return any(all(map(equal, one, way)) for way in ways)

    def _member(self, value: Any, name: str) -> Any:
        member = value.get(name, MISSING) if isinstance(value, dict) else MISSING
        return MISSING if member is None and self._nulls else member


def _nearest(number: Fraction, quantum: Fraction) -> int:
    """How many quanta, half to even."""
    below = number // quantum
    rest = number - below * quantum
    if 2 * rest == quantum:
        return below + below % 2
    return below + (2 * rest > quantum)


def _path(field: str) -> Path:
    return tuple(field.split("."))


def _paths(equality: dict[str, Any], key: str) -> set[Path]:
    return {_path(field) for field in equality.get(key, [])}


# -- values, and values like them --------------------------------------------------------------------------

SPELLINGS = {
    "0": ["0.0", "-0"],
    "0.5": ["5e-1", "0.50"],
    "1": ["1.0", "10e-1"],
    "1.5": ["1.500"],
    "2.5": ["25e-1"],
}
numbers = st.sampled_from([*SPELLINGS, "0.4", "0.1", "0.10000000000000000001", "-1.5", "3e20", "1e30"]).map(
    Number
)
leaves = st.one_of(numbers, numbers, st.sampled_from(["x", "", True, False, None]))
names = st.sampled_from("abc")


def trees(depth: int) -> st.SearchStrategy[Any]:
    if depth == 0:
        return leaves
    inner = trees(depth - 1)
    return st.one_of(leaves, st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3))


values = st.dictionaries(names, trees(2), min_size=1, max_size=3)


def _like(draw: st.DrawFn, value: Any) -> Any:
    """A value that is mostly the same: in another order, spelt otherwise, with small differences."""
    change = draw(st.integers(0, 23))
    if change == 0:
        return draw(trees(1))
    if isinstance(value, Number):
        spellings = [value.text, *SPELLINGS.get(value.text, [])]
        return draw(numbers) if change < 3 else Number(draw(st.sampled_from(spellings)))
    if isinstance(value, list):
        items = [_like(draw, item) for item in value]
        if change == 1 and items:
            items.append(items[0])
        return draw(st.permutations(items)) if change < 8 else items
    if isinstance(value, dict):
        members = {name: _like(draw, member) for name, member in value.items()}
        if change == 1 and members:
            members.pop(next(iter(members)))
        return {**members, draw(names): None} if change == 2 else members
    return value


def _fields(value: Any, at: Path = ()) -> Iterator[str]:
    """The paths of everything in a value."""
    for item in value if isinstance(value, list) else []:
        yield from _fields(item, at)
    for name, member in value.items() if isinstance(value, dict) else []:
        yield ".".join((*at, name))
        yield from _fields(member, (*at, name))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any, dict[str, Any]]:
    """A value, one like it, and any combination of rules on its fields; some combinations break a law."""
    one = draw(values)
    fields = st.sampled_from([*sorted(set(_fields(one))), "a", "b.c"])
    equality: dict[str, Any] = {"absent_is_null": draw(st.booleans())}
    for key in draw(st.lists(st.sampled_from(["ignore", "compare_only", "unordered", "sets"]), max_size=2)):
        equality[key] = draw(st.lists(fields, max_size=2, unique=True))
    if draw(st.booleans()):
        quanta = st.sampled_from(["1", "0.5", "0.3", "10"])
        equality["quantum"] = draw(st.dictionaries(fields, quanta, max_size=2))
    if draw(st.booleans()):
        by = st.sampled_from(["0.5", "0.1", "1"]).map(lambda text: {"abs": text})
        equality["tolerance"] = draw(st.dictionaries(fields, by, max_size=2))
    return one, _like(draw, one), equality


def _codec(equality: dict[str, Any], order: str = "total") -> Codec:
    text = f"version: 1\nname: x\nreference: {{topic: a}}\ncandidate: {{topic: b}}\norder: {order}\n"
    try:
        return Codec(loads(f"{text}equality: {json.dumps(equality)}\n"))
    except SpecError:
        reject()


@given(cases())
def test_events_are_equal_exactly_when_the_definition_says_so(case: tuple[Any, Any, dict[str, Any]]) -> None:
    *pair, equality = case
    codec = _codec(equality)
    records = [write(value).encode() for value in pair]
    forms = [codec.canonical(codec.form(record).content) for record in records]
    equal = forms[0] == forms[1]
    assert equal == Judge(equality, any_number=True).same(*pair)
    if equal and codec.close is not None:
        assert codec.close(records[0], records[1]) == Judge(equality, any_number=False).same(*pair)


@given(cases())
def test_equal_events_have_equal_lanes_in_every_order(case: tuple[Any, Any, dict[str, Any]]) -> None:
    *pair, equality = case
    equality.pop("tolerance", None)
    codecs = [_codec(equality, order) for order in ("unordered", "total")]
    records = [write(value).encode() for value in pair]
    bag, sequence = ([codec.form(record) for record in records] for codec in codecs)
    canonical_forms = [codecs[1].canonical(form.content) for form in sequence]
    assert (bag[0].route == bag[1].route) == (canonical_forms[0] == canonical_forms[1])
    assert sequence[0].route == sequence[1].route


# -- one value in several formats --------------------------------------------------------------------------

plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
)
SCALARS = ["null", "boolean", "long", "double", "string"]
rows = st.recursive(
    st.dictionaries(names, st.one_of(plain, st.lists(plain, max_size=3)), max_size=3),
    lambda inner: st.dictionaries(names, st.one_of(plain, inner), max_size=3),
    max_leaves=4,
)


def schema_of(value: Any, serial: Iterator[int]) -> Any:
    if isinstance(value, dict):
        members = [{"name": name, "type": schema_of(member, serial)} for name, member in value.items()]
        return {"type": "record", "name": f"R{next(serial)}", "fields": members}
    if isinstance(value, list):
        return {"type": "array", "items": SCALARS}
    return SCALARS


def in_avro(value: Any) -> Any:
    schema = schema_of(value, iter(range(100)))
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return body_of(Schema(json.dumps(schema)))(stream.getvalue())


@given(rows)
def test_a_value_has_one_form_whatever_it_is_written_in(value: Any) -> None:
    read = [
        jsontext.decode(json.dumps(value).encode()),
        messagepack.decode(msgpack.packb(value)),
        in_avro(value),
        value,
    ]
    forms = {form(found) for found in read for form in (canonical, canonical_value)}
    assert len(forms) == 1


TYPES = file(
    "t.proto", message("T", "int64 i", "double d", "string s", "bool b", "repeated sint32 l", ".ads.T t")
)
DECODE = protobuf.body_of(protobuf.pool_of([TYPES]).FindMessageTypeByName("ads.T"))
flat = st.fixed_dictionaries(
    {
        "i": st.integers(-(2**63), 2**63 - 1),
        "d": st.floats(allow_nan=False, allow_infinity=False),
        "s": st.text(max_size=4),
        "b": st.booleans(),
        "l": st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3),
    }
)


@given(flat, flat)
def test_a_message_has_the_form_of_the_json_with_its_fields(outer: Any, inner: Any) -> None:
    value = {**outer, "t": inner}
    assert canonical_value(DECODE(encode("ads.T", value, TYPES))) == canonical(
        jsontext.decode(json.dumps(value).encode())
    )


special = st.recursive(
    st.one_of(plain, st.floats(), st.binary(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(special, special)
def test_values_that_json_lacks_have_forms_of_their_own(one: Any, other: Any) -> None:
    assert canonical_value(one) == canonical(one)
    assert messagepack.decode(msgpack.packb(one)) is not MISSING
    assert canonical(messagepack.decode(msgpack.packb(one))) == canonical(one)
    assert (canonical(one) == canonical(other)) == (meaning(one) == meaning(other))


CHAIN = [{"name": "a", "type": ["null", "R", "string", "double"]}]
IN_AVRO = body_of(Schema(json.dumps({"type": "record", "name": "R", "fields": CHAIN})))


@pytest.mark.parametrize("decode", [jsontext.decode, messagepack.decode, IN_AVRO, DECODE])
@given(record=st.binary(max_size=40))
def test_whatever_the_bytes_they_are_read_or_refused(decode: Callable[[bytes], Any], record: bytes) -> None:
    with suppress(DecodeError):
        canonical_value(decode(record))


# -- the salt of Python's hash -----------------------------------------------------------------------------

DIGEST = """
import hashlib
from twinstream.spec.codec.codec import Codec
from twinstream.spec.load import loads
text = '''
version: 1
name: x
reference: {topic: a}
candidate: {topic: b}
kinds: {e: {where: {t: [e, 1]}}, r: {}}
order: {barrier: e, inner: {per_key: [k, o.k]}}
identity: [k, i]
equality:
  {sets: [s], unordered: [u], ignore: [x, y], absent_is_null: true,
   per_kind: {r: {compare_only: [k, o, s, i, t], sets: [s]}}}
'''
codec = Codec(loads(text))
records = [
    b'{"t":"%s","k":"%s","o":{"k":%d,"z":null},"s":["b","a",1,true,"a"],"u":["b","a"],"i":"i"}' % (t, k, n)
    for t in (b"e", b"r") for k in (b"a", b"b") for n in (1, 2)
]
digest = hashlib.sha256()
for form in codec.forms(records)[0]:
    digest.update(repr((tuple(form), codec.identity(form[3]), codec.compared(form[3]))).encode())
print(digest.hexdigest())
"""


def test_nothing_depends_on_the_salt_of_the_process() -> None:
    command = [sys.executable, "-c", DIGEST]
    digests = {
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": salt}, capture_output=True, text=True, check=True
        ).stdout
        for salt in ("0", "1", "7", "4242")
    }
    assert [len(digest) for digest in digests] == [65]
