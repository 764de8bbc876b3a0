"""Pairwise: the plain instance of the algorithm, for a dependence that only a function knows.

Nothing can be looked up, so each event is compared with every unmatched event of a side. Declare an order
wherever possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from twinstream.core.events import Event, Side, in_kafka
from twinstream.core.matching.algorithm import Algorithm
from twinstream.core.matching.index import Hooks, Pairs, SetAside
from twinstream.core.order import Pairwise
from twinstream.errors import RelationError


class PairwiseIndex(Algorithm):
    """The unmatched events of both sides as lists, oldest first.

    Complexity: O(n) calls of the function for each event, in the number of unmatched events.
    """

    __slots__ = ("_aside", "_depth", "_hooks", "_order", "_unmatched")

    def __init__(self, order: Pairwise, hooks: Hooks, depth: int) -> None:
        self._order, self._hooks, self._depth = order, hooks, depth
        self._unmatched: tuple[list[Event], list[Event]] = ([], [])
        self._aside: SetAside | None = None

    def answer(self, side: Side, event: Event, route: Any) -> Event | None:
        if self._aside is not None:
            self._aside.add(side, event)
            return None
        return super().answer(side, event, route)

    def oldest_equal(self, side: Side, event: Event) -> Event | None:
        """As in `Algorithm`. Raises RelationError if the function distinguishes between equal events."""
        found = next((one for one in self._unmatched[side] if self._hooks.equal(one, event)), None)
        if found is not None:
            self._check_law(event, found, [one for one in self._unmatched[side] if one is not found])
        return found

    def is_minimal(self, side: Side, event: Event) -> bool:
        before = takewhile(lambda one: one is not event, self._unmatched[side])
        return not any(self._dependent(event, one) for one in before)

    def any_dependent(self, side: Side, event: Event) -> bool:
        return any(self._dependent(event, one) for one in self._unmatched[side])

    def match(self, side: Side, event: Event) -> Event:
        self.remove(side, (event,))
        return event

    def set_aside(self, side: Side, event: Event) -> None:
        self._aside = self._hooks.open(self, self._order, self._depth)
        for owner in Side:
            for one in self._unmatched[owner]:
                self._aside.add(owner, one)
        self._unmatched = ([], [])
        self._aside.add(side, event)

    def add(self, side: Side, event: Event) -> None:
        self._unmatched[side].append(event)

    def _check_law(self, event: Event, equal: Event, others: Sequence[Event]) -> None:
        for other in others:
            if self._dependent(event, other) != self._dependent(equal, other):
                raise RelationError(
                    f"`order.callable` tells equal events apart: only one of those at {_place(event)} and "
                    f"{_place(equal)} depends on the one at {_place(other)}"
                )

    def _dependent(self, one: Event, other: Event) -> bool:
        try:
            return self._order.related(one[0], other[0])
        except RelationError as error:
            raise RelationError(f"{error}, for the events at {_place(one)} and {_place(other)}") from None

    def empty(self, side: Side) -> bool:
        return not self._unmatched[side]

    def unmatched(self, side: Side) -> Iterator[tuple[Event, int]]:
        return ((event, event[3]) for event in self._unmatched[side])

    def restore(self, side: Side, event: Event, route: Any, since_ms: int) -> None:
        self.add(side, event)

    def remove(self, side: Side, events: Sequence[Event]) -> None:
        gone = set(map(id, events))
        self._unmatched[side][:] = [event for event in self._unmatched[side] if id(event) not in gone]

    def scopes(self) -> Iterator[SetAside]:
        return iter(() if self._aside is None else (self._aside,))

    def adopt(self, scope: SetAside, route: Any) -> None:
        scope.owner = self
        self._aside = scope

    def resume(self, scope: SetAside, tails: tuple[Sequence[Event], Sequence[Event]]) -> Pairs:
        self._aside = None
        return self.feed_again(scope, tails)


def _place(event: Event) -> str:
    return f"partition {event[1]} offset {in_kafka(event[2])}"
