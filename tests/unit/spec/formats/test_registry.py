"""Records that are written with a schema registry, read through one on a real socket."""

from __future__ import annotations

import base64
import json
import socket
import sys
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf.descriptor_pool import DescriptorPool

from tests.support.protos import encode, file, message
from tests.support.registry import Registry, running
from twinstream.errors import DecodeError, SourceError
from twinstream.spec.decode.formats import avro, protobuf
from twinstream.spec.decode.formats import registry as module
from twinstream.spec.decode.formats.registry import Body

VIEW = {"type": "record", "name": "View", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with running(Registry()) as served:
        yield served


def avro_schema(schema: Any, *references: tuple[str, str, int]) -> dict[str, Any]:
    named = [{"name": name, "subject": subject, "version": version} for name, subject, version in references]
    return {"schema": json.dumps(schema), "references": named}


def proto_schema(proto: Any, *references: tuple[str, str, int]) -> dict[str, Any]:
    text = base64.b64encode(proto.SerializeToString()).decode()
    return {**avro_schema(None, *references), "schema": text, "schemaType": "PROTOBUF"}


def framed(number: int, body: bytes) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + body


# -- Avro ------------------------------------------------------------------------------------------------


def test_a_record_is_read_with_the_schema_that_it_names(registry: Registry) -> None:
    wider = {**VIEW, "fields": [*VIEW["fields"], {"name": "new", "type": "string"}]}  # type: ignore[misc]
    registry.schemas |= {7: avro_schema(VIEW), 8: avro_schema(wider)}
    decode = avro.registered(registry.url)
    assert decode(framed(7, b"\x02")) == {"id": 1}
    assert decode(framed(8, b"\x02\x02x")) == {"id": 1, "new": "x"}


def test_the_registry_is_asked_once_for_a_schema(registry: Registry) -> None:
    registry.schemas[7] = avro_schema(VIEW)
    decode = avro.registered(registry.url)
    assert registry.asked == []
    assert [decode(framed(7, b"\x02")) for _ in range(3)] == [{"id": 1}] * 3
    assert len(registry.asked) == 1


def test_types_of_other_subjects_are_found(registry: Registry) -> None:
    place = {"type": "record", "name": "ads.Place", "fields": [{"name": "x", "type": "ads.Unit"}]}
    unit = {"type": "enum", "name": "ads.Unit", "symbols": ["M", "KM"]}
    user = {"type": "record", "name": "User", "fields": [{"name": "home", "type": "ads.Place"}]}
    registry.versions["place", 1] = avro_schema(place, ("ads.Unit", "unit", 3))
    registry.versions["unit", 3] = avro_schema(unit)
    registry.schemas[1] = avro_schema(user, ("ads.Place", "place", 1))
    assert avro.registered(registry.url)(framed(1, b"\x02")) == {"home": {"x": "KM"}}


@pytest.mark.parametrize(
    ("schema", "body", "value"),
    [
        ("View", b"\x02", {"id": 1}),
        (["null", "View"], b"\x02\x02", {"id": 1}),
        (["View", {"type": "array", "items": "View"}], b"\x02\x02\x02\x00", [{"id": 1}]),
        ({"type": "map", "values": "View"}, b"\x02\x02k\x02\x00", {"k": {"id": 1}}),
    ],
)
def test_a_schema_may_be_no_record_and_refer_to_other_subjects(
    registry: Registry, schema: Any, body: bytes, value: Any
) -> None:
    registry.versions["view", 1] = avro_schema(VIEW)
    registry.schemas[1] = avro_schema(schema, ("View", "view", 1))
    assert avro.registered(registry.url)(framed(1, body)) == value


@pytest.mark.parametrize("record", [b"", b"\x00\x00\x00\x00", b"\x01\x00\x00\x00\x07\x02", b'{"id":1}'])
def test_a_record_without_a_frame_is_refused(registry: Registry, record: bytes) -> None:
    with pytest.raises(DecodeError, match="does not begin as a record of a schema registry does"):
        avro.registered(registry.url)(record)
    assert registry.asked == []


def test_an_unknown_id_is_the_fault_of_the_record_and_asked_for_once(registry: Registry) -> None:
    decode = avro.registered(registry.url)
    for _ in range(3):
        with pytest.raises(DecodeError, match=rf"the schema registry {registry.url} has no schema 9"):
            decode(framed(9, b"\x02"))
    assert len(registry.asked) == 1


def test_no_flood_of_unknown_ids_fills_the_memory(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "UNKNOWN_KEPT", 2)
    decode = avro.registered(registry.url)
    for number in [1, 2, 3, 3, 1]:
        with pytest.raises(DecodeError, match=f"has no schema {number}"):
            decode(framed(number, b""))
    assert len(registry.asked) == 4


def test_an_id_that_the_registry_hears_of_later_is_read_then(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "UNKNOWN_SECONDS", 0)
    decode = avro.registered(registry.url)
    with pytest.raises(DecodeError, match="has no schema 7"):
        decode(framed(7, b"\x02"))
    registry.schemas[7] = avro_schema(VIEW)
    assert decode(framed(7, b"\x02")) == {"id": 1}


def test_a_schema_of_another_type_is_refused(registry: Registry) -> None:
    registry.schemas[7] = {"schema": "{}", "schemaType": "JSON"}
    with pytest.raises(DecodeError, match="its schema is of type JSON, but AVRO is declared"):
        avro.registered(registry.url)(framed(7, b"\x02"))


def test_a_schema_that_cannot_be_used_is_named(registry: Registry) -> None:
    registry.schemas[7] = {"schema": "{"}
    with pytest.raises(DecodeError, match="its schema 7 is not an Avro schema: it is not JSON"):
        avro.registered(registry.url)(framed(7, b"\x02"))


def test_a_recursive_type_of_another_subject_crashes_nothing(registry: Registry) -> None:
    chain = {"type": "record", "name": "Chain", "fields": [{"name": "next", "type": ["null", "Chain"]}]}
    holder = {"type": "record", "name": "Holder", "fields": [{"name": "chain", "type": "Chain"}]}
    registry.versions["chain", 1] = avro_schema(chain)
    registry.schemas[1] = avro_schema(holder, ("Chain", "chain", 1))
    decode = avro.registered(registry.url)
    assert decode(framed(1, b"\x00")) == {"chain": {"next": None}}
    with pytest.raises(DecodeError, match="nested deeper than 128"):
        decode(framed(1, b"\x02" * 100_000 + b"\x00"))


# -- Protobuf --------------------------------------------------------------------------------------------

PLACE = file("place.proto", message("Place", "int32 x"))
OUTER = message("Outer", "int64 id")
OUTER.nested_type.append(message("Inner", "string name"))
FILE = file("outer.proto", message("First", ".ads.Place place"), OUTER, imports=("place.proto",))


@pytest.mark.parametrize(
    ("frame", "name", "value", "read"),
    [
        (b"\x00", "ads.First", {"place": {"x": 1}}, {"place": {"x": 1}}),
        (b"\x02\x02", "ads.Outer", {"id": "5"}, {"id": 5}),
        (b"\x04\x02\x00", "ads.Outer.Inner", {"name": "é"}, {"name": "é"}),
    ],
)
def test_the_frame_says_which_message_it_is(
    registry: Registry, frame: bytes, name: str, value: dict[str, Any], read: dict[str, Any]
) -> None:
    registry.versions["place", 2] = proto_schema(PLACE)
    registry.schemas[3] = proto_schema(FILE, ("place.proto", "place", 2))
    record = framed(3, frame + encode(name, value, PLACE, FILE))
    decode = protobuf.registered_messages(registry.url)
    assert [decode(record), decode(record)] == [read, read]
    assert len(registry.asked) == 2


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (b"", "ends within the frame"),
        (b"\x02", "ends within the frame"),
        (b"\xff" * 9, "ends within the frame"),
        (b"\x02\x06", r"its schema 3 has no message at \[3\]"),
        (b"\x02\x01", r"its schema 3 has no message at \[-1\]"),
        (b"\x04\x02\x08", r"its schema 3 has no message at \[1, 4\]"),
    ],
)
def test_a_frame_that_names_no_message_is_refused(registry: Registry, frame: bytes, message: str) -> None:
    registry.versions["place", 2] = proto_schema(PLACE)
    registry.schemas[3] = proto_schema(FILE, ("place.proto", "place", 2))
    with pytest.raises(DecodeError, match=message):
        protobuf.registered_messages(registry.url)(framed(3, frame))


@pytest.mark.parametrize(
    ("imported", "kind"),
    [
        ("confluent/type/decimal.proto", ".confluent.type.Decimal"),
        ("confluent/meta.proto", ".confluent.Meta"),
        ("google/type/date.proto", ".google.type.Date"),
    ],
)
def test_known_types_need_no_reference(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, imported: str, kind: str
) -> None:
    pool, date = DescriptorPool(), file("google/type/date.proto", message("Date", "int32 year"))
    date.package = "google.type"
    pool.Add(date)
    module = SimpleNamespace(DESCRIPTOR=pool.FindFileByName(date.name))
    monkeypatch.setitem(sys.modules, "google.type.date_pb2", module)  # type: ignore[arg-type]
    registry.schemas[3] = proto_schema(file("u.proto", message("User", f"{kind} known"), imports=(imported,)))
    assert protobuf.registered_messages(registry.url)(framed(3, b"\x00\x0a\x00"))["known"]


def test_an_import_that_is_not_referred_to_is_named(registry: Registry) -> None:
    registry.schemas[3] = proto_schema(FILE)
    with pytest.raises(DecodeError, match=r"schema 3 is incomplete: it imports place\.proto, .*\(googleapis"):
        protobuf.registered_messages(registry.url)(framed(3, b"\x00"))


def test_a_registry_that_has_only_sources_is_told_from_a_bad_record(registry: Registry) -> None:
    registry.schemas[3] = {"schema": 'syntax = "proto3";', "schemaType": "PROTOBUF"}
    with pytest.raises(SourceError, match="does not hand out Protobuf schemas in the form `serialized`"):
        protobuf.registered_messages(registry.url)(framed(3, b"\x00"))


# -- a registry in trouble -------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_trouble_of_the_registry_is_no_fault_of_the_record(registry: Registry, status: int) -> None:
    registry.schemas[7] = avro_schema(VIEW)
    registry.trouble = status
    decode = avro.registered(registry.url)
    with pytest.raises(SourceError, match=f"registry {registry.url} refuses schema 7: out of order"):
        decode(framed(7, b"\x02"))
    registry.trouble = None
    assert decode(framed(7, b"\x02")) == {"id": 1}


@pytest.mark.parametrize("answer", [{}, {"schema": None}, {"schema": ""}, {"schema": 5}])
@pytest.mark.parametrize("registered", [avro.registered, protobuf.registered_messages])
def test_an_answer_without_a_schema_is_no_fault_of_the_record(
    registry: Registry, registered: Callable[[str], Body], answer: dict[str, Any]
) -> None:
    decode = registered(registry.url)
    registry.schemas[7] = answer
    for _ in range(2):
        with pytest.raises(SourceError, match=f"registry {registry.url} answers without schema 7"):
            decode(framed(7, b"\x02"))
    assert len(registry.asked) == 2


def test_a_server_that_is_no_registry_is_no_fault_of_the_record(registry: Registry) -> None:
    registry.schemas[7] = avro_schema(VIEW)
    told = r"refuses schema 7: HTTP 404 Not Found \(HTTP 404\); is the path of its address right\?"
    with pytest.raises(SourceError, match=told):
        avro.registered(registry.url + "/elsewhere")(framed(7, b"\x02"))


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (
            404,
            b'{"title": "Not Found", "status": 404}',
            r"refuses schema 7: .*is the path of its address right",
        ),
        (404, b'{"error_code": "40403"}', "refuses schema 7: no reason given"),
        (307, b"", r"it redirects to another address \(HTTP 307\); write that one"),
        (200, b"<html>", "answers no schema when asked for schema 7: is this the address of a registry"),
        (200, b"null", "answers no schema when asked for schema 7"),
        (200, b"[]", "answers no schema when asked for schema 7"),
        (
            500,
            b'{"error_code": 50001, "message": "' + b"x " * 900 + b'"}',
            r"7: x [x ]{,200}\[\.\.\.\] \(HTTP 500\)$",
        ),
    ],
)
def test_any_answer_of_a_server_that_is_no_registry_is_a_sentence(
    registry: Registry, status: int, body: bytes, told: str
) -> None:
    registry.raw = status, body
    with pytest.raises(SourceError, match=told):
        avro.registered(registry.url)(framed(7, b"\x02"))


def test_a_registry_that_is_away_is_named_without_its_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    decode = avro.registered(f"http://user:secret@127.0.0.1:{port}")
    with pytest.raises(
        SourceError, match=rf"the schema registry http://…@127\.0\.0\.1:{port} cannot be .*nothing listens"
    ) as caught:
        decode(framed(7, b"\x02"))
    assert "secret" not in str(caught.value)


def test_a_registry_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        decode = avro.registered(f"http://127.0.0.1:{silent.getsockname()[1]}")
        started = time.monotonic()
        with pytest.raises(SourceError, match=r"cannot be asked for schema 7: .*timed out"):
            decode(framed(7, b"\x02"))
        assert time.monotonic() - started < 10
