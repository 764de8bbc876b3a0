"""Overdue on the arrival clock: Kafka's timestamps (see `clocks.arrival`).

This clock only suspects, unless the comparison file says that it proves. Then an event is proven to have no
partner once it has been unmatched for long enough on three clocks: Kafka's, that of the other side's matches,
and the reader's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from twinstream.core.accounting.ledger import Ledger
from twinstream.core.clocks.arrival import ArrivalClock
from twinstream.core.events import READ_AT, TIMESTAMP_MS, Event, Side
from twinstream.core.matching.index import Index
from twinstream.core.overdue.judging import Overdue, Reading
from twinstream.core.overdue.set_apart import SetApart
from twinstream.core.rules import Rules


@dataclass(frozen=True)
class OverdueByArrival:
    """Judges by Kafka's timestamps; reads the parts of one comparison, and never changes them."""

    rules: Rules
    ledger: Ledger
    index: Index
    apart: SetApart
    clock: ArrivalClock

    def until(self, side: Side, reading: Reading) -> float:
        """The latest arrival time of a side that is overdue; below all times if no event is.

        Both sides must be read to their ends: unread records may include the partner.
        """
        return self.clock.until(side) if all(reading.at_end) else -math.inf

    def overdue(self, side: Side, reading: Reading) -> Overdue:
        """The overdue events in matching. Complexity: O(c) in these, O(n) where the clock proves."""
        until = self.until(side, reading)
        if until == -math.inf:
            return Overdue(0, [])
        apart = sum(1 for event in self.apart.of(side) if event[TIMESTAMP_MS] <= until)
        count = self.ledger.held[side].until(until) - apart
        return Overdue(count, self._proven(side, until, reading) if count else [])

    def is_overdue(self, side: Side, reading: Reading) -> Callable[[Event], bool]:
        """A test for unmatched events of a side. Complexity: O(c) in those set apart, then O(1) an event."""
        until, apart = self.until(side, reading), self.apart.ids(side)
        return lambda event: event[TIMESTAMP_MS] <= until and id(event) not in apart

    def has_passed(self, side: Side, reading: Reading) -> Callable[[Event], bool]:
        """A test for unmatched events of a side; where the clock proves, whether they have no partner."""
        until = min(self.until(side, reading), reading.lag.until[side])
        if not self.rules.proves:
            return lambda event: event[TIMESTAMP_MS] <= until
        return self._tells_proven(side, until, reading)

    def _proven(self, side: Side, until: float, reading: Reading) -> list[Event]:
        if not self.rules.proves:
            return []
        gathered = set(map(id, self.index.gathered(side)))
        waiting = (event for event, _ in self.index.unmatched(side) if id(event) not in gathered)
        return list(filter(self._tells_proven(side, until, reading), waiting))

    def _tells_proven(self, side: Side, until: float, reading: Reading) -> Callable[[Event], bool]:
        """A test for overdue events: whether it is proven that no partner comes.

        They must have been unmatched as long on the reader's clock, too: otherwise one record with a time in
        the future, which Kafka accepts, would prove that all events still on their way are missing. What was
        written of late may lie unread in a partition, and so be no record of the one that was read.
        """
        newest = self.ledger.newest_matched_ms[side]
        if newest is None:
            return lambda _: False
        after_ms = self.rules.overdue_after_ms
        proven_until = min(until, newest - after_ms, reading.lag.until[side])
        read_until = reading.lag.read_s - after_ms / 1000
        return lambda event: event[TIMESTAMP_MS] <= proven_until and event[READ_AT] <= read_until
