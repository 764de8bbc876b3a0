"""The fast readers: from a record to its form with few calls.

`Codec.form` reads every record of every spec, through several calls. For a record that decodes without loss,
one function for each common shape does the same with fewer calls. A fast reader may decline any record and
leave it to `Codec.form`; its result is always that of `Codec.form`.

How a decoded record is known to be exact: orjson writes it back to the same bytes (`formats.jsontext`). For
simple members (texts, whole numbers, booleans, null) an equal length says the same: orjson writes each in the
fewest bytes, so a record with a member more than once would be longer.

A form is made as a plain tuple in the shape of `Form`, at a fifth of the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import orjson

from twinstream.core.events import Form
from twinstream.errors import DecodeError
from twinstream.spec.codec.canonical import SIMPLE, SORTED, canonical_value
from twinstream.spec.codec.layout import (
    BY_CONTENT,
    BY_ROUTE,
    KEYS,
    TELLING,
    Kinds,
    PlacedKind,
    Route,
    ignored_members,
)
from twinstream.spec.codec.reduction import Change
from twinstream.spec.decode.formats.jsontext import SHORT, lossless
from twinstream.spec.file.model import DEFAULT_KIND, Spec


class _NoForm(Form):
    """False, so that `all` finds such a record in a batch at the speed of C."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


IGNORED = _NoForm(None, b"", "", b"")
"""Stands for an event of a kind that the spec leaves out, and for a record that is no event."""

RecordReader = Callable[[bytes | None], Form]
DecodeRecord = Callable[[bytes | None], Any]
PlaceOf = Callable[[dict[str, Any], bytes], tuple[Hashable, str] | None]
Twins = dict[bytes, Any]
"""Forms by their record; typed Any, since a plain tuple stands for a form."""

_loads, _dumps = orjson.loads, orjson.dumps
_DECLINE = (orjson.JSONDecodeError, orjson.JSONEncodeError, KeyError, TypeError, AttributeError, DecodeError)


class Way(NamedTuple):
    """The functions that read the records of a spec, for the fast readers.

    `route` gives the route of an event. `reduce` leaves only the compared part of a value; None if all of it
    is compared. `keeps` tells whether the content of a form is the record. `exactly` reads each record that a
    reader declines. If `twins` is given, forms are stored there, as `exactly` does.
    """

    route: Route
    reduce: Change | None
    keeps: bool
    exactly: RecordReader
    twins: Twins | None


def reader_of(spec: Spec, kinds: Kinds, way: Way, decode: DecodeRecord | None = None) -> RecordReader:
    """The fast reader of records with a decoder, of plain JSON without one."""
    alone = None if spec.kinds or decode is not None else kinds.other
    if alone is not None and (alone.key or alone.lane is not BY_ROUTE):
        if way.keeps and way.twins is not None:
            return _sequence(alone, way.exactly, way.twins)
        if way.reduce is not None and (names := ignored_members(spec.equality)) is not None:
            return _without(names, alone, way.exactly)
    place = _placing(kinds, way.route)
    if decode is None and not way.keeps and way.reduce is None:
        is_bag = alone is not None and alone.lane is BY_CONTENT
        return _canonical(None if is_bag else place, way)
    return _read(decode, place, way)


# -- one kind ----------------------------------------------------------------------------------------------


def _sequence(kind: PlacedKind, exactly: RecordReader, twins: Twins) -> RecordReader:
    """Reads records of JSON whose content is the record itself."""
    name, field, lane = kind.name, kind.key, kind.lane

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


def _without(fields: list[str], kind: PlacedKind, exactly: RecordReader) -> RecordReader:
    """Reads records of JSON of which some members are not compared."""
    name, key, lane_of_all = kind.name, kind.key, kind.lane
    bag = lane_of_all is BY_CONTENT

    def read(record: Any) -> Any:
        try:
            value = _loads(record)
            written = _dumps(value)
            if (written == record and len(record) <= SHORT) or lossless(record, written):
                for field in fields:
                    value.pop(field, None)
                content = canonical_value(value)
                lane = content if bag else value[key] if key else lane_of_all
                if not key or type(lane) in KEYS:
                    return lane, content, name, record
        except _DECLINE:
            pass
        return exactly(record)

    return read


# -- any kinds ---------------------------------------------------------------------------------------------


def _placing(kinds: Kinds, route: Route) -> PlaceOf:
    """A function that gives the lane and the kind of a value, None for a value that is left out.

    It raises one of `_DECLINE` if it cannot. Python unpacks plain tuples several times as fast as named ones.
    """
    inside, member = kinds.inside, kinds.member
    by_value: dict[Any, Any] = {value: _told(kind) for value, kind in kinds.by_value.items()}
    other: Any = None if kinds.other is None else _told(kinds.other)

    def place(value: dict[str, Any], content: bytes) -> tuple[Hashable, str] | None:
        kind = other
        if member:
            told = (value["$value"] if inside else value).get(member)
            if type(told) not in TELLING:
                raise TypeError
            kind = by_value.get(told, other)
        name, key, lane = kind
        if name is None:
            return None
        if key:
            lane = value[key]
            if type(lane) not in KEYS:
                raise TypeError
        elif lane is BY_CONTENT:
            lane = content
        elif lane is BY_ROUTE:
            lane = route(name, value, content)
        return lane, name

    return place


def _told(kind: PlacedKind) -> tuple[str | None, str, Any]:
    return kind.name, kind.key, kind.lane


def _canonical(place: PlaceOf | None, way: Way) -> RecordReader:
    """Reads records of JSON whose content is their canonical form; a bag without `place`."""
    exactly = way.exactly
    twins: Twins = {} if way.twins is None else way.twins

    def read(record: Any) -> Any:
        try:
            value = _loads(record)
            simple = SIMPLE.issuperset(map(type, value.values()))
            content = b"%b" % _dumps(value, option=SORTED) if simple else canonical_value(value)
            if (simple and len(content) == len(record)) or lossless(record, _dumps(value)):
                lane: Any = content
                kind = DEFAULT_KIND
                if place is not None:
                    placed = place(value, content)
                    if placed is None:
                        return IGNORED
                    lane, kind = placed
                form = twins[record] = (lane, content, kind, record)
                return form
        except _DECLINE:
            pass
        return exactly(record)

    return read


def _read(decode: DecodeRecord | None, place: PlaceOf, way: Way) -> RecordReader:
    """Reads records of any format; of JSON without a decoder."""
    _, reduce, keeps, exactly, twins = way

    def read(record: Any) -> Any:
        try:
            if decode is not None:
                value = decode(record)
            else:
                value = _loads(record)
                if not lossless(record, _dumps(value)):
                    return exactly(record)
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
            return exactly(record)

    return read
