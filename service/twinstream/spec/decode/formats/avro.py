"""Avro: one datum without a container, read with the schema that it was written with.

The types: int, long, float and double are numbers, bytes and fixed are bytes, an enum is the text of its
symbol, a record and a map are objects, a union is the value alone. Of the logical types, a decimal is its
exact number and a uuid is a text. Dates, times and timestamps are the stored numbers, in the unit of their
type: nothing is lost, and an order by time can read them. Other logical types are read as their base type.

A float of 32 bits is the float of 64 bits of the same value. Defaults are not used: they are for readers with
another schema.

fastavro reads recursive types by recursion in C, which a deep enough record could crash. So for a schema that
refers to itself, a record of more than a few hundred bytes is read by fastavro's Python twin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
from fastavro._read_py import schemaless_reader as read_in_python
from fastavro.read import LOGICAL_READERS
from fastavro.schema import SchemaParseException, UnknownType

from twinstream.core.canonical import DEPTH_LIMIT, check, decimal_number
from twinstream.errors import DecodeError, SpecError
from twinstream.spec.decode.formats.registry import Body, Registry, framed, text_of
from twinstream.spec.file.source import file_bytes

_SAFE_BYTES = 500
"""Records up to this size cannot be nested so deep that C runs out of stack."""
_LARGEST_SCALE = 10_000
_LARGEST_DECIMAL = 4_000
"""In bytes: the time for a decimal grows with the square of its length."""
_ONLY = "datum"
_DECIMAL, _UUID = "twinstream-decimal", "twinstream-uuid"
_BOOLEAN, _MAP, _ENDLESS = "twinstream-boolean", "twinstream-map", "twinstream-endless"
_BOOLEANS = {b"\x00": False, b"\x01": True}
_MALFORMED = (EOFError, ValueError, LookupError, TypeError, OverflowError, MemoryError)


def from_file(path: Path) -> Body:
    """The decoder for a schema file. Raises SpecError if it is no Avro schema."""
    key = "decode.schema_file"
    try:
        return body_of(Schema(file_bytes(path, key).decode("utf-8")))
    except ValueError as error:
        raise SpecError(str(path), None, key, f"is not an Avro schema: {error}") from None


def registered(url: str) -> Body:
    """The decoder for records whose schemas are in a registry."""
    registry = Registry(url)

    def load(number: int) -> Body:
        try:
            return body_of(_from_registry(registry, registry.schema(number), {}))
        except ValueError as error:
            raise DecodeError(f"its schema {number} is not an Avro schema: {error}") from None

    return framed(load)


def _from_registry(registry: Registry, schema: Any, named: dict[str, Any]) -> Schema:
    """A schema with all schemas that it refers to, which come before it."""
    recursive = False
    for reference in schema.references or ():
        found = registry.version(reference.subject, reference.version)
        recursive |= _from_registry(registry, found, named).recursive
    parsed = Schema(text_of(schema, "AVRO"), named)
    parsed.recursive |= recursive
    return parsed


class Schema:
    """A schema, ready to read with. `named` are the types that it may refer to; its own are added to them.

    Raises ValueError if it is no schema.
    """

    def __init__(self, text: str, named: dict[str, Any] | None = None) -> None:
        self.recursive = False
        self.named = {} if named is None else named
        try:
            source = self._prepared(json.loads(text), ())
            self.parsed = fastavro.parse_schema(source, named_schemas=self.named, _force=True)
        except json.JSONDecodeError as error:
            raise ValueError(f"it is not JSON, {error}") from None
        except UnknownType as error:
            raise ValueError(f"it refers to `{error.name}`, which it does not define") from None
        except (SchemaParseException, LookupError, TypeError, AttributeError) as error:
            raise ValueError(str(error) or type(error).__name__) from None
        except RecursionError:
            raise ValueError("it is nested too deep") from None

    def _prepared(self, schema: Any, around: tuple[str, ...]) -> Any:
        """The schema with our own logical types and no others. `around` are the records that enclose it."""
        if isinstance(schema, list):
            return [self._prepared(branch, around) for branch in schema]
        if isinstance(schema, str):
            self.recursive |= schema.rpartition(".")[2] in around
            return schema
        if not isinstance(schema, dict):
            raise ValueError(f"{json.dumps(schema)} is no type")
        inside = (*around, str(schema["name"]).rpartition(".")[2]) if "fields" in schema else around
        return dict(self._members(schema, inside))

    def _members(self, schema: Mapping[str, Any], around: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        for name, member in schema.items():
            if name in {"type", "items", "values"}:
                yield name, self._prepared(member, around)
            elif name == "fields":
                yield name, [dict(self._members(field, around)) for field in member]
            elif name not in {"default", "logicalType"}:
                yield name, member
        if (logical := _logical(schema)) is not None:
            yield "logicalType", logical


def _logical(schema: Mapping[str, Any]) -> str | None:
    kind, logical = schema.get("type"), schema.get("logicalType")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        scale = schema.get("scale", 0)
        return _DECIMAL if type(scale) is int and 0 <= scale <= _LARGEST_SCALE else None
    return _UUID if logical == "uuid" and kind == "fixed" and schema.get("size") == 16 else None


def _decimal(data: Any, schema: dict[Any, Any] | None, _reader: Any) -> Any:
    """The exact number; fastavro's own reader rounds to the precision that the schema promises."""
    if len(data) > _LARGEST_DECIMAL:
        raise DecodeError(f"a decimal of {len(data)} bytes is too long; the limit is {_LARGEST_DECIMAL}")
    scale = schema.get("scale", 0) if schema else 0
    return decimal_number(int.from_bytes(data, "big", signed=True), -scale)


def _uuid(data: Any, _schema: Any, _reader: Any) -> str:
    return str(UUID(bytes=data))


def _boolean(data: Any, _schema: Any, _reader: Any) -> bool:
    return _BOOLEANS[data]


def _map(entries: Any, _schema: Any, _reader: Any) -> dict[str, Any]:
    members = {entry["key"]: entry["value"] for entry in entries}
    if len(members) < len(entries):
        raise DecodeError("a member stands twice in one map")
    return members


def _endless(_data: Any, _schema: Any, _reader: Any) -> Any:
    raise DecodeError("an array has items that take no bytes, so nothing bounds their number")


# The extension point that fastavro documents; the names are ours, so nobody else's schema is read by these.
LOGICAL_READERS[f"bytes-{_DECIMAL}"] = LOGICAL_READERS[f"fixed-{_DECIMAL}"] = _decimal
LOGICAL_READERS[f"fixed-{_UUID}"] = _uuid
LOGICAL_READERS[f"fixed-{_BOOLEAN}"] = _boolean
LOGICAL_READERS[f"array-{_MAP}"] = _map
LOGICAL_READERS[f"null-{_ENDLESS}"] = _endless


def _exact(parsed: Any, named: Mapping[str, Any]) -> Any:
    """A schema of the same bytes that fastavro reads exactly.

    It would count a negative index from the end, take any byte but 0 for true, and keep the last of equal
    keys. So branches and symbols are looked up by index, a boolean is a byte, a map an array of entries.
    """
    if isinstance(parsed, list):
        return {"type": "union", **{at: _exact(branch, named) for at, branch in enumerate(parsed)}}
    kind = parsed if isinstance(parsed, str) else parsed["type"]
    if kind == "boolean":
        return {"type": "fixed", "size": 1, "logicalType": _BOOLEAN}
    if kind == parsed:
        return parsed
    if kind == "enum":
        return {**parsed, "symbols": dict(enumerate(parsed["symbols"]))}
    if kind == "array":
        if _takes_no_bytes(parsed["items"], named):
            return {"type": "array", "items": {"type": "null", "logicalType": _ENDLESS}}
        return {"type": "array", "items": _exact(parsed["items"], named)}
    if kind == "map":
        entry = _record(("key", "string"), ("value", _exact(parsed["values"], named)))
        return {"type": "array", "items": entry, "logicalType": _MAP}
    if "fields" in parsed:
        _takes_no_bytes(parsed, named)
        return _record(*((field["name"], _exact(field["type"], named)) for field in parsed["fields"]))
    return parsed


def _takes_no_bytes(parsed: Any, named: Mapping[str, Any], around: tuple[str, ...] = ()) -> bool:
    """Whether a datum has no bytes. Raises ValueError for a record that contains itself before any byte."""
    if isinstance(parsed, list):
        return False
    kind = parsed if isinstance(parsed, str) else parsed["type"]
    if kind in named:
        return _takes_no_bytes(named[kind], named, around)
    if kind == parsed or "fields" not in parsed:
        return kind == "null" or (kind == "fixed" and parsed["size"] == 0)
    if parsed["name"] in around:
        raise ValueError(f"`{parsed['name']}` contains itself without end")
    inside = (*around, parsed["name"])
    return all(_takes_no_bytes(field["type"], named, inside) for field in parsed["fields"])


def _record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def _readable(schema: Schema, bare: bool) -> dict[str, Any]:
    """The schema for fastavro. A `bare` datum becomes the only field of a record, which adds no bytes.

    fastavro parses all but records again at each read, and knows no types of other subjects then.
    """
    exact = _exact(schema.parsed, schema.named)
    named = {name: _exact(parsed, schema.named) for name, parsed in schema.named.items()}
    marks = {"__fastavro_parsed": True, "__named_schemas": named}
    return (_record((_ONLY, exact)) if bare else exact) | marks


def body_of(schema: Schema) -> Body:
    """The decoder of one datum of a schema."""
    recursive = schema.recursive
    bare = not (isinstance(schema.parsed, dict) and "fields" in schema.parsed)
    parsed = _readable(schema, bare)

    def decode(record: bytes) -> Any:
        stream = BytesIO(record)
        in_python = recursive and len(record) > _SAFE_BYTES
        try:
            value: Any = (read_in_python if in_python else fastavro.schemaless_reader)(stream, parsed, None)
        except RecursionError:
            raise DecodeError(f"nested deeper than {DEPTH_LIMIT}") from None
        except UnicodeDecodeError:
            raise DecodeError("not a datum of its Avro schema: a text of it is not UTF-8") from None
        except _MALFORMED as error:
            raise DecodeError(f"not a datum of its Avro schema: {type(error).__name__}") from None
        if stream.read(1):
            raise DecodeError("not a datum of its Avro schema: more bytes follow it")
        if bare:
            value = value[_ONLY]
        if recursive:
            check(value)
        return value

    return decode
