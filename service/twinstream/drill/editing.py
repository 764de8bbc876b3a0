"""Changes one field of a record, so that its event becomes another one by that field alone.

A value is changed within its type by more than any rounding or tolerance can hide: a number is doubled and
incremented, a text gets another word. All other fields keep their meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from math import isfinite
from typing import Any

import msgpack

from twinstream.core.canonical import canonical
from twinstream.errors import DecodeError, SettingsError
from twinstream.spec.decode.formats import jsontext
from twinstream.spec.file.model import Decode
from twinstream.spec.file.paths import Path

WORD = "drill"
_LARGE = 1 << 62
_WRITTEN = ("json", "msgpack", "utf8", "bytes")


def check_writable(decode: Decode) -> None:
    """Raise SettingsError if values of a format can be read but not written."""
    if decode.format not in _WRITTEN:
        raise SettingsError(
            f"a field of a record in the format {decode.format} cannot be changed by a drill, which has no "
            "writer for it: take --kind drop, duplicate or reorder"
        )


def fields_of(decode: Decode, value: bytes) -> list[Path]:
    """The paths of the members that can be changed, the outermost first; a plain text has one."""
    if decode.format in ("utf8", "bytes"):
        return [()]
    return sorted(_leaves(_opened(decode, value), ()), key=len)


def _leaves(value: Any, path: Path) -> Iterator[Path]:
    if not isinstance(value, dict):
        yield path
        return
    for name, member in value.items():
        yield from _leaves(member, (*path, name))


def changed(decode: Decode, value: bytes, path: Path) -> bytes:
    """The value with a changed member at a path from `fields_of`."""
    if decode.format == "utf8":
        return value + f" {WORD}".encode()
    if decode.format == "bytes":
        return value + WORD.encode()
    whole = _with_other(_opened(decode, value), path)
    if decode.format == "json":
        return canonical(whole)
    packed: bytes = msgpack.packb(whole)
    return packed


def _with_other(value: Any, path: Path) -> Any:
    """A value with another member at a path."""
    if not path:
        return _other(value)
    return {**value, path[0]: _with_other(value[path[0]], path[1:])}


def _opened(decode: Decode, value: bytes) -> Any:
    if decode.format == "json":
        return jsontext.decode(value)
    try:
        return msgpack.unpackb(value, raw=False, timestamp=0)
    except ValueError as error:
        raise DecodeError(f"not MessagePack: {error}") from None


def _other(member: Any) -> Any:
    match member:
        case bool():
            return not member
        case int() if abs(member) >= _LARGE:
            return member // 2  # Twice as much may exceed the format's range.
        case int():
            return member + abs(member) + 1
        case Decimal():
            return member + member.copy_abs() + 1
        case float():
            return member + abs(member) + 1 if isfinite(member) else 0.0
        case str():
            return f"{member} {WORD}".lstrip()
        case bytes():
            return member + WORD.encode()
        case list():
            return [*member, WORD]
    return WORD
