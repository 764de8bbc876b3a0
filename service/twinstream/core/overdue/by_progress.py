"""Overdue on a clock of progress: event time, or the input (see `points`).

An event is overdue when the other side has passed its point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from twinstream.core.events import Event, Side, place_in_side
from twinstream.core.overdue.judging import Overdue, Reading
from twinstream.core.overdue.points import PointsClock
from twinstream.core.overdue.set_apart import SetApart
from twinstream.core.rules import Rules


@dataclass(frozen=True)
class OverdueByProgress:
    """Judges by how far each side has come."""

    rules: Rules
    apart: SetApart
    clock: PointsClock

    def overdue(self, side: Side, reading: Reading) -> Overdue:
        """Those in matching. Complexity: O(c) in what is passed and set apart."""
        passed = self._passed(side, reading)
        return Overdue(len(passed), sorted(passed.values(), key=place_in_side) if self.rules.proves else [])

    def is_overdue(self, side: Side, reading: Reading) -> Callable[[Event], bool]:
        """Tells of unmatched events of a side. Complexity: as `overdue`, then O(1) an event."""
        passed = self._passed(side, reading)
        return lambda event: id(event) in passed

    def has_passed(self, side: Side, reading: Reading) -> Callable[[Event], bool]:
        """Tells of unmatched events of a side, also of those that are set apart."""
        beyond = self._beyond(side, reading)
        return lambda event: id(event) in beyond

    def _beyond(self, side: Side, reading: Reading) -> dict[int, Event]:
        passed = self.clock.passed(side)  # Also takes in what came, which else would pile up.
        return passed if all(reading.at_end) or not self.clock.needs_ends else {}

    def _passed(self, side: Side, reading: Reading) -> dict[int, Event]:
        """Those in matching. Unless all that came was compared, nobody knows what was passed.

        An event of which an equal one waits for another partition of the other side is none of them; nor is
        one where that is equal but for tolerated numbers: it is told when it comes to matching.
        """
        passed = self._beyond(side, reading) if reading.gapless else {}
        if not passed:
            return {}
        apart, copies, letter = self.apart.ids(side), self.apart.copies, self.rules.letter
        waiting = set(map(letter, copies[side.other])) if copies else set()
        return {
            key: event
            for key, event in passed.items()
            if key not in apart and not (waiting and letter(event) in waiting)
        }
