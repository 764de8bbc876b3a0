"""The dependence relation as data: which events may not change places.

A declared order is a tree. Each node says how the events that reach it depend on each other, and every event
carries its *route*, its own part in each node on its way down, made once when it is decoded:

- `Lanes`     events of one lane are a sequence, events of different lanes are independent. Route: the lane,
              a hashable value. A bag is the case in which every canonical form has a lane to itself: its
              lanes, and no others, are `bytes`, and copies in them are interchangeable.
- `Epochs`    barriers depend on everything, the events between two barriers as `inner` says.
              Route: `BARRIER`, or the route in `inner`.
- `Keyed`     different keys are independent, events of one key depend as `inner` says. Route: (key, route).
- `Branches`  like `Keyed`, with an order of its own for each branch. Route: (number of the branch, route).
- `Ruled`     exactly the pairs that a rule names. Route: `Roles`.
- `Pairwise`  whatever a function says. Route: nothing.

The route is read from the canonical form, so equal events have equal routes and with them equal dependences.

Source: Mamouras, Stanford, Alur, Ives, Tannen, "Data-Trace Types for Distributed Stream Processing Systems"
(PLDI 2019), section 3: traces over a dependence relation, built from sequences, bags, keys and barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple

from twinstream.core.events import Form

BARRIER: Final = None
"""The route of a barrier in its node."""

Time = int | Fraction
"""An exact time, in the unit of the field that it comes from."""


class Membership(NamedTuple):
    """The events of one role and key of a rule, this event among them; at a time if the rule has one."""

    bucket: Hashable
    time: Time | None = None


class Opposition(NamedTuple):
    """The events of one role and key of a rule that depend on this one: all, or those strictly between."""

    bucket: Hashable
    low: Time | None = None
    high: Time | None = None

    def meets(self, other: Membership) -> bool:
        """Whether a member of that bucket is opposed."""
        if self.bucket != other.bucket:
            return False
        if other.time is None:
            return True
        return (self.low is None or self.low < other.time) and (self.high is None or other.time < self.high)


class Roles(NamedTuple):
    """What an event is in each rule of a `Ruled` node, and what depends on it there.

    Events of different groups are independent. A group is a number, or, where all rules ask for the same
    fields to be equal, a pair of a number and their values; then each bucket is the pair of its role, which
    is a number too, and the group.
    """

    group: Hashable
    member: tuple[Membership, ...]
    opposed: tuple[Opposition, ...]


@dataclass(frozen=True)
class Lanes:
    """Sequences side by side."""


@dataclass(frozen=True)
class Epochs:
    """Barriers, and the order of the events between them.

    `copies`: each partition has a copy of each barrier (see `copies`).
    """

    inner: Order
    copies: bool = False


@dataclass(frozen=True)
class Keyed:
    """One order for each key."""

    inner: Order


@dataclass(frozen=True)
class Branches:
    """One order for each branch."""

    orders: tuple[Order, ...]


@dataclass(frozen=True)
class Ruled:
    """A list of rules; what they say stands in the routes. `roles` is the number of roles in them."""

    roles: int


@dataclass(frozen=True)
class Pairwise:
    """A function that is asked for each pair. It is symmetric; what it raises is a `RelationError`."""

    related: Callable[[Form, Form], bool]


Order = Lanes | Epochs | Keyed | Branches | Ruled | Pairwise


class Node(NamedTuple):
    """A node of an order, and how many keys and branches stand above it in the routes."""

    order: Order
    depth: int


def nodes(order: Order, depth: int = 0) -> list[Node]:
    """An order and all below it, each before what is below it."""
    match order:
        case Epochs(inner):
            return [Node(order, depth), *nodes(inner, depth)]
        case Keyed(inner):
            return [Node(order, depth), *nodes(inner, depth + 1)]
        case Branches(orders):
            return [Node(order, depth), *(node for inner in orders for node in nodes(inner, depth + 1))]
        case _:
            return [Node(order, depth)]


def ordered_class(order: Order, route: Any) -> Hashable | None:
    """The widest class of events, this one among them, that can be dependent on each other.

    None for an event that depends on nothing. Between the partitions of a topic Kafka keeps no order, so a
    class must stand in one of them.
    """
    match order:
        case Lanes():
            return None if type(route) is bytes else route
        case Keyed() | Branches():
            inner = order.inner if isinstance(order, Keyed) else order.orders[route[0]]
            below = ordered_class(inner, route[1])
            return None if below is None else (route[0], below)
        case Ruled():
            return (route.group,) if route.opposed else None
        case Epochs(inner, copies=True):
            return None if route is BARRIER else ordered_class(inner, route)
        case _:
            return ()


def dependent(order: Order, one: Form, another: Form) -> bool:
    """Whether two events may not change places. Complexity: O(depth), O(r²) in the rules of a `Ruled` node.

    >>> from twinstream.core.events import Form
    >>> taxi7, taxi8, night = (Form(route, b"", "", b"") for route in (7, 8, BARRIER))
    >>> order = Epochs(Lanes())
    >>> dependent(order, taxi7, taxi7), dependent(order, taxi7, taxi8), dependent(order, taxi7, night)
    (True, False, True)
    """
    return _dependent(order, one, another, one[0], another[0])


def _dependent(order: Order, one: Form, another: Form, here: Any, there: Any) -> bool:
    match order:
        case Lanes():
            return bool(here == there and type(here) is not bytes)
        case Epochs(inner):
            return here is BARRIER or there is BARRIER or _dependent(inner, one, another, here, there)
        case Keyed(inner):
            return here[0] == there[0] and _dependent(inner, one, another, here[1], there[1])
        case Branches(orders):
            return here[0] == there[0] and _dependent(orders[here[0]], one, another, here[1], there[1])
        case Ruled():
            return any(opposition.meets(member) for opposition in here.opposed for member in there.member)
        case Pairwise(related):
            return related(one, another)
