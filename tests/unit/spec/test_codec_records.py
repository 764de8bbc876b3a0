"""Records in other formats than JSON, with more than their value, and of sides that are not alike."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import msgpack
import pytest

from tests.support.registry import Registry, running
from tests.support.streams import LEFT, RIGHT, spec
from twinstream.core.events import Form, Side
from twinstream.core.order import dependent
from twinstream.errors import DecodeError, SourceError, SpecError
from twinstream.spec.codec.codec import IGNORED, Codec, RefusedRecord
from twinstream.spec.decode.formats.envelope import envelope
from twinstream.spec.load import loads

SCHEMA = {
    "type": "record",
    "name": "View",
    "fields": [{"name": "k", "type": "long"}, {"name": "v", "type": ["null", "double"]}],
}


def avro(value: Any) -> bytes:
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(SCHEMA), value)
    return stream.getvalue()


def two_sides(reference: str, candidate: str, order: str = "{per_key: [k]}", more: str = "") -> Codec:
    text = (
        f"version: 1\nname: x\nreference: {{topic: a, decode: {reference}}}\n"
        f"candidate: {{topic: b, decode: {candidate}}}\norder: {order}\n{more}"
    )
    return Codec(loads(text))


def form(codec: Codec, record: bytes | None, side: Side = LEFT) -> Any:
    forms, refused = codec.forms([record], side)
    assert not refused
    return Form._make(forms[0])


# -- formats ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["total", "unordered", "{per_key: [k]}", "{by_key: [k], inner: unordered}"])
def test_a_record_of_any_format_has_a_form_and_its_twin_the_same(order: str) -> None:
    codec = Codec(spec(order, "decode: {format: msgpack}"))
    record, other = msgpack.packb({"k": 1, "v": b"\x00"}), msgpack.packb({"v": b"\x00", "k": 1.0})
    first, again = form(codec, record), form(codec, record, RIGHT)
    assert first == again == codec.form(record)
    assert codec.canonical(form(codec, other).content) == codec.canonical(first.content)
    assert form(codec, other).route == first.route
    assert codec.decode(record) == {"k": 1, "v": b"\x00"}


@pytest.mark.parametrize(
    ("way", "record", "value"),
    [
        ("utf8", b"", ""),
        ("utf8", "\ufeffé😀\x00".encode(), "\ufeffé😀\x00"),
        ("bytes", b"\x00\xff", b"\x00\xff"),
    ],
)
def test_a_record_without_structure_is_compared_as_it_is(way: str, record: bytes, value: Any) -> None:
    codec = Codec(spec("unordered", f"decode: {{format: {way}}}"))
    assert codec.decode(record) == value
    assert form(codec, record).route != form(codec, b"b").route
    assert form(codec, record).route == codec.form(record).route


def test_the_function_of_an_order_gets_values_whatever_they_are_written_in() -> None:
    order = "{callable: 'tests.unit.spec.test_callables:same_key'}"
    codec = Codec(spec(order, "decode: {format: msgpack}"))
    values = [{"k": 1, "n": 1}, {"k": 1.0, "n": 2}, {"k": 2, "n": 1}]
    one, same, other = (form(codec, msgpack.packb(value)) for value in values)
    assert dependent(codec.order, one, same)
    assert not dependent(codec.order, one, other)


def test_a_schema_file_is_read_at_once(tmp_path: Path) -> None:
    decode = f"decode: {{format: avro, schema_file: {tmp_path}/view.avsc}}"
    with pytest.raises(SpecError, match=r"view\.avsc: `decode\.schema_file`: cannot be read"):
        Codec(spec("{per_key: [k]}", decode))
    (tmp_path / "view.avsc").write_text(json.dumps(SCHEMA))
    assert form(Codec(spec("{per_key: [k]}", decode)), avro({"k": 1, "v": 0.5})).route == 1


# -- sides that are not alike ----------------------------------------------------------------------------


def test_the_same_value_has_the_same_form_whatever_it_is_written_in(tmp_path: Path) -> None:
    (tmp_path / "view.avsc").write_text(json.dumps(SCHEMA))
    codec = two_sides("{format: json}", f"{{format: avro, schema_file: {tmp_path}/view.avsc}}")
    left, right = form(codec, b'{"k": 7, "v": 1e-1}'), form(codec, avro({"k": 7, "v": 0.1}), RIGHT)
    assert (left.route, left.content, left.kind) == (right.route, right.content, right.kind)
    assert form(codec, avro({"k": 7, "v": None}), RIGHT).content != left.content


def test_what_a_form_holds_can_be_read_without_its_side() -> None:
    codec = two_sides("{format: json}", "{format: msgpack}", more="identity: [v]")
    left, right = form(codec, b'{"k":1,"v":2}'), form(codec, msgpack.packb({"k": 1, "v": 2}), RIGHT)
    assert codec.form(left.record) == left
    assert codec.form(right.record) == right
    assert codec.identity is not None
    assert codec.identity(left.record) == codec.identity(right.record)
    assert codec.decode(right.record) == codec.compared(left.record) == {"k": 1, "v": 2}
    assert codec.scope(right.record) == {"k": 1}


def test_each_side_refuses_what_is_none_of_its_own() -> None:
    codec = two_sides("{format: json}", "{format: msgpack}")
    _, refused = codec.forms([msgpack.packb({"k": 1}), None], LEFT)
    assert [reason and reason[:8] for _, reason in refused] == ["not UTF-", "a tombst"]
    _, refused = codec.forms([b'{"k":1}'], RIGHT)
    assert refused[0].reason == "not MessagePack: more bytes follow the value"


def test_tombstones_are_left_out_or_refused_as_the_side_says() -> None:
    codec = two_sides("{tombstones: ignore}", "{}")
    assert codec.forms([None], LEFT) == ([IGNORED], [RefusedRecord(0, None)])
    assert codec.forms([None], RIGHT)[1][0].reason == "a tombstone (a record without a value) is not an event"
    both = Codec(spec("total", "decode: {tombstones: ignore}"))
    assert both.forms([None, b"1"])[1] == [RefusedRecord(0, None)]
    empty = two_sides("{format: utf8, tombstones: ignore}", "{format: utf8}", "total")
    assert form(empty, b"", LEFT).content == form(empty, b"", RIGHT).content


REDUCED = ["{}", "{compare_only: [a]}", "{absent_is_null: true}"]


@pytest.mark.parametrize(
    ("sides", "equality"),
    [
        *((("msgpack", "msgpack"), equality) for equality in REDUCED),
        *((("json", "msgpack"), equality) for equality in REDUCED),
        (("utf8", "utf8"), "{}"),
    ],
)
@pytest.mark.parametrize("order", ["total", "unordered"])
def test_a_tombstone_that_is_left_out_is_no_event_in_any_format(
    sides: tuple[str, str], order: str, equality: str
) -> None:
    ways = [f"{{format: {name}, tombstones: ignore}}" for name in sides]
    codec = two_sides(ways[0], ways[1], order, f"equality: {equality}\n")
    for side in (LEFT, RIGHT):
        assert codec.forms([None], side) == ([IGNORED], [RefusedRecord(0, None)])


# -- whole records ---------------------------------------------------------------------------------------


def whole(
    value: bytes | None, key: bytes | None = b"k", at: int = 5, partition: int = 0, **headers: bytes
) -> bytes:
    return envelope(value, key, list(headers.items()), at, partition)


def test_a_field_outside_the_value_can_be_a_key() -> None:
    codec = Codec(spec("{per_key: [$key]}"))
    assert form(codec, whole(b'{"v":1}')).route == "k"
    assert form(codec, whole(b'{"v":1}', None)).route != "null"


@pytest.mark.parametrize(
    ("order", "one", "other", "same"),
    [
        ("{per_key: [$key]}", whole(b"1"), whole(b"1.0", at=6, partition=1, h=b"x"), True),
        ("{per_key: [$key]}", whole(b"1"), whole(b"1", b"j"), False),
        ("{per_key: [$key]}", whole(b"1", None), whole(b"1", b""), False),
        ("{per_key: [$timestamp]}", whole(b"1"), whole(b"1", b"j"), True),
        ("{per_key: [$timestamp]}", whole(b"1"), whole(b"1", at=6), False),
        ("{per_key: [$partition]}", whole(b"1"), whole(b"1", partition=1), False),
        ("{per_key: [$headers.h]}", whole(b"1", h=b"x", g=b"\xff"), whole(b"1", h=b"x", i=b"2"), True),
        ("{per_key: [$headers.h]}", whole(b"1", h=b"x"), whole(b"1", h=b"y"), False),
        ("{per_key: [$key]}", whole(b'{"i":1}'), whole(b'{"i":2}'), True),
        ("{per_key: [$key]}", whole(b'{"$key":1}'), whole(b'{"$key":2}'), False),
    ],
)
def test_outside_the_value_only_what_is_named_is_compared(
    order: str, one: bytes, other: bytes, same: bool
) -> None:
    codec = Codec(spec(order, "equality: {ignore: [i]}"))
    forms = [form(codec, record) for record in (one, other)]
    assert (forms[0].content == forms[1].content) is same
    assert all(codec.form(found.record) == found for found in forms)


def test_kind_and_identity_may_stand_outside_the_value_too() -> None:
    codec = Codec(spec("total", "kinds: {a: {where: {$headers.t: a}}, b: {}}\nidentity: [$key, v.id]"))
    record = whole(b'{"v":{"id":3}}', t=b"a")
    assert form(codec, record).kind == "a"
    assert form(codec, whole(b"1")).kind == "b"
    assert codec.identity is not None
    assert codec.identity(record) == codec.identity(whole(b'{"v":{"id":3.0},"w":1}', t=b"b"))
    assert codec.identity(record) != codec.identity(whole(b'{"v":{"id":3}}', b"j", t=b"a"))
    assert codec.decode(record)["$value"] == {"v": {"id": 3}}


def test_compare_only_keeps_what_is_named_outside_the_value() -> None:
    codec = Codec(spec("{per_key: [$key]}", "equality: {compare_only: [a.b]}"))
    assert codec.compared(whole(b'{"a":{"b":1,"c":2},"d":3}')) == {"$value": {"a": {"b": 1}}, "$key": "k"}


def test_what_the_order_needs_outside_the_value_is_refused_where_it_is_not_there() -> None:
    codec = Codec(spec("{by_key: [$headers.h], inner: {per_key: [$key]}}"))
    records = [
        whole(b"1"),
        whole(b"1", h=b"\xff"),
        whole(None),
        whole(b"{", h=b""),
        whole(b"1", b"\xff", h=b""),
    ]
    reasons = [str(reason) for _, reason in codec.forms(records)[1]]
    assert reasons[:3] == [
        "field `$headers.h`, that the order needs, is missing",
        "the header `h` of the record is not UTF-8 at byte 0",
        "a tombstone (a record without a value) is not an event",
    ]
    assert reasons[3].startswith("not JSON: ")
    assert reasons[4] == "the key of the record is not UTF-8 at byte 0"


def test_whole_records_of_two_formats_are_told_apart_by_their_side() -> None:
    codec = two_sides("{}", "{format: msgpack}", "{per_key: [$key]}")
    left, right = form(codec, whole(b'{"v":1}')), form(codec, whole(msgpack.packb({"v": 1})), RIGHT)
    assert left.content == right.content
    assert codec.form(right.record) == right


# -- a registry ------------------------------------------------------------------------------------------


def test_a_registry_that_is_away_decides_nothing_and_the_same_records_can_be_given_again() -> None:
    with running(Registry(trouble=503)) as registry:
        registry.schemas[1] = {"schema": json.dumps(SCHEMA)}
        codec = Codec(spec("{per_key: [k]}", f'decode: {{format: avro, registry: "{registry.url}"}}'))
        records = [b"\x00\x00\x00\x00\x01" + avro({"k": 1, "v": None}), b"no frame"]
        for _ in range(2):
            with pytest.raises(SourceError, match=r"the schema registry .* refuses schema 1"):
                codec.forms(records)
        registry.trouble = None
        forms, refused = codec.forms(records)
    assert forms[0][0] == 1
    assert [place for place, _ in refused] == [1]


def test_a_record_is_refused_with_its_reason_when_it_is_read_alone() -> None:
    with pytest.raises(DecodeError, match="not MessagePack"):
        Codec(spec("total", "decode: {format: msgpack}")).form(b"\xc1")
