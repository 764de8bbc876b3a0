"""Judges which unmatched events are overdue: suspected to have no partner, or proven to have none.

Among independent events a lost one is never finitely distinguishable from a late one (DiffStream, section
4.4). So the comparison file declares a clock, and what waits is judged by how far the other side has come on
it. What is *set apart* is not judged: it takes no part in matching.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from twinstream.core.accounting.halves import Half
from twinstream.core.accounting.ledger import Ledger
from twinstream.core.accounting.unpaired import REACH, Reach
from twinstream.core.diagnosis.scope import Scope
from twinstream.core.events import READ_AT, TIMESTAMP_MS, Event, Side
from twinstream.core.overdue.set_apart import SetApart


class Reading(NamedTuple):
    """How far both sides are read when a clock is asked.

    `at_end` tells by side whether it is read to its end, `now_s` is the reader's clock (`Run.read_at`),
    `gapless` whether all that came was compared.
    """

    at_end: tuple[bool, bool]
    now_s: float = math.inf
    gapless: bool = True


class Overdue(NamedTuple):
    """The overdue events of one side: their number, and those that are proven to have no partner."""

    number: int
    proven: list[Event]


class OverdueClock(Protocol):
    """Tells by how far the other side has come which unmatched events are overdue."""

    def overdue(self, side: Side, reading: Reading) -> Overdue:
        """The overdue events of a side that take part in matching."""

    def is_overdue(self, side: Side, reading: Reading) -> Callable[[Event], bool]:
        """Tells of unmatched events of a side whether they are among these."""

    def has_passed(self, side: Side, reading: Reading) -> Callable[[Event], bool]:
        """Tells of unmatched events of a side, also of those set apart, whether the other side has passed."""


class ArrivalLimit(Protocol):
    """The clock of arrival, as far as it is asked whatever clock is declared."""

    def until(self, side: Side, reading: Reading) -> int | None:
        """The latest arrival of a side that is overdue; None where nothing is."""


@dataclass(frozen=True)
class Judge:
    """Judges what waits in the parts of one comparison, which it reads and never changes.

    `clock` is the declared one. `after_ms` is the age from which an event is overdue on that of `arrival`.
    """

    ledger: Ledger
    apart: SetApart
    arrival: ArrivalLimit
    clock: OverdueClock
    after_ms: int

    def hidden(self, side: Side, reading: Reading) -> int:
        """The copies of a form that wait without a break for long, and are not overdue themselves.

        A lost one could hide behind fresh ones, so they are suspected, too. That is told from Kafka's
        timestamps, whatever the clock is.
        """
        until = self.arrival.until(side, reading)
        if until is None:
            return 0
        long = [copies for since_ms, copies in self.apart.index.chains(side) if since_ms <= until]
        if not long:
            return 0
        is_overdue = self.clock.is_overdue(side, reading)
        return sum(
            1 for copies in long for event in copies if event[TIMESTAMP_MS] > until and not is_overdue(event)
        )

    def is_alone(self, half: Half, reading: Reading) -> bool:
        """Whether it is certain that a leftover has no other half, or a difference its final name.

        It is once all that its other half may be was read and settled: by offset, or by the time at which it
        may have been written at the latest. That time has passed on Kafka's clock, or on the reader's where
        both sides are at rest.
        """
        side, reach = half.finding.side, half.reach
        if reach is None:
            return True
        held, read = self.ledger.held.of(side.other), self.ledger.read[side.other]
        first_open, oldest_ms = held.first_open(), held.oldest_ms()
        ends = {partition: end + REACH for partition, end in reach.offsets[side.other].items()}
        if ends and all(
            read.get(partition, -1) > end and first_open.get(partition, end + 1) > end
            for partition, end in ends.items()
        ):
            return True
        return (oldest_ms is None or oldest_ms > reach.until_ms) and self._is_over(half, reach, reading)

    def _is_over(self, half: Half, reach: Reach, reading: Reading) -> bool:
        until = self.arrival.until(half.finding.side, reading)
        if until is not None and until + self.after_ms >= reach.until_ms:
            return True
        read_at = half.finding.event[READ_AT]
        return all(reading.at_end) and read_at + self.after_ms / 1000 <= reading.now_s < math.inf

    def passed_scopes(self, reading: Reading) -> Iterator[Scope]:
        """The open scopes that hold overdue events only; where the clock proves, such as it proves of.

        Copies of barriers belong to whole epochs: a scope among them closes with its epoch.

        Complexity: O(1) an open scope, O(n) in those that are passed.
        """
        if not self.apart.scopes or not reading.gapless or self.apart.copies:
            return
        left, right = (self.clock.has_passed(side, reading) for side in Side)
        for scope in self.apart.scopes:
            pieces = map(reversed, scope.pieces)  # What came last is passed last.
            if not scope.lost and all(map(left, next(pieces))) and all(map(right, next(pieces))):
                more = [scope.owner.gathered(side) for side in Side] if scope.gathering else ((), ())
                if all(map(left, more[0])) and all(map(right, more[1])):
                    yield scope
