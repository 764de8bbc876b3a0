"""Protobuf: one message, read with the descriptors of its types.

A value has the names of the fields as the .proto file has them; numbers of any width are numbers, an enum is
the name of its value (its number, if it has none), bytes are bytes, a message and a map are objects. A key of
a map becomes a text.

A field is absent if proto calls it unset. A field without presence (a plain scalar of proto3) is never unset:
it is there with its default. Repeated fields and maps are always there, possibly empty. No message type is
treated specially: a Timestamp is an object of `seconds` and `nanos`. A float of 32 bits is the float of 64
bits of the same value.

Fields that the schema does not know would silently be left out of the comparison, so a record with any such
field is refused.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError as MalformedError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from twinstream.core.canonical import check
from twinstream.errors import DecodeError, SourceError, SpecError
from twinstream.spec.decode.formats.registry import Body, Registry, framed, text_of
from twinstream.spec.file.source import file_bytes

_KEY = "decode.schema_file"
_SHORT = 100
"""Too short to be nested deeper than 128: each message, list or map takes at least one byte."""
_WELL_KNOWN = {
    "google/protobuf/": "",
    "google/type/": "",
    "confluent/": "confluent_kafka.schema_registry.",
}
"""Files that writers do not hand on, and where Python has them; those of ``google/type`` may be missing."""
Convert = Callable[[Any], Any]


def from_descriptors(path: Path, name: str) -> Body:
    """The decoder for a message of a descriptor set. Raises SpecError if the file has no such message."""
    if path.suffix == ".proto":
        command = f"protoc --include_imports -o {path.with_suffix('.desc').name} {path.name}"
        problem = f"is the source of a schema; write its descriptor set with `{command}`, and name that here"
        raise SpecError(str(path), None, _KEY, problem)
    try:
        files = FileDescriptorSet.FromString(file_bytes(path, _KEY)).file
        pool = pool_of(files, "protoc has --include_imports")
    except (MalformedError, TypeError) as error:
        raise SpecError(str(path), None, _KEY, f"is not a descriptor set of protoc: {error}") from None
    try:
        return body_of(pool.FindMessageTypeByName(name))
    except KeyError:
        known = ", ".join(sorted(f"`{message}`" for message in _messages(files))) or "none"
        problem = f"`{name}` is not in {path}; its messages are {known}"
        raise SpecError(str(path), None, "decode.message", problem) from None


def registered_messages(url: str) -> Body:
    """The decoder for records whose schemas are in a registry."""
    registry = Registry(url)

    def load(number: int) -> Body:
        files = list(_from_registry(registry, registry.schema(number, "serialized"), "default"))
        try:
            pool = pool_of(files, "googleapis-common-protos has google/type")
        except TypeError as error:
            raise DecodeError(f"its schema {number} is incomplete: {error}") from None
        return _indexed(lambda name: body_of(pool.FindMessageTypeByName(name)), files[-1], number)

    return framed(load)


def _from_registry(registry: Registry, schema: Any, name: str) -> Iterator[FileDescriptorProto]:
    """The files that a schema refers to, followed by its own file under a name."""
    for reference in schema.references or ():
        found = registry.version(reference.subject, reference.version, "serialized")
        yield from _from_registry(registry, found, reference.name)
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text_of(schema, "PROTOBUF"), validate=True))
    except (MalformedError, binascii.Error):
        problem = "does not hand out Protobuf schemas in the form `serialized`, as that of Confluent does"
        raise SourceError(f"the schema registry {registry.name} {problem}") from None
    file.name = name
    yield file


def _indexed(body_of: Callable[[str], Body], file: FileDescriptorProto, number: int) -> Body:
    """The decoder of the bytes after a frame: the path of the message's type in its file, and the message."""
    bodies: dict[tuple[int, ...], Body] = {}

    def decode(record: bytes) -> Any:
        path, start = _path(record)
        if path not in bodies:
            bodies[path] = body_of(_name_at(file, path, number))
        return bodies[path](record[start:])

    return decode


def _path(record: bytes) -> tuple[tuple[int, ...], int]:
    """The indexes at the beginning of a framed message, and where they end. No index means the first type."""
    count, at = _whole(record, 0)
    indexes = []
    for _ in range(count):
        index, at = _whole(record, at)
        indexes.append(index)
    return tuple(indexes) or (0,), at


def _whole(record: bytes, at: int) -> tuple[int, int]:
    """A zigzag number of at most 32 bits, and where it ends."""
    number = 0
    for place in range(5):
        byte = record[at + place] if at + place < len(record) else 0x80
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at + place + 1
    raise DecodeError("ends within the frame that says which message it is")


def _name_at(file: FileDescriptorProto, path: tuple[int, ...], number: int) -> str:
    names, types = [file.package] if file.package else [], file.message_type
    for index in path:
        if not 0 <= index < len(types):
            raise DecodeError(f"its schema {number} has no message at {list(path)}")
        names.append(types[index].name)
        types = types[index].nested_type
    return ".".join(names)


def pool_of(files: Iterable[FileDescriptorProto], advice: str = "") -> DescriptorPool:
    """The types of some files and of those that they import.

    Raises TypeError if one is missing, with advice.
    """
    pool, known, added = DescriptorPool(), {file.name: file for file in files}, set[str]()

    def add(name: str) -> None:
        if name in added:
            return
        added.add(name)
        file = known.get(name) or _well_known(name, advice)
        for imported in file.dependency:
            add(imported)
        pool.Add(file)

    for name in known:
        add(name)
    return pool


def _well_known(name: str, advice: str) -> FileDescriptorProto:
    """A file that comes with every compiler or serializer, and so is often absent from a descriptor set."""
    file = FileDescriptorProto()
    try:
        package = next(package for start, package in _WELL_KNOWN.items() if name.startswith(start))
        module = import_module(package + name.removesuffix(".proto").replace("/", ".") + "_pb2")
        module.DESCRIPTOR.CopyToProto(file)
    except (StopIteration, ImportError):
        raise TypeError(f"it imports {name}, which is not in it ({advice})") from None
    return file


def _messages(files: Iterable[FileDescriptorProto]) -> Iterator[str]:
    def below(prefix: str, types: Iterable[DescriptorProto]) -> Iterator[str]:
        for message in types:
            if not message.options.map_entry:
                yield prefix + message.name
                yield from below(f"{prefix}{message.name}.", message.nested_type)

    for file in files:
        yield from below(f"{file.package}." if file.package else "", file.message_type)


# -- messages ----------------------------------------------------------------------------------------------


def body_of(descriptor: Descriptor) -> Body:
    """The decoder of one message."""
    make, convert = GetMessageClass(descriptor), _Converter()

    def decode(record: bytes) -> Any:
        message = make()
        try:
            message.ParseFromString(record)
            if not message.IsInitialized():
                raise DecodeError(f"not a message {descriptor.full_name}: it lacks {_lacking(message)}")
            size = message.ByteSize()
            message.DiscardUnknownFields()
            value = convert.message(message)
        except UnicodeDecodeError:
            raise DecodeError(f"not a message {descriptor.full_name}: a text of it is not UTF-8") from None
        except MalformedError as error:
            raise DecodeError(f"not a message {descriptor.full_name}: {error}") from None
        if message.ByteSize() != size:
            problem = f"has a field that `{descriptor.full_name}`, or a message in it, does not have"
            raise DecodeError(f"{problem}; the schema must be the one that it was written with")
        if len(record) > _SHORT:
            check(value)
        return value

    return decode


def _lacking(message: Message) -> str:
    """What a message lacks. Protobuf's own search for it crashes at maps beside extensions."""
    fields = message.DESCRIPTOR.fields
    lacking = [field.name for field in fields if field.is_required and not message.HasField(field.name)]
    return f"the required {', '.join(lacking) or 'field of a message in it'}"


class _Converter:
    """Turns messages into plain values, with a plan for each type that is made on its first use."""

    def __init__(self) -> None:
        self._plans: dict[str, list[tuple[str, bool, Convert]]] = {}

    def message(self, message: Message) -> dict[str, Any]:
        """The fields that are set, and those that always have a value."""
        descriptor = message.DESCRIPTOR
        plan = self._plans.get(descriptor.full_name)
        if plan is None:
            plan = self._plans[descriptor.full_name] = [self._field(field) for field in descriptor.fields]
        value = {
            name: convert(getattr(message, name))
            for name, has_presence, convert in plan
            if not has_presence or message.HasField(name)
        }
        if descriptor.is_extendable:
            value |= self._extensions(message)
        return value

    def _extensions(self, message: Message) -> dict[str, Any]:
        """The extension fields, under the names that proto writes for them."""
        return {
            f"[{field.full_name}]": self._field(field)[2](value)
            for field, value in message.ListFields()
            if field.is_extension
        }

    def _field(self, field: Any) -> tuple[str, bool, Convert]:
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            member = self._one(entry.fields_by_name["value"])
            return field.name, False, lambda map_: {_key_text(key): member(map_[key]) for key in map_}
        one = self._one(field)
        if field.is_repeated:
            return field.name, False, lambda items: [one(item) for item in items]
        return field.name, field.has_presence, one

    def _one(self, field: FieldDescriptor) -> Convert:
        """The conversion of one value of a field."""
        if field.message_type is not None:
            return self.message
        if field.enum_type is not None:
            # Of several names of a number the first one counts, as in Protobuf's own JSON.
            names = {value.number: value.name for value in reversed(list(field.enum_type.values))}
            return lambda number: names.get(number, number)
        return _text if field.type == FieldDescriptor.TYPE_STRING else _same


def _same(value: Any) -> Any:
    return value


def _text(value: Any) -> Any:
    """A text, which proto2 allows to be any bytes."""
    if type(value) is not str:
        raise DecodeError("not a message of its schema: what stands where a text should be, is not UTF-8")
    return value


def _key_text(key: bool | int | str) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)
