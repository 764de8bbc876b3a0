"""Where a scope closes: how much of its two pieces is compared, and in which order.

The pieces of a scope grow as events come, and each time they could be compared anew. But then where it closes
would be a matter of batches and of which side comes first. So the content decides at which lengths they are
looked at, and in which order; a look that more events are needed for is waited for.

- A *sequence* is looked at where it has met, as `resync` defines; what stands before that place is all that
  there is of both pieces. Events under rules or a function are looked at there once: what is independent may
  stand on either side of the place.
- *Epochs* are looked at behind the n-th barrier of both sides, for growing n.
- All, but a sequence that is still searched, are looked at *in step*: as many events of the one side as of
  the other, for lengths that grow in a fixed way. Looks behind barriers and in step come in the order of the
  shorter of their two lengths, so that either side may be ahead.

A limit is a matter of content, too: pieces that have not met within it, in step, are too many. No look goes
further than that on either side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twinstream.core.diagnosis.resync import Lengths, Resync
from twinstream.core.order import BARRIER, Epochs, Lanes, Order
from twinstream.core.pairing.pieces import Item

MEETING_RUN = 16
"""Equal events in a row after which two pieces have met again: long enough that chance does not make it."""

MEETING_BUDGET = 64
"""Differences behind which a meeting is searched for: bounds the search to some 5,000 steps."""

STEP_RATIO = 4
"""After a look in step, such a part of its length until the next: so work follows the events."""


class Look(NamedTuple):
    """How much of both pieces to look at; `whole`: they have met there; `lost`: they are too many."""

    lengths: Lengths
    whole: bool = False
    lost: bool = False


class Looks:
    """The looks at one scope of an order; `pieces` are its events, which grow.

    `tolerant` tells that events may be alike and not equal.
    """

    def __init__(self, order: Order, pieces: tuple[list[Item], list[Item]], *, tolerant: bool) -> None:
        alike = self._are_alike if tolerant else None
        self._is_sequence = isinstance(order, Lanes)
        self._pieces = pieces
        by_barriers = isinstance(order, Epochs)
        self._meeting = None if by_barriers else Resync(MEETING_RUN, MEETING_BUDGET, self._same, alike)
        self._barriers: tuple[list[int], list[int]] | None = ([], []) if by_barriers else None
        self._scanned = [0, 0]
        self._next_step = MEETING_RUN
        self._next_barrier = self._least_barrier = 0

    def _same(self, i: int, j: int) -> bool:
        return self._pieces[0][i].letter == self._pieces[1][j].letter

    def _are_alike(self, i: int, j: int) -> bool:
        return hash(self._pieces[0][i].letter) == hash(self._pieces[1][j].letter)

    def next(self, ended: tuple[bool, bool], limit: int) -> Look | None:
        """The next look; None until more has come. Of a side that has `ended` nothing more comes.

        Complexity: O(d) for each event that came since the last call, d as in `resync`.
        """
        most = limit // 2
        if self._meeting is not None and not self._meeting.exhausted:
            met = self._met(self._meeting, ended, most)
            if met is not None:
                if not self._is_sequence:
                    self._meeting = None
                return Look(met, whole=self._is_sequence)
            if not self._meeting.exhausted:
                return None
        in_step = self._in_step(ended)
        while True:
            if (look := self._behind_a_barrier(most)) is not None and min(look.lengths) <= self._next_step:
                self._next_barrier += 1
                self._least_barrier = max(look.lengths) + max(look.lengths) // STEP_RATIO
                return look
            if self._next_step > min(in_step, most) or self._waits_for_a_barrier(most):
                break
            lengths = self._up_to(self._next_step)
            self._next_step += max(MEETING_RUN, self._next_step // STEP_RATIO)
            if self._may_have_met(lengths):
                return Look(lengths)
        return self._too_long(in_step, limit)

    def _may_have_met(self, lengths: Lengths) -> bool:
        """Whether a run of equal events is possible: where everything differs nothing is compared in vain."""
        left, right = (piece[:length] for piece, length in zip(self._pieces, lengths, strict=True))
        common = {item.letter for item in left}
        return sum(item.letter in common for item in right) >= MEETING_RUN

    def _met(self, meeting: Resync, ended: tuple[bool, bool], most: int) -> Lengths | None:
        lengths = [len(piece) for piece in self._pieces]
        over = [done or length >= most for done, length in zip(ended, lengths, strict=True)]
        return meeting.look((min(lengths[0], most), min(lengths[1], most)), (over[0], over[1]))

    def _behind_a_barrier(self, most: int) -> Look | None:
        """The look behind the next barrier of both sides; some are passed over, which bounds the work."""
        if self._barriers is None:
            return None
        left, right = self._all_barriers(self._barriers)
        while self._next_barrier < min(len(left), len(right)):
            lengths = left[self._next_barrier], right[self._next_barrier]
            if max(lengths) > most:
                return None
            if max(lengths) >= self._least_barrier:
                return Look(lengths)
            self._next_barrier += 1
        return None

    def _waits_for_a_barrier(self, most: int) -> bool:
        """Whether a look behind a barrier comes before the next in step, and cannot be made yet."""
        if self._barriers is None:
            return False
        for side, places in enumerate(self._barriers):
            other = self._barriers[1 - side]
            if len(places) > self._next_barrier >= len(other) and len(self._pieces[1 - side]) <= most:
                return places[self._next_barrier] <= self._next_step
        return False

    def _all_barriers(self, found: tuple[list[int], list[int]]) -> tuple[list[int], list[int]]:
        """How much of each piece stands up to each of its barriers, of which some are found."""
        for side, piece in enumerate(self._pieces):
            places = range(self._scanned[side], len(piece))
            found[side].extend(place + 1 for place in places if piece[place].route is BARRIER)
            self._scanned[side] = len(piece)
        return found

    def _too_long(self, in_step: int, limit: int) -> Look | None:
        """Where the pieces, in step, have more events than the limit."""
        short = min(map(len, self._pieces))
        length = limit // 2 + 1 if 2 * short > limit else limit - short + 1
        return Look(self._up_to(length), lost=True) if length <= in_step else None

    def _in_step(self, ended: Sequence[bool]) -> int:
        """Up to which length both pieces have come."""
        lengths = [len(piece) for piece in self._pieces]
        going_on = [length for length, over in zip(lengths, ended, strict=True) if not over]
        return min(going_on) if going_on else max(lengths)

    def _up_to(self, length: int) -> Lengths:
        return min(length, len(self._pieces[0])), min(length, len(self._pieces[1]))
