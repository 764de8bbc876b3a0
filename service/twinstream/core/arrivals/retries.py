"""The replays of both sides, and the open batches, which may be written again.

See `replays` for the theory, and `core.proofs` for the differences that wait for open batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from twinstream.core.arrivals.replays import Alike, Replays, WrittenRow
from twinstream.core.arrivals.run import Run
from twinstream.core.events import Side
from twinstream.core.order import BARRIER
from twinstream.core.proofs import Needs, Proof, needs_of
from twinstream.core.relation import Relation


class Retries:
    """The replays of both sides, in which rows are equal as the `relation` says.

    Where a barrier has a copy in each partition, these are rows of their own, though they are equal.
    """

    def __init__(self, relation: Relation, horizon: int) -> None:
        self._relation = relation
        self.sides = tuple(Replays(side, horizon) for side in Side)

    def needs(self, proof: Proof | None) -> Needs:
        """The open batches that a difference has to wait for. Complexity: O(b) in the open batches."""
        return needs_of(proof, chain.from_iterable(replays.open() for replays in self.sides))

    # -- rows ----------------------------------------------------------------------------------------------

    def new_of(self, side: Side, run: Run) -> Run:
        """The records of a run that are new; all others are replays. Complexity: about 3 µs a record."""
        feed = self.sides[side].feed
        new = [place for place, row in enumerate(self._rows(run)) if feed(row)]
        return run if len(new) == len(run.forms) else run.only(new)

    def note_before(self, side: Side, run: Run, *, by_place: bool) -> None:
        """Note a run before the start. Complexity: about 3 µs a record."""
        for row in self._rows(run):
            self.sides[side].note_before(row, by_place=by_place)

    def _rows(self, run: Run) -> Iterator[WrittenRow]:
        """The records of a run, each with the data that identify its replays."""
        canonical, close, has_copies = self._relation.canonical, self._relation.close, self._relation.copied
        for attempt, form, offset in zip(run.attempts or (), run.forms, run.offsets, strict=True):
            place = run.partition, offset
            if attempt is None:
                yield WrittenRow(None, b"", place)
                continue
            copied = has_copies and form[0] is BARRIER
            where = b" in %d" % run.partition if copied else b""
            alike = None if close is None else Alike(form[1] + where, form[3], close)
            yield WrittenRow(attempt, canonical(form[1]) + where, place, alike)

    @property
    def unmarked(self) -> int:
        """The number of records of both sides that do not name their attempt."""
        return sum(replays.unmarked for replays in self.sides)

    def disagreeing(self) -> list[str]:
        """A sentence for each open batch whose attempts do not agree so far."""
        return [sentence for replays in self.sides for sentence in replays.disagreeing()]

    def state(self, *, whole: bool = True) -> dict[str, Any]:
        """The state as plain data; unless `whole`, only the batches that have changed since the last one."""
        return {"sides": [replays.state(whole=whole) for replays in self.sides]}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `state`."""
        for replays, kept in zip(self.sides, state["sides"], strict=True):
            replays.restore(kept)
