"""Judges which unmatched events are overdue: suspected to have no partner, or proven to have none.

Among independent events no finite prefix distinguishes a lost one from a late one (DiffStream, section 4.4).
So the comparison file declares a clock, and unmatched events are judged by the progress of the other side on
it. Events that are *set apart* are not judged: they take no part in matching.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from twinstream.core.accounting.halves import REACH, Half, Reach
from twinstream.core.accounting.ledger import Ledger
from twinstream.core.events import READ_AT, TIMESTAMP_MS, Event, Side
from twinstream.core.matching.index import node_of_scopes
from twinstream.core.open_scopes import Passed, places_of
from twinstream.core.overdue.points import Reached
from twinstream.core.overdue.set_apart import SetApart


class Lag(NamedTuple):
    """How far the records that are read may be ahead of others that are not.

    All records from before `read_s` are read, on the reader's clock (`Run.read_at`). By side, as of then:
    `until` is the latest arrival that was overdue, `reached` how far it had come on a clock of progress, if
    there is one. A clock proves no more than it did then.
    """

    read_s: float = math.inf
    until: tuple[float, float] = (math.inf, math.inf)
    reached: tuple[Reached, Reached] | None = None


NO_LAG = Lag()
UNKNOWN_LAG = Lag(-math.inf, (-math.inf, -math.inf), ({}, {}))


class Reading(NamedTuple):
    """The state of reading when a clock is asked.

    `at_end` says by side whether it is read to its end, `gapless` whether all events that came were compared.
    """

    at_end: tuple[bool, bool]
    gapless: bool = True
    lag: Lag = NO_LAG


class Overdue(NamedTuple):
    """The overdue events of one side: their number, and those that are proven to have no partner."""

    number: int
    proven: list[Event]


class OverdueClock(Protocol):
    """Decides by the progress of the other side which unmatched events are overdue."""

    def overdue(self, side: Side, reading: Reading) -> Overdue:
        """The overdue events of a side that take part in matching."""

    def is_overdue(self, side: Side, reading: Reading) -> Callable[[Event], bool]:
        """A test for unmatched events of a side: whether they are among the `overdue` ones."""

    def has_passed(self, side: Side, reading: Reading) -> Callable[[Event], bool]:
        """A test for unmatched events of a side, set apart or not: whether the other side has passed them."""


@dataclass(frozen=True)
class Judge:
    """Judges the unmatched events of one comparison; it reads the parts of it, and never changes them.

    `clock` is the declared one. Whatever that is, `until` tells the latest arrival time of a side that is
    overdue on the arrival clock, below all times if no event is; `after_ms` is the age from which one is.
    """

    ledger: Ledger
    apart: SetApart
    until: Callable[[Side, Reading], float]
    clock: OverdueClock
    after_ms: int

    def hidden(self, side: Side, reading: Reading) -> int:
        """The number of copies that are not overdue, of forms long unmatched without interruption.

        A lost copy could hide behind fresh ones, so they are suspected, too. Kafka's timestamps decide that,
        whatever the declared clock is.
        """
        until = self.until(side, reading)
        if until == -math.inf:
            return 0
        chains = self.apart.index.chains(side)
        long = [
            copies for since_ms, copies in chains if since_ms <= until and since_ms < copies[0][TIMESTAMP_MS]
        ]
        if not long:
            return 0
        is_overdue = self.clock.is_overdue(side, reading)
        return sum(
            1 for copies in long for event in copies if event[TIMESTAMP_MS] > until and not is_overdue(event)
        )

    def is_alone(self, half: Half, reading: Reading) -> bool:
        """Whether it is certain that a leftover has no other half, or that a difference has its final kind.

        It is once all events that could be its other half are read and settled: by offset, or by the latest
        time at which it may have been written. That time has passed on Kafka's clock, or on the reader's if
        both sides are at rest.
        """
        side, reach = half.finding.side, half.reach
        if reach is None:
            return True
        held, read = self.ledger.held[side.other], self.ledger.read[side.other]
        first_open, oldest_ms = held.first_open(), held.oldest_ms()
        ends = {partition: end + REACH for partition, end in reach.offsets[side.other].items()}
        if ends and all(
            read.get(partition, -1) > end and first_open.get(partition, end + 1) > end
            for partition, end in ends.items()
        ):
            return True
        return (oldest_ms is None or oldest_ms > reach.until_ms) and self._is_over(half, reach, reading)

    def _is_over(self, half: Half, reach: Reach, reading: Reading) -> bool:
        side, lag = half.finding.side, reading.lag
        if min(self.until(side, reading), lag.until[side]) + self.after_ms >= reach.until_ms:
            return True
        least_s = half.finding.event[READ_AT] + self.after_ms / 1000
        return all(reading.at_end) and least_s <= lag.read_s < math.inf

    def passed_scopes(self, reading: Reading) -> Iterator[Passed]:
        """The open scopes whose events are all overdue; where the clock proves, all proven.

        Copies of barriers belong to whole epochs: a scope among them closes with its epoch.

        Complexity: O(1) an open scope, O(n) in the events of passed ones.
        """
        if not self.apart.scopes or not reading.gapless or self.apart.copies:
            return
        left, right = (self.clock.has_passed(side, reading) for side in Side)
        node_of = node_of_scopes(self.apart.index)
        for scope in self.apart.scopes:
            pieces = map(reversed, scope.pieces)  # The last event to come is the last to be passed.
            if not scope.lost and all(map(left, next(pieces))) and all(map(right, next(pieces))):
                node = node_of(scope)
                more = [() if node is None else list(node.gathered(side)) for side in Side]
                if all(map(left, more[0])) and all(map(right, more[1])):
                    yield Passed(scope, len(scope), (places_of(more[0]), places_of(more[1])))
