"""The fast readers: from the bytes of a plain record to its form, in one function for each common shape.

`Codec.form` reads every record of every spec, through several calls. For specs without kinds whose fields
stand at the top, and records that decode without loss, one function does the same with nothing in between.
A fast reader may decline any record and leave it to `Codec.form`; what it returns is what that returns.

Why a decoded record is known to be exact: orjson writes it back to the same bytes, but for the spaces that
some writers put after separators. A duplicate member would be gone, a rounded number have other digits.

For simple members (texts, whole numbers, booleans, null) an equal length says the same: orjson writes each
in the fewest bytes, so a record with a member more than once would be longer.

A form is made as a plain tuple of the shape of `Form`, at a fifth of the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from twinstream.core.canonical import DEPTH_LIMIT
from twinstream.core.events import Form
from twinstream.spec.model import PerKey, Spec
from twinstream.spec.paths import parse_path

KIND = "event"
"""The kind of every event where the spec declares none."""

SIMPLE = frozenset((str, int, bool, type(None)))
"""The types of members whose canonical text is what orjson writes."""

Reader = Callable[[bytes | None], Form]
Twins = dict[bytes, Any]
"""Forms by their record; Any, since a plain tuple stands for a form."""
_loads, _dumps, _SORTED = orjson.loads, orjson.dumps, orjson.OPT_SORT_KEYS
_SHORT = 2 * DEPTH_LIMIT
"""Bytes that are too few to be nested too deep."""
_DECLINE = (orjson.JSONDecodeError, orjson.JSONEncodeError, KeyError, TypeError, AttributeError)


def lossless(record: bytes, written: bytes) -> bool:
    """Whether a record that decodes to what is written as `written` has lost nothing."""
    if written != record and written != record.replace(b'": ', b'":').replace(b", ", b","):
        return False
    return len(record) <= _SHORT or record.count(b"{") + record.count(b"[") <= DEPTH_LIMIT


def reader_of(spec: Spec, exactly: Reader, twins: Twins) -> Reader:
    """The fast reader of a spec, or `exactly` itself where the spec has no common shape.

    A fast reader calls `exactly` for each record that it declines. Where all of a record is compared, it
    leaves the form in `twins`, as `exactly` does.
    """
    key = _key_of(spec)
    dropped = [parse_path(field) for field in spec.equality.ignore]
    special = spec.kinds or key is None or spec.equality.compare_only is not None
    if special or any(len(path) > 1 for path in dropped):
        return exactly
    bag = spec.order == "unordered"
    if dropped:
        return _without([path[0] for path in dropped], key or "", exactly, bag=bag)
    return _bag(exactly, twins) if bag else _sequence(key or "", exactly, twins)


def _key_of(spec: Spec) -> str | None:
    """The one field of a keyed order, "" for an order without any, None for all others."""
    if not isinstance(spec.order, PerKey):
        return "" if isinstance(spec.order, str) else None
    paths = [parse_path(field) for field in spec.order.per_key]
    return paths[0][0] if len(paths) == len(paths[0]) == 1 else None


def _sequence(field: str, exactly: Reader, twins: Twins) -> Reader:
    def read(record: Any) -> Any:
        try:
            value = _loads(record)
            written = _dumps(value)
            if (written == record and len(record) <= _SHORT) or lossless(record, written):
                key = value[field] if field else ()
                if type(key) is str or type(key) is int or not field:
                    form = twins[record] = (key, record, KIND, record)
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
                form = twins[record] = (content, content, KIND, record)
                return form
        except _DECLINE:
            pass
        return exactly(record)

    return read


def _without(fields: list[str], key: str, exactly: Reader, *, bag: bool) -> Reader:
    def read(record: Any) -> Any:
        try:
            value = _loads(record)
            written = _dumps(value)
            if (written == record and len(record) <= _SHORT) or lossless(record, written):
                for field in fields:
                    value.pop(field, None)
                content = _content(value)
                lane = content if bag else value[key] if key else ()
                if content is not None and type(lane) in _LANES:
                    return lane, content, KIND, record
        except _DECLINE:
            pass
        return exactly(record)

    return read


_LANES = frozenset((str, int, bytes, tuple))
"""The types of lanes that need no canonical form: booleans, numbers with a point and the like do."""


def _content(value: Any) -> bytes | None:
    """The canonical form of an object of simple members, None for anything else."""
    if SIMPLE.issuperset(map(type, value.values())):
        return sorted_text(value)
    return None


def sorted_text(value: Any) -> bytes:
    """What orjson writes of a value with sorted members, in a block of its own size.

    orjson hands out blocks of 1 KiB cut short; to keep thousands of those costs 2 µs each.
    """
    return b"%b" % _dumps(value, option=_SORTED)
