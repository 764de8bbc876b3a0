"""Small streams for the engine: comparison files, records written in several styles, and a driver."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from twinstream.checkpoints import format as checkpoint
from twinstream.core.accounting.halves import Divergence
from twinstream.core.arrivals.attempts import Attempt
from twinstream.core.arrivals.run import Run
from twinstream.core.comparison import Comparison
from twinstream.core.events import Event, Side, place_in_side
from twinstream.core.overdue.survey import Survey
from twinstream.core.state.merge import merged
from twinstream.core.state.restore import restore
from twinstream.core.state.snapshot import delta, snapshot
from twinstream.explain.divergence import Explainer
from twinstream.explain.masking import EVERYTHING, Mask
from twinstream.spec.codec.codec import Codec
from twinstream.spec.codec.digests import codec_of
from twinstream.spec.compile.compile import rules_of
from twinstream.spec.file.model import Spec
from twinstream.spec.load import loads

LEFT, RIGHT = Side.LEFT, Side.RIGHT
HEAD = "version: 1\nname: test\nreference: {topic: r}\ncandidate: {topic: c}\n"
SPEAKING = """\
version: 1
name: test
reference: {topic: r, version: "1"}
candidate: {topic: c, version: "2"}
control: said
order: unordered
"""
"""The head of a comparison file of two versions that say how far they are."""


def spec(order: str = "total", more: str = "") -> Spec:
    """A comparison file with this order; `more` are further lines of it."""
    return loads(f"{HEAD}order: {order}\n{more}")


def record(value: Any, style: int = 0) -> bytes:
    """One JSON text of a value; styles differ in spaces, member order and the spelling of numbers."""
    if style == 1:
        return json.dumps(value).encode()
    if style == 2:
        return json.dumps(dict(reversed(value.items())), separators=(",", ":")).encode()
    if style == 3:
        return json.dumps({name: _in_floats(member) for name, member in value.items()}, indent=1).encode()
    return json.dumps(value, separators=(",", ":")).encode()


def _in_floats(member: Any) -> Any:
    return float(member) if type(member) is int else member


class Batch(NamedTuple):
    """Records of one side that are fed in one run; without records, the end of that side."""

    side: Side
    records: Sequence[bytes]
    timestamps_ms: Sequence[int] | None = None


def waiting_events(comparison: Comparison, side: Side) -> list[Event]:
    """Every unmatched event that is held, in matching or set aside."""
    comparison.settle()
    return list(comparison.ledger.held[side])


@dataclass
class Driver:
    """Feeds a comparison and gives every record its offset; partition 0 throughout."""

    spec: Spec
    comparison: Comparison = field(init=False)
    codec: Codec = field(init=False)
    offsets: list[int] = field(default_factory=lambda: [0, 0])
    closed: dict[int, Divergence] = field(default_factory=dict)
    saved: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.codec = codec_of(self.spec)
        self.comparison = Comparison(rules_of(self.spec, self.codec))

    def feed(
        self,
        side: Side,
        records: Sequence[bytes],
        timestamps_ms: Sequence[int] | None = None,
        partition: int = 0,
        marks: Sequence[Any] | None = None,
        attempts: Sequence[Attempt | None] | None = None,
    ) -> None:
        known = self.comparison.known(side, partition, records)
        forms, refused = self.codec.forms(records, side, known.forms)
        assert not refused, "every record is an event"
        first = self.offsets[side]
        self.offsets[side] += len(records)
        times = timestamps_ms or [0] * len(records)
        offsets = range(first, self.offsets[side])
        run = Run(forms, partition, offsets, times, 0.0, marks, attempts, twins=known.twins)
        self.comparison.feed(side, run)

    def create_anew(self, side: Side, partitions: int = 1) -> None:
        """Create a topic anew: its offsets come again."""
        self.offsets[side] = 0
        for partition in range(partitions):
            self.comparison.go_back(side, partition)

    def look(self, now: float = 0.0) -> Survey:
        """Look at everything that waits, with both sides read to their ends."""
        for side in Side:
            here = {0: self.offsets[side]}
            self.comparison.look(side, here, here, now)
        return self.comparison.survey((True, True))

    def take(self, batches: Iterable[Batch], *, review: bool = False) -> None:
        for batch in batches:
            if batch.records:
                self.feed(batch.side, batch.records, batch.timestamps_ms)
            else:
                self.comparison.end(batch.side)
            if review:
                self.comparison.review()

    def end(self) -> None:
        for side in Side:
            if not self.comparison.ended[side]:
                self.comparison.end(side)

    def restart(self) -> None:
        """Go on with a new comparison that knows only what the bytes of checkpoints kept."""
        state = saved_again(self.saved, self.comparison)
        self.comparison = Comparison(self.comparison.rules)
        restore(self.comparison, state, self.codec.form_again, 0.0)

    def findings(self) -> list[Divergence]:
        """The divergences of closed scopes so far, each as it was found last."""
        self.closed.update((found.number, found) for found in self.comparison.take_closed())
        for number in self.comparison.take_tainted():
            self.closed[number] = self.closed[number]._replace(tainted=True)
        return list(self.closed.values())

    def places(self) -> list[tuple[Side, int]]:
        """The side and offset of each event of these divergences."""
        found = [event for divergence in self.findings() for event in divergence.finding.events]
        places = [(side, event[2]) for side, event in found if event is not None]
        assert len(places) == len(set(places)), "an event is in one difference only"
        return places

    def explainer(self, show: Mask = EVERYTHING) -> Explainer:
        """What tells divergences: with these values shown, or all of them."""
        return Explainer(self.spec, self.codec, show)

    def reports(self, show: Mask = EVERYTHING) -> list[dict[str, Any]]:
        """The divergences of closed scopes so far, as they are told."""
        return list(map(self.explainer(show).report, self.findings()))

    def kinds(self) -> list[str]:
        return sorted(divergence.finding.kind for divergence in self.findings())

    def held(self, side: Side) -> list[int]:
        """The offsets of the unmatched events that are held.

        What the ledger says is held is exactly what matching, scopes, copies of barriers and tables have,
        and what waits ahead of them.
        """
        comparison = self.comparison
        comparison.settle()
        found = [event for event, _ in comparison.index.unmatched(side)]
        found += [event for scope in comparison.scopes for event in scope.pieces[side]]
        found += comparison.copies[side] if comparison.copies else []
        found += comparison.tables.rows[side] if comparison.tables is not None else []
        ahead = set(map(place_in_side, comparison.ledger.held[side].ahead))
        others = [one for one in waiting_events(comparison, side) if place_in_side(one) not in ahead]
        assert sorted(map(id, others)) == sorted(map(id, found))
        return self.waiting(side)

    def waiting(self, side: Side) -> list[int]:
        """The offsets of the unmatched events; after a halt also of the pair that came with it."""
        return sorted(Event._make(event).offset for event in waiting_events(self.comparison, side))


def saved_again(saved: list[bytes], comparison: Comparison) -> dict[str, Any]:
    """Save a comparison once more; what all checkpoints keep: a whole one, and up to three deltas."""
    if len(saved) % 4:
        saved.append(checkpoint.encode(delta(comparison)))
    else:
        saved[:] = [checkpoint.encode(snapshot(comparison))]
    whole, *deltas = map(checkpoint.decode, saved)
    return merged(whole, deltas)


def trace(text: str) -> list[tuple[Side, Any]]:
    """Steps from one line: ``"L:a1 R:b1 L:."``; the letter is the key, the digit the value, ``.`` the end.

    >>> trace("L:a1 R:.")
    [(<Side.LEFT: 0>, {'k': 'a', 'v': 1}), (<Side.RIGHT: 1>, None)]
    """
    steps = []
    for word in text.split():
        side, _, event = word.partition(":")
        value = None if event == "." else {"k": event[0], "v": int(event[1:] or 0)}
        steps.append((LEFT if side == "L" else RIGHT, value))
    return steps


def batches(text: str) -> list[Batch]:
    """The steps of `trace`, each a batch of one record."""
    return [Batch(side, () if value is None else (record(value),)) for side, value in trace(text)]
