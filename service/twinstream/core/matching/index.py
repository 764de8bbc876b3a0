"""The interface of every index of unmatched events.

An index holds the unmatched events of both sides at one node of the order, and carries out the three steps of
the `algorithm` for each event that comes.

In step 2 an index *sets aside* the smallest part of itself that the difference touches, as a `Scope`: events
of that part go to the scope until it is resumed. See `scope`.
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
"""What `Index.answer` returns for an event that found no partner and may not wait."""


class Pairs(NamedTuple):
    """What was paired: events that waited, and at the same places those that came and met them."""

    partners: list[Event]
    events: list[Event]


class SetAside(Protocol):
    """What an index knows of a part of itself that it has set aside: see `scope`.

    `owner` is the index that it was set aside from, `order` that of its events. `pieces` are its events by
    side, `example` is one of them; a `lost` one keeps none. While it is `gathering`, more of what it stands
    for may still be matched.
    """

    owner: Index
    example: Event | None

    @property
    def lost(self) -> bool: ...  # noqa: D102

    @property
    def gathering(self) -> bool: ...  # noqa: D102

    @property
    def order(self) -> Order: ...  # noqa: D102

    @property
    def pieces(self) -> tuple[list[Event], list[Event]]: ...  # noqa: D102

    def gather(self) -> None:
        """Begin as one that gathers."""

    def collect(self) -> None:
        """Gather no more."""

    def add(self, side: Side, event: Event) -> None:
        """Collect one more event."""

    def __len__(self) -> int:
        """How many events it has."""

    def absorb(self, part: Any) -> None:
        """Take over one that lies within this one."""

    def give(self, side: Side, events: Sequence[Event], scope: Any) -> None:
        """Let one that has just been set aside have some of its events."""

    def put_in_order(self) -> None:
        """Let the events of each side stand as they were written."""

    def route(self, event: Event) -> Any:
        """The route of an event at the node of its owner."""


@dataclass(frozen=True)
class Hooks:
    """What an index asks of the comparison that it belongs to.

    `canonical` maps contents to canonical form; `equal` tells whether two events whose contents differ are
    equal all the same. `open(owner, order, depth)` makes the scope of a part that is set aside, `finish` is
    called when nothing more can come to a scope, `settle(index)` to close those of an index that have met, of
    which nothing more comes, `absorb(whole, part)` when a scope became part of a larger one that has all of
    it by then, `came_back` for events that a lost scope had dropped. `limit` is the number of events that may
    be kept for a scope. `bags` is there where equal canonical forms are not yet equal events, `doubt` is
    called where it is not known whether what is set aside next is a difference.
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

    @abstractmethod
    def take(self, side: Side, event: Event, route: Any) -> Event | None:
        """The three steps for one event: its partner, or None where it waits or belongs to a scope."""

    @abstractmethod
    def answer(self, side: Side, event: Event, route: Any) -> Event | None:
        """Like `take` where the event may not wait, since the other side is past it: `UNANSWERED` then."""

    @abstractmethod
    def empty(self, side: Side) -> bool:
        """Whether nothing of a side waits here; what belongs to a scope does not count."""

    @abstractmethod
    def unmatched(self, side: Side) -> Iterator[tuple[Event, int]]:
        """The waiting events of a side, each with the timestamp since which equal ones have been waiting.

        Events that are set aside are not among them. The order is one in which they could have come.
        """

    def chains(self, side: Side) -> Iterator[tuple[int, Sequence[Event]]]:  # noqa: ARG002 - a bag has some
        """The copies that wait in a bag behind one another, and since when such copies wait without a break.

        Only those of which the oldest came later than that.
        """
        return iter(())

    @abstractmethod
    def restore(self, side: Side, event: Event, route: Any, since_ms: int) -> None:
        """Let an event wait as it did; called for the events of `unmatched` in their order."""

    @abstractmethod
    def remove(self, side: Side, events: Sequence[Event]) -> None:
        """Drop waiting events of a side, which are settled without a partner."""

    def gathered(self, side: Side) -> Iterator[Event]:  # noqa: ARG002 - epochs gather
        """The waiting events of a side that will go to a scope which gathers, if they do not match before."""
        return iter(())

    def complete(self) -> None:
        """Nothing more will come of either side: what a scope still gathers goes to it."""
        return

    @abstractmethod
    def scopes(self) -> Iterator[Any]:
        """What is set aside here, and in the parts of this."""

    @abstractmethod
    def adopt(self, scope: SetAside, route: Any) -> None:
        """Set aside again what `scope`, of which an event has this route, was set aside from. It is empty."""

    @abstractmethod
    def resume(self, scope: SetAside, tails: tuple[Sequence[Event], Sequence[Event]]) -> Pairs:
        """Take back what a scope stands for, and feed the events that it did not settle.

        Returns what was paired of them, as partners the left ones.
        """

    def feed(self, side: Side, events: Iterable[Event]) -> Pairs:
        """`take` for events of one side in their order; their routes are those of this node."""
        take, pairs = self.take, Pairs([], [])
        for event in events:
            if (partner := take(side, event, event[0][0])) is not None:
                pairs.partners.append(partner)
                pairs.events.append(event)
        return pairs

    def feed_again(self, scope: SetAside, tails: tuple[Sequence[Event], Sequence[Event]]) -> Pairs:
        """`take` for events that come out of a scope; of the pairs the left ones are called partners."""
        pairs = Pairs([], [])
        for side in Side:
            for event in tails[side]:
                if (partner := self.take(side, event, scope.route(event))) is not None:
                    left, right = (event, partner) if side is Side.LEFT else (partner, event)
                    pairs.partners.append(left)
                    pairs.events.append(right)
        return pairs


def without(events: Iterable[tuple[Event, int]], gone: Iterable[Event]) -> list[tuple[Event, int]]:
    """The waiting events that are not among those `gone`; those left count as waiting by themselves."""
    lost = set(map(id, gone))
    return [(event, event[3]) for event, _ in events if id(event) not in lost]
