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
from twinstream.core.overdue.judging import Judge
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

    `at_end` tells by side whether it is read to its end, `gapless` whether all that came was compared,
    `now_s` is the reader's clock (`Run.read_at`).
    """

    ledger: Ledger
    differences: Differences
    aside: OpenScopes
    judge: Judge
    partnerless: Partnerless

    def survey(self, at_end: tuple[bool, bool], now_s: float, *, gapless: bool) -> Survey:
        """Look; what is proven to have no partner is settled as a difference, and what it leaves looked at.

        Complexity: O(c) in what changed since the last look, O(n) where something is overdue.
        """
        while True:
            survey = self._look(at_end, now_s, gapless=gapless)
            if self.differences.halted:
                return survey
            if (self.differences.disputed or self.differences.explained) and gapless:
                self.differences.settle_disputed(lambda half: self.judge.is_alone(half, at_end, now_s))
            judged = [self.judge.judge(side, at_end, gapless=gapless, now_s=now_s) for side in Side]
            survey.suspicions = sum(one.suspected for one in judged)
            proven = judged[0].proven, judged[1].proven
            if not any(proven):
                return survey
            self.partnerless.settle(proven)

    def _look(self, at_end: tuple[bool, bool], now_s: float, *, gapless: bool) -> Survey:
        self.settle()
        counts = gapless and not self.differences.halted
        self.aside.note_passed(self.judge.passed_scopes(at_end, gapless=counts, now_s=now_s))
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

    def oldest(
        self, side: Side, at_end: tuple[bool, bool], limit: int, *, gapless: bool
    ) -> Iterator[tuple[Event, bool]]:
        """The unmatched events that came first, in order, as of the last look; with each if it is overdue.

        Complexity: O(limit), and O(c) in what is overdue and set aside.
        """
        is_overdue = self.judge.overdue(side, at_end, gapless=gapless)
        for event in islice(self.ledger.held.of(side), limit):
            yield event, is_overdue(event)
