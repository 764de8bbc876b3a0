"""Turns a divergence into plain data: sides by name, values, positions, the differing fields, a text.

The core knows only left and right events. Here they become outputs of the reference and the candidate, as
plain data from which everything else is made: the sentences (`twinstream.explain.sentences`), the picture
(`twinstream.explain.picture`), the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from hashlib import blake2b
from typing import Any

import orjson

from twinstream.core.accounting.halves import Divergence
from twinstream.core.diagnosis.findings import Finding
from twinstream.core.events import FORM, KIND, OFFSET, PARTITION, RECORD, TIMESTAMP_MS, Event, Side
from twinstream.explain.masking import Mask, plain
from twinstream.explain.sentences import ABSENCE, NAMES, Sight, brief, text_of
from twinstream.grouping.common import NO_MEMBERS, Members
from twinstream.grouping.difference import Changes, Difference, changes_of, short
from twinstream.spec.codec.codec import Codec
from twinstream.spec.codec.digests import WithheldRecord
from twinstream.spec.codec.reduction import differences
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import ABSENT, Path, parse_path, path_text, read
from twinstream.spec.lint.relations import scope_fields
from twinstream.spec.load import digest

__all__ = ["NAMES", "Explainer"]


class Explainer:
    """Turns divergences of one comparison into reports. `show` decides which values may be shown."""

    at_once = 10_000
    """How many divergences can reasonably have their events at hand at once."""

    def __init__(self, spec: Spec, codec: Codec, show: Mask) -> None:
        self._spec, self._digest, self._codec, self._show = spec, digest(spec), codec, show
        self._topics = {Side.LEFT: spec.reference.topic, Side.RIGHT: spec.candidate.topic}
        self._scopes = {kind: scope_fields(spec.order, kind) for kind in spec.compared_kinds}
        self._sight = Sight(self._value, self._order_fields, self._seen_fields)

    def at_hand(self, events: Iterable[tuple[Side, Event]]) -> AbstractContextManager[None]:  # noqa: ARG002
        """Within this context, the content of some events is available; records always are."""
        return nullcontext()

    def needs(self, divergence: Divergence) -> Iterable[tuple[Side, Event]]:  # noqa: ARG002
        """The events whose content must be at hand for a report."""
        return ()

    def lacks(self, events: Iterable[tuple[Side, Event]]) -> bool:  # noqa: ARG002
        """Whether a report made now would lack the content of one of these events."""
        return False

    def report(self, divergence: Divergence) -> dict[str, Any]:
        """The divergence as plain data: the shape of `examples` in ``check --json`` and of the HTTP API."""
        finding = divergence.finding
        is_change = finding.kind == "changed" and self._sight.sees(finding)
        fields = self._fields(finding) if is_change else {}
        identity = self._identity(finding.event) if is_change else {}
        return {
            "id": self._id(divergence),
            "kind": finding.kind,
            "scope": self._scope(finding.event),
            "identity": list(self._spec.named_by or ()),
            **{NAMES[side]: None if event is None else self._value(event) for side, event in finding.events},
            "positions": {NAMES[side]: self._position(side, event) for side, event in finding.events},
            "fields": fields,
            "witness": [
                {"side": NAMES[side], "position": self._position(side, event), "value": self._value(event)}
                for side, event in finding.witness
            ],
            "text": " ".join(
                [
                    text_of(divergence, self._spec.order, self._sight, fields, identity),
                    *self._judged(finding),
                ]
            ),
            "tainted": divergence.tainted,
        }

    def outline(self, divergence: Divergence) -> Difference:
        """The divergence as the groups see it; without its fields and its key where records are not kept.

        Complexity: decodes the records of the divergence, which takes most of the time.
        """
        finding, unread = divergence.finding, self.outline_unread(divergence)
        if self._spec.keep != "records" or not self._sight.sees(finding):
            return unread
        key = ", ".join(f"{field} {_bare(value)}" for field, value in self._scope(finding.event).items())
        values = self._compared(finding)
        is_change = finding.kind == "changed"
        changes = changes_of(self._told_differing(values)) if is_change else Changes()
        return unread._replace(changes=changes, key=short(key), members=self._members(values[0]))

    def outline_unread(self, divergence: Divergence) -> Difference:
        """The same without reading records: neither its key is known, nor the fields that changed."""
        finding, event = divergence.finding, divergence.finding.event
        return Difference(
            finding.kind,
            Changes(None) if finding.kind == "changed" else Changes(),
            event[FORM][KIND],
            None,
            event[PARTITION],
            event[OFFSET],
            event[TIMESTAMP_MS],
            partial(self._id, divergence),
        )

    def waiting(self, side: Side, event: Event) -> dict[str, Any]:
        """An unmatched event as plain data."""
        return {
            "side": NAMES[side],
            "position": self._position(side, event),
            "kind": event[FORM][KIND],
            "scope": self._scope(event),
            "value": self._value(event),
        }

    def _id(self, divergence: Divergence) -> str:
        """The id of a divergence: the same when it is found again, after a replay or with its other half.

        It contains nothing of values that may not be shown, not even keyed hashes: if the key is lost with
        the store, the id stays the same. The position alone names the event; without held records nothing
        else does, since they may be gone by then.
        """
        first, side = divergence.first, divergence.first.side
        values = self._codec.scope(first.event[FORM][RECORD]) if self._spec.keep == "records" else {}
        scope = {field: str(value) for field, value in values.items() if self._is_shown(field, value)}
        parts = [self._spec.name, self._digest, scope, NAMES[side], self._position(side, first.event)]
        return blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()

    def _position(self, side: Side, event: Event | None) -> dict[str, Any] | None:
        if event is None:
            return None
        return {"topic": self._topics[side], "partition": event[PARTITION], "offset": event[OFFSET]}

    # -- values that may be shown --------------------------------------------------------------------------

    def _is_shown(self, field: str, value: Any) -> bool:
        """Whether a value of a field may be shown as it is."""
        return bool(self._show(value, parse_path(field)) == plain(value))

    def _order_fields(self, event: Event) -> dict[str, Any]:
        """The fields that the order reads; none if the record is gone."""
        record = event[FORM][RECORD]
        return {} if isinstance(record, WithheldRecord) else self._codec.scope(record)

    def _value(self, event: Event) -> Any:
        record = event[FORM][RECORD]
        if isinstance(record, WithheldRecord):
            return record.decode()
        value = self._codec.decode(record)
        if not self._spec.whole:
            return self._show(value)
        beside = {name: part for name, part in value.items() if name != "$value"}
        return {"$value": self._show(value["$value"]), **self._show(beside)}

    def _scope(self, event: Event) -> dict[str, Any]:
        """The key of the part of the order that an event belongs to."""
        fields = self._order_fields(event)
        key = [field for field in self._scopes[event[FORM][KIND]] if field in fields]
        return {field: self._show(fields[field], parse_path(field)) for field in key}

    def _seen_fields(self, event: Event) -> dict[str, str]:
        """The fields that the order reads from an event and whose values may be shown, as texts."""
        fields = self._order_fields(event).items()
        return {field: brief(plain(value)) for field, value in fields if self._is_shown(field, value)}

    def _identity(self, event: Event) -> dict[str, Any]:
        """The identity of an event, as far as it may be shown."""
        value = self._codec.compared(event[FORM][RECORD])
        named = {field: read(value, self._spec.path_of(field)) for field in self._spec.named_by or ()}
        there = ((field, member) for field, member in named.items() if member is not ABSENT)
        return {field: plain(member) for field, member in there if self._is_shown(field, member)}

    def _fields(self, finding: Finding) -> dict[str, Any]:
        """The fields in which two events differ, with both values."""
        return {
            path_text(self._show.path(path)): {
                NAMES[side]: ABSENCE if member is ABSENT else self._show(member, path)
                for side, member in zip(Side, members, strict=True)
            }
            for path, members in self._differing(self._compared(finding))
        }

    def _compared(self, finding: Finding) -> tuple[Any, ...]:
        """The compared part of each event, with the same value in both where two count as the same."""
        records = [event[FORM][RECORD] for _, event in finding.events if event is not None]
        return self._codec.compared_pair(*records) if len(records) > 1 else (self._codec.compared(*records),)

    def _members(self, value: Any) -> Members:
        """The members of the compared part of an event, as far as they may be told."""
        inner = value.get("$value") if self._spec.whole else value
        return Members(inner, self._member_text) if isinstance(inner, dict) else NO_MEMBERS

    def _member_text(self, name: str, value: Any) -> str | None:
        return short(_bare(plain(value))) if self._show.shows((name,)) else None

    def _told_differing(self, values: tuple[Any, ...]) -> Iterator[tuple[str, tuple[Any, Any], bool]]:
        """The same as names, with the values as they are compared, and whether these may be shown."""
        for path, members in self._differing(values):
            yield path_text(self._show.path(path)), members, self._show.shows(path)

    def _differing(self, values: tuple[Any, ...]) -> Iterator[tuple[Path, tuple[Any, Any]]]:
        """The paths at which two events differ, with both values."""
        for path, members in differences(*values):
            yield self._in_value(path), members

    def _judged(self, finding: Finding) -> Iterator[str]:
        """A sentence for each value that a function of the user does not accept."""
        for side, event in finding.events:
            if event is not None and not isinstance(event[FORM][RECORD], WithheldRecord):
                for path in self._codec.unaccepted(event[FORM][RECORD]):
                    name = path_text(self._show.path(self._in_value(path)))
                    yield f"`{name}` of the {NAMES[side]} is none of its right values."

    def _in_value(self, path: Path) -> Path:
        """A path of what was decoded as one of the value, if it lies there."""
        return path[1:] if self._spec.whole and path[0] == "$value" else path


def _bare(value: Any) -> str:
    """The short text of a value, without quotes around a text."""
    return value if isinstance(value, str) else brief(value)
