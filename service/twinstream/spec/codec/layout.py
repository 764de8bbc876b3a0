"""Finds the kind and the lane of records by single members, where a comparison file allows it.

Where kinds are declared, one member at the top decides them all: a table maps its value to the kind. Only
texts and whole numbers are looked up, since Python takes True, 1 and 1.0 for one key. The lane of a kind is a
constant, the content, or the values of some members; otherwise the order is asked for each event.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from twinstream.errors import DecodeError
from twinstream.spec.file.model import DEFAULT_KIND, Spec
from twinstream.spec.file.values import listed

Route = Callable[[str, Any, bytes], Hashable]
TELLING = frozenset((str, int, type(None)))
"""The types of a member that decides the kind; null, like an absent member, gives the kind that fits all."""
BY_CONTENT, BY_ROUTE = object(), object()
"""Stand for the lane of a form: its content; the lane that the order gives to the event."""


class PlacedKind(NamedTuple):
    """The lane of a kind; `name` is None for a kind that is left out.

    The lane is the value of the one member in `keys`, or the tuple of the values of several. Without keys it
    is `lane`, or what `lane` stands for.
    """

    name: str | None
    keys: tuple[str, ...]
    lane: Any

    @property
    def key(self) -> str:
        """The member that is the lane by itself, if there is one."""
        return self.keys[0] if len(self.keys) == 1 else ""


class Kinds(NamedTuple):
    """The member that decides the kind, the kind for each of its values, and the kind for all others, if any.

    The member is at the top of the decoded value or, if that is a whole record, of the value `inside` it.
    """

    inside: bool
    member: str
    by_value: dict[str | int, PlacedKind]
    other: PlacedKind | None


def kinds_of(spec: Spec, route: Route) -> Kinds | None:
    """The member that decides the kinds, with its table; None if no single member does."""
    if not spec.kinds:
        return Kinds(False, "", {}, _kind(spec, DEFAULT_KIND, route))
    members = {spec.path_of(field) for kind in spec.kinds.values() for field in kind.where}
    values = [wanted for kind in spec.kinds.values() for wanted in kind.where.values()]
    scalars = [value for wanted in values for value in listed(wanted)]
    if len(members) != 1 or not all(type(value) is str or type(value) is int for value in scalars):
        return None
    (path,) = members
    inside = path[0] == "$value" and spec.whole
    return Kinds(inside, path[-1], *_table(spec, route)) if len(path) == 1 + inside else None


def _table(spec: Spec, route: Route) -> tuple[dict[Any, PlacedKind], PlacedKind | None]:
    """The kind for each value of the one member that decides them, and the kind for all others."""
    by_value: dict[Any, PlacedKind] = {}
    for name, kind in spec.kinds.items():
        made = PlacedKind(None, (), None) if kind.ignore else _kind(spec, name, route)
        if not kind.where:
            return by_value, made
        (wanted,) = kind.where.values()
        for value in listed(wanted):
            by_value.setdefault(value, made)
    return by_value, None


def _kind(spec: Spec, name: str, route: Route) -> PlacedKind:
    """The lane of a kind, found by asking for the routes of a few events.

    A route raises DecodeError if a field that it reads is missing. So a route of an event without fields
    reads none. If the routes of an event with texts, and of one with whole numbers, are made of the values of
    the same members, these members are the lane.
    """
    try:
        lanes = [route(name, {}, content) for content in (b"1", b"2")]
        if lanes[0] == lanes[1]:
            return PlacedKind(name, (), lanes[0])
        if lanes == [b"1", b"2"]:
            return PlacedKind(name, (), BY_CONTENT)
    except DecodeError:
        pass
    members = list(dict.fromkeys(spec.path_of(field)[0] for field in spec.order_fields))
    texts: dict[Any, str] = {f"#{place}": member for place, member in enumerate(members)}
    numbers: dict[Any, str] = dict(enumerate(members))
    keys, others = (_told_by(row, name, route) for row in (texts, numbers))
    return PlacedKind(name, keys if keys == others else (), BY_ROUTE)


def _told_by(members: dict[Any, str], kind: str, route: Route) -> tuple[str, ...]:
    """The members whose values are the lane of an event; none if it holds anything else."""
    try:
        lane: Any = route(kind, {name: value for value, name in members.items()}, b"")
    except (DecodeError, TypeError, AttributeError):
        return ()
    values = lane if type(lane) is tuple else (lane,)
    return tuple(map(members.__getitem__, values)) if members.keys() >= set(values) else ()
