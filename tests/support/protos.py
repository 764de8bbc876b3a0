"""Protobuf types without a compiler: descriptors from a short notation, and messages of them."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

_LABELS = {"": 1, "required": 2, "repeated": 3, "optional": 1}


def message(name: str, *fields: str) -> DescriptorProto:
    """A message type with fields as in a .proto file (``"repeated int64 a"``), numbered from 1."""
    made = DescriptorProto(name=name)
    for number, text in enumerate(fields, 1):
        *label, kind, field = text.split()
        made.field.append(_field(made, field, number, kind, label[0] if label else ""))
    return made


def _field(owner: DescriptorProto, name: str, number: int, kind: str, label: str) -> FieldDescriptorProto:
    field = FieldDescriptorProto(name=name, number=number, label=_LABELS[label])  # type: ignore[arg-type]
    if kind.startswith("."):
        field.type_name = kind
        field.type = (
            FieldDescriptorProto.TYPE_ENUM if kind.endswith("Enum") else FieldDescriptorProto.TYPE_MESSAGE
        )
    else:
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    if label == "optional":
        field.proto3_optional = True
        field.oneof_index = len(owner.oneof_decl)
        owner.oneof_decl.add(name=f"_{name}")
    return field


def map_of(key: str, value: str, name: str) -> DescriptorProto:
    """The type of the entries of a map."""
    made = message(name, f"{key} key", f"{value} value")
    made.options.map_entry = True
    return made


def file(name: str, *messages: DescriptorProto, imports: tuple[str, ...] = ()) -> FileDescriptorProto:
    """A proto3 file of the package ``ads``."""
    made = FileDescriptorProto(name=name, package="ads", syntax="proto3", dependency=list(imports))
    made.message_type.extend(messages)
    return made


def descriptor_set(*files: FileDescriptorProto) -> bytes:
    """What ``protoc -o`` writes of some files."""
    return FileDescriptorSet(file=list(files)).SerializeToString()


def encode(name: str, value: dict[str, Any], *files: FileDescriptorProto) -> bytes:
    """A message in its wire form; `value` is in the JSON form of Protobuf."""
    return made(name, value, *files).SerializeToString()


def made(name: str, value: dict[str, Any], *files: FileDescriptorProto) -> Message:
    """A message of a type of these files."""
    pool = DescriptorPool()
    for one in files:
        pool.Add(one)
    return ParseDict(value, GetMessageClass(pool.FindMessageTypeByName(name))())
