"""Reads an object of which one member may be invalid JSON, separately from the other members.

Kafka delivers records one by one, so an unreadable one is a record that is no event. In a line of a trace the
record is one of several members, and must not make the line unreadable: a member twice in it, NaN, half of a
surrogate pair.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from twinstream.errors import DecodeError
from twinstream.spec.codec.codec import decode

_VALUES = json.JSONDecoder()


class Unread(NamedTuple):
    """The text of a member that is not valid JSON, and the reason."""

    text: bytes
    problem: str


def entry_of(line: bytes, lenient: str) -> Any:
    """A JSON value as `decode` reads it, except for one member of an object, which may become `Unread`.

    Raises DecodeError.
    """
    try:
        return decode(line, around=1)
    except DecodeError as error:
        parts = _parts(line)
        if parts is None or lenient not in parts:
            raise
        entry = {name: decode(text) for name, text in parts.items() if name != lenient}
        return {**entry, lenient: Unread(parts[lenient], str(error))}


def _parts(line: bytes) -> dict[str, bytes] | None:
    """The texts of the members of an object, by name; None if it is no object, or has a name twice."""
    try:
        found = list(_members(line.decode("utf-8")))
    except (ValueError, RecursionError):
        return None
    parts = dict(found)
    return parts if len(parts) == len(found) else None


def _members(text: str) -> Iterator[tuple[str, bytes]]:
    """Each member as Python reads it, which accepts more than JSON. Raises ValueError for no object."""
    place, more = _after(text, 0, "{"), True
    while more:
        name, place = _VALUES.raw_decode(text, _skip(text, place))
        begin = _skip(text, _after(text, place, ":"))
        _, place = _VALUES.raw_decode(text, begin)
        yield str(name), text[begin:place].encode()
        place = _skip(text, place)
        more = text.startswith(",", place)
        place += more
    if _skip(text, _after(text, place, "}")) < len(text):
        raise ValueError("something follows the object")


def _after(text: str, place: int, mark: str) -> int:
    place = _skip(text, place)
    if not text.startswith(mark, place):
        raise ValueError(f"{mark} is missing")
    return place + 1


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\n\r":
        place += 1
    return place
