"""The fast reader: from a record to its form with few calls.

`Codec.form` reads every record of every spec, through several calls. For a record that decodes without loss,
whose kind and lane `layout` can tell, one function does the same with fewer calls. It may decline any record
and leave it to `Codec.form`; its result is always that of `Codec.form`.

How a decoded record is known to be exact: orjson writes it back to the same bytes (`formats.jsontext`).

A form is made as a plain tuple in the shape of `Form`, at a fifth of the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from twinstream.core.events import Form
from twinstream.errors import DecodeError, RelationError
from twinstream.spec.codec.canonical import canonical_value
from twinstream.spec.codec.layout import BY_CONTENT, BY_ROUTE, TELLING, Kinds, PlacedKind, Route
from twinstream.spec.codec.reduction import Change
from twinstream.spec.decode.formats.jsontext import SHORT, lossless
from twinstream.spec.decode.records import TOMBSTONE


class _NoForm(Form):
    """False, so that `all` finds such a record in a batch at the speed of C."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


IGNORED = _NoForm(None, b"", "", b"")
"""Stands for an event of a kind that the spec leaves out, and for a record that is no event."""

RecordReader = Callable[[bytes | None], Form]

_loads, _dumps = orjson.loads, orjson.dumps
_KEYS = frozenset((str, int))
"""The types of keys that are their own lane; booleans, numbers with a point and others are not."""
_DECLINE = (
    *(orjson.JSONDecodeError, orjson.JSONEncodeError, KeyError, TypeError, AttributeError),
    *(DecodeError, RelationError),
)


class Way(NamedTuple):
    """The functions that read the records of a spec, for both fast readers.

    `route` gives the route of an event. `reduce` leaves only the compared part of a value; None if all of it
    is compared. `keeps` tells whether the content of a form is the record. `exactly` reads each record that a
    reader declines.
    """

    route: Route
    reduce: Change | None
    keeps: bool
    exactly: RecordReader


def reader_of(  # noqa: C901 - the hot loop
    kinds: Kinds, way: Way, decode: Callable[[bytes | None], Any] | None = None
) -> RecordReader:
    """The fast reader of records with a decoder, of plain JSON without one."""
    route, reduce, keeps, exactly = way
    kind_of, alone = _kind_of(kinds), None if kinds.member else _told(kinds.other)

    def read(record: Any) -> Any:  # noqa: C901 - the hot loop
        try:
            if decode is not None:
                value = decode(record)
                if value is TOMBSTONE:
                    return exactly(record)
            else:
                value = _loads(record)
                written = _dumps(value)
                if not ((written == record and len(record) <= SHORT) or lossless(record, written)):
                    return exactly(record)
            kind, key, lane = alone or kind_of(value)
            if reduce is not None:
                if kind is None:
                    return IGNORED  # A function of `any_of` must not see it.
                value = reduce(value)
            content = record if keeps else canonical_value(value)
            if key:
                lane = value[key]
                if type(lane) not in _KEYS:
                    return exactly(record)
            elif lane is BY_CONTENT:
                lane = content
            elif lane is BY_ROUTE:
                lane = route(kind, value, content)
            elif kind is None:
                return IGNORED
            return lane, content, kind, record
        except _DECLINE:
            return exactly(record)

    return read


def _kind_of(kinds: Kinds) -> Callable[[Any], Any]:
    """The kind of a value that one member decides. It raises one of `_DECLINE` if it cannot tell."""
    inside, member, other = kinds.inside, kinds.member, _told(kinds.other)
    by_value = {value: _told(kind) for value, kind in kinds.by_value.items()}

    def kind_of(value: Any) -> Any:
        told = (value["$value"] if inside else value).get(member)
        if type(told) not in TELLING:
            raise TypeError
        return by_value.get(told, other)

    return kind_of


def _told(kind: PlacedKind | None) -> tuple[Any, str, Any] | None:
    """A kind as a plain tuple: Python unpacks these several times as fast as named ones."""
    return None if kind is None else (kind.name, kind.key, kind.lane)
