"""Turns a divergence into plain data: sides by name, values, positions, the differing fields, a text.

The core knows only left and right events. Here they become outputs of the reference and the candidate, as
plain data from which everything else is made: the title (`twinstream.explain.title`), the sentences
(`twinstream.explain.sentences`), the picture (`twinstream.explain.picture`), the page.
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
from twinstream.core.events import (
    FORM,
    KIND,
    OFFSET,
    PARTITION,
    TIMESTAMP_MS,
    Event,
    Side,
    in_kafka,
    life_of,
)
from twinstream.explain.masking import Mask
from twinstream.explain.sentences import NAMES, text_of
from twinstream.explain.title import title
from twinstream.explain.visible import Visible, bare, sees
from twinstream.grouping.difference import Changes, Difference, changes_of, short
from twinstream.spec.codec.codec import Codec
from twinstream.spec.file.model import Spec
from twinstream.spec.load import digest

__all__ = ["NAMES", "Explainer"]


class Explainer:
    """Turns divergences of one comparison into reports. `show` decides which values may be shown."""

    at_once = 10_000
    """How many divergences can reasonably have their events at hand at once."""

    def __init__(self, spec: Spec, codec: Codec, show: Mask) -> None:
        self._spec, self._digest, self._codec = spec, digest(spec), codec
        self._visible = Visible(spec, codec, show)
        self._topics = {Side.LEFT: spec.reference.topic, Side.RIGHT: spec.candidate.topic}

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
        finding, visible = divergence.finding, self._visible.once()
        is_change = finding.kind == "changed" and finding.is_whole and sees(finding)
        fields = visible.masked_changes(finding) if is_change else ()
        return {
            "id": self._id(divergence, visible),
            "kind": finding.kind,
            "title": title(finding, visible),
            "scope": visible.key(finding.event),
            "identity": list(visible.identity_fields),
            **{
                NAMES[side]: None if event is None else visible.value(event) for side, event in finding.events
            },
            "positions": {NAMES[side]: self._position(side, event) for side, event in finding.events},
            "fields": {
                path: {NAMES[side]: member for side, member in zip(Side, members, strict=True)}
                for path, members in fields
            },
            "witness": [
                {"side": NAMES[side], "position": self._position(side, event), "value": visible.value(event)}
                for side, event in finding.witness
            ],
            "text": " ".join([text_of(divergence, self._spec.order, visible), *_judged(finding, visible)]),
            "tainted": divergence.tainted,
        }

    def outline(self, divergence: Divergence) -> Difference:
        """The divergence as the groups see it; without its fields and its key where records are not kept.

        Complexity: decodes the records of the divergence, which takes most of the time.
        """
        finding, unread = divergence.finding, self.outline_unread(divergence)
        if self._spec.keep != "records" or not sees(finding):
            return unread
        visible = self._visible.once()
        named = visible.key(finding.event).items()
        key = ", ".join(f"{field} {bare(value)}" for field, value in named)
        changes = unread.changes
        if finding.kind == "changed" and finding.is_whole:
            differing = visible.changes(finding)
            changes = changes_of((one.name, (one.before, one.after), one.shown) for one in differing)
        return unread._replace(changes=changes, key=short(key), members=visible.members(finding))

    def outline_unread(self, divergence: Divergence) -> Difference:
        """The same without reading records: neither its key is known, nor the fields that changed."""
        finding, event = divergence.finding, divergence.finding.event
        return Difference(
            finding.kind,
            Changes(None) if finding.kind == "changed" else Changes(),
            event[FORM][KIND],
            None,
            event[PARTITION],
            in_kafka(event[OFFSET]),
            event[TIMESTAMP_MS],
            partial(self._id, divergence, self._visible),
        )

    def waiting(self, side: Side, event: Event) -> dict[str, Any]:
        """An unmatched event as plain data."""
        return {
            "side": NAMES[side],
            "position": self._position(side, event),
            "kind": event[FORM][KIND],
            "scope": self._visible.key(event),
            "value": self._visible.value(event),
        }

    def _id(self, divergence: Divergence, visible: Visible) -> str:
        """The id of a divergence: the same when it is found again, after a replay or with its other half.

        It contains nothing of values that may not be shown, not even keyed hashes: if the key is lost with
        the store, the id stays the same. The position alone names the event, with the life of its partition
        behind the first one; without held records nothing else does, since they may be gone by then.
        """
        first, side = divergence.first, divergence.first.side
        values = visible.order_fields(first.event) if self._spec.keep == "records" else {}
        scope = {field: str(value) for field, value in values.items() if visible.is_shown(field, value)}
        parts = [self._spec.name, self._digest, scope, NAMES[side], self._position(side, first.event)]
        if (life := life_of(first.event)) > 0:
            parts.append(str(life))
        return blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()

    def _position(self, side: Side, event: Event | None) -> dict[str, Any] | None:
        if event is None:
            return None
        offset = in_kafka(event[OFFSET])
        return {"topic": self._topics[side], "partition": event[PARTITION], "offset": offset}


def _judged(finding: Finding, visible: Visible) -> Iterator[str]:
    """A sentence for each value that a function of the user does not accept."""
    for side, event in finding.events:
        if event is not None:
            for name in visible.unaccepted(event):
                yield f"The {NAMES[side]}'s `{name}` is not one of its right values."
