"""The algorithm: the three steps of matching, as in the paper.

U[i] are the *unmatched* events of side i, in the order in which they came. Two events are *dependent* if they
may not change places. An event is *minimal* in U[i] if it depends on no event of U[i] that came before it.
For an event x of side i, with j the other side:

1. if x is minimal in U[i], and an event y that is minimal in U[j] equals x, both are matched;
2. else, if an event of U[j] depends on x, the streams are now known to differ, and the part of the order that
   the difference touches is set aside;
3. else x is unmatched, and is added to U[i].

Equal events have equal dependences. So of equal events of a side only the oldest can be minimal. And if U[j]
has an equal y, x is always minimal: an event of U[i] that depends on x also depends on y, and step 2 would
have found that pair before. That is why an index needs to look at only a few events.

`pairwise` is the plain instance: it compares x with every unmatched event. Every other index answers the same
questions by a look-up, which its docstring names.

Source: DiffStream (OOPSLA 2020), section 4.2 (the algorithm), 4.3 (it is optimal).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from twinstream.core.events import Event, Side
from twinstream.core.matching.index import UNANSWERED, Index


class Algorithm(Index):
    """The unmatched events of both sides, and the three steps for a new event."""

    __slots__ = ()

    def take(self, side: Side, event: Event, route: Any) -> Event | None:
        """Take the three steps for an event; returns its partner, or None if it is unmatched or set aside."""
        partner = self.answer(side, event, route)
        if partner is UNANSWERED:
            self.add(side, event)  # step 3
            return None
        return partner

    def answer(self, side: Side, event: Event, route: Any) -> Event | None:  # noqa: ARG002 - for look-ups
        """Take steps 1 and 2; returns `UNANSWERED` if neither applies."""
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
        """Whether an event of a side, unmatched or new, depends on no unmatched one before it."""

    @abstractmethod
    def any_dependent(self, side: Side, event: Event) -> bool:
        """Whether an unmatched event of a side depends on an event of the other."""

    @abstractmethod
    def match(self, side: Side, event: Event) -> Event:
        """Remove an unmatched event of a side, which now has its partner, and return it."""

    @abstractmethod
    def set_aside(self, side: Side, event: Event) -> None:
        """Set aside the part of the order touched by a difference, which an event of a side has revealed."""

    @abstractmethod
    def add(self, side: Side, event: Event) -> None:
        """Add an event to the unmatched ones of its side."""
