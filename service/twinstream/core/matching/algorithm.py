"""The algorithm: the three steps of matching, as they stand in the paper.

U[i] are the *unmatched* events of side i, in the order in which they came. Two events are *dependent* if they
may not change places. An event is *minimal* in U[i] if it depends on no event of U[i] that came before it.
For an event x of side i, with j the other side:

1. x is minimal in U[i], and a y that is minimal in U[j] equals x: both are matched;
2. else an event of U[j] depends on x: the streams differ, known now, and what the difference touches is set
   aside;
3. else x is unmatched, and goes to U[i].

Equal events have equal dependences. So of equal events of a side only the oldest can be minimal, and where an
equal y is there, x is minimal by itself: an event of U[i] that depends on x depends on y, and step 2 would
have found that pair before. That is why an index needs to look at a few events only.

`pairwise` is the plain instance: it asks every unmatched event. The other indexes answer the same questions
by a look-up, and each says by which.

Source: DiffStream (OOPSLA 2020), section 4.2 (the algorithm), 4.3 (it is optimal).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from twinstream.core.events import Event, Side
from twinstream.core.matching.index import UNANSWERED, Index


class Algorithm(Index):
    """The unmatched events of both sides, and the steps for one event more."""

    __slots__ = ()

    def take(self, side: Side, event: Event, route: Any) -> Event | None:
        """The three steps for one event: its partner, or None where it is unmatched or set aside."""
        partner = self.answer(side, event, route)
        if partner is UNANSWERED:
            self.add(side, event)  # step 3
            return None
        return partner

    def answer(self, side: Side, event: Event, route: Any) -> Event | None:  # noqa: ARG002 - for look-ups
        """The steps 1 and 2: `UNANSWERED` where neither holds."""
        other = side.other
        equal = self.oldest_equal(other, event)
        if equal is not None and self.is_minimal(side, event) and self.is_minimal(other, equal):
            return self.match(other, equal)  # step 1
        if self.any_dependent(other, event):
            self.set_aside(side, event)  # step 2
            return None
        return UNANSWERED

    @abstractmethod
    def oldest_equal(self, side: Side, event: Event) -> Event | None:
        """The oldest unmatched event of a side that equals an event."""

    @abstractmethod
    def is_minimal(self, side: Side, event: Event) -> bool:
        """Whether an event of a side, unmatched or just come, depends on no unmatched one before it."""

    @abstractmethod
    def any_dependent(self, side: Side, event: Event) -> bool:
        """Whether an unmatched event of a side depends on an event of the other."""

    @abstractmethod
    def match(self, side: Side, event: Event) -> Event:
        """Take an unmatched event of a side out, which has its partner now."""

    @abstractmethod
    def set_aside(self, side: Side, event: Event) -> None:
        """Set aside what the difference touches that an event of a side makes known."""

    @abstractmethod
    def add(self, side: Side, event: Event) -> None:
        """Let an event of a side be unmatched."""
