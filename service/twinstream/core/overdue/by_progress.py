"""Overdue on a clock of progress: event time, or the input (see `points`).

An event is overdue when the other side has passed its point, unless a crossed pair excuses it (`crossed`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from twinstream.core.events import READ_AT, Event, Side, place_in_side
from twinstream.core.overdue.crossed import CrossedPairs
from twinstream.core.overdue.judging import Overdue, Reading
from twinstream.core.overdue.points import PointsClock
from twinstream.core.overdue.set_apart import SetApart
from twinstream.core.rules import Rules


@dataclass(frozen=True)
class OverdueByProgress:
    """Judges by the progress of each side."""

    rules: Rules
    apart: SetApart
    clock: PointsClock
    crossed: CrossedPairs | None = None

    def overdue(self, side: Side, reading: Reading) -> Overdue:
        """The overdue events in matching. Complexity: O(c) in the events passed and set apart."""
        passed = self._passed(side, reading)
        proves = self.rules.proves and not (self.crossed and self.crossed.lacks(side))
        proven = filter(self._is_proven(side, reading), passed.values()) if proves else ()
        return Overdue(len(passed), sorted(proven, key=place_in_side))

    def is_overdue(self, side: Side, reading: Reading) -> Callable[[Event], bool]:
        """A test for unmatched events of a side. Complexity: as `overdue`, then O(1) an event."""
        passed = self._passed(side, reading)
        return lambda event: id(event) in passed

    def has_passed(self, side: Side, reading: Reading) -> Callable[[Event], bool]:
        """A test for unmatched events of a side, including those set apart."""
        beyond = self._beyond(side, reading)
        is_free = None if self.crossed is None else self.crossed.is_free(side)
        is_proven = self._is_proven(side, reading)
        return lambda event: id(event) in beyond and is_proven(event) and (is_free is None or is_free(event))

    def _is_proven(self, side: Side, reading: Reading) -> Callable[[Event], bool]:
        """A test for passed events: whether it is proven that no partner comes.

        They must have been unmatched for as long on the reader's clock, too: an event may be late in both
        versions, and so be passed when it comes. And what passed them must all be read: a partition may count
        as idle that has just gone on, and is not fetched yet. Then the others pass what it still has.
        """
        if not self.clock.needs_ends:
            return lambda _: True
        lag, after_s = reading.lag, self.rules.overdue_after_ms / 1000
        read_until = lag.read_s - after_s if self.rules.proves else math.inf
        is_below = None if lag.reached is None else partial(self.clock.is_below, lag.reached[side.other])
        return lambda event: event[READ_AT] <= read_until and (is_below is None or is_below(event))

    def _beyond(self, side: Side, reading: Reading) -> dict[int, Event]:
        passed = self.clock.passed(side)  # Also takes new events, which would pile up otherwise.
        if self.crossed is not None:
            self.crossed.look(side, self.clock.reached(side.other))
        return passed if all(reading.at_end) or not self.clock.needs_ends else {}

    def _passed(self, side: Side, reading: Reading) -> dict[int, Event]:
        """The passed events in matching; none unless all events were compared, since then nobody knows.

        An event is left out if an equal one of the other side waits for another partition, even if it is
        equal only within a tolerance: matching will decide.
        """
        passed = self._beyond(side, reading) if reading.gapless else {}
        if not passed:
            return {}
        apart, copies, letter = self.apart.ids(side), self.apart.copies, self.rules.letter
        waiting = set(map(letter, copies[side.other])) if copies else set()
        passed = {
            key: event
            for key, event in passed.items()
            if key not in apart and not (waiting and letter(event) in waiting)
        }
        excused = set() if self.crossed is None else self.crossed.excused(side, passed)
        return {key: event for key, event in passed.items() if key not in excused} if excused else passed
