"""Where a scope closes: the lengths at which its two pieces are compared, and their order.

The pieces of a scope grow as events come, and could be compared again each time. But then batches, and the
side that comes first, would decide where the scope closes. So the content alone decides the lengths at which
the pieces are looked at, and the order of these looks; a look that needs more events waits for them.

- A *sequence* is looked at where its sides have met, as `resync` defines; the look covers all events of both
  pieces before that place. Events under rules or a function are looked at there once: independent events may
  be on either side of the place.
- *Epochs* are looked at behind the n-th barrier of both sides, for growing n.
- All orders, except a sequence that is still searched, are looked at *in step*: at equal numbers of events of
  both sides, which grow in a fixed way. Looks behind barriers and in step come in the order of the shorter of
  their two lengths, so either side may be ahead.

The content of a piece is its events in their order there. Those of several partitions lie as they came in.

The content decides the limit, too: a scope is too large if its pieces have not met within the limit, in step.
No look goes beyond the limit on either side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twinstream.core.diagnosis.resync import Lengths, Resync
from twinstream.core.events import Side
from twinstream.core.order import BARRIER, Epochs, Lanes, Order
from twinstream.core.pairing.pieces import Items

MEETING_RUN = 16
"""Equal events in a row after which two pieces have met again: long enough to rule out chance."""

MEETING_BUDGET = 64
"""The most differences before a meeting: bounds the search to some 5,000 steps."""

STEP_RATIO = 4
"""Each look in step is longer than the last by one part in this many: so the work follows the events."""


class Look(NamedTuple):
    """The lengths of both pieces to look at; `whole`: they have met there; `lost`: they exceed the limit."""

    lengths: Lengths
    whole: bool = False
    lost: bool = False


class Looks:
    """The looks at one scope of an order; `pieces` are its events, which grow.

    `tolerant`: events may be alike and not equal.
    """

    def __init__(self, order: Order, pieces: tuple[Items, Items], *, tolerant: bool) -> None:
        alike = self._are_alike if tolerant else None
        self._is_sequence = isinstance(order, Lanes)
        self._pieces = pieces
        self._by_barriers = isinstance(order, Epochs)
        self._meeting = None if self._by_barriers else Resync(MEETING_RUN, MEETING_BUDGET, self._same, alike)
        self._barriers: tuple[list[int], list[int]] = ([], [])
        self._scanned = [0, 0]
        self._next_step = MEETING_RUN
        self._next_barrier = self._least_barrier = 0

    def _same(self, i: int, j: int) -> bool:
        return self._pieces[0][i].letter == self._pieces[1][j].letter

    def _are_alike(self, i: int, j: int) -> bool:
        return hash(self._pieces[0][i].letter) == hash(self._pieces[1][j].letter)

    def next(self, ended: tuple[bool, bool], limit: int) -> Look | None:
        """The next look; None until more events have come. A side that has `ended` gets no more.

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
        """Whether a run of equal events is possible; saves the comparison where everything differs."""
        left, right = (piece[:length] for piece, length in zip(self._pieces, lengths, strict=True))
        common = {item.letter for item in left}
        return sum(item.letter in common for item in right) >= MEETING_RUN

    def _met(self, meeting: Resync, ended: tuple[bool, bool], most: int) -> Lengths | None:
        lengths = [len(piece) for piece in self._pieces]
        over = [done or length >= most for done, length in zip(ended, lengths, strict=True)]
        return meeting.look((min(lengths[0], most), min(lengths[1], most)), (over[0], over[1]))

    def _behind_a_barrier(self, most: int) -> Look | None:
        """The look behind the next barrier of both sides; some barriers are skipped, to bound the work."""
        while True:
            left, right = (self._barrier(side) for side in Side)
            if left is None or right is None or max(left, right) > most:
                return None
            if max(left, right) >= self._least_barrier:
                return Look((left, right))
            self._next_barrier += 1

    def _waits_for_a_barrier(self, most: int) -> bool:
        """Whether the next look is behind a barrier, and has to wait for it."""
        for side in Side:
            here, there = self._barrier(side), self._barrier(side.other)
            if here is not None and there is None and len(self._pieces[side.other]) <= most:
                return here <= self._next_step
        return False

    def _barrier(self, side: Side) -> int | None:
        """The length of a piece up to the next barrier to look behind; None until that has come.

        A piece is read no further than to that barrier: it may be far ahead.
        """
        places, piece = self._barriers[side], self._pieces[side]
        while self._by_barriers and len(places) <= self._next_barrier and self._scanned[side] < len(piece):
            if piece[self._scanned[side]].route is BARRIER:
                places.append(self._scanned[side] + 1)
            self._scanned[side] += 1
        return places[self._next_barrier] if self._next_barrier < len(places) else None

    def _too_long(self, in_step: int, limit: int) -> Look | None:
        """The look that loses the scope, if the pieces, in step, have more events than the limit."""
        short = min(map(len, self._pieces))
        length = limit // 2 + 1 if 2 * short > limit else limit - short + 1
        return Look(self._up_to(length), lost=True) if length <= in_step else None

    def _in_step(self, ended: Sequence[bool]) -> int:
        """The length that both pieces have reached; a side that has ended does not count."""
        lengths = [len(piece) for piece in self._pieces]
        going_on = [length for length, over in zip(lengths, ended, strict=True) if not over]
        return min(going_on) if going_on else max(lengths)

    def _up_to(self, length: int) -> Lengths:
        return min(length, len(self._pieces[0])), min(length, len(self._pieces[1]))
