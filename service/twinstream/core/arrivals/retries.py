"""The replays of both sides, and the differences that have to wait for batches that may be written again.

The theory stands in `replays`, and that of what a difference waits for in `proofs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from twinstream.core.accounts import Hole
from twinstream.core.arrivals.attempts import Attempt
from twinstream.core.arrivals.replays import Alike, Replays
from twinstream.core.arrivals.run import Run
from twinstream.core.events import Canonical, Close, Side
from twinstream.core.order import BARRIER
from twinstream.core.proofs import NOTHING, HeldBack, MicroBatchId, Needs, Proof, Starts, needs_of

NUMBERS_KEPT = 10_000
"""Of so many differences that wait for the same batches it is told one by one that they decide nothing."""


class NotAgreed(NamedTuple):
    """A hole in what a side has written again: where it begins, and the batch if it was closed."""

    hole: Hole
    starts: Starts
    batch: MicroBatchId | None = None


class Settled(NamedTuple):
    """What closed batches decide: the differences that count, those that decide nothing, and holes."""

    counted: HeldBack | None
    dropped: list[int]
    holes: list[NotAgreed]


class WrittenRow(NamedTuple):
    """A record: which attempt wrote it, what is equal for those that it wrote again, and where it stands."""

    attempt: Attempt | None
    letter: bytes
    partition: int
    offset: int
    alike: Alike | None


class Retries:
    """The replays of both sides, and by the batches that they wait for the differences that are held.

    `copied`: a barrier has a copy in each partition. These are rows of their own, though they are equal.
    """

    def __init__(self, horizon: int, *, copied: bool = False) -> None:
        self._copied = copied
        self.sides = tuple(Replays(side, horizon) for side in Side)
        self.held: dict[Needs, HeldBack] = {}

    # -- what is held --------------------------------------------------------------------------------------

    def needs(self, proof: Proof | None) -> Needs:
        """The open batches that a difference has to wait for. Complexity: O(b) in the open batches."""
        return needs_of(proof, self._open())

    def _open(self) -> Iterator[tuple[MicroBatchId, Starts]]:
        for side in Side:
            for name, number, starts in self.sides[side].open():
                yield (side, name, number), starts

    def hold(self, moment: int, needs: Needs | None) -> Needs:
        """Hold a difference that was proven at a moment, and say for what: nothing where it counts at once.

        Without `needs` it waits for all open batches.
        """
        awaited = self.needs(None)
        if needs is not None:
            awaited &= needs
        if awaited:
            self.held.setdefault(awaited, HeldBack(moment)).join(HeldBack(moment))
        return awaited

    def note(self, needs: Needs, number: int) -> None:
        """Note the number of a difference that is held for these batches."""
        numbers = self.held[needs].numbers
        if len(numbers) < NUMBERS_KEPT:
            numbers.append(number)

    def drop_held(self, moment: int) -> None:
        """Hold nothing any more that was proven after a moment."""
        for needs in [needs for needs, held in self.held.items() if held.moment > moment]:
            del self.held[needs]

    # -- rows ----------------------------------------------------------------------------------------------

    def new_of(self, side: Side, run: Run, canonical: Canonical, close: Close | None) -> Run:
        """The records of a run that are new: what is left are replays. Complexity: about 3 µs a record.

        Where `close` is given, records of one canonical form are equal only if it says so.
        """
        if run.attempts is None:
            return run
        feed = self.sides[side].feed
        new = [place for place, row in enumerate(self._rows(run, canonical, close)) if feed(*row)]
        return run if len(new) == len(run.forms) else run.only(new)

    def note_before(
        self, side: Side, run: Run, canonical: Canonical, close: Close | None, *, by_place: bool
    ) -> None:
        """Note what lies before the start. Complexity: about 3 µs a record."""
        replays = self.sides[side]
        for attempt, letter, partition, offset, alike in self._rows(run, canonical, close):
            if attempt is not None:
                replays.note_before(attempt, letter, partition, offset, alike, by_place=by_place)

    def _rows(self, run: Run, canonical: Canonical, close: Close | None) -> Iterator[WrittenRow]:
        """The records of a run, each as what it is told again by."""
        for attempt, form, offset in zip(run.attempts or (), run.forms, run.offsets, strict=True):
            if attempt is None:
                yield WrittenRow(None, b"", run.partition, offset, None)
                continue
            copied = self._copied and form[0] is BARRIER
            where = b" in %d" % run.partition if copied else b""
            alike = None if close is None else Alike(form[1] + where, form[3], close)
            yield WrittenRow(attempt, canonical(form[1]) + where, run.partition, offset, alike)

    # -- what closed batches decide ------------------------------------------------------------------------

    def settle(self, side: Side) -> Settled:
        """What batches of a side decide that were closed since the last call.

        What waited for one that ends as a hole decides nothing.
        """
        holes = [NotAgreed(hole, {}) for hole in self.sides[side].take_holes()]
        dropped: list[int] = []
        for name, number, hole, starts in self.sides[side].take_closed():
            batch = (side, name, number)
            if hole is not None:
                holes.append(NotAgreed(hole, starts, batch))
            for needs in [needs for needs in self.held if batch in needs]:
                held = self.held.pop(needs)
                if hole is not None:
                    dropped += held.numbers
                else:
                    self.held.setdefault(needs - {batch}, HeldBack(held.moment)).join(held)
        return Settled(self.held.pop(NOTHING, None), dropped, holes)

    @property
    def unmarked(self) -> int:
        """Records of both sides that did not say what wrote them."""
        return sum(replays.unmarked for replays in self.sides)

    def disagreeing(self) -> list[str]:
        """A sentence for each open batch whose attempts do not agree so far."""
        return [sentence for replays in self.sides for sentence in replays.disagreeing()]

    def snapshot(self, *, whole: bool = True) -> dict[str, Any]:
        """The state as plain data; unless `whole`, only the batches that have changed since the last one."""
        return {
            "sides": [replays.snapshot(whole=whole) for replays in self.sides],
            "held": [
                [[list(batch) for batch in sorted(needs)], held.moment, held.numbers]
                for needs, held in self.held.items()
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `snapshot`."""
        for replays, kept in zip(self.sides, state["sides"], strict=True):
            replays.restore(kept)
        rows = state.get("held", [])
        if state.get("held_at") is not None:  # an older version held all for the same batches
            rows = [[state["held_for"], state["held_at"], []]]
        for needs, moment, numbers in rows:
            batches = frozenset((Side(side), name, number) for side, name, number in needs)
            self.held[batches] = HeldBack(moment, list(numbers))
