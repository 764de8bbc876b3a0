"""Lines of JSON files as events: what `twinstream check` reads. `-` is standard input, `.gz` is unpacked."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast

import orjson

from twinstream.core.canonical import canonical
from twinstream.core.events import Side
from twinstream.errors import DecodeError, InputError
from twinstream.ports import Line
from twinstream.spec.codec import decode

SIDES = {"reference": Side.LEFT, "candidate": Side.RIGHT}
_MEMBERS = {"side", "value", "key", "headers", "partition", "offset", "timestamp_ms", "end"}
INTERLEAVINGS = ("alternate", "reference-first", "candidate-first")


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = Path(file).open("rb")  # noqa: SIM115 - closed below; only opening it may fail here
    except OSError as error:
        raise InputError(file, None, f"cannot be read: {error.strerror}") from None
    with stream:
        yield cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if file.endswith(".gz") else stream


def _numbered(file: str) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    with _opened(file) as stream:
        try:
            for number, line in enumerate(stream, 1):
                if stripped := line.strip():
                    yield number, stripped
        except (OSError, EOFError, zlib.error) as error:
            problem = getattr(error, "strerror", None) or error
            raise InputError(file, None, f"cannot be read: {problem}") from None


def read_side(file: str, side: Side) -> Iterator[Line]:
    """The events of one side, one value a line."""
    for offset, (number, record) in enumerate(_numbered(file)):
        yield Line(side, record, 0, offset, 0, file, number, number)


def read_pair(reference: str, candidate: str, interleave: str) -> Iterator[Line]:
    """Two files as one stream: in turn, or one after the other."""
    left, right = read_side(reference, Side.LEFT), read_side(candidate, Side.RIGHT)
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


def read_trace(file: str) -> Iterator[Line]:
    """A trace: each line says its side, and is an event or the end of that side."""
    offsets = dict.fromkeys(Side, 0)
    for number, text in _numbered(file):
        line = _trace_line(text, file, number, offsets)
        offsets[line.side] = line.offset + 1
        yield line


def _trace_line(text: bytes, file: str, number: int, offsets: dict[Side, int]) -> Line:
    try:
        entry = decode(text)
    except DecodeError as error:
        raise InputError(file, number, str(error)) from None
    side = SIDES.get(str(entry.get("side"))) if isinstance(entry, dict) else None
    if side is None:
        raise InputError(
            file, number, 'a line of a trace is {"side": "reference" or "candidate", "value": …}'
        )
    unknown = sorted(set(entry) - _MEMBERS)
    if unknown:
        raise InputError(
            file, number, f"{unknown[0]!r} is not a member of a trace line; known are {sorted(_MEMBERS)}"
        )
    if ("value" in entry) == (entry.get("end") is True):
        raise InputError(file, number, 'needs either "value" or "end": true')
    headers = entry.get("headers", {})
    if not isinstance(headers, dict) or not all(isinstance(text, str) for text in headers.values()):
        raise InputError(file, number, '"headers" must be an object of texts')
    if "value" not in entry:
        return Line(side, None, 0, offsets[side], 0, file, number, number)
    partition, offset, timestamp_ms = (
        _whole(entry, name, default, file, number)
        for name, default in (("partition", 0), ("offset", offsets[side]), ("timestamp_ms", 0))
    )
    return Line(side, _value_text(entry["value"]), partition, offset, timestamp_ms, file, number, number)


def _whole(entry: dict[str, Any], name: str, default: int, file: str, number: int) -> int:
    value = entry.get(name, default)
    if type(value) is not int or value < 0:
        raise InputError(file, number, f'"{name}" must be a whole number, 0 or more, but is {value!r}')
    return value


def _value_text(value: Any) -> bytes:
    """The value of a trace line as a text of its own, exact in its numbers."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return canonical(value)
