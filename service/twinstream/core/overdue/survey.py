"""Surveys all unmatched events: the overdue ones, the oldest one, and their size.

The cost depends on the changes since the last look. A survey is taken once in a while, so the loop over
batches needs no clocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from twinstream.core.accounting.differences import Differences
from twinstream.core.accounting.ledger import Ledger
from twinstream.core.events import Event, Side
from twinstream.core.open_scopes import OpenScopes
from twinstream.core.overdue.judging import Judge, OverdueClock, Reading
from twinstream.core.overdue.partnerless import Partnerless
from twinstream.core.overdue.suspected import Suspected
from twinstream.core.tables.tables import Tables


@dataclass
class Survey:
    """The result of one look at all unmatched events.

    `first_open` is the smallest unmatched offset by side and partition, `oldest_ms` the smallest timestamp of
    an unmatched event, `suspicions` the number of overdue events that are not proven to have no partner,
    `held_bytes` the size of the unmatched records, by side.
    """

    first_open: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    oldest_ms: int | None = None
    suspicions: int = 0
    held_bytes: list[int] = field(default_factory=lambda: [0, 0])


@dataclass(frozen=True)
class Surveyor:
    """Looks at the unmatched events of one comparison, and settles those that its clock proves.

    `judge` and `clock` decide which are overdue, `suspected` keeps that while a side has unread records, and
    `partnerless` settles those that have no partner. `tables` are given where rows wait for later ones of
    their key.
    """

    ledger: Ledger
    differences: Differences
    open_scopes: OpenScopes
    judge: Judge
    clock: OverdueClock
    suspected: Suspected
    partnerless: Partnerless
    tables: Tables | None = None

    def survey(self, reading: Reading) -> Survey:
        """Survey the unmatched events; those proven to have no partner are settled, and the rest surveyed.

        Complexity: O(c) in the changes since the last look, O(n) where an event is overdue.
        """
        while True:
            survey = self._look(reading)
            if self.differences.halted:
                return survey
            if (self.differences.disputed or self.differences.explained) and reading.gapless:
                self.differences.settle_disputed(lambda half: self.judge.is_alone(half, reading))
            found = [self.clock.overdue(side, reading) for side in Side]
            proven = found[0].proven, found[1].proven
            if not any(proven):
                survey.suspicions = self._suspicions([one.number for one in found], reading)
                return survey
            self.partnerless.settle(proven)

    def _suspicions(self, overdue: Sequence[int], reading: Reading) -> int:
        """The suspicions of both sides, of which so many events are `overdue`."""
        numbers = [overdue[side] + self.judge.hidden(side, reading) for side in Side]
        if all(reading.at_end):
            self.suspected.note(numbers)
            return sum(numbers)
        return sum(map(max, numbers, self.suspected.left()))

    def _look(self, reading: Reading) -> Survey:
        self.settle()
        counts = reading.gapless and not self.differences.halted
        self.open_scopes.note_passed(self.judge.passed_scopes(reading._replace(gapless=counts)))
        self.ledger.trim()
        held = self.ledger.held
        first_open, oldest_ms = [one.first_open() for one in held], [one.oldest_ms() for one in held]
        if self.tables is not None:  # Rows that are replaced are settled, and their keys are not.
            oldest_ms.append(self.tables.oldest_ms())
            for side, first in zip(Side, first_open, strict=True):
                for partition, offset in self.tables.first_open(side).items():
                    first[partition] = min(first.get(partition, offset), offset)
        return Survey(
            (first_open[0], first_open[1]),
            min((oldest for oldest in oldest_ms if oldest is not None), default=None),
            held_bytes=[one.size_bytes for one in held],
        )

    def settle(self) -> None:
        """Apply the arrivals and departures of unmatched events that were only listed since the last call."""
        self.open_scopes.drop()
        for held in self.ledger.held:
            held.settle()

    def oldest(self, side: Side, reading: Reading, limit: int) -> Iterator[tuple[Event, bool]]:
        """The oldest unmatched events in order, as of the last look, each with whether it is overdue.

        Complexity: O(limit), and O(c) in the events that are overdue or set aside.
        """
        is_overdue = self.clock.is_overdue(side, reading)
        for event in islice(self.ledger.held[side].oldest_first(), limit):
            yield event, is_overdue(event)
