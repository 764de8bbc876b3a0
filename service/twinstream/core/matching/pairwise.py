"""Pairwise: the plain instance of the algorithm, for a dependence that only a function knows.

Nothing can be looked up, so each event is compared with every unmatched event of a side. Declare an order
wherever possible.

**The algorithm** has three steps, as in the paper. U[i] are the *unmatched* events of side i, in the order in
which they came. Two events are *dependent* if they may not change places. An event is *minimal* in U[i] if it
depends on no event of U[i] that came before it. For an event x of side i, with j the other side:

1. if x is minimal in U[i], and an event y that is minimal in U[j] equals x, both are matched;
2. else, if an event of U[j] depends on x, the streams are now known to differ, and the part of the order that
   the difference touches is set aside;
3. else x is unmatched, and is added to U[i].

Equal events have equal dependences. So of equal events of a side only the oldest can be minimal. And if U[j]
has an equal y, x is always minimal: an event of U[i] that depends on x also depends on y, and step 2 would
have found that pair before. That is why an index needs to look at only a few events.

Every other index answers the same questions by a look-up, which its docstring names.

Source: DiffStream (OOPSLA 2020), section 4.2 (the algorithm), 4.3 (it is optimal).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from twinstream.core.events import Event, Side
from twinstream.core.matching.index import UNANSWERED, Hooks, Index, Pairs, SetAside
from twinstream.core.order import Pairwise
from twinstream.errors import RelationError


class PairwiseIndex(Index):
    """The unmatched events of both sides as lists, oldest first.

    Complexity: O(n) calls of the function for each event, in the number of unmatched events.
    """

    __slots__ = ("_aside", "_depth", "_hooks", "_order", "_unmatched")

    def __init__(self, order: Pairwise, hooks: Hooks, depth: int) -> None:
        self._order, self._hooks, self._depth = order, hooks, depth
        self._unmatched: tuple[list[Event], list[Event]] = ([], [])
        self._aside: SetAside | None = None

    def answer(self, side: Side, event: Event, route: Any) -> Event | None:
        """Take steps 1 and 2. Raises RelationError if the function distinguishes between equal events."""
        if self._aside is not None:
            self._aside.add(side, event)
            return None
        mine, theirs = self._unmatched[side], self._unmatched[side.other]
        equal = next((one for one in theirs if self._hooks.equal(one, event)), None)
        if equal is not None:
            self._check_law(event, equal, [one for one in theirs if one is not equal])
            before = takewhile(lambda one: one is not equal, theirs)
            if not self._depends(event, mine) and not self._depends(equal, before):
                self.remove(side.other, (equal,))
                return equal  # step 1
        if self._depends(event, theirs):
            self._set_aside(side, event)  # step 2
            return None
        return UNANSWERED

    def _set_aside(self, side: Side, event: Event) -> None:
        self._aside = self._hooks.open(self, self._order, self._depth)
        for owner in Side:
            for one in self._unmatched[owner]:
                self._aside.add(owner, one)
        self._unmatched = ([], [])
        self._aside.add(side, event)

    def _depends(self, event: Event, others: Iterable[Event]) -> bool:
        return any(self._dependent(event, one) for one in others)

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
        self._unmatched[side].append(event)

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
    return f"partition {event[1]} offset {event[2]}"
