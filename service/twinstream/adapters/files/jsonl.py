"""Reads recorded outputs as lines, for `twinstream check`. Files are opened by `lines`.

The content of a line depends on the format of the side's records:

- json: the value itself.
- utf8: a JSON text, whose characters are the value.
- all others: ``{"value_base64": "…"}``, the record as Kafka holds it. ``null`` is a record without a value, a
  tombstone; ``key``, ``headers``, ``partition``, ``offset`` and ``timestamp_ms`` may stand beside it.

A line of a trace is ``{"side": "reference", "value": …}`` with the same members beside it, or
``{"side": "reference", "end": true}``. ``value_base64`` may stand there instead of ``value`` in any format.

If a comparison names more of a record than its value, such as ``$key``, only a line that can hold it is
accepted: a line of a trace, or one with ``value_base64``.

Kafka delivers records one by one, so an unreadable one is a record that is no event. In a line of a trace the
record is one of several members, and must not make the line unreadable (a member twice in it, NaN, half of a
surrogate pair): so it is read separately from the other members (`entry_of`).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple

import orjson

from twinstream.adapters.files.lines import InputFile
from twinstream.core.canonical import canonical
from twinstream.core.events import Side
from twinstream.errors import DecodeError, InputError
from twinstream.ports import Line
from twinstream.spec.decode.deletions import row_or_deletion
from twinstream.spec.decode.formats.envelope import NO_TIMESTAMP, envelope
from twinstream.spec.decode.formats.jsontext import decode
from twinstream.spec.decode.headers import Headers
from twinstream.spec.file.model import Spec

INTERLEAVINGS = ("alternate", "reference-first", "candidate-first")
SIDES = {"reference": Side.LEFT, "candidate": Side.RIGHT}
_RECORD = ("value_base64", "key", "headers", "partition", "offset", "timestamp_ms")
_TRACE = ("side", "value", *_RECORD, "end")
_TRACE_SHAPE = 'a line of a trace is {"side": "reference" or "candidate", "value": …}'


_VALUES = json.JSONDecoder()
_MARK = re.compile(r"[ \t\n\r]*([{:,}])[ \t\n\r]*")
"""What stands between the members of an object, with the white space around it."""


class Unread(NamedTuple):
    """The text of a member that is not valid JSON, and the reason."""

    text: bytes
    problem: str


def entry_of(line: bytes) -> Any:
    """A JSON value as `decode` reads it; the member `value` of an object may become `Unread`.

    Raises DecodeError.
    """
    try:
        return decode(line, around=1)
    except DecodeError as error:
        parts = _parts(line)
        if parts is None or "value" not in parts:
            raise
        entry = {name: decode(text) for name, text in parts.items() if name != "value"}
        return {**entry, "value": Unread(parts["value"], str(error))}


def _parts(line: bytes) -> dict[str, bytes] | None:
    """The texts of the members of an object, by name; None if it is no object, or has a name twice.

    They are read as Python does it, which accepts more than JSON.
    """
    parts: dict[str, bytes] = {}
    try:
        text = line.decode("utf-8")
        mark, place = _mark(text, 0, "{")
        while mark != "}":
            name, place = _VALUES.raw_decode(text, place)
            _, begin = _mark(text, place, ":")
            _, end = _VALUES.raw_decode(text, begin)
            if str(name) in parts:
                return None
            parts[str(name)] = text[begin:end].encode()
            mark, place = _mark(text, end, ",}")
    except (ValueError, RecursionError):
        return None
    return parts if place == len(text) else None


def _mark(text: str, place: int, expected: str) -> tuple[str, int]:
    """The mark that stands at a place, and the place behind it. Raises ValueError for any other."""
    found = _MARK.match(text, place)
    if found is None or found[1] not in expected:
        raise ValueError(f"none of {expected} is there")
    return found[1], found.end()


class LineShape(NamedTuple):
    """The content of a side's lines: the format of its records, and whether lines hold whole records.

    `keyed`: a check needs the key of each record.
    `rows`: records without a value delete, and their keys count.
    """

    format: str = "json"
    whole: bool = False
    keyed: bool = False
    rows: bool = False


JSON: Mapping[Side, LineShape] = dict.fromkeys(Side, LineShape())


def shapes_of(spec: Spec) -> Mapping[Side, LineShape]:
    """The shapes of both sides of a comparison."""
    whole, keyed, rows = spec.whole, spec.reads_keys, spec.folding is not None
    return {side: LineShape(spec.decode_of(side).format, whole, keyed, rows) for side in Side}


class _Place(NamedTuple):
    """A line of a file, as errors name it."""

    file: str
    number: int

    def refuse(self, problem: str) -> InputError:
        return InputError(self.file, self.number, problem)


NextOffsets = defaultdict[tuple[Side, int], int]
"""The offset of the next line without one, by side and partition: one more than that of the line before."""


def _entries(file: InputFile, read: Callable[[bytes], Any] = decode) -> Iterator[tuple[_Place, Any]]:
    """What stands in each line. Raises InputError."""
    for number, text in file.lines():
        at = _Place(file.name, number)
        try:
            entry = read(text)
        except DecodeError as error:
            raise at.refuse(str(error)) from None
        yield at, entry


# -- one file for each side --------------------------------------------------------------------------------


def read_pair(
    reference: InputFile, candidate: InputFile, interleave: str, shapes: Mapping[Side, LineShape] = JSON
) -> Iterator[Line]:
    """Two files as one stream: in turn, or one after the other."""
    left = read_side(reference, Side.LEFT, shapes[Side.LEFT])
    right = read_side(candidate, Side.RIGHT, shapes[Side.RIGHT])
    return merge(left, right, interleave)


def read_side(file: InputFile, side: Side, shape: LineShape = JSON[Side.LEFT]) -> Iterator[Line]:
    """The events of one side."""
    if shape.format not in {"json", "utf8"}:
        yield from _read_records(file, side, shape)
        return
    check_values_suffice(shape, file.name)
    records = file.lines()
    if shape.format == "utf8":
        records = ((at.number, _record(entry, shape.format, at)) for at, entry in _entries(file))
    for offset, (number, record) in enumerate(records):
        yield Line(side, record, 0, offset, 0, file.name, number, number)


def check_values_suffice(shape: LineShape, name: str) -> None:
    """Raise InputError if the comparison needs more of a record than its value."""
    if shape.whole:
        raise InputError(
            name,
            None,
            "holds values alone, but the comparison names more of a record ($key, $timestamp, $partition or "
            "$headers); give a trace, whose lines may have key, headers, partition and timestamp_ms",
        )
    if shape.keyed:
        raise InputError(
            name,
            None,
            "holds values alone, but a check (`key_partition`) needs the key of each record; give a trace, "
            "whose lines may have key and partition, or leave the check out",
        )


def _read_records(file: InputFile, side: Side, shape: LineShape) -> Iterator[Line]:
    offsets = NextOffsets(int)
    for at, entry in _entries(file):
        if not isinstance(entry, dict) or "value_base64" not in entry:
            raise at.refuse(f'a line of records in the format {shape.format} is {{"value_base64": "…"}}')
        _check_members(entry, _RECORD, "a line", at)
        yield _line(entry, shape, side, offsets, at)


def merge(left: Iterator[Line], right: Iterator[Line], interleave: str) -> Iterator[Line]:
    """The lines of both sides as one stream, renumbered."""
    if interleave == "reference-first":
        merged: Iterator[Line] = chain(left, right)
    elif interleave == "candidate-first":
        merged = chain(right, left)
    else:
        merged = _alternate(left, right)
    for position, line in enumerate(merged, 1):
        yield line._replace(position=position)


def _alternate(left: Iterator[Line], right: Iterator[Line]) -> Iterator[Line]:
    turns = [left, right]
    while turns:
        for turn in tuple(turns):
            line = next(turn, None)
            if line is None:
                turns.remove(turn)
            else:
                yield line


# -- a trace -----------------------------------------------------------------------------------------------


def read_trace(file: InputFile, shapes: Mapping[Side, LineShape] = JSON) -> Iterator[Line]:
    """Reads a trace: each line names its side, and is an event or the end of that side."""
    offsets = NextOffsets(int)
    for at, entry in _entries(file, entry_of):
        side = SIDES.get(str(entry.get("side"))) if isinstance(entry, dict) else None
        if side is None:
            raise at.refuse(_TRACE_SHAPE)
        _check_members(entry, _TRACE, "a trace line", at)
        if ("value" in entry) + ("value_base64" in entry) + (entry.get("end") is True) != 1:
            raise at.refuse('needs exactly one of "value", "value_base64" and "end": true')
        if "end" in entry and entry["end"] is not True:
            raise at.refuse(f'"end" can only be true, but is {_shown(entry["end"])}')
        if "end" in entry:
            yield Line(side, None, 0, 0, 0, at.file, at.number, at.number)
        else:
            yield _line(entry, shapes[side], side, offsets, at)


# -- members -----------------------------------------------------------------------------------------------


def _line(entry: dict[str, Any], shape: LineShape, side: Side, offsets: NextOffsets, at: _Place) -> Line:
    partition = _whole(entry, "partition", 0, at, bits=31)
    offset = _whole(entry, "offset", offsets[side, partition], at)
    offsets[side, partition] = offset + 1
    timestamp_ms = _whole(entry, "timestamp_ms", 0, at)
    headers = _headers(entry, at)
    if "value" in entry:
        record: bytes | None = _record(entry["value"], shape.format, at)
    else:
        record = _bytes(entry["value_base64"], at)
    if shape.whole:
        stamp = timestamp_ms if "timestamp_ms" in entry else NO_TIMESTAMP
        record = envelope(record, _key(entry), headers, stamp, partition)
    if shape.rows:
        record = row_or_deletion(record, _key(entry))
    place = (partition, offset, timestamp_ms, at.file, at.number, at.number)
    key = _key(entry) if shape.keyed else None
    return Line(side, record, *place, tombstone=record is None, headers=headers, key=key)


def _check_members(entry: dict[str, Any], known: tuple[str, ...], what: str, at: _Place) -> None:
    unknown = sorted(set(entry) - set(known))
    if unknown:
        raise at.refuse(f"{unknown[0]!r} is not a member of {what}; known are {', '.join(known)}")


def _key(entry: dict[str, Any]) -> bytes | None:
    """The key of the record: a text is used as it is, any other value as its JSON text."""
    key = entry.get("key")
    if isinstance(key, str):
        return key.encode()
    return None if key is None else _value_text(key)


def _headers(entry: dict[str, Any], at: _Place) -> Headers:
    headers = entry.get("headers", {})
    if not isinstance(headers, dict) or not all(isinstance(text, str) for text in headers.values()):
        raise at.refuse(f'"headers" must be an object of texts, but is {_shown(headers)}')
    return [(name, text.encode()) for name, text in headers.items()]


def _whole(entry: dict[str, Any], name: str, default: int, at: _Place, bits: int = 63) -> int:
    """A number as Kafka has it, of so many bits."""
    value, largest = entry.get(name, default), (1 << bits) - 1
    if type(value) is Decimal and 0 <= value <= largest and value == value.to_integral_value():
        value = int(value)  # exact reading gives long numbers as decimals
    if type(value) is not int or not 0 <= value <= largest:
        raise at.refuse(f'"{name}" must be a whole number from 0 to 2^{bits}-1, but is {_shown(value)}')
    return value


def _record(value: Any, form: str, at: _Place) -> bytes:
    """The record for a value written in a line as JSON."""
    if form == "json":
        return value.text if isinstance(value, Unread) else _value_text(value)
    if form != "utf8":
        raise at.refuse(f'a record in the format {form} is written as "value_base64", not as "value"')
    if isinstance(value, Unread):
        raise at.refuse(value.problem)
    if not isinstance(value, str):
        raise at.refuse(f"a value in the format utf8 is a JSON text, but here it is {_shown(value)}")
    return value.encode()


def _value_text(value: Any) -> bytes:
    """The JSON text of a value that was read from JSON, with exact numbers."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return canonical(value)


def _bytes(text: Any, at: _Place) -> bytes | None:
    if text is None:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        problem = f'"value_base64" must be a text in base64 or null, but is {_shown(text)}'
        raise at.refuse(problem) from None


def _shown(value: Any) -> str:
    text = _value_text(value).decode()
    return text if len(text) <= 60 else f"{text[:59]}…"
