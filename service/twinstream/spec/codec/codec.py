"""Turns a record into the form that matching reads, by the spec's kinds, order and equality.

The hot path of the whole service. Why it is fast, and still exact:

- The decoder of the record's format reads it and loses nothing (`decode.formats`). The common shapes have
  readers of their own (`batch_reader`, `record_reader`), which decide nothing themselves.
- Where all of a record is compared and no index looks events up by equality, the content of a form is the
  record itself: byte-equal records are equal, and the canonical form is computed only if two differ.
- With a tolerance the content is the record, too: canonical forms do not say how far numbers differ.
- The other side usually brings the same bytes. A record with an unmatched twin has the form of the twin, and
  is not decoded at all (`Comparison.known`).
- Kind, route and identity are read from the compared part of a value. So equal events have equal ones.
- Where rows replace each other, each is read the exact way. The content of one that deletes is its key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, cast

from twinstream.core.events import Canonical, Exactly, Form, Side
from twinstream.errors import DecodeError, RelationError
from twinstream.spec.codec.any_of import AnyOf
from twinstream.spec.codec.batch_reader import FEW, BatchReader, columns_of
from twinstream.spec.codec.callables import Judging, find
from twinstream.spec.codec.canonical import canonical_value
from twinstream.spec.codec.layout import kinds_of
from twinstream.spec.codec.record_reader import IGNORED, RecordReader, Way, reader_of
from twinstream.spec.codec.reduction import (
    Change,
    Tolerances,
    close,
    reduction,
    tolerances,
    with_closer,
    with_same,
)
from twinstream.spec.codec.routes import Routing, condition, routing_of
from twinstream.spec.codec.rows import DELETED, RowKeys, spelled
from twinstream.spec.decode.deletions import Deletion
from twinstream.spec.decode.records import TOMBSTONE, Records
from twinstream.spec.file.equality import Equality
from twinstream.spec.file.model import DEFAULT_KIND, Spec
from twinstream.spec.file.paths import ABSENT, put, read
from twinstream.spec.file.paths import Path as FieldPath
from twinstream.spec.file.values import dotted

__all__ = ["IGNORED", "LATEST_LIMIT", "Codec", "RefusedRecord", "UnjudgedRecord"]

LATEST_LIMIT = 200_000
"""Keys of rows, and forms by digest, that are kept: limits the memory to those of a few batches."""
DIGEST_BYTES = 16
"""Two different values share a digest with a probability below n² / 2^129 among n of them."""
LATELY = 1_000
"""Decoded values kept for checks of tolerance: the records of one scope are asked for again and again."""


class RefusedRecord(NamedTuple):
    """A record that is not matched: its index, and why it is no event (None: an event that is left out)."""

    place: int
    reason: str | None


class UnjudgedRecord(RefusedRecord):
    """An event that a function of the user failed on, and why: nobody knows what it equals."""

    __slots__ = ()


class _Rules(NamedTuple):
    """The rules of one kind: the compared part of a value, and the fields that the order reads.

    `reduce` gives the canonical value, and `show` the same with those numbers and values as they came that a
    partner need not share. `null_for_absent` are the deciding fields, if an absent one counts as null.
    """

    reduce: Change | None
    show: Change
    allowed: Tolerances
    any_of: AnyOf | None
    order: list[tuple[str, FieldPath]]
    null_for_absent: list[FieldPath]


class Opened(NamedTuple):
    """A record that was read once: its rules, and the compared part of its value, which nobody may change."""

    record: bytes
    rules: _Rules
    compared: Any


class Codec:
    """Reads records for one spec.

    `order` is the order that the routes of its forms belong to. `canonical` maps contents of forms to
    canonical form, `identity` a record to the identity of its event. `close` says whether two equal records
    agree within every tolerance, and `exact` maps contents to canonical forms that keep all numbers; both are
    None if the spec has no tolerance. `equal_by_record`: all of a record is compared, and read in one way on
    both sides.

    Every method but `forms` takes records as forms hold them (`Form.record`).

    Raises SpecError where a schema file, or a function of the user, cannot be used.
    """

    def __init__(self, spec: Spec) -> None:
        self._records = Records(spec)
        routing = self._routing(spec)
        self.order = routing.order
        self._kinds = _kind_of(spec)
        judging = _judging(spec)
        self._rules = {kind: _rules_of(spec, kind, judging) for kind in spec.compared_kinds}
        self._route = routing.route
        self._told_apart = bool(spec.equality.per_kind)
        all_compared = all(rules.reduce is None for rules in self._rules.values())
        self.equal_by_record = all_compared and self._records.alike
        self._keeps_record = self.equal_by_record and not self._told_apart and not routing.by_content
        self._tolerant = any(rules.allowed for rules in self._rules.values())
        self._judges = any(rules.any_of is not None for rules in self._rules.values())
        raw = self._keeps_record or self._tolerant
        self.canonical = cast("Canonical", self._canonical_record if raw else bytes)
        self.exact = cast("Exactly | None", self._exact_record if self._tolerant else None)
        self.identity: Callable[[bytes], Hashable] | None = _identity_of(spec, self._value)
        self.close: Callable[[bytes, bytes], bool] | None = self._close if self._tolerant else None
        self._lately = lru_cache(LATELY)(self._tolerated)
        self._read: RecordReader = self._exactly
        self._columns: BatchReader | None = None
        self._rows = None if spec.folding is None else RowKeys(spec)
        self._row_keys: dict[bytes, bytes] = {}
        self._row_kind = spec.row_kinds[0] if spec.row_kinds else DEFAULT_KIND
        if not (self._told_apart or self._tolerant or self._rows):
            self._choose_readers(spec, routing)

    def _routing(self, spec: Spec) -> Routing:
        """The order, and the routes of events through it."""
        return routing_of(spec, self._records.decode)

    def _choose_readers(self, spec: Spec, routing: Routing) -> None:
        """Choose the readers of records that have no twin."""
        kinds = kinds_of(spec, routing.route)
        if kinds is None:
            return
        reduce = next((rules.reduce for rules in self._rules.values()), None)  # the same for all kinds
        way = Way(routing.route, reduce, self._keeps_record, self._exactly)
        if self._records.json:
            self._read, self._columns = reader_of(kinds, way), columns_of(spec, kinds, way)
        elif self._records.structured:
            self._read = reader_of(kinds, way, self._records.decode)

    def judge_behind(self, is_before: Callable[[Any], bool]) -> None:
        """Ask the functions of the user about no event whose compared value lies before the start."""
        for rules in self._rules.values():
            if rules.any_of is not None:
                rules.any_of.is_before = is_before

    def forms(
        self,
        records: Sequence[bytes | None],
        side: Side = Side.LEFT,
        known: Sequence[Form | None] | None = None,
    ) -> tuple[list[Form], list[RefusedRecord]]:
        """The forms of some records of a side, and the records that are not matched.

        Those `known` are not read again: a record has the form of its twin. The form of a refused record is
        `IGNORED`, so that forms and records stay in line. The side matters if the sides have different
        formats. Raises SourceError if a schema registry cannot be reached; then nothing has changed, and the
        same records can be given again.

        Complexity: about 0.4 µs for a plain record, several µs for one that must be read the exact way.
        """
        held = self._records.held(records, side)
        if known is None:
            found = self._read_all(held)
        elif all(known):
            return cast("list[Form]", known), []
        else:
            new = [record for record, form in zip(held, known, strict=True) if form is None]
            read = iter(self._read_all(new))
            found = [form or next(read) for form in known]
        return found, [] if all(found) else self._refused(held, found)

    def _read_all(self, records: Sequence[bytes | None]) -> list[Form]:
        """The forms of records, read as columns if possible."""
        read = self._read
        if self._columns is None or len(records) < FEW:
            return list(map(read, records))
        found = self._columns.forms(records)
        if all(found):
            return found
        return [read(record) if form is None else form for form, record in zip(found, records, strict=True)]

    def form_again(self, record: bytes) -> Form:
        """The form of a record as a form holds it, which had one before; takes about 1 µs for a plain one.

        Raises RelationError where a function of the user fails on it now.
        """
        form = self._read(record)
        return self.form(record) if form is IGNORED else form

    def _refused(self, records: Sequence[bytes | None], found: list[Form]) -> list[RefusedRecord]:
        """Why each record without a form has none: they are few, so they are read again to find out."""
        return [
            self._reason(place, record)
            for place, (record, form) in enumerate(zip(records, found, strict=True))
            if form is IGNORED
        ]

    def _reason(self, place: int, record: bytes | None) -> RefusedRecord:
        try:
            self.form(record)
        except DecodeError as error:
            return RefusedRecord(place, str(error))
        except RelationError as error:
            return UnjudgedRecord(place, str(error))
        return RefusedRecord(place, None)

    def _exactly(self, record: bytes | None) -> Form:
        """The form of a record that no fast reader takes, `IGNORED` if it has none."""
        try:
            return self.form(record)
        except (DecodeError, RelationError):
            return IGNORED

    def form(self, record: bytes | None) -> Form:
        """The form of one record, `IGNORED` for an event that is left out.

        Raises DecodeError, and RelationError where a function of the user fails on it.
        """
        value = self._records.decode(record)
        kind = None if value is TOMBSTONE else self._kind(value)
        if kind is None or record is None:
            return IGNORED
        rules = self._rules[kind]
        deleted = None
        if self._rows is not None and kind == self._row_kind:
            key = self._rows.key(value)
            self._rows.check(value)
            if len(self._row_keys) >= LATEST_LIMIT:
                self._row_keys.clear()
            self._row_keys[record] = key
            if self._deletes(kind, value):
                # No function of the user judges it: of what a deletion deletes only the key is known.
                value, deleted = rules.show(dict(value)), DELETED + key
        if rules.reduce is not None and deleted is None:
            value = rules.reduce(value)
        letter = deleted or (record if self._keeps_record else self._content(kind, value))
        content = record if self._tolerant and deleted is None else letter
        return Form(self._route(kind, self._routed(kind, value), letter), content, kind, record)

    def _routed(self, kind: str, value: Any) -> Any:
        """The value as its order reads it, in place: absent fields are null where they count as null."""
        for path in self._rules[kind].null_for_absent:
            put(value, path, None)
        if self._rows is not None and kind == self._row_kind:
            self._rows.spell(value)
        return value

    def _deletes(self, kind: str, value: Any) -> bool:
        """Whether an event deletes a row. Raises DecodeError where a field is missing."""
        return self._rows is not None and kind == self._row_kind and self._rows.deletes(value)

    def row_key(self, record: bytes) -> bytes:
        """The key of a row, where rows replace each other; it is known where the form was read lately."""
        assert self._rows is not None, "only such rows have keys"
        key = self._row_keys.pop(record, None)
        return self._rows.key(self._records.decode(record)) if key is None else key

    def key_of_row(self, value: Any) -> bytes:
        """The same of a row that is decoded already."""
        assert self._rows is not None, "only such rows have keys"
        return self._rows.key(value)

    def _kind(self, value: Any) -> str | None:
        """The kind of a value: a deletion is of the one kind whose rows can be deleted."""
        return self._row_kind if isinstance(value, Deletion) else self._kinds(value)

    def decode(self, record: bytes) -> Any:
        """The whole value of a record. Raises DecodeError and SourceError."""
        return self._records.decode(record)

    def held(self, record: bytes, side: Side) -> bytes:
        """A record of a side as Kafka has it, in the form that all methods but those for tokens read."""
        (held,) = self._records.held((record,), side)
        assert held is not None, "only a tombstone has none"
        return held

    def digest(self, content: bytes) -> bytes:
        """A digest of some bytes, to be kept in their place."""
        return blake2b(content, digest_size=DIGEST_BYTES).digest()

    def compared(self, record: bytes) -> Any:
        """The compared part of a record's value; what a partner need not share stays as it came."""
        return self.opened(record).compared

    def compared_pair(self, one: bytes, other: bytes) -> tuple[Any, Any]:
        """The compared parts of two records, with the same value in both where two count as the same."""
        return self.pair_of(self.opened(one), self.opened(other))

    def opened(self, record: bytes) -> Opened:
        """A record to be asked several things: what it amounts to is then read only once."""
        _, rules, value = self._opened(record)
        return Opened(record, rules, rules.show(value))

    def pair_of(self, one: Opened, other: Opened) -> tuple[Any, Any]:
        """See `compared_pair`."""
        twin = with_closer(one.compared, other.compared, one.rules.allowed)
        same = self._judged(one.record)[0] & self._judged(other.record)[0]
        absent_is_null = one.rules.any_of is not None and one.rules.any_of.absent_is_null
        return one.compared, with_same(one.compared, twin, same, absent_is_null=absent_is_null)

    def value_of(self, opened: Opened) -> Any:
        """The whole value of a record, which nobody may change."""
        return opened.compared if opened.rules.show is _all_of_it else self.decode(opened.record)

    def scope_of(self, opened: Opened) -> dict[str, Any]:
        """See `scope`."""
        if opened.rules.null_for_absent:
            return self.scope(opened.record)
        return _read_fields(opened.compared, opened.rules.order)

    def unaccepted(self, record: bytes) -> list[FieldPath]:
        """The fields of a record with a value that a function of the user does not accept."""
        return self._judged(record)[1]

    def _judged(self, record: bytes) -> tuple[set[FieldPath], list[FieldPath]]:
        """The fields of a record with a right value, and with another; none if a function fails now."""
        if not self._judges:
            return set(), []
        kind, rules, value = self._opened(record)
        if rules.any_of is None or self._deletes(kind, value):
            return set(), []
        try:
            right = rules.any_of.right(rules.show(value))
        except RelationError:
            return set(), []
        return right, [path for path in rules.any_of.paths if path not in right]

    def scope(self, record: bytes) -> dict[str, Any]:
        """The fields that the order reads from a record, with their values."""
        _, rules, whole = self._opened(record)
        return _read_fields(_read_by_order(rules, whole), rules.order)

    def _opened(self, record: bytes) -> tuple[str, _Rules, Any]:
        """The kind of an event, the rules of this kind, and the whole value."""
        value = self._records.decode(record)
        kind = self._kind(value)
        assert kind is not None, "an event that is left out has no form"
        return kind, self._rules[kind], value

    def _value(self, record: bytes) -> Any:
        """The value for order and identity."""
        _, rules, value = self._opened(record)
        return _read_by_order(rules, value)

    def _content(self, kind: str, value: Any) -> bytes:
        """The canonical form; with the kind if kinds are compared differently, so that no two kinds match."""
        content = canonical_value(value)
        return b"%b %b" % (kind.encode(), content) if self._told_apart else content

    def _canonical_record(self, record: bytes) -> bytes:
        if record.startswith(DELETED):
            return record
        kind, rules, value = self._opened(record)
        return self._content(kind, value if rules.reduce is None else rules.reduce(value))

    def _exact_record(self, record: bytes) -> bytes:
        """The same, with the numbers that have a tolerance as they came."""
        if record.startswith(DELETED):
            return record
        kind, rules, value = self._opened(record)
        return self._content(kind, rules.show(value))

    def _close(self, one: bytes, other: bytes) -> bool:
        """Whether two records with equal canonical forms agree within every tolerance. Exact."""
        allowed, value = self._lately(one)
        return not allowed or close(value, self._lately(other)[1], allowed)

    def _tolerated(self, record: bytes) -> tuple[Tolerances, Any]:
        """The tolerances of a record, and the compared part of its value."""
        _, rules, value = self._opened(record)
        return rules.allowed, rules.show(value)


def _judging(spec: Spec) -> Callable[[Equality], AnyOf | None]:
    """The judges of each equality of a file; those of all kinds share theirs. Raises SpecError."""
    made = {
        id(equality): AnyOf(
            [
                (spec.path_of(field), Judging(key, name, find(name, spec.name, key)))
                for field, name in equality.any_of.items()
                for key in [dotted((*at, "any_of", field))]
            ],
            inside=("$value",) if spec.whole else (),
            absent_is_null=equality.absent_is_null,
        )
        for at, equality in spec.equalities
        if equality.any_of
    }
    return lambda equality: made.get(id(equality))


def _rules_of(spec: Spec, kind: str, judging: Callable[[Equality], AnyOf | None]) -> _Rules:
    equality = spec.equality_of(kind)
    any_of = judging(equality)
    plain = reduction(spec, equality)
    mine = [decision for decision in spec.decisions if decision.what != "kind" and kind in decision.kinds]
    order = dict.fromkeys(decision.field for decision in mine if decision.what == "order")
    return _Rules(
        reduce=plain if any_of is None else _then(plain, any_of.marked),
        show=reduction(spec, equality, tolerant=False) or _all_of_it,
        allowed=tolerances(spec, equality),
        any_of=any_of,
        order=[(field, spec.path_of(field)) for field in order],
        null_for_absent=[spec.path_of(decision.field) for decision in mine if equality.absent_is_null],
    )


def _all_of_it(value: Any) -> Any:
    return value


def _then(first: Change | None, last: Change) -> Change:
    return last if first is None else lambda value: last(first(value))


def _kind_of(spec: Spec) -> Callable[[Any], str | None]:
    """The kind of a value, None for one that is left out. Raises DecodeError if no kind fits."""
    if not spec.kinds:
        return lambda _value: DEFAULT_KIND
    rules = [
        (None if kind.ignore else name, condition(spec, kind.where)) for name, kind in spec.kinds.items()
    ]

    def kind_of(value: Any) -> str | None:
        for name, fits in rules:
            if fits(value):
                return name
        raise DecodeError(f"fits none of the kinds {', '.join(spec.kinds)}")

    return kind_of


def _read_by_order(rules: _Rules, value: Any) -> Any:
    """The value for order and identity: the compared part, with null for absent if both are equal."""
    value = rules.show(value)
    for path in rules.null_for_absent:
        put(value, path, None)
    return value


def _read_fields(value: Any, fields: Iterable[tuple[str, FieldPath]]) -> dict[str, Any]:
    """The fields that a value has."""
    members = ((field, read(value, path)) for field, path in fields)
    return {field: member for field, member in members if member is not ABSENT}


def _identity_of(spec: Spec, value_of: Callable[[bytes], Any]) -> Callable[[bytes], Hashable] | None:
    """The identity of an event; one with none of its fields shares it with no other.

    Rows are named by their key, where the file names no identity: one of a single field is compared as text.
    """
    if spec.named_by is None:
        return None
    paths = [spec.path_of(field) for field in spec.named_by]
    as_text = spec.identity is None and len(paths) == 1

    def identity(record: bytes) -> Hashable:
        value = value_of(record)
        found = [read(value, path) for path in paths]
        if all(member is ABSENT for member in found):
            return object()
        if as_text:
            found = list(map(spelled, found))
        return canonical_value([[] if member is ABSENT else [member] for member in found])

    return identity
