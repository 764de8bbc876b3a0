from __future__ import annotations

import json
import threading
from decimal import Decimal
from io import BytesIO
from math import inf, isnan, nan
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pytest

from twinstream.core.canonical import canonical
from twinstream.errors import DecodeError, SpecError
from twinstream.spec.decode.formats.avro import Schema, body_of, from_file
from twinstream.spec.decode.formats.registry import Body


def decoder(schema: Any) -> Body:
    return body_of(Schema(json.dumps(schema)))


def datum(schema: Any, value: Any) -> bytes:
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


def record(*fields: Any) -> dict[str, Any]:
    named = [{"name": name, "type": kind} for name, kind in fields]
    return {"type": "record", "name": "View", "namespace": "ads", "fields": named}


PLAIN: list[tuple[Any, Any]] = [
    ("null", None),
    ("boolean", True),
    ("int", -7),
    ("long", 2**62),
    ("double", 0.1),
    ("double", inf),
    ("string", "é"),
    ("bytes", b"\x00\xff"),
    ({"type": "fixed", "name": "F", "size": 2}, b"ab"),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
    ({"type": "array", "items": "long"}, [3, 1, 2]),
    ({"type": "map", "values": ["null", "string"]}, {"a": None, "b": "x"}),
    (
        ["null", {"type": "enum", "name": "fields", "symbols": ["A"]}, {"type": "array", "items": "fields"}],
        ["A"],
    ),
    (
        record(("a", "long"), ("b", ["null", record(("c", "string"))["fields"][0]["type"]])),
        {"a": 1, "b": "x"},
    ),
]


@pytest.mark.parametrize(("schema", "value"), PLAIN)
def test_a_datum_is_read_as_it_was_written(schema: Any, value: Any) -> None:
    assert decoder(schema)(datum(schema, value)) == value


@pytest.mark.parametrize(
    ("schema", "malformed"),
    [
        ("boolean", b"\x02"),
        ("boolean", b"\x80\x00"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x01"),
        (["null", "int"], b"\x03"),
        ({"type": "map", "values": "int"}, b"\x04\x02a\x02\x02a\x04\x00"),
        (record(("a", [{"type": "map", "values": {"type": "boolean"}}])), b"\x00\x02\x02a\xff\x00"),
    ],
)
def test_no_malformed_datum_is_repaired(schema: Any, malformed: bytes) -> None:
    with pytest.raises(DecodeError, match=r"^(not a datum of its Avro schema|a member stands twice)"):
        decoder(schema)(malformed)


def test_not_a_number_is_a_value() -> None:
    assert isnan(decoder("double")(datum("double", nan)))


def test_dates_and_times_are_the_numbers_that_are_stored() -> None:
    ints = ["date", "time-millis"]
    longs = ["time-micros", "timestamp-millis", "timestamp-nanos", "local-timestamp-micros"]
    kinds = [(name, "int") for name in ints] + [(name, "long") for name in longs]
    fields = [(f"f{number}", kind, name) for number, (name, kind) in enumerate(kinds)]
    schema = record(*((field, {"type": kind, "logicalType": name}) for field, kind, name in fields))
    stored = record(*((field, kind) for field, kind, _ in fields))
    value = {field: -(2**31) for field, _, _ in fields}
    assert decoder(schema)(datum(stored, value)) == value


@pytest.mark.parametrize(
    ("unscaled", "scale"),
    [(1250, 2), (-1, 3), (10**40 + 1, 7), (0, 2), (5, 0), pytest.param(10**4400, 0, id="huge")],
)
@pytest.mark.parametrize("base", ["bytes", "fixed"])
def test_a_decimal_is_its_exact_number_whatever_its_precision(base: str, unscaled: int, scale: int) -> None:
    logical = {"logicalType": "decimal", "precision": 4, "scale": scale}
    fixed = {"type": "fixed", "name": "F", "size": 2000}
    stored: Any = fixed if base == "fixed" else {"type": "bytes"}
    data = unscaled.to_bytes(2000, "big", signed=True)
    decode = decoder(record(("price", {**stored, **logical})))
    value = decode(datum(record(("price", stored)), {"price": data}))
    assert canonical(value) == canonical(
        {"price": Decimal((int(unscaled < 0), Decimal(unscaled).as_tuple().digits, -scale))}
    )


@pytest.mark.parametrize("scale", [-9_999_999, 9_999_999, "2"])
def test_a_decimal_whose_scale_is_none_is_read_as_its_bytes(scale: Any) -> None:
    decode = decoder({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": scale})
    assert decode(datum("bytes", b"\1")) == b"\1"


def test_a_decimal_that_takes_long_to_read_is_refused() -> None:
    decode = decoder({"type": "bytes", "logicalType": "decimal", "precision": 4})
    with pytest.raises(DecodeError, match="a decimal of 4001 bytes is too long; the limit is 4000"):
        decode(datum("bytes", b"\x7f" * 4001))


@pytest.mark.parametrize("items", ["null", record(), record(("a", "null")), {"type": "null"}])
def test_items_without_bytes_cannot_keep_the_reader_busy(items: Any) -> None:
    decode = decoder({"type": "array", "items": items})
    assert decode(b"\x00") == []
    with pytest.raises(DecodeError, match="an array has items that take no bytes"):
        decode(b"\x80\x80\x80\x14\x00")


def test_a_uuid_is_a_text_however_it_is_stored() -> None:
    uuid = UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
    text = {"type": "string", "logicalType": "uuid"}
    fixed = {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}
    assert decoder(text)(datum("string", str(uuid))) == str(uuid)
    assert decoder(fixed)(uuid.bytes) == str(uuid)


def test_defaults_of_a_schema_play_no_part() -> None:
    schema = record(("a", "long"))
    schema["fields"][0]["default"] = "not even a number"
    assert decoder(schema)(b"\x02") == {"a": 1}


CHAIN = record(("next", ["null", "ads.View"]))


@pytest.mark.parametrize("depth", [1, 128])
def test_a_type_may_refer_to_itself(depth: int) -> None:
    value = decoder(CHAIN)(b"\x02" * (depth - 1) + b"\x00")
    for _ in range(depth - 1):
        value = value["next"]
    assert value == {"next": None}


@pytest.mark.parametrize("depth", [129, 499, 501, 100_000])
def test_a_deep_record_is_refused_and_crashes_nothing_on_any_thread(depth: int) -> None:
    decode, refused = decoder(CHAIN), []

    def read() -> None:
        with pytest.raises(DecodeError, match="nested deeper than 128"):
            decode(b"\x02" * depth + b"\x00")
        refused.append(depth)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    read()
    assert refused == [depth, depth]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "is not an Avro schema: it is not JSON"),
        ('{"type": "record"}', "is not an Avro schema: "),
        ('{"type": "record", "name": "R", "fields": [{"name": "a"}]}', "is not an Avro schema: "),
        (json.dumps(record(("a", "ads.Nowhere"))), "it refers to `ads.Nowhere`, which it does not define"),
        (json.dumps(record(("a", "null"), ("b", "ads.View"))), "`ads.View` contains itself without end"),
        ("5", "is not an Avro schema: 5 is no type"),
        ("[" * 10_000 + "]" * 10_000, "is not an Avro schema: it is nested too deep"),
        (None, "cannot be read: No such file"),
    ],
    ids=lambda text: str(text)[:60],
)
def test_a_file_that_is_no_schema_is_refused_with_the_reason(
    tmp_path: Path, schema: str | None, message: str
) -> None:
    path = tmp_path / "view.avsc"
    if schema is not None:
        path.write_text(schema)
    with pytest.raises(SpecError, match=message) as caught:
        from_file(path)
    assert (caught.value.file, caught.value.key) == (str(path), "decode.schema_file")
