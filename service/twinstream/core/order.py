"""The dependence relation as data: which events may not change places.

A declared order is a tree. Each node says how the events that reach it depend on each other. Every event
carries its *route*, its own part in each node on its way down, which is computed once when it is decoded:

- `Lanes`     events of one lane are a sequence, events of different lanes are independent. Route: the lane,
              a hashable value. A bag is the case in which every canonical form has its own lane: its
              lanes, and no others, are `bytes`, and copies in them are interchangeable.
- `Epochs`    barriers depend on everything, the events between two barriers as `inner` says.
              Route: `BARRIER`, or the route in `inner`.
- `Keyed`     different keys are independent, events of one key depend as `inner` says. Route: (key, route).
- `Branches`  like `Keyed`, with a separate order for each branch. Route: (number of the branch, route).
- `Ruled`     exactly the pairs that a rule names are dependent. Route: `Roles`.
- `Pairwise`  a function decides for each pair. Route: nothing.

The route is read from the canonical form, so equal events have equal routes and thus equal dependences.

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


class KindInRule(NamedTuple):
    """The part of a kind in one rule: its events have one role, and depend on the events of another.

    Both may be the same role. `timed`: the rule is about times, and keys in it are `RuleTime`s.
    """

    role: int
    opposing: int
    timed: bool = False


class RuleTime(NamedTuple):
    """The key of an event in a rule about times.

    The event depends on those of the opposing role with an equal `key` and a time strictly between `low` and
    `high`; None stands for no bound.
    """

    key: Hashable
    time: Time
    low: Time | None
    high: Time | None


class KindInRules(NamedTuple):
    """The parts of a kind in all rules, as far as all its events share them.

    Events of different groups are independent. `divided`: all rules of the group require the same fields to
    be equal, so only events with equal values of these fields can be dependent.
    """

    group: int
    divided: bool
    parts: tuple[KindInRule, ...]


class Roles(NamedTuple):
    """The part of an event in each rule of a `Ruled` node: the plan of its kind, and its key in each part.

    Two events are dependent if one has a part whose opposing role is a role of the other, with equal keys.
    """

    plan: KindInRules
    keys: tuple[Any, ...]

    @property
    def group(self) -> Hashable:
        """The group of events that the event may depend on, with the values that divide it."""
        plan, keys = self
        if not plan.divided:
            return plan.group
        return plan.group, keys[0].key if plan.parts[0].timed else keys[0]

    def opposes(self, other: Roles) -> bool:
        """Whether the two events are dependent. Complexity: O(r²) in the rules that apply."""
        return any(
            part.opposing == opposed.role and _opposed(part.timed, key, other_key)
            for part, key in zip(self.plan.parts, self.keys, strict=True)
            for opposed, other_key in zip(other.plan.parts, other.keys, strict=True)
        )


def _opposed(timed: bool, key: Any, other: Any) -> bool:
    if not timed:
        return bool(key == other)
    low, high = key.low, key.high
    within = (low is None or low < other.time) and (high is None or other.time < high)
    return bool(key.key == other.key and within)


@dataclass(frozen=True)
class Lanes:
    """Sequences side by side."""


@dataclass(frozen=True)
class Epochs:
    """Barriers, and the order of the events between them.

    `copies`: each partition has a copy of each barrier (see `barrier_copies`).
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
    """A list of rules, which are compiled into the routes. `roles` is the number of roles in them."""

    roles: int


@dataclass(frozen=True)
class Pairwise:
    """A function that decides for each pair. It is symmetric, and raises nothing but `RelationError`."""

    related: Callable[[Form, Form], bool]


Order = Lanes | Epochs | Keyed | Branches | Ruled | Pairwise


class Node(NamedTuple):
    """A node of an order, and the number of keys and branches above it in the routes."""

    order: Order
    depth: int


def nodes(order: Order, depth: int = 0) -> list[Node]:
    """The nodes of an order, each before the nodes below it."""
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
    """The widest class of possibly dependent events that includes this one; None if it depends on nothing.

    Kafka keeps no order between the partitions of a topic, so all events of a class must be in one of them.
    """
    if isinstance(order, Lanes):  # It is asked often, and a pattern takes twice as long.
        return None if type(route) is bytes else route
    match order:
        case Keyed() | Branches():
            inner = order.inner if isinstance(order, Keyed) else order.orders[route[0]]
            below = ordered_class(inner, route[1])
            return None if below is None else (route[0], below)
        case Ruled():
            return (route.group,) if route.plan.parts else None
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
            return bool(here.opposes(there))
        case Pairwise(related):
            return related(one, another)


def stable(key: Any) -> bytes:
    """A key of texts, whole numbers, bytes, None and tuples as bytes, which are the same in every process.

    >>> stable("taxi"), stable(7), stable((1, "a"))
    (b'taxi', b'7', b'1 a')
    """
    match key:
        case str():
            return key.encode("utf-8", "surrogatepass")
        case bytes():
            return key
        case tuple():
            return b" ".join(map(stable, key))
        case int() | None:
            return b"%a" % key
    raise TypeError(f"{key!r} is no key")
