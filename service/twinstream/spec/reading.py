"""The fast readers: from the bytes of a plain JSON record to its form, in one function for each common shape.

`Codec.form` reads every record of every spec, through several calls. Where a record decodes without loss, one
function does the same with less in between. A fast reader may decline any record and leave it to
`Codec.form`; what it returns is what that returns.

Why a decoded record is known to be exact: orjson writes it back to the same bytes (`formats.jsontext`). For
simple members (texts, whole numbers, booleans, null) an equal length says the same: orjson writes each in the
fewest bytes, so a record with a member more than once would be longer.

Where kinds are declared, one member at the top tells them all: a table from its value to the kind. Only texts
and whole numbers are looked up in it, since Python takes True, 1 and 1.0 for one key.

A form is made as a plain tuple of the shape of `Form`, at a fifth of the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import orjson

from twinstream.core.events import Form
from twinstream.errors import DecodeError
from twinstream.spec.canonical import SIMPLE, canonical_value, sorted_text
from twinstream.spec.equality import Equality, SpecEquality
from twinstream.spec.formats.jsontext import SHORT, lossless
from twinstream.spec.model import DEFAULT_KIND, Spec
from twinstream.spec.paths import parse_path
from twinstream.spec.reduction import Change

IGNORED = Form(None, b"", "", b"")
"""Stands for an event of a kind that the spec leaves out of the comparison."""

Reader = Callable[[bytes | None], Form]
Route = Callable[[str, Any, bytes], Hashable]
Decode = Callable[[bytes | None], Any]
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
    """The member that tells the kinds, the kind for each of its values, and that for all others, if any.

    It stands at the top of the value: of what is decoded or, where that is a whole record, `inside` it.
    """

    inside: bool
    member: str
    by_value: dict[str | int, _Kind]
    other: _Kind | None


class Way(NamedTuple):
    """How the records of a spec are read where nothing is in the way of it.

    `route` places an event. `reduce` leaves what is compared of a value, None where that is all. `keeps`
    tells whether the content of a form is the record. `exactly` is what a reader calls for each record that
    it declines. Where `twins` is given, forms are left there, as `exactly` does.
    """

    route: Route
    reduce: Change | None
    keeps: bool
    exactly: Reader
    twins: Twins | None


def reader_of(spec: Spec, way: Way, decode: Decode) -> Reader:
    """The reader of records of any format, or `exactly` itself where the kinds are not told simply."""
    kinds = _kinds(spec, way.route)
    return way.exactly if kinds is None else _decoded(decode, _placing(kinds, way.route), way)


def json_reader_of(spec: Spec, way: Way) -> Reader:
    """The fast reader of plain JSON records, or `exactly` itself where the kinds are not told simply."""
    route, reduce, keeps, exactly, _ = way
    twins = {} if way.twins is None else way.twins
    kinds = _kinds(spec, route)
    if kinds is None:
        return exactly
    alone = None if spec.kinds else kinds.other
    if alone is not None and alone.lane is not _BY_ROUTE:
        if keeps:
            return _sequence(alone, exactly, twins)
        if reduce is None and alone.lane is _BY_CONTENT:
            return _bag(exactly, twins)
        if (names := _ignored(spec.equality)) is not None:
            return _without(names, alone, exactly)
    place = _placing(kinds, route)
    if keeps:
        return _placed(place, exactly, twins)
    return _compared(place, exactly, twins) if reduce is None else _reduced(reduce, place, exactly)


# -- what the spec says ------------------------------------------------------------------------------------


def _kinds(spec: Spec, route: Route) -> _Kinds | None:
    """How the kinds are told by one member, None where they are not."""
    if not spec.kinds:
        return _Kinds(False, "", {}, _kind(spec, DEFAULT_KIND, route))
    members = {spec.path_of(field) for kind in spec.kinds.values() for field in kind.where}
    values = [wanted for kind in spec.kinds.values() for wanted in kind.where.values()]
    scalars = [value for wanted in values for value in (wanted if isinstance(wanted, list) else [wanted])]
    if len(members) != 1 or not all(type(value) is str or type(value) is int for value in scalars):
        return None
    (path,) = members
    inside = path[0] == "$value" and spec.whole
    return _Kinds(inside, path[-1], *_table(spec, route)) if len(path) == 1 + inside else None


def _table(spec: Spec, route: Route) -> tuple[dict[Any, _Kind], _Kind | None]:
    """The kind for each value of the one member that tells them, and the kind for all others."""
    by_value: dict[Any, _Kind] = {}
    for name, kind in spec.kinds.items():
        made = _Kind(None, "", None) if kind.ignore else _kind(spec, name, route)
        if not kind.where:
            return by_value, made
        (wanted,) = kind.where.values()
        for value in wanted if isinstance(wanted, list) else [wanted]:
            by_value.setdefault(value, made)
    return by_value, None


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
        paths = [spec.path_of(field) for field in spec.order_fields]
    for path in paths:
        if len(path) == 1 and all(_is_key(path[0], value, name, route) for value in ("a", "b", 1, 2)):
            return _Kind(name, path[0], None)
    return _Kind(name, "", _BY_ROUTE)


def _is_key(member: str, value: str | int, kind: str, route: Route) -> bool:
    try:
        return route(kind, {member: value}, b"") == value
    except DecodeError:
        return False


def _ignored(equality: Equality) -> list[str] | None:
    """The members at the top that are not compared, None where that is not all that equality says."""
    paths = [parse_path(field) for field in equality.ignore]
    only = equality == SpecEquality(ignore=equality.ignore)
    return [path[0] for path in paths] if only and all(len(path) == 1 for path in paths) else None


def _placing(kinds: _Kinds, route: Route) -> Place:
    """What tells the lane and the kind of a value, None for one that is left out.

    It raises one of `_DECLINE` where it cannot tell.
    """
    inside, member, by_value, other = kinds

    def place(value: dict[str, Any], content: bytes) -> tuple[Hashable, str] | None:
        told = (value["$value"] if inside else value).get(member)
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
            simple = SIMPLE.issuperset(map(type, value.values()))
            content = sorted_text(value) if simple else canonical_value(value)
            if (simple and len(content) == len(record)) or lossless(record, _dumps(value)):
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
                content = canonical_value(value)
                lane = content if bag else value[key] if key else lane_of_all
                if not key or type(lane) in _KEYS:
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
            simple = SIMPLE.issuperset(map(type, value.values()))
            content = sorted_text(value) if simple else canonical_value(value)
            if (simple and len(content) == len(record)) or lossless(record, _dumps(value)):
                placed = place(value, content)
                if placed is None:
                    return IGNORED
                form = twins[record] = (placed[0], content, placed[1], record)
                return form
        except _DECLINE:
            pass
        return exactly(record)

    return read


def _reduced(reduce: Change, place: Place, exactly: Reader) -> Reader:
    """The content is the canonical form of what is compared."""

    def read(record: Any) -> Any:
        try:
            value = _loads(record)
            if type(value) is dict and lossless(record, _dumps(value)):
                value = reduce(value)
                content = canonical_value(value)
                placed = place(value, content)
                return IGNORED if placed is None else (placed[0], content, placed[1], record)
        except _DECLINE:
            pass
        return exactly(record)

    return read


def _decoded(decode: Decode, place: Place, way: Way) -> Reader:
    """Any format, read by its decoder."""
    _, reduce, keeps, exactly, twins = way

    def read(record: Any) -> Any:
        try:
            value = decode(record)
            if reduce is not None:
                value = reduce(value)
            content = record if keeps else canonical_value(value)
            placed = place(value, content)
            if placed is None:
                return IGNORED
            form = (placed[0], content, placed[1], record)
            if twins is not None:
                twins[record] = form
            return form
        except _DECLINE:
            pass
        return exactly(record)

    return read
