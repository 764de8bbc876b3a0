"""Surveys all unmatched events: which are overdue, the oldest one, and their size.

It costs what has changed since the last look, so it is taken once in a while, and the loop over batches knows
nothing of clocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from twinstream.core.accounting.differences import Differences
from twinstream.core.accounting.ledger import Ledger
from twinstream.core.events import Event, Side
from twinstream.core.open_scopes import OpenScopes
from twinstream.core.overdue.judging import Judge, OverdueClock, Reading
from twinstream.core.overdue.partnerless import Partnerless


@dataclass
class Survey:
    """What one look at everything unmatched found.

    `first_open` is the smallest unmatched offset by side and partition, `oldest_ms` the smallest timestamp of
    an unmatched event, `suspicions` the number of overdue events that are not proven to have no partner,
    `held_bytes` the size of the records that wait, by side.
    """

    first_open: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    oldest_ms: int | None = None
    suspicions: int = 0
    held_bytes: list[int] = field(default_factory=lambda: [0, 0])


@dataclass(frozen=True)
class Surveyor:
    """Looks at what waits in the parts of one comparison, and settles what its clock proves.

    `judge` and `clock` tell which are overdue, `partnerless` settles those that have no partner.
    """

    ledger: Ledger
    differences: Differences
    aside: OpenScopes
    judge: Judge
    clock: OverdueClock
    partnerless: Partnerless

    def survey(self, reading: Reading) -> Survey:
        """Look; what is proven to have no partner is settled as a difference, and what it leaves looked at.

        Complexity: O(c) in what changed since the last look, O(n) where something is overdue.
        """
        while True:
            survey = self._look(reading)
            if self.differences.halted:
                return survey
            if (self.differences.disputed or self.differences.explained) and reading.gapless:
                self.differences.settle_disputed(lambda half: self.judge.is_alone(half, reading))
            found = [self.clock.overdue(side, reading) for side in Side]
            suspected = (self.judge.hidden(side, reading) + found[side].number for side in Side)
            proven = found[0].proven, found[1].proven
            survey.suspicions = sum(suspected) - sum(map(len, proven))
            if not any(proven):
                return survey
            self.partnerless.settle(proven)

    def _look(self, reading: Reading) -> Survey:
        self.settle()
        counts = reading.gapless and not self.differences.halted
        self.aside.note_passed(self.judge.passed_scopes(reading._replace(gapless=counts)))
        self.ledger.trim()
        held = [self.ledger.held.of(side) for side in Side]
        return Survey(
            (held[0].first_open(), held[1].first_open()),
            min((oldest for one in held if (oldest := one.oldest_ms()) is not None), default=None),
            held_bytes=[one.size_bytes for one in held],
        )

    def settle(self) -> None:
        """Take in what came and left since the last time, which is only listed until then."""
        self.aside.drop()
        self.ledger.held.settle()

    def oldest(self, side: Side, reading: Reading, limit: int) -> Iterator[tuple[Event, bool]]:
        """The unmatched events that came first, in order, as of the last look; with each if it is overdue.

        Complexity: O(limit), and O(c) in what is overdue and set aside.
        """
        is_overdue = self.clock.is_overdue(side, reading)
        for event in islice(self.ledger.held.of(side), limit):
            yield event, is_overdue(event)
