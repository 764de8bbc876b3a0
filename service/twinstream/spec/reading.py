"""The fast readers: from the bytes of a plain JSON record to its form, in one function for each common shape.

`Codec.form` reads every record of every spec, through several calls. Where the fields that matter stand at
the top of an object, and the record decodes without loss, one function does the same with less in between. A
fast reader may decline any record and leave it to `Codec.form`; what it returns is what that returns.

Why a decoded record is known to be exact: orjson writes it back to the same bytes (`formats.jsontext`). For
simple members (texts, whole numbers, booleans, null) an equal length says the same: orjson writes each in the
fewest bytes, so a record with a member more than once would be longer.

Where kinds are declared, one member tells them all: a table from its value to the kind. Only texts and whole
numbers are looked up in it, since Python takes True, 1 and 1.0 for one key.

A form is made as a plain tuple of the shape of `Form`, at a fifth of the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

import orjson

from twinstream.core.events import Form
from twinstream.errors import DecodeError
from twinstream.spec.canonical import SIMPLE, sorted_text
from twinstream.spec.equality import Equality
from twinstream.spec.formats.jsontext import SHORT, lossless
from twinstream.spec.model import DEFAULT_KIND, Spec
from twinstream.spec.paths import parse_path

IGNORED = Form(None, b"", "", b"")
"""Stands for an event of a kind that the spec leaves out of the comparison."""

Reader = Callable[[bytes | None], Form]
Route = Callable[[str, Any, bytes], Hashable]
Trim = Callable[[dict[str, Any]], dict[str, Any]]
Place = Callable[[dict[str, Any], bytes], tuple[Hashable, str] | None]
Twins = dict[bytes, Any]
"""Forms by their record; Any, since a plain tuple stands for a form."""

_loads, _dumps = orjson.loads, orjson.dumps
_DECLINE = (orjson.JSONDecodeError, orjson.JSONEncodeError, KeyError, TypeError, AttributeError, DecodeError)
_TELLING = frozenset((str, int, type(None)))
"""The types of a member that tells a kind; null, like an absent one, tells the kind that fits everything."""
_KEYS = frozenset((str, int))
"""The types of keys that are their own lane: booleans, numbers with a point and the like are not."""
_BY_CONTENT, _BY_ROUTE = object(), object()
"""Stand for the lane of a form: its content; what the order says of each event."""


class _Kind(NamedTuple):
    """How a kind is placed; `name` is None for one that is left out.

    The lane is the value of the member `key`; where that is empty, it is `lane`, or what that stands for.
    """

    name: str | None
    key: str
    lane: Any


class _Kinds(NamedTuple):
    """The member that tells the kinds, the kind for each of its values, and that for all others, if any."""

    member: str
    by_value: dict[str | int, _Kind]
    other: _Kind | None


def reader_of(spec: Spec, route: Route, exactly: Reader, twins: Twins, *, keeps: bool) -> Reader:
    """The fast reader of a spec, or `exactly` itself where the spec has no common shape.

    A fast reader calls `exactly` for each record that it declines. `keeps` tells whether the content of a
    form is the record. Where all of a record is compared, the form is left in `twins`, as `exactly` does.
    """
    kinds, equality = _kinds(spec, route), spec.equality
    if kinds is None or not _is_simple(equality):
        return exactly
    alone, trim = None if spec.kinds else kinds.other, _trim(equality)
    if alone is not None and alone.lane is not _BY_ROUTE:
        if keeps:
            return _sequence(alone, exactly, twins)
        if trim is None and alone.lane is _BY_CONTENT:
            return _bag(exactly, twins)
        if equality.ignore and not equality.absent_is_null:
            return _without(_names(equality.ignore), alone, exactly)
    place = _placing(kinds, route)
    if keeps:
        return _placed(place, exactly, twins)
    return _compared(place, exactly, twins) if trim is None else _trimmed(trim, place, exactly)


# -- what the spec says ------------------------------------------------------------------------------------


def _kinds(spec: Spec, route: Route) -> _Kinds | None:
    """How the kinds are told by one member, None where they are not."""
    if not spec.kinds:
        return _Kinds("", {}, _kind(spec, DEFAULT_KIND, route))
    members: set[tuple[str, ...]] = set()
    by_value: dict[str | int, _Kind] = {}
    for name, kind in spec.kinds.items():
        made = _Kind(None, "", None) if kind.ignore else _kind(spec, name, route)
        if not kind.where:
            return _Kinds(members.pop()[0], by_value, made) if _told(members) else None
        members |= {parse_path(field) for field in kind.where}
        for wanted in kind.where.values():
            for value in wanted if isinstance(wanted, list) else [wanted]:
                if type(value) is not str and type(value) is not int:
                    return None
                by_value.setdefault(value, made)
    return _Kinds(members.pop()[0], by_value, None) if _told(members) else None


def _told(members: set[tuple[str, ...]]) -> bool:
    return len(members) == 1 and all(len(path) == 1 for path in members)


def _kind(spec: Spec, name: str, route: Route) -> _Kind:
    """How a kind is placed, found by asking for the routes of a few events.

    A route raises DecodeError where a field that it reads is missing. So one for an event without fields
    reads none; and one for an event with one text, or one whole number, that is just this, reads that alone.
    """
    try:
        lanes = [route(name, {}, content) for content in (b"1", b"2")]
        if lanes[0] == lanes[1]:
            return _Kind(name, "", lanes[0])
        return _Kind(name, "", _BY_CONTENT if lanes == [b"1", b"2"] else _BY_ROUTE)
    except DecodeError:
        paths = [parse_path(field) for field in spec.order_fields]
    for path in paths:
        if len(path) == 1 and all(_is_key(path[0], value, name, route) for value in ("a", "b", 1, 2)):
            return _Kind(name, path[0], None)
    return _Kind(name, "", _BY_ROUTE)


def _is_key(member: str, value: str | int, kind: str, route: Route) -> bool:
    try:
        return route(kind, {member: value}, b"") == value
    except DecodeError:
        return False


def _is_simple(equality: Equality) -> bool:
    """Whether members at the top are left out, and nothing else is done."""
    named = [parse_path(field) for field in (*equality.ignore, *(equality.compare_only or ()))]
    changed = equality.quantum or equality.tolerance or equality.unordered or equality.sets
    return not changed and all(len(path) == 1 for path in named)


def _names(fields: Iterable[str]) -> list[str]:
    return [parse_path(field)[0] for field in fields]


def _trim(equality: Equality) -> Trim | None:
    """What leaves the members that are compared of a simple object; None where that is all of them."""
    dropped = [parse_path(field)[0] for field in equality.ignore]
    kept = (
        None if equality.compare_only is None else [parse_path(field)[0] for field in equality.compare_only]
    )
    nulls = equality.absent_is_null

    def trim(value: dict[str, Any]) -> dict[str, Any]:
        if kept is not None:
            value = {name: value[name] for name in kept if name in value}
        for name in dropped:
            value.pop(name, None)
        if nulls and None in value.values():
            return {name: member for name, member in value.items() if member is not None}
        return value

    return trim if nulls or dropped or kept is not None else None


def _placing(kinds: _Kinds, route: Route) -> Place:
    """What tells the lane and the kind of a value, None for one that is left out.

    It raises one of `_DECLINE` where it cannot tell.
    """
    member, by_value, other = kinds

    def place(value: dict[str, Any], content: bytes) -> tuple[Hashable, str] | None:
        told = value.get(member)
        if type(told) not in _TELLING:
            raise TypeError
        name, key, lane = by_value.get(told, other)  # type: ignore[arg-type, misc]
        if name is None:
            return None
        if key:
            lane = value[key]
            if type(lane) not in _KEYS:
                raise TypeError
        elif lane is _BY_CONTENT:
            lane = content
        elif lane is _BY_ROUTE:
            lane = route(name, value, content)
        return lane, name

    return place


# -- one kind ----------------------------------------------------------------------------------------------


def _sequence(kind: _Kind, exactly: Reader, twins: Twins) -> Reader:
    name, field, lane = kind

    def read(record: Any) -> Any:
        try:
            value = _loads(record)
            written = _dumps(value)
            if (written == record and len(record) <= SHORT) or lossless(record, written):
                key = value[field] if field else lane
                if not field or type(key) is str or type(key) is int:
                    form = twins[record] = (key, record, name, record)
                    return form
        except _DECLINE:
            pass
        return exactly(record)

    return read


def _bag(exactly: Reader, twins: Twins) -> Reader:
    def read(record: Any) -> Any:
        try:
            value = _loads(record)
            content = _content(value)
            if content is not None and (len(content) == len(record) or lossless(record, _dumps(value))):
                form = twins[record] = (content, content, DEFAULT_KIND, record)
                return form
        except _DECLINE:
            pass
        return exactly(record)

    return read


def _without(fields: list[str], kind: _Kind, exactly: Reader) -> Reader:
    name, key, lane_of_all = kind
    bag = lane_of_all is _BY_CONTENT

    def read(record: Any) -> Any:
        try:
            value = _loads(record)
            written = _dumps(value)
            if (written == record and len(record) <= SHORT) or lossless(record, written):
                for field in fields:
                    value.pop(field, None)
                content = _content(value)
                lane = content if bag else value[key] if key else lane_of_all
                if content is not None and (not key or type(lane) in _KEYS):
                    return lane, content, name, record
        except _DECLINE:
            pass
        return exactly(record)

    return read


# -- any kinds ---------------------------------------------------------------------------------------------


def _placed(place: Place, exactly: Reader, twins: Twins) -> Reader:
    """The content is the record."""

    def read(record: Any) -> Any:
        try:
            value = _loads(record)
            written = _dumps(value)
            if (written == record and len(record) <= SHORT) or lossless(record, written):
                placed = place(value, record)
                if placed is None:
                    return IGNORED
                form = twins[record] = (placed[0], record, placed[1], record)
                return form
        except _DECLINE:
            pass
        return exactly(record)

    return read


def _compared(place: Place, exactly: Reader, twins: Twins) -> Reader:
    """The content is the canonical form of all of the record."""

    def read(record: Any) -> Any:
        try:
            value = _loads(record)
            content = _content(value)
            if content is not None and (len(content) == len(record) or lossless(record, _dumps(value))):
                placed = place(value, content)
                if placed is None:
                    return IGNORED
                form = twins[record] = (placed[0], content, placed[1], record)
                return form
        except _DECLINE:
            pass
        return exactly(record)

    return read


def _trimmed(trim: Trim, place: Place, exactly: Reader) -> Reader:
    """The content is the canonical form of what is compared."""

    def read(record: Any) -> Any:
        try:
            value = _loads(record)
            if type(value) is dict and lossless(record, _dumps(value)):
                value = trim(value)
                content = _content(value)
                if content is not None:
                    placed = place(value, content)
                    return IGNORED if placed is None else (placed[0], content, placed[1], record)
        except _DECLINE:
            pass
        return exactly(record)

    return read


def _content(value: Any) -> bytes | None:
    """The canonical form of an object of simple members, None for anything else."""
    if SIMPLE.issuperset(map(type, value.values())):
        return sorted_text(value)
    return None
