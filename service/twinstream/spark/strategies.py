"""Hypothesis strategies for the input of a pipeline, from a Spark schema.

The rows are what finds bugs in streaming code: keys come again and again, event times are out of order by a
bounded amount, fields are null where the schema allows it, and barriers stand in between. They shrink to few
rows, small values and the order of time.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from hypothesis import strategies as st
from pyspark.sql import types as t

from twinstream.errors import OutputError

START = dt.datetime(2024, 1, 1)  # noqa: DTZ001 - Spark's timestamps have no zone in Python
KEYS = 3
"""Different values of a key field: few, so that they meet."""
DAY_MS = 86_400_000
Row = dict[str, Any]


def rows(
    schema: t.StructType | str,
    *,
    keys: Sequence[str] = (),
    time: str | None = None,
    disorder: float = 0.0,
    markers: Sequence[Mapping[str, Any]] = (),
    max_size: int = 30,
) -> st.SearchStrategy[list[Row]]:
    """Lists of rows of a schema, as mappings from field to value.

    Args:
        schema: The schema of the input, or its DDL text.
        keys: The fields whose values repeat.
        time: The field with the event time, in a timestamp, or a number of milliseconds.
        disorder: How many seconds of event time a row may come too late.
        markers: Rows that stand in between, such as the end of a day: the fields that make them one. Their
            event time is that of the row before.
        max_size: The largest number of rows.

    Raises:
        OutputError: a field is not in the schema, or is of a type that cannot be made.
    """
    if isinstance(schema, str):  # Spark reads it, and a session is there only once the test runs
        text = schema
        return st.deferred(
            lambda: rows(
                _struct_of(text), keys=keys, time=time, disorder=disorder, markers=markers, max_size=max_size
            )
        )
    struct = schema
    for name in (*keys, *([time] if time else []), *(name for marker in markers for name in marker)):
        if name not in struct.names:
            raise OutputError(f"the schema has no field {name!r}; it has {', '.join(struct.names)}")
    fields = {field.name: _field(field, repeats=field.name in keys) for field in struct.fields}
    if time:
        # A step of time since the row before, and how late the row itself is, in milliseconds.
        late = int(disorder * 1000)
        fields[time] = st.tuples(st.integers(0, 5000), st.integers(0, late) if late else st.just(0))
    event = st.fixed_dictionaries(fields)
    made = [event.map(partial(_marked, marker)) for marker in markers]
    one = st.one_of(event, *made) if made else event
    listed = st.lists(one, max_size=max_size)
    return listed.map(lambda found: _timed(found, time, struct[time].dataType)) if time else listed


def _struct_of(text: str) -> t.StructType:
    struct = t._parse_datatype_string(text)
    assert isinstance(struct, t.StructType)
    return struct


def _marked(marker: Mapping[str, Any], row: Row) -> Row:
    return {**row, **marker}


def _timed(found: list[Row], time: str, kind: t.DataType) -> list[Row]:
    """The rows with their event times, each a step further than the one before."""
    now, timed = 0, []
    for row in found:
        if not isinstance(row[time], tuple):  # a marker that says its own time
            timed.append(row)
            continue
        step, late = row[time]
        now += step
        at = max(0, now - late)
        moment = START + dt.timedelta(milliseconds=at)
        timed.append({**row, time: moment if isinstance(kind, _TIMES) else at})
    return timed


def _field(field: t.StructField, *, repeats: bool) -> st.SearchStrategy[Any]:
    values = _values(field.dataType, field.name, repeats=repeats)
    return st.one_of(values, st.none()) if field.nullable and not repeats else values


def _values(kind: t.DataType, name: str, *, repeats: bool) -> st.SearchStrategy[Any]:
    if repeats:
        return _repeating(kind, name)
    for types, made in (*_SIMPLE, *_NESTED):
        if isinstance(kind, types):
            found: st.SearchStrategy[Any] = made(kind, name)
            return found
    raise OutputError(f"field {name!r}: no values can be made of type {kind.simpleString()}")


def _list(kind: t.ArrayType, name: str) -> st.SearchStrategy[Any]:
    return st.lists(_values(kind.elementType, name, repeats=False), max_size=3)


def _map(kind: t.MapType, name: str) -> st.SearchStrategy[Any]:
    values = _values(kind.valueType, name, repeats=False)
    return st.dictionaries(_repeating(kind.keyType, name), values, max_size=3)


def _struct(kind: t.StructType, _name: str) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({field.name: _field(field, repeats=False) for field in kind.fields})


def _decimal(kind: t.DecimalType, _name: str) -> st.SearchStrategy[Any]:
    return st.integers(-400, 400).map(lambda units: decimal.Decimal(units).scaleb(-kind.scale))


_WHOLE = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_TIMES = (t.TimestampType, t.TimestampNTZType)
_SIMPLE: tuple[tuple[Any, Any], ...] = (
    (t.BooleanType, lambda *_: st.booleans()),
    (_WHOLE, lambda *_: st.integers(-100, 100)),
    ((t.FloatType, t.DoubleType), lambda *_: st.integers(-400, 400).map(lambda quarters: quarters / 4)),
    (t.StringType, lambda *_: st.text("abcÄ ", max_size=3)),
    (t.BinaryType, lambda *_: st.binary(max_size=3).map(bytearray)),
    (t.DateType, lambda *_: st.integers(0, 30).map(lambda days: START.date() + dt.timedelta(days=days))),
    (_TIMES, lambda *_: st.integers(0, DAY_MS).map(lambda ms: START + dt.timedelta(milliseconds=ms))),
)
_NESTED = ((t.DecimalType, _decimal), (t.ArrayType, _list), (t.MapType, _map), (t.StructType, _struct))


def _repeating(kind: t.DataType, name: str) -> st.SearchStrategy[Any]:
    """A few values of a type."""
    if isinstance(kind, t.StringType):
        return st.sampled_from([f"{name}-{number}" for number in range(KEYS)])
    if isinstance(kind, _WHOLE):
        return st.integers(0, KEYS - 1)
    if isinstance(kind, t.BooleanType):
        return st.booleans()
    raise OutputError(f"field {name!r}: a key is a text or a whole number, not {kind.simpleString()}")
