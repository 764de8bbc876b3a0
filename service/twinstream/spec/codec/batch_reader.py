"""Reads whole batches of plain JSON records as columns: `record_reader` for many records at once.

A batch is decoded at once, into msgspec structs with the members met so far (`Shape`). A record is accepted
only if its reading is proven exact:

- The structs are encoded again, one a line. A line that equals the record (but for the spaces that some
  writers put after separators) proves that the record is an object with just these members, none of them
  twice, and that nothing was lost, as in `formats.jsontext`. Each line is checked by itself.
- Where canonical forms are asked for, the compared members are encoded once more, in the order of their
  names. `Shape` accepts only values that msgspec writes in canonical form.

The reader of single records takes all others. If those are most of a batch, the shape is learned from it; if
that does not help, batches are left alone for a while, longer each time.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import msgspec
from msgspec import UNSET

from twinstream.core.canonical import DEPTH_LIMIT
from twinstream.errors import DecodeError
from twinstream.spec.codec.layout import BY_CONTENT, BY_ROUTE, TELLING, Kinds, PlacedKind
from twinstream.spec.codec.record_reader import IGNORED, Way
from twinstream.spec.codec.structs import Shape
from twinstream.spec.decode.formats.jsontext import SHORT
from twinstream.spec.file.equality import SpecEquality
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import parse_path

FEW = 4
"""Smaller batches are read one by one, which costs as much."""
AT_ONCE = 250
"""Records read at once: the results of more would leave the caches before they are used."""
MOST_BYTES = 1 << 20
"""Larger batches are read one by one: else they stand in memory twice, and reading them is slow anyway."""
LONGEST_PAUSE = 1000
_FAILS = (msgspec.MsgspecError, UnicodeError, TypeError, RecursionError)
_SMALLEST = -(2**63)
_write_lines = msgspec.json.Encoder().encode_lines

Forms = list[Any]
"""A form for each record, as a plain tuple; None for a record left to other readers."""


def columns_of(spec: Spec, kinds: Kinds, way: Way) -> BatchReader | None:
    """The reader of batches for a spec; None if equality does more than leave out members at the top."""
    dropped = [parse_path(field) for field in spec.equality.ignore]
    if spec.equality != SpecEquality(ignore=spec.equality.ignore) or any(len(path) > 1 for path in dropped):
        return None
    ordering = {spec.path_of(field)[0] for field in spec.order_fields}
    return BatchReader(kinds, ordering, [path[0] for path in dropped], way)


class BatchReader:
    """Reads batches for one comparison, in its `way`.

    `ordering` are the members that the order reads, `dropped` those that equality leaves out.
    """

    def __init__(self, kinds: Kinds, ordering: Iterable[str], dropped: Collection[str], way: Way) -> None:
        self._kinds, self._ordering = kinds, tuple(ordering)
        self._route, self._keeps = way.route, way.keeps
        self._shape: Shape | None = Shape(None if way.keeps else dropped)
        self._pause = self._left_alone = 0

    def forms(self, records: Sequence[bytes | None]) -> Forms:
        """The forms of some records; None for each that it does not take.

        Complexity: about 0.3 µs a record, 0.4 where the canonical form is asked for.
        """
        if len(records) <= AT_ONCE:
            return self._part(records)
        parts = (records[start : start + AT_ONCE] for start in range(0, len(records), AT_ONCE))
        return list(chain.from_iterable(map(self._part, parts)))

    def _part(self, records: Sequence[bytes | None]) -> Forms:
        nothing: Forms = [None] * len(records)
        if self._shape is None:
            return nothing
        if self._left_alone:
            self._left_alone -= 1
            return nothing
        found = self._read(self._shape, records)
        if _fails(found):
            shape = self._shape.learned(records)
            if shape is not self._shape:
                self._shape = shape
                found = None if shape is None else self._read(shape, records)
        if _fails(found):
            self._left_alone = self._pause = min(2 * self._pause + 1, LONGEST_PAUSE)
        else:
            self._pause = 0
        return nothing if found is None else found

    def _read(self, shape: Shape, records: Sequence[Any]) -> Forms | None:
        try:
            if sum(map(len, records)) > MOST_BYTES:
                return None
            text = b"\n".join(records) + b"\n"
            values = shape.decoder.decode_lines(text)
            written = _write_lines(values)
        except _FAILS:
            return None
        if len(values) != len(records):
            return None
        contents = records if self._keeps else shape.contents(values)
        found = self._placed(shape, values, contents, records)
        bad = (*_lossy(text, written, len(records)), *(_deep(records) if shape.nested else ()))
        for place in (*bad, *shape.unusual(values)):
            found[place] = None
        return found

    def _placed(
        self, shape: Shape, values: list[Any], contents: Sequence[bytes], records: Sequence[bytes]
    ) -> Forms:
        member, other = self._kinds.member, self._kinds.other
        by_value: dict[Any, PlacedKind] = self._kinds.by_value
        told = [None if what is UNSET else what for what in shape.column(member, values)] if member else []
        kinds: list[PlacedKind | None] = [other]
        if member:
            kinds = [by_value.get(what, other) if type(what) in TELLING else None for what in told]
        different = {id(kind): kind for kind in kinds}
        if len(different) == 1:
            return self._of_one_kind(shape, kinds[0], values, contents, records)
        found: Forms = [None] * len(records)
        for one in different.values():
            places = [place for place, kind in enumerate(kinds) if kind is one]
            parts = ([column[place] for place in places] for column in (values, contents, records))
            for place, form in zip(places, self._of_one_kind(shape, one, *parts), strict=True):
                found[place] = form
        return found

    def _of_one_kind(
        self,
        shape: Shape,
        kind: PlacedKind | None,
        values: Sequence[Any],
        contents: Sequence[bytes],
        records: Sequence[bytes],
    ) -> Forms:
        if kind is None or kind.name is None:
            return [kind and IGNORED] * len(records)
        lanes: Iterable[Hashable]
        if kind.keys:
            lanes, told = _keys([shape.column(member, values) for member in kind.keys])
        elif kind.lane is BY_ROUTE:
            lanes, told = self._routed(kind.name, shape, values, contents), False
        else:
            lanes, told = contents if kind.lane is BY_CONTENT else repeat(kind.lane), True
        found: Forms = list(zip(lanes, contents, repeat(kind.name), records, strict=False))
        return found if told else [None if form[0] is UNSET else form for form in found]

    def _routed(
        self, kind: str, shape: Shape, values: Sequence[Any], contents: Sequence[bytes]
    ) -> Iterator[Hashable]:
        """The lane that the order gives to each event, `UNSET` if it gives none."""
        columns = [shape.column(name, values) for name in self._ordering]
        rows = zip(*columns, strict=True) if columns else repeat(())
        for row, content in zip(rows, contents, strict=False):
            members = zip(self._ordering, row, strict=True)
            try:
                yield self._route(
                    kind, {name: member for name, member in members if member is not UNSET}, content
                )
            except (DecodeError, TypeError, AttributeError):
                yield UNSET


def _keys(columns: list[list[Any]]) -> tuple[Iterable[Hashable], bool]:
    """The lanes made of some members, `UNSET` where a member is no key, and whether all are keys.

    A text or a whole number is its own lane; a larger one may have the text of an exponent (`routes.typed`).
    """
    told = True
    for place, column in enumerate(columns):
        types = set(map(type, column))
        if types != {str} and not (types == {int} and _SMALLEST <= min(column) <= max(column) < -_SMALLEST):
            told = False
            columns[place] = [member if _is_key(member) else UNSET for member in column]
    if len(columns) == 1:
        return columns[0], told
    rows: list[Any] = list(zip(*columns, strict=True))
    return rows if told else [UNSET if UNSET in row else row for row in rows], told


def _is_key(member: Any) -> bool:
    return type(member) is str or (type(member) is int and _SMALLEST <= member < -_SMALLEST)


def _fails(found: Forms | None) -> bool:
    return found is None or not (all(found) or found.count(None) <= len(found) // 2)


def _lossy(text: bytes, written: bytes, count: int) -> Iterable[int]:
    """The indexes of the records of a text, one a line, that read and written again are others."""
    if written == text:
        return ()
    compact = text.replace(b'": ', b'":').replace(b", ", b",")
    if written == compact:
        return ()
    lines = compact.split(b"\n")
    if len(lines) != count + 1:
        return range(count)
    pairs = enumerate(zip(lines, written.split(b"\n"), strict=True))
    return [place for place, (line, other) in pairs if line != other]


def _deep(records: Sequence[bytes]) -> Iterable[int]:
    """The indexes of records that may be nested too deep."""
    for place, record in enumerate(records):
        if len(record) > SHORT and record.count(b"{") + record.count(b"[") > DEPTH_LIMIT:
            yield place
