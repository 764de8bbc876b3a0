"""Reads from events what may be shown: values, the key of the order, the identity, the fields that changed.

Of each event it takes the record, through the codec of the comparison, and the mask decides. It is the only
part of an explanation that reads hidden values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from functools import cache
from typing import Any, NamedTuple

from twinstream.core.diagnosis.findings import Finding
from twinstream.core.events import FORM, KIND, RECORD, Event
from twinstream.explain.masking import HIDDEN, Mask, json_text, plain, readable
from twinstream.grouping.common import NO_MEMBERS, Members
from twinstream.grouping.difference import short
from twinstream.spec.codec.codec import Codec
from twinstream.spec.codec.digests import WithheldRecord
from twinstream.spec.codec.reduction import differences
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import ABSENT, Path, parse_path, path_text, read
from twinstream.spec.lint.relations import scope_fields

ABSENCE = "‹absent›"
"""Stands in a report for an absent member, which differs from null."""


class Change(NamedTuple):
    """A field that changed, with both values as they are compared; an absent one is `ABSENT`.

    The values may be shown only if `shown`. A hidden name of a member is a stand-in in `name`, and ``*`` in
    `place`.
    """

    name: str
    place: str
    before: Any
    after: Any
    shown: bool


class Named(NamedTuple):
    """Names an event: fields with values that may be shown, and how many more are hidden."""

    fields: tuple[tuple[str, Any], ...] = ()
    hidden: int = 0


class _Pair(NamedTuple):
    """The compared values of two events, and the paths at which they differ, with both members."""

    values: tuple[Any, Any]
    differing: tuple[tuple[Path, tuple[Any, Any]], ...]


def _records(finding: Finding) -> list[bytes]:
    return [event[FORM][RECORD] for _, event in finding.events if event is not None]


def is_withheld(event: Event) -> bool:
    """Whether the record of an event is not at hand."""
    return isinstance(event[FORM][RECORD], WithheldRecord)


def sees(finding: Finding) -> bool:
    """Whether the records of a finding's own events are at hand."""
    return not any(event and is_withheld(event) for _, event in finding.events)


class Visible:
    """What may be shown of the events of one comparison.

    Complexity: each question decodes a record; to one for a single divergence (`once`) only the first does.
    """

    def __init__(self, spec: Spec, codec: Codec, show: Mask) -> None:
        self._spec, self._codec, self._show = spec, codec, show
        self._keys = {kind: scope_fields(spec.order, kind) for kind in spec.compared_kinds}
        self.identity_fields: tuple[str, ...] = tuple(spec.named_by or ())
        self._opened, self._whole, self._pair = codec.opened, self._read_whole, self._read_pair

    def once(self) -> Visible:
        """The same for a single divergence: it reads each record once, and lives no longer."""
        one = copy(self)
        one._opened = cache(self._codec.opened)
        one._whole, one._pair = cache(one._read_whole), cache(one._read_pair)
        return one

    def _read_whole(self, record: bytes) -> Any:
        return self._codec.value_of(self._opened(record))

    def _read_pair(self, one: bytes, other: bytes) -> _Pair:
        values = self._codec.pair_of(self._opened(one), self._opened(other))
        return _Pair(values, tuple((self._in_value(path), both) for path, both in differences(*values)))

    def value(self, event: Event) -> Any:
        """The value of an event, with stand-ins for hidden members."""
        record = event[FORM][RECORD]
        if isinstance(record, WithheldRecord):
            return record.decode()
        value = self._whole(record)
        if not self._spec.whole:
            return self._show(value)
        beside = {name: part for name, part in value.items() if name != "$value"}
        return {"$value": self._show(value["$value"]), **self._show(beside)}

    def part(self, event: Event) -> tuple[Any, int]:
        """The part of this value that may be shown, and how many members may not; see `Mask.part`."""
        record = event[FORM][RECORD]
        if isinstance(record, WithheldRecord):
            return record.decode(), 0
        value = self._whole(record)
        if not self._spec.whole:
            return self._show.part(value)
        beside = {name: part for name, part in value.items() if name != "$value"}
        found = {"$value": self._show.part(value["$value"]), "": self._show.part(beside)}
        shown = {name: part for name, (part, _) in found.items() if part is not HIDDEN}
        hidden = sum(count for _, count in found.values())
        return ({**shown.pop("", {}), **shown} if shown else HIDDEN), hidden

    def shown_fields(self, event: Event) -> dict[str, Any]:
        """The compared fields of an event whose values may be shown."""
        places = ((self._in_value(path), member) for path, member in _leaves(self._compared(event)))
        return {self._open(path): readable(member) for path, member in places if self._show.shows(path)}

    # -- the order -----------------------------------------------------------------------------------------

    def key_fields(self, event: Event) -> tuple[str, ...]:
        """The fields of the key of the part of the order that an event belongs to."""
        return self._keys[event[FORM][KIND]]

    def key(self, event: Event) -> dict[str, Any]:
        """This key, with stand-ins for hidden values."""
        fields = self.order_fields(event)
        there = (field for field in self.key_fields(event) if field in fields)
        return {field: self._show(fields[field], parse_path(field)) for field in there}

    def order_fields(self, event: Event) -> Mapping[str, Any]:
        """The fields that the order reads, with their real values: to compare, not to show."""
        return {} if is_withheld(event) else self._codec.scope_of(self._opened(event[FORM][RECORD]))

    def shown_order_fields(self, event: Event) -> dict[str, Any]:
        """Those of them whose values may be shown."""
        fields = self.order_fields(event).items()
        return {field: readable(value) for field, value in fields if self.is_shown(field, value)}

    # -- identity and changes ------------------------------------------------------------------------------

    def named(self, event: Event, fields: Iterable[str]) -> Named:
        """The given fields of an event: those that may be shown, and how many may not."""
        compared = self._compared(event)
        read_ = ((field, read(compared, self._spec.path_of(field))) for field in fields)
        there = [(field, member) for field, member in read_ if member is not ABSENT]
        shown = tuple((field, readable(member)) for field, member in there if self.is_shown(field, member))
        return Named(shown, len(there) - len(shown))

    def compared(self, finding: Finding) -> tuple[Any, ...]:
        """The compared part of each event, with the same value in both where two count as the same."""
        records = _records(finding)
        return self._pair(*records).values if len(records) > 1 else (self._opened(*records).compared,)

    def changes(self, finding: Finding) -> Iterator[Change]:
        """The fields in which the two events of a change differ."""
        for path, members in self._pair(*_records(finding)).differing:
            name = path_text(self._show.path(path))
            yield Change(name, self._open(path), *members, self._show.shows(path))

    def masked_changes(self, finding: Finding) -> Iterator[tuple[str, tuple[Any, Any]]]:
        """The same names with both values as a report has them: with stand-ins for hidden and absent ones."""
        for path, members in self._pair(*_records(finding)).differing:
            one, other = (ABSENCE if member is ABSENT else self._show(member, path) for member in members)
            yield path_text(self._show.path(path)), (one, other)

    def members(self, finding: Finding) -> Members:
        """The members that all events of a finding share as they are compared, as far as they may be told."""
        value = self.compared(finding)[0]
        inner = value.get("$value") if self._spec.whole else value
        if not isinstance(inner, dict):
            return NO_MEMBERS
        if len(records := _records(finding)) > 1:
            changed = {self._in_value(path)[:1] for path, _ in self._pair(*records).differing}
            inner = {} if () in changed else {name: inner[name] for name in inner if (name,) not in changed}
        return Members(inner, self._member_text)

    def _member_text(self, name: str, value: Any) -> str | None:
        return short(bare(readable(value))) if self._show.shows((name,)) else None

    def _compared(self, event: Event) -> Any:
        return self._opened(event[FORM][RECORD]).compared

    def unaccepted(self, event: Event) -> Iterator[str]:
        """The names of the fields whose value a function of the user does not accept."""
        if not is_withheld(event):
            for path in self._codec.unaccepted(event[FORM][RECORD]):
                yield self._open(self._in_value(path))

    # -- paths ---------------------------------------------------------------------------------------------

    def is_shown(self, field: str, value: Any) -> bool:
        """Whether a value of a field may be shown as it is."""
        path = parse_path(field)
        return self._show.shows(path) or bool(self._show(value, path) == plain(value))

    def _open(self, path: Path) -> str:
        """The name of a field as a person reads it: hidden names in it are ``*``."""
        return path_text(self._show.open_path(path))

    def _in_value(self, path: Path) -> Path:
        """A path of what was decoded as one of the value, if it lies there."""
        return path[1:] if self._spec.whole and path[:1] == ("$value",) else path


def bare(value: Any) -> str:
    """The short text of a value, without quotes around a text."""
    return value if isinstance(value, str) else json_text(value)


def _leaves(value: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The members of a value that are no objects with members."""
    if isinstance(value, dict) and value:
        for name, member in value.items():
            yield from _leaves(member, (*at, name))
    else:
        yield at, value
