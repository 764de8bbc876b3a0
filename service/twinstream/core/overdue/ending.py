"""The ends of both sides, and the differences that they prove.

When a side has ended, an unmatched event of the other side is a difference: no partner of it can come. When
both have ended, the streams are equivalent if no event is unmatched.

A difference that may be a known one is in dispute until both sides have ended and all unmatched events are
known.

Source: DiffStream (OOPSLA 2020), section 4.2: ended streams.
"""

from __future__ import annotations

from twinstream.core.accounting.differences import Differences
from twinstream.core.accounting.halves import Divergence
from twinstream.core.admission import Admission
from twinstream.core.events import Side
from twinstream.core.matching.bags import Bags
from twinstream.core.matching.lanes import waiting
from twinstream.core.overdue.partnerless import Partnerless
from twinstream.core.rules import Rules


class Ending:
    """The sides of a comparison that have `ended`, and the unmatched events of the others.

    `disputed_at` is the moment of the first difference that an end proved and that may be a known one.
    """

    def __init__(
        self,
        rules: Rules,
        differences: Differences,
        arrivals: Admission,
        partnerless: Partnerless,
        bags: Bags | None,
    ) -> None:
        self._halts, self._differences, self._arrivals = rules.halt, differences, arrivals
        self._ledger, self._certainty = differences.ledger, differences.certainty
        self._partnerless, self._bags = partnerless, bags
        self.ended = [False, False]
        self.disputed_at: int | None = None

    def unanswered(self, side: Side) -> int:
        """The number of unmatched events of a side that neither wait for other partitions nor may match."""
        return self._ledger.unmatched(side) - self._arrivals.waiting(side) - self._unsure(side)

    def _unsure(self, side: Side) -> int:
        """The number of unmatched events of a side that may or may not be left over (see `bags`)."""
        doubtful = {} if self._bags is None else self._bags.doubtful()
        return sum(len(tuple(waiting(held[side][lane]))) for lane, held in doubtful.items())

    def face(self, side: Side, partition: int | None = None) -> None:
        """Prove a difference by the unmatched events of a side, since the other side has ended.

        It is explained at the end of both, when all unmatched events are known; or now, if no later event
        counts. New events of a `partition` prove nothing if an earlier one of it was tried as a proof.
        """
        if self._halts:
            self._partnerless.settle_facing(side)
        elif not self._partnerless.was_asked(side, partition):
            self._prove(side)

    def _prove(self, *sides: Side) -> None:
        """Prove a difference by the unmatched events of these sides; it counts if checked and not known."""
        moment = self._certainty.moment
        if self._differences.may_be_known():
            self.disputed_at = moment if self.disputed_at is None else self.disputed_at
        elif self._certainty.doubts_nothing():
            self._differences.diverge(moment)
        elif self._certainty.proven.at is None:
            for side in sides:
                self._partnerless.prove_at_an_end(side)

    def end(self, side: Side) -> None:
        """End a side: no more of its events will come. Once both end, every event left is a difference."""
        if self.unanswered(side.other):
            self.face(side.other)
        if all(self.ended):
            moment = self._certainty.moment if self.disputed_at is None else self.disputed_at
            if self._ledger.unmatched(Side.LEFT) > self._unsure(Side.LEFT):
                self._prove(*Side)
            self._partnerless.settle_rest(moment)
            self.disputed_at = None

    def facing(self) -> list[Divergence]:
        """The unmatched events of the side that has not ended, as provisional differences."""
        if all(self.ended) or not any(self.ended):
            return []
        return self._partnerless.facing(Side.LEFT if self.ended[Side.RIGHT] else Side.RIGHT)
