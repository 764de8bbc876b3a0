"""Reads the records of reported events from Kafka again, where only digests of events are held.

Only reports need them, which are few; reading happens away from the hot path, for at most `SECONDS` of each
second. A record is compared with the held digest, so that no other record is shown in its place, and is
forgotten when the reports are made; its values are masked as always.

A record that could not be read in time is tried again with the next reports. One that Kafka no longer has is
permanently reported as such.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from twinstream.core.accounting.halves import Divergence
from twinstream.core.diagnosis.findings import Finding
from twinstream.core.events import FORM, RECORD, Event, Form, Place, Side, in_kafka
from twinstream.core.proofs import place_of
from twinstream.errors import SourceError
from twinstream.explain.divergence import Explainer
from twinstream.explain.masking import Mask
from twinstream.ports import Clock, Recall
from twinstream.spec.codec.codec import Codec
from twinstream.spec.codec.digests import KeptCodec, WithheldRecord
from twinstream.spec.file.model import Spec

FEW, MANY = 20, 1_000
"""Differences whose events are read at once, at first and at most: more if all came in time."""
SECONDS = 0.2
"""The share of each second that reading may take from matching."""
TOLD_KEPT = 1_000
"""Reports kept, so that those shown every second are read once; ten times the number shown."""
GONE = WithheldRecord("‹Kafka no longer has it›".encode())
REPLACED = WithheldRecord("‹Kafka has another record there now›".encode())
NOT_READ = WithheldRecord("‹not read again from Kafka›".encode())


def nothing(_places: Iterable[Place], _seconds: float) -> Mapping[Place, bytes | None]:
    """A `Recall` that reads nothing."""
    return {}


def explainer_of(spec: Spec, codec: Codec, mask: Mask, recall: Recall, clock: Clock) -> Explainer:
    """The explainer for a matcher: one that reads records again, if its codec holds tokens."""
    if isinstance(codec, KeptCodec):
        return RecallingExplainer(spec, codec, mask, recall, clock)
    return Explainer(spec, codec, mask)


class RecallingExplainer(Explainer):
    """An explainer for events that hold tokens. It reads with `recall`, and limits the time by `clock`."""

    def __init__(self, spec: Spec, codec: KeptCodec, mask: Mask, recall: Recall, clock: Clock) -> None:
        super().__init__(spec, codec, mask)
        self._kept, self._recall, self._clock = codec, recall, clock
        self._read: dict[Place, bytes] = {}
        self._told: OrderedDict[Any, dict[str, Any]] = OrderedDict()
        self._left, self._since = SECONDS, clock.monotonic()
        self.at_once = FEW

    @contextmanager
    def at_hand(self, events: Iterable[tuple[Side, Event]]) -> Iterator[None]:
        """Make the records of some events available, as far as they can be read in time."""
        tokens = {place_of(side, event): event[FORM][RECORD] for side, event in events}
        started = self._clock.monotonic()
        if started - self._since >= 1:
            self._left, self._since = SECONDS, started
        try:
            if tokens and self._left > 0:
                self._read_again(tokens, started)
            yield
        finally:
            self._read = {}

    def _read_again(self, tokens: Mapping[Place, bytes], started: float) -> None:
        found = self._recall(sorted(set(map(_in_kafka, tokens))), self._left)
        for place, token in tokens.items():
            if _in_kafka(place) not in found:
                continue
            record = found[_in_kafka(place)]
            with suppress(
                SourceError
            ):  # An unavailable schema registry is asked again with the next reports.
                self._read[place] = GONE if record is None else self._own(record, place[0], token)
        self._left -= self._clock.monotonic() - started
        all_came = len(self._read) == len(tokens)
        self.at_once = min(2 * self.at_once, MANY) if all_came else max(1, self.at_once // 2)

    def _own(self, record: bytes, side: Side, token: bytes) -> bytes:
        """A record, if the token was made from it."""
        (form,), _ = self._kept.forms((record,), side)
        return self._kept.held(record, side) if form[3] == token else REPLACED

    # -- reports -------------------------------------------------------------------------------------------

    def needs(self, divergence: Divergence) -> list[tuple[Side, Event]]:
        """The events whose records the report needs."""
        return [] if _key(divergence) in self._told else list(_events(divergence.finding))

    def lacks(self, events: Iterable[tuple[Side, Event]]) -> bool:
        """Whether the record of one of these events is not at hand."""
        return any(place_of(side, event) not in self._read for side, event in events)

    def report(self, divergence: Divergence) -> dict[str, Any]:
        """See `Explainer.report`; uses the records at hand, or those of the first time it was made."""
        key = _key(divergence)
        if (told := self._told.get(key)) is not None:
            self._told.move_to_end(key)
            return told
        told = super().report(divergence._replace(finding=self._opened(divergence.finding)))
        if not self.lacks(_events(divergence.finding)):
            self._told[key] = told
            if len(self._told) > TOLD_KEPT:
                self._told.popitem(last=False)
        return told

    def waiting(self, side: Side, event: Event) -> dict[str, Any]:
        """See `Explainer.waiting`."""
        return super().waiting(side, self._open(side, event))

    def _opened(self, finding: Finding) -> Finding:
        """A finding with the records of its events, as far as they are at hand."""
        return Finding(
            finding.kind,
            None if finding.left is None else self._open(Side.LEFT, finding.left),
            None if finding.right is None else self._open(Side.RIGHT, finding.right),
            tuple((side, self._open(side, event)) for side, event in finding.witness),
        )

    def _open(self, side: Side, event: Event) -> Event:
        lane, content, kind, _ = event[FORM]
        record = self._read.get(place_of(side, event), NOT_READ)
        return Event(Form(lane, content, kind, record), *event[1:])


def _in_kafka(place: Place) -> Place:
    """The place in Kafka of what a comparison has at a place."""
    side, partition, offset = place
    return side, partition, in_kafka(offset)


def _events(finding: Finding) -> Iterator[tuple[Side, Event]]:
    """The events of a finding and those that prove it."""
    yield from ((side, event) for side, event in finding.events if event is not None)
    yield from finding.witness


def _key(divergence: Divergence) -> Any:
    """A key that distinguishes reports."""
    places = tuple(place_of(side, event) for side, event in _events(divergence.finding))
    first = divergence.first.event
    more = divergence.tainted, divergence.late, divergence.uneven
    return divergence.finding.kind, places, first[1:3], *more
