"""Pairwise: the steps of matching as they stand in the paper, for a dependence that only a function knows.

Nothing can be looked up, so every unmatched event of a side is asked for: the cost of an event grows with
them. Whoever can, declares an order instead.

Source: DiffStream, section 4.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from twinstream.core.events import Event, Side
from twinstream.core.matching.index import UNANSWERED, Hooks, Index, Pairs, SetAside, without
from twinstream.core.order import Pairwise
from twinstream.errors import RelationError


class PairwiseIndex(Index):
    """The unmatched events of both sides as lists, oldest first."""

    __slots__ = ("_aside", "_depth", "_hooks", "_order", "_waiting")

    def __init__(self, order: Pairwise, hooks: Hooks, depth: int) -> None:
        self._order, self._hooks, self._depth = order, hooks, depth
        self._waiting: tuple[list[Event], list[Event]] = ([], [])
        self._aside: SetAside | None = None

    def take(self, side: Side, event: Event, route: Any) -> Event | None:
        partner = self.answer(side, event, route)
        if partner is UNANSWERED:
            self._waiting[side].append(event)
            return None
        return partner

    def answer(self, side: Side, event: Event, route: Any) -> Event | None:
        if self._aside is not None:
            self._aside.add(side, event)
            return None
        theirs = self._waiting[side.other]
        opposing = [self._related(event, other) for other in theirs]
        place = next((n for n, other in enumerate(theirs) if self._equal(event, other)), None)
        if place is not None:
            self._check_law(event, theirs[place], theirs, opposing)
            if not any(opposing[:place]) and not self._depends_on_own(side, event):
                return theirs.pop(place)
        if not any(opposing):
            return UNANSWERED
        self._set_aside(side, event)
        return None

    def _check_law(
        self, event: Event, partner: Event, others: Sequence[Event], opposing: Sequence[bool]
    ) -> None:
        """Equal events must have equal dependences."""
        for other, opposed in zip(others, opposing, strict=True):
            if other is not partner and self._related(partner, other) != opposed:
                raise RelationError(
                    f"`order.callable` tells equal events apart: only one of those at {_place(event)} and "
                    f"{_place(partner)} depends on the one at {_place(other)}"
                )

    def _depends_on_own(self, side: Side, event: Event) -> bool:
        return any(self._related(event, other) for other in self._waiting[side])

    def _related(self, one: Event, other: Event) -> bool:
        try:
            return self._order.related(one[0], other[0])
        except RelationError as error:
            raise RelationError(f"{error}, for the events at {_place(one)} and {_place(other)}") from None

    def _equal(self, one: Event, another: Event) -> bool:
        return one[0][1] == another[0][1] or self._hooks.equal(one, another)

    def _set_aside(self, side: Side, event: Event) -> None:
        self._aside = self._hooks.open(self, self._order, self._depth)
        for owner in Side:
            for waiting in self._waiting[owner]:
                self._aside.add(owner, waiting)
        self._waiting = ([], [])
        self._aside.add(side, event)

    def empty(self, side: Side) -> bool:
        return not self._waiting[side]

    def unmatched(self, side: Side) -> Iterator[tuple[Event, int]]:
        return ((event, event[3]) for event in self._waiting[side])

    def restore(self, side: Side, event: Event, route: Any, since_ms: int) -> None:
        self._waiting[side].append(event)

    def remove(self, side: Side, events: Sequence[Event]) -> None:
        self._waiting[side][:] = [event for event, _ in without(self.unmatched(side), events)]

    def scopes(self) -> Iterator[SetAside]:
        return iter(() if self._aside is None else (self._aside,))

    def adopt(self, scope: SetAside, route: Any) -> None:
        scope.owner = self
        self._aside = scope

    def resume(self, scope: SetAside, tails: tuple[Sequence[Event], Sequence[Event]]) -> Pairs:
        self._aside = None
        return self.feed_again(scope, tails)


def _place(event: Event) -> str:
    return f"partition {event[1]} offset {event[2]}"
