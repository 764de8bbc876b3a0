"""The interface of every index of unmatched events.

An index holds the unmatched events of both sides at one node of the order, and takes the three steps of the
`algorithm` for each new event.

In step 2 an index *sets aside* the smallest part of itself that the difference touches, as a `Scope`: events
of that part go to the scope until the index resumes it. See `scope`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, cast

from twinstream.core.events import Canonical, Event, Side
from twinstream.core.matching.bags import Bags
from twinstream.core.order import Order

UNANSWERED: Final = cast("Event", object())
"""The result of `Index.answer` for an event that has no partner and may not stay unmatched."""


class Pairs(NamedTuple):
    """The pairs found: events that were unmatched, and at the same indices the new events they matched."""

    partners: list[Event]
    events: list[Event]


class SetAside(Protocol):
    """A part that an index has set aside, as the index sees it: see `scope`.

    `owner` is the index that it was set aside from, `order` that of its events, at `depth` in their routes.
    `pieces` are its events by side, `example` is the last that came to it; a `lost` one keeps none. While it
    is `gathering`, other events of the same part may still match; else it takes every event.
    """

    owner: Index
    order: Order
    depth: int
    pieces: tuple[list[Event], list[Event]]
    example: Event

    @property
    def gathering(self) -> bool: ...  # noqa: D102

    @property
    def lost(self) -> bool: ...  # noqa: D102

    def step(self, step: str) -> None:
        """Begin to `gather` other events, or to `collect` every event."""

    def begin(self, side: Side, events: Sequence[Event]) -> None:
        """Add the unmatched events of the part, as it is set aside."""

    def add(self, side: Side, event: Event) -> None:
        """Add an event."""

    def __len__(self) -> int:
        """The number of its events."""

    def absorb(self, part: Any) -> None:
        """Take over the events of a scope within this one."""

    def give(self, side: Side, events: Sequence[Event], scope: Any) -> None:
        """Move some of its events to a scope that has just opened."""

    def put_in_order(self) -> None:
        """Sort the events of each side as they were written."""

    def route(self, event: Event) -> Any:
        """The route of an event at the node of its owner."""


@dataclass(frozen=True)
class Hooks:
    """The functions of the comparison that its indexes call.

    `canonical` maps contents to canonical form; `equal` decides whether two events with different contents
    are equal. `open(owner, order, depth)` makes the scope of a part that is set aside. `finish` is called
    when no more events can come to a scope, `settle(index)` to close the scopes of a finished index that have
    met, `absorb(whole, part)` when a larger scope has taken over all of another, `came_back` for events that
    a lost scope had dropped. `limit` is the number of events kept for a scope. `bags` is set where equal
    canonical forms do not make equal events; `doubt` is called where the next events to be set aside may not
    be a difference.
    """

    canonical: Canonical
    equal: Callable[[Event, Event], bool]
    open: Callable[[Index, Order, int], Any]
    finish: Callable[[Any], None]
    settle: Callable[[Index], None]
    absorb: Callable[[Any, Any], None]
    came_back: Callable[[Side, Sequence[Event]], None]
    limit: int
    bags: Bags | None = None
    doubt: Callable[[], None] = lambda: None


class Index(ABC):
    """The unmatched events of one node of the order. Routes are those of this node."""

    __slots__ = ()

    def take(self, side: Side, event: Event, route: Any) -> Event | None:
        """Take the three steps for an event: its partner, or None if it is unmatched or in a scope."""
        partner = self.answer(side, event, route)
        if partner is UNANSWERED:
            self.restore(side, event, route, event[3])
            return None
        return partner

    @abstractmethod
    def answer(self, side: Side, event: Event, route: Any) -> Event | None:
        """Like `take`, but an event that cannot match is `UNANSWERED`, since the other side is past it."""

    @abstractmethod
    def empty(self, side: Side) -> bool:
        """Whether a side has no unmatched event here; events in a scope do not count."""

    @abstractmethod
    def unmatched(self, side: Side) -> Iterator[tuple[Event, int]]:
        """The unmatched events of a side, each with the timestamp since which equal ones have been unmatched.

        Events set aside are not among them. The order is one in which they could have come.
        """

    def chains(self, side: Side) -> Iterator[tuple[int, Sequence[Event]]]:  # noqa: ARG002 - a bag has some
        """The unmatched copies of each form of a bag, with the time since which there always was a copy.

        Only forms whose oldest copy came at another time: later, or earlier where Kafka's times go back.
        """
        return iter(())

    @abstractmethod
    def restore(self, side: Side, event: Event, route: Any, since_ms: int) -> None:
        """Restore an unmatched event; called for the events of `unmatched` in their order."""

    @abstractmethod
    def remove(self, side: Side, events: Sequence[Event]) -> None:
        """Drop unmatched events of a side, which are settled without a partner."""

    def gathered(self, side: Side) -> Iterator[Event]:  # noqa: ARG002 - epochs gather
        """The unmatched events of a side that will go to a scope with others, unless they match before."""
        return iter(())

    def torn(self) -> Iterator[Index]:
        """The nodes whose scopes cannot be explained without the unmatched events around them."""
        return iter(())

    def complete(self) -> None:
        """Give gathering scopes, and those of torn nodes, all unmatched events of their parts.

        No more events of either side come.
        """
        return

    @abstractmethod
    def scopes(self) -> Iterator[Any]:
        """The open scopes of this index and of its parts."""

    @abstractmethod
    def adopt(self, scope: SetAside, route: Any) -> None:
        """Set aside again the empty part that belongs to `scope`, which has an event of this route."""

    def kept_since_lost(self, scope: SetAside) -> tuple[list[Event], list[Event]]:  # noqa: ARG002 - epochs keep
        """The events by side that are kept to find where the sides of a lost scope meet again."""
        return [], []

    def keep_since_lost(self, scope: SetAside, kept: tuple[Sequence[Event], Sequence[Event]]) -> None:
        """Take over what was `kept_since_lost` for a lost scope that was adopted."""
        raise AssertionError(f"{self} keeps none of {kept} for {scope}")

    @abstractmethod
    def resume(self, scope: SetAside, tails: tuple[Sequence[Event], Sequence[Event]]) -> Pairs:
        """Take back the part that a scope stands for, and feed the events that the scope did not settle.

        Returns the pairs among them, the left events as partners.
        """

    def feed(self, side: Side, events: Iterable[Event]) -> Pairs:
        """Call `take` for events of one side in order; their whole routes are those of this node."""
        take, pairs = self.take, Pairs([], [])
        for event in events:
            if (partner := take(side, event, event[0][0])) is not None:
                pairs.partners.append(partner)
                pairs.events.append(event)
        return pairs

    def match_twins(self, side: Side, twins: Sequence[Event]) -> int:  # noqa: ARG002 - lanes and epochs do
        """Match new records of a side with their twins, up to the first that is not its minimal partner.

        Returns the number of pairs, which are those of `feed`. The rest is to be fed.
        """
        return 0

    def shrink(self) -> None:
        """Give back the memory of many unmatched events that have left. Complexity: O(n) in the others."""
        return

    def feed_again(self, scope: SetAside, tails: tuple[Sequence[Event], Sequence[Event]]) -> Pairs:
        """Feed the events that a scope returns; of the pairs, the left events are the partners."""
        pairs = Pairs([], [])
        for side in Side:
            found = (
                self._feed_below(scope, side, tails[side]) if scope.depth else self.feed(side, tails[side])
            )
            left, right = (found.events, found.partners) if side is Side.LEFT else found
            pairs.partners.extend(left)
            pairs.events.extend(right)
        return pairs

    def _feed_below(self, scope: SetAside, side: Side, events: Iterable[Event]) -> Pairs:
        """`feed` for events whose whole routes are not those of this node."""
        pairs = Pairs([], [])
        for event in events:
            if (partner := self.take(side, event, scope.route(event))) is not None:
                pairs.partners.append(partner)
                pairs.events.append(event)
        return pairs


def node_of_scopes(index: Index) -> Callable[[SetAside], Index | None]:
    """For scopes of an index: the node that a scope is explained with, where it needs events around it.

    Complexity: O(n) in the parts and scopes of the index.
    """
    torn = {scope: node for node in index.torn() for scope in node.scopes()}
    return lambda scope: torn.get(scope, scope.owner if scope.gathering else None)


def route_at(event: Event, depth: int) -> Any:
    """The route of an event at a node with so many keys and branches above it."""
    route: Any = event[0][0]
    for _ in range(depth):
        route = route[1]
    return route
