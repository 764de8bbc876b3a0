from __future__ import annotations

import struct
from math import inf
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tests.support.protos import descriptor_set, encode, file, map_of, message
from twinstream.errors import DecodeError, SpecError
from twinstream.spec.decode.formats.protobuf import body_of, from_descriptors, pool_of
from twinstream.spec.decode.formats.registry import Body

VIEW = message(
    "View",
    "int64 id",
    "string name",
    "optional int32 count",
    "repeated uint64 parts",
    ".ads.Place place",
    "bytes raw",
    "double share",
    "bool paid",
    ".ads.KindEnum kind",
    "repeated .ads.View.TagsEntry tags",
    "float short",
    "repeated .ads.View inner",
)
VIEW.nested_type.append(map_of("string", ".ads.Place", "TagsEntry"))
FILE = file("view.proto", VIEW, message("Place", "sint32 x"))
KINDS = FILE.enum_type.add(name="KindEnum")
for _number, _name in enumerate(["NONE", "BANNER"]):
    KINDS.value.add(name=_name, number=_number)

EMPTY: dict[str, Any] = {
    "id": 0,
    "name": "",
    "parts": [],
    "raw": b"",
    "share": 0.0,
    "paid": False,
    "kind": "NONE",
    "tags": {},
    "short": 0.0,
    "inner": [],
}


def decoder(*files: FileDescriptorProto, name: str = "ads.View") -> Body:
    return body_of(pool_of(files).FindMessageTypeByName(name))


def test_a_message_has_the_names_and_values_of_its_type(tmp_path: Path) -> None:
    written = {
        "id": str(-(2**63)),
        "name": "é",
        "count": 0,
        "parts": [str(2**64 - 1), "1"],
        "place": {"x": -1},
        "raw": "AP8=",
        "share": 0.1,
        "paid": True,
        "kind": "BANNER",
        "tags": {"a": {}, "b": {"x": 2}},
        "short": 0.1,
        "inner": [{"id": "1"}, {}],
    }
    (tmp_path / "view.desc").write_bytes(descriptor_set(FILE))
    decode = from_descriptors(tmp_path / "view.desc", "ads.View")
    assert decode(encode("ads.View", written, FILE)) == {
        "id": -(2**63),
        "name": "é",
        "count": 0,
        "parts": [2**64 - 1, 1],
        "place": {"x": -1},
        "raw": b"\x00\xff",
        "share": 0.1,
        "paid": True,
        "kind": "BANNER",
        "tags": {"a": {"x": 0}, "b": {"x": 2}},
        "short": struct.unpack("f", struct.pack("f", 0.1))[0],
        "inner": [{**EMPTY, "id": 1}, EMPTY],
    }


def test_what_has_presence_is_absent_when_unset_and_all_else_is_there() -> None:
    assert decoder(FILE)(b"") == EMPTY


def test_floats_may_be_infinite() -> None:
    assert decoder(FILE)(encode("ads.View", {"share": "-Infinity"}, FILE))["share"] == -inf


def test_an_enum_value_without_a_name_is_its_number() -> None:
    assert decoder(FILE)(b"\x48\x07")["kind"] == 7


def test_of_two_names_of_an_enum_value_the_first_one_is_its_name() -> None:
    holder = message("Holder", ".ads.HolderEnum kind")
    described = file("h.proto", holder)
    kinds = described.enum_type.add(name="HolderEnum")
    kinds.options.allow_alias = True
    for number, name in enumerate(["NONE", "BANNER", "AD"]):
        kinds.value.add(name=name, number=min(number, 1))
    assert decoder(described, name="ads.Holder")(b"\x08\x01") == {"kind": "BANNER"}


@pytest.mark.parametrize(("key", "names"), [("bool", {"true", "false"}), ("sint64", {"-1", "2"})])
def test_keys_of_maps_are_texts(key: str, names: set[str]) -> None:
    holder = message("Holder", "repeated .ads.Holder.MEntry m")
    holder.nested_type.append(map_of(key, "int32", "MEntry"))
    record = encode("ads.Holder", {"m": dict.fromkeys(names, 1)}, file("h.proto", holder))
    assert decoder(file("h.proto", holder), name="ads.Holder")(record) == {"m": dict.fromkeys(names, 1)}


def test_types_that_come_with_every_compiler_need_not_be_in_the_set() -> None:
    stamped = file(
        "s.proto",
        message("Stamped", ".google.protobuf.Timestamp at"),
        imports=("google/protobuf/timestamp.proto",),
    )
    decode = decoder(stamped, name="ads.Stamped")
    assert decode(b"\x0a\x02\x08\x05") == {"at": {"seconds": 5, "nanos": 0}}


def test_files_may_stand_in_any_order() -> None:
    user = file("b.proto", message("User", ".ads.Place home"), imports=("a.proto",))
    place = file("a.proto", message("Place", "int32 x"))
    assert decoder(user, place, name="ads.User")(b"\x0a\x00") == {"home": {"x": 0}}


@pytest.mark.parametrize("record", [b"\xa0\x06\x01", b"\x2a\x02\x50\x01"])
def test_a_field_that_the_schema_does_not_have_is_never_left_out_in_silence(record: bytes) -> None:
    with pytest.raises(DecodeError, match=r"has a field that `ads\.View`, or a message in it, does not have"):
        decoder(FILE)(record)


@pytest.mark.parametrize(
    "record", [b"\xff", b"\x08", b"\x12\x05a", b"\x12\x01\xff", b"\x62\x00" * 3 + b"\x63"]
)
def test_what_is_no_message_is_refused(record: bytes) -> None:
    with pytest.raises(DecodeError, match=r"not a message ads\.View: "):
        decoder(FILE)(record)


def test_a_deep_record_is_refused() -> None:
    record = b""
    for _ in range(200):
        record = b"\x62" + bytes([0x80 | len(record) & 0x7F, len(record) >> 7]) + record
    with pytest.raises(DecodeError, match=r"not a message ads\.View: "):
        decoder(FILE)(record)


def test_a_text_of_proto2_that_is_not_utf8_is_refused() -> None:
    old = FileDescriptorProto(name="o.proto", package="ads", syntax="proto2")
    old.message_type.append(message("Old", "string name"))
    with pytest.raises(DecodeError, match="where a text should be, is not UTF-8"):
        decoder(old, name="ads.Old")(b"\x0a\x01\xff")


@pytest.mark.parametrize(
    ("record", "lacking"),
    [(b"", "id"), (b"\x08\x01\x12\x03\x0a\x01a\xa2\x06\x00", "field of a message in it")],
)
def test_a_message_without_a_required_field_crashes_nothing(record: bytes, lacking: str) -> None:
    old = FileDescriptorProto(name="o.proto", package="ads", syntax="proto2")
    kind = message("Old", "required int32 id", "repeated .ads.Old.MEntry m")
    kind.nested_type.append(map_of("string", "int32", "MEntry"))
    kind.extension_range.add(start=100, end=200)
    old.message_type.append(kind)
    more = old.extension.add(name="more", number=100, label=3, extendee=".ads.Old")  # type: ignore[arg-type]
    more.type, more.type_name = more.TYPE_MESSAGE, ".ads.Old"
    with pytest.raises(DecodeError, match=rf"^not a message ads\.Old: it lacks the required {lacking}$"):
        decoder(old, name="ads.Old")(record)


def test_extensions_have_the_names_that_proto_gives_them() -> None:
    old = FileDescriptorProto(name="o.proto", package="ads", syntax="proto2")
    base = message("Base", "int32 a")
    base.extension_range.add(start=100, end=200)
    old.message_type.append(base)
    old.extension.add(name="extra", number=100, label=1, type=5, extendee=".ads.Base")  # type: ignore[arg-type]
    assert decoder(old, name="ads.Base")(b"\xa0\x06\x07") == {"[ads.extra]": 7}


NOT_THERE = r"`ads.Click` is not in .*; its messages are `ads.Place`, `ads.View`$"
WITHOUT_IMPORT = descriptor_set(file("b.proto", imports=("a.proto",)))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("view.desc", descriptor_set(FILE), NOT_THERE),
        ("view.desc", b"{", r"`decode\.schema_file`: is not a descriptor set of protoc"),
        ("view.desc", b"\xff\xff", r"`decode\.schema_file`: is not a descriptor set of protoc"),
        (
            "view.desc",
            WITHOUT_IMPORT,
            r"imports a\.proto, which is not in it \(protoc has --include_imports\)",
        ),
        ("view.proto", b'syntax = "proto3";', r"`protoc --include_imports -o view\.desc view\.proto`"),
        ("view.desc", None, r"`decode\.schema_file`: cannot be read: No such file"),
    ],
)
def test_a_file_without_the_message_is_refused_in_a_sentence(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SpecError, match=said):
        from_descriptors(tmp_path / name, "ads.Click")
