"""Learns the shapes of records: msgspec structs that read and write their members.

The records of a topic have few shapes: the same members in the same order, some of them absent now and then.
So one struct reads all of them, with each member in its place, and any of them absent. It is learned from
records.

Where canonical forms are asked for, it takes only records whose compared members msgspec writes in canonical
form (`core.canonical`): texts, booleans, null, whole numbers of up to 64 bits, and numbers with a point that
are neither whole nor very large or small. Members that are not compared are then removed, and the rest is
written in the order of its names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Annotated, Any

import msgspec
import orjson
from msgspec import UNSET, Meta, UnsetType

MEMBERS = 64
SHAPES = 100
"""No struct is made for more members, or after this many shapes."""
_WHOLE = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_SCALAR: Any = str | int | float | bool | None | UnsetType
_WRITTEN: Any = str | _WHOLE | bool | None | UnsetType
_WRITTEN_NUMBER: Any = str | _WHOLE | float | bool | None | UnsetType
"""The types of a scalar; of one written in canonical form; and of one so written that may have a point."""
_NESTED = (dict, list)
_NEEDS_ESCAPING = frozenset(map(chr, range(32))) | set('"\\')

JsonDecoder = msgspec.json.Decoder[Any]
_write_in_order = msgspec.json.Encoder(order="sorted").encode_lines


class Shape:
    """The members of records in their order; which may have a point, and which are `nested`.

    `decoder` reads all of a record. With `dropped` members, which are not compared, it takes only records
    whose other members have a canonical form; with None the records are kept as they are. `number` counts the
    shapes learned before this one.
    """

    def __init__(
        self,
        dropped: Collection[str] | None,
        names: Sequence[str] = (),
        floats: Collection[str] = (),
        nested: Collection[str] = (),
        number: int = 0,
    ) -> None:
        self._dropped, self._number = dropped, number
        self._names, self._floats, self.nested = tuple(names), frozenset(floats), frozenset(nested)
        self._fields = {name: f"m{place}" for place, name in enumerate(names)}
        fields = [(field, self._type(name), UNSET) for name, field in self._fields.items()]
        rename = {field: name for name, field in self._fields.items()}
        self.decoder: JsonDecoder = msgspec.json.Decoder(
            msgspec.defstruct("Record", fields, rename=rename, omit_defaults=True, gc=False)
        )

    def _type(self, name: str) -> Any:
        if self._dropped is None or name in self._dropped:
            return Any if name in self.nested else _SCALAR
        return _WRITTEN_NUMBER if name in self._floats else _WRITTEN

    def contents(self, values: Sequence[Any]) -> list[bytes]:
        """The canonical forms of the compared members of some values, which lose all other members."""
        for name in self._dropped or ():
            if (field := self._fields.get(name)) is not None:
                for value in values:
                    setattr(value, field, UNSET)
        return _write_in_order(values)[:-1].split(b"\n")

    def column(self, name: str, values: Sequence[Any]) -> list[Any]:
        """One member of each of some decoded values, `UNSET` where it is absent."""
        field = self._fields.get(name)
        return [UNSET] * len(values) if field is None else list(map(attrgetter(field), values))

    def unusual(self, values: Sequence[Any]) -> Iterable[int]:
        """The indexes of values that are not written in their canonical form, where it is asked for."""
        for name in () if self._dropped is None else self._floats.difference(self._dropped):
            for place, member in enumerate(self.column(name, values)):
                if type(member) is float and (member.is_integer() or not 1e-3 <= abs(member) < 1e15):
                    yield place

    def learned(self, records: Iterable[Any]) -> Shape | None:
        """A shape extended by the members of some records, or this one; None if shapes are of no use."""
        names, floats, nested = list(self._names), set(self._floats), set(self.nested)
        for value in filter(None, map(_object, records)):
            _merge(names, list(value))
            floats |= {name for name, member in value.items() if type(member) is float}
            nested |= {name for name, member in value.items() if type(member) in _NESTED}
        if tuple(names) == self._names and floats == self._floats and nested == self.nested:
            return self
        if len(names) > MEMBERS or self._number == SHAPES or any(map(_NEEDS_ESCAPING.intersection, names)):
            return None
        return Shape(self._dropped, names, floats, nested, self._number + 1)


def _object(record: Any) -> dict[str, Any] | None:
    try:
        value = orjson.loads(record)
    except orjson.JSONDecodeError:
        return None
    return value if type(value) is dict else None


def _merge(names: list[str], more: list[str]) -> None:
    """Insert new members where they stand among the known ones; where orders contradict, the newer holds."""
    known = set(names)
    for place, name in enumerate(more):
        if name not in known:
            names.insert(names.index(more[place - 1]) + 1 if place else 0, name)
    if [name for name in names if name in set(more)] != more:
        names[:] = more
