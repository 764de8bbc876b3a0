"""Compiles the checks of a comparison file: their properties, and what each reads of a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import product
from math import isfinite
from typing import Any

from twinstream.core.checks.ascending import Ascending, AscendingInTables
from twinstream.core.checks.closed_windows import ClosedWindows
from twinstream.core.checks.key_partition import KeyPartition, key_hash
from twinstream.core.checks.once import Once
from twinstream.core.checks.property import BARRIER, Declared, EachRow, Lacking, Property
from twinstream.core.checks.settled_keys import GONE, SettledKeys
from twinstream.core.checks.watermark import NeverBack
from twinstream.core.events import CONTENT, KIND, Form, Side
from twinstream.spec.codec.canonical import canonical_value, is_number
from twinstream.spec.codec.codec import IGNORED, Codec
from twinstream.spec.codec.reduction import without_nulls
from twinstream.spec.codec.rows import DELETED
from twinstream.spec.decode.deletions import Deletion
from twinstream.spec.decode.times import UNITS, milliseconds
from twinstream.spec.file.checks import Check, Settled, Windows
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import ABSENT, Path, read

SIDES = {"reference": Side.LEFT, "candidate": Side.RIGHT}
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Fact = Callable[[Any, bytes | None, Form], Any]
"""What a check reads of the value, the key and the form of a record."""
Facts = Sequence[Fact | None]


def checks_of(spec: Spec) -> tuple[Declared, ...]:
    """The checks of a spec for the core."""
    return tuple(
        Declared(tuple(SIDES[name] for name in check.sides), partial(_property, spec, check))
        for check in spec.all_checks
    )


def _property(spec: Spec, check: Check) -> Property:
    if check.once is not None:
        return Once((check.horizon or timedelta(0)) // timedelta(milliseconds=1), check.keys)
    if check.ascending is not None:
        tables = spec.folding is not None and spec.folding.tells_batches and _is_by_row(spec, check)
        return (AscendingInTables if tables else Ascending)(check.ascending, check.keys)
    if check.key_partition is not None:
        return KeyPartition(check.partitions, check.keys)
    if check.closed_windows is not None:
        return ClosedWindows()
    if isinstance(check, Settled):
        return SettledKeys(check.keys)
    return EachRow() if check.watermark is None else NeverBack()


def _is_by_row(spec: Spec, check: Check) -> bool:
    """Whether `ascending` is about the keys of rows that replace each other, which a deletion ends."""
    return spec.folding is not None and sorted(check.per) == sorted(spec.folding.key)


class FactReader:
    """Reads the facts of records for the checks of one spec, with its codec's view of a record."""

    def __init__(self, spec: Spec, codec: Codec) -> None:
        self._codec = codec
        self._readers: dict[tuple[Side, str], Facts] = {}
        self._of_deletions: dict[tuple[Side, str], Facts] = {}
        for at in product(Side, spec.compared_kinds):
            about = [check if _is_about(spec, check, *at) else None for check in spec.all_checks]
            self._readers[at] = [
                None if check is None else _reader(spec, codec, check, at[1]) for check in about
            ]
            self._of_deletions[at] = [
                None if check is None else _reader_of_deletions(spec, codec, check) for check in about
            ]

    def facts(
        self,
        records: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        forms: Sequence[Form],
        side: Side,
    ) -> list[Sequence[Any]]:
        """The facts of some records of a side, one for each check; None for a check that is not about it.

        A record without a form has none. Complexity: the decoding of each record, and 1 to 4 µs a check.
        """
        found: list[Sequence[Any]] = []
        for place, form in enumerate(forms):
            record = records[place]
            if form is IGNORED or record is None:
                found.append(())
                continue
            value = self._codec.decode(self._codec.held(record, side))
            key = None if keys is None else keys[place]
            readers = self._of_deletions if isinstance(value, Deletion) else self._readers
            found.append(
                [None if read is None else read(value, key, form) for read in readers[side, form[KIND]]]
            )
        return found


def _is_about(spec: Spec, check: Check, side: Side, kind: str) -> bool:
    """Whether a check is about events of a kind of a side; barriers settle what `Settled` is about."""
    if check.watermark is not None or ("reference", "candidate")[side] not in check.sides:
        return False
    barrier = isinstance(check, Settled) and check.closed_windows is None and kind not in spec.row_kinds
    return barrier or check.kinds is None or kind in check.kinds


def _reader(spec: Spec, codec: Codec, check: Check, kind: str) -> Fact:
    """How a check reads an event of a kind that it is about."""
    nulls = spec.equality_of(kind).absent_is_null
    if check.once is not None:
        return _of_value(_digest(spec, codec, check.once, nulls=nulls))
    if check.ascending is not None:
        by_row = _is_by_row(spec, check)
        digest = _row_digest(codec) if by_row else _digest(spec, codec, check.per, nulls=nulls)
        return _of_value(_ordered(spec, check.ascending, digest))
    if check.key_partition is not None:
        return _placed(_digest(spec, codec, check.key_partition, nulls=nulls))
    if check.closed_windows is not None:
        return _of_value(_window_end(spec, check.closed_windows.end, UNITS[check.closed_windows.unit]))
    if check.windows is not None:
        return _of_value(_window(spec, check.windows))
    if isinstance(check, Settled):
        return _row(codec) if kind in spec.row_kinds else lambda _value, _key, _form: BARRIER
    return _of_value(_columns(spec, check))


def _reader_of_deletions(spec: Spec, codec: Codec, check: Check) -> Fact | None:
    """How a check reads a deletion, which has the fields of its key alone; None if it is not about any."""
    if check.ascending is not None and _is_by_row(spec, check):
        digest = _row_digest(codec)
        return lambda value, _key, _form: (digest(value), None)
    if isinstance(check, Settled):
        return _reader(spec, codec, check, spec.row_kinds[0])
    return None


def _row_digest(codec: Codec) -> Callable[[Any], bytes]:
    """The digest of the key of a row, where rows replace each other."""
    return lambda value: codec.digest(codec.key_of_row(value))


def _row(codec: Codec) -> Fact:
    """The digests of the key of a row, and of what is compared of it."""
    digest = _row_digest(codec)

    def row(value: Any, _key: bytes | None, form: Form) -> tuple[bytes, bytes]:
        content = form[CONTENT]
        is_gone = content.startswith(DELETED)
        return digest(value), GONE if is_gone else codec.digest(codec.canonical(content))

    return row


def _of_value(of: Callable[[Any], Any]) -> Fact:
    return lambda value, _key, _form: of(value)


def _digest(
    spec: Spec, codec: Codec, fields: Sequence[str], *, nulls: bool
) -> Callable[[Any], bytes | Lacking | None]:
    """The digest of the values of some fields, None without fields.

    `nulls`: absent members count as null, also inside these values.
    """
    paths = [(field, spec.path_of(field)) for field in fields]

    def digest(value: Any) -> bytes | Lacking | None:
        members = []
        for field, path in paths:
            member = read(value, path)
            if member is ABSENT and not nulls:
                return Lacking(f"has no `{field}`")
            members.append(None if member is ABSENT else without_nulls(member) if nulls else member)
        return codec.digest(canonical_value(members)) if members else None

    return digest


def _ordered(spec: Spec, field: str, digest: Callable[[Any], bytes | Lacking | None]) -> Callable[[Any], Any]:
    path = spec.path_of(field)

    def ordered(value: Any) -> Any:
        key, member = digest(value), read(value, path)
        if isinstance(key, Lacking):
            return key
        if isinstance(member, float) and isfinite(member):
            member = Decimal(repr(member))
        if isinstance(member, bool) or not isinstance(member, (int, Decimal, str)):
            return Lacking(f"has no number or text in `{field}`")
        return key, member

    return ordered


def _placed(digest: Callable[[Any], bytes | Lacking | None]) -> Fact:
    def placed(value: Any, key: bytes | None, _form: Form) -> Any:
        found = digest(value)
        return found if isinstance(found, Lacking) else (None if key is None else key_hash(key), found)

    return placed


def _window_end(spec: Spec, field: str, unit: Decimal) -> Callable[[Any], int | Lacking]:
    path = spec.path_of(field)

    def window_end(value: Any) -> int | Lacking:
        end_ms = milliseconds(read(value, path), unit)
        return Lacking(f"has no time in `{field}`") if end_ms is None else end_ms

    return window_end


def _window(spec: Spec, windows: Windows) -> Callable[[Any], str]:
    """The problem with the window of a value, an empty text if there is none. Exact, in microseconds."""
    unit = UNITS[windows.unit] * 1000
    ends = [(field, spec.path_of(field)) for field in (windows.start, windows.end)]
    length, offset = windows.length // _MICROSECOND, windows.offset // _MICROSECOND
    every = (windows.every or windows.length) // _MICROSECOND

    def window(value: Any) -> str:
        times = []
        for field, path in ends:
            time = _microseconds(read(value, path), unit)
            if time is None:
                return f"has no time in `{field}`"
            times.append(time)
        start, end = times
        if end - start != length:
            return f"has a window that is {'longer' if end - start > length else 'shorter'} than declared"
        return f"has a `{windows.start}` at which no window begins" if (start - offset) % every else ""

    return window


def _microseconds(value: Any, unit: Decimal) -> int | Decimal | None:
    """A time since 1970: a number of units of so many microseconds, or a text; None for anything else."""
    if milliseconds(value, Decimal(1)) is None:
        return None
    if isinstance(value, str):
        moment = datetime.fromisoformat(value)
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return (aware - _EPOCH) // _MICROSECOND
    return (Decimal(repr(value)) if isinstance(value, float) else Decimal(value)) * unit


def _columns(spec: Spec, check: Check) -> Callable[[Any], str]:
    """The problem with the fields of a value, an empty text if there is none."""
    not_null = [(field, spec.path_of(field)) for field in check.not_null or ()]
    typed: list[tuple[str, Path, str]] = [
        (field, spec.path_of(field), name) for field, name in (check.types or {}).items()
    ]

    def columns(value: Any) -> str:
        for field, path in not_null:
            member = read(value, path)
            if member is ABSENT or member is None:
                return f"has no `{field}`" if member is ABSENT else f"has null in `{field}`"
        for field, path, name in typed:
            member = read(value, path)
            if member is not ABSENT and member is not None and not _TYPES[name](member):
                return f"has no {name} in `{field}`"
        return ""

    return columns


def _is_integer(value: Any) -> bool:
    """Numbers are taken by their value, as in equality: 1.0 is a whole number."""
    if isinstance(value, float):
        return value.is_integer()
    return is_number(value) and (isinstance(value, int) or _is_whole(value))


def _is_whole(number: Decimal) -> bool:
    _, digits, exponent = number.as_tuple()
    return isinstance(exponent, int) and (exponent >= 0 or not any(digits[exponent:]))


_TYPES: dict[str, Callable[[Any], bool]] = {
    "integer": _is_integer,
    "number": is_number,
    "text": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, (list, tuple)),
    "object": lambda value: isinstance(value, dict),
    "bytes": lambda value: isinstance(value, bytes),
}
