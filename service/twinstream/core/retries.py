"""The replays of both sides, and the difference that has to wait for batches that may still be written again.

The theory stands in `replays`.
"""

from __future__ import annotations

from typing import Any

from twinstream.core.accounts import Hole
from twinstream.core.events import Canonical, Side
from twinstream.core.replays import Replays
from twinstream.core.run import Run


class Retries:
    """The replays of both sides, and the difference that is held until open batches are closed."""

    def __init__(self, horizon: int) -> None:
        self.sides = tuple(Replays(side, horizon) for side in Side)
        self.held_at: int | None = None
        self._held_for: set[tuple[int, str, int]] = set()

    def hold(self, moment: int) -> bool:
        """Whether a difference that was proven at a moment has to wait for an open batch."""
        if self.held_at is None:
            self._held_for = {(side, *batch) for side in Side for batch in self.sides[side].open()}
        if not self._held_for:
            return False
        self.held_at = moment if self.held_at is None else min(self.held_at, moment)
        return True

    def drop_held(self, moment: int) -> bool:
        """Hold nothing any more that was proven after a moment; whether something was dropped."""
        if self.held_at is None or self.held_at <= moment:
            return False
        self.held_at = None
        self._held_for.clear()
        return True

    def new_of(self, side: Side, run: Run, canonical: Canonical) -> Run:
        """The records of a run that are new: what is left are replays. Complexity: about 3 µs a record."""
        if run.attempts is None:
            return run
        replays = self.sides[side]
        rows = zip(run.attempts, run.forms, run.offsets, strict=True)
        new = [
            place
            for place, (attempt, form, offset) in enumerate(rows)
            if replays.feed(attempt, b"" if attempt is None else canonical(form[1]), run.partition, offset)
        ]
        return run if len(new) == len(run.forms) else run.only(new)

    def note_before(self, side: Side, run: Run, canonical: Canonical, *, by_place: bool) -> None:
        """Note what lies before the start. Complexity: about 3 µs a record."""
        replays = self.sides[side]
        for attempt, form, offset in zip(run.attempts or (), run.forms, run.offsets, strict=True):
            if attempt is not None:
                replays.note_before(attempt, canonical(form[1]), run.partition, offset, by_place=by_place)

    def settle(self, side: Side) -> tuple[int | None, list[Hole]]:
        """What closed batches of a side decide: the moment of a difference that counts now, and holes.

        With a hole what was held is dropped, and never counts.
        """
        holes = self.sides[side].take_holes()
        for name, number, hole in self.sides[side].take_closed():
            if hole is not None:
                holes.append(hole)
            if (side, name, number) in self._held_for:
                self._held_for.discard((side, name, number))
                if hole is not None:
                    self.held_at = None
                    self._held_for.clear()
        if self.held_at is None or self._held_for:
            return None, holes
        moment, self.held_at = self.held_at, None
        return moment, holes

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
            "held_at": self.held_at,
            "held_for": [list(batch) for batch in sorted(self._held_for)],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `snapshot`."""
        for replays, kept in zip(self.sides, state["sides"], strict=True):
            replays.restore(kept)
        self.held_at = state["held_at"]
        self._held_for = {(side, name, number) for side, name, number in state["held_for"]}
