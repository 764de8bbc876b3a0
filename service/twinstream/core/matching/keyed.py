"""Keys and branches: a separate index for each, made when its first event comes.

Events of different keys are independent, so the index of an event's key answers all questions of the
`algorithm`. Used where the order within a key is neither a sequence nor a bag; those are lanes
(see `lanes`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from twinstream.core.events import Event, Side
from twinstream.core.matching.index import UNANSWERED, Index, Pairs, SetAside, route_at


class KeyedIndex(Index):
    """The unmatched events of both sides, by the first part of their route; `make` builds a key's index."""

    __slots__ = ("_depth", "_make", "_parts")

    def __init__(self, depth: int, make: Callable[[Any], Index]) -> None:
        self._depth, self._make = depth, make
        self._parts: dict[Hashable, Index] = {}

    def take(self, side: Side, event: Event, route: Any) -> Event | None:
        key, inner = route
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = self._make(key)
        partner = part.take(side, event, inner)
        if partner is not None:
            self._forget_if_done(key, part)
        return partner

    def answer(self, side: Side, event: Event, route: Any) -> Event | None:
        key, inner = route
        part = self._parts.get(key)
        if part is None:
            return UNANSWERED
        partner = part.answer(side, event, inner)
        if partner is not None and partner is not UNANSWERED:
            self._forget_if_done(key, part)
        return partner

    def _forget_if_done(self, key: Hashable, part: Index) -> None:
        if part.empty(Side.LEFT) and part.empty(Side.RIGHT) and next(part.scopes(), None) is None:
            del self._parts[key]

    def empty(self, side: Side) -> bool:
        return all(part.empty(side) for part in self._parts.values())

    def unmatched(self, side: Side) -> Iterator[tuple[Event, int]]:
        for part in self._parts.values():
            yield from part.unmatched(side)

    def chains(self, side: Side) -> Iterator[tuple[int, Sequence[Event]]]:
        for part in self._parts.values():
            yield from part.chains(side)

    def restore(self, side: Side, event: Event, route: Any, since_ms: int) -> None:
        key, inner = route
        if key not in self._parts:
            self._parts[key] = self._make(key)
        self._parts[key].restore(side, event, inner, since_ms)

    def remove(self, side: Side, events: Sequence[Event]) -> None:
        by_key: dict[Hashable, list[Event]] = {}
        for event in events:
            by_key.setdefault(route_at(event, self._depth)[0], []).append(event)
        for key, gone in by_key.items():
            self._parts[key].remove(side, gone)
            self._forget_if_done(key, self._parts[key])

    def gathered(self, side: Side) -> Iterator[Event]:
        for part in self._parts.values():
            yield from part.gathered(side)

    def torn(self) -> Iterator[Index]:
        for part in self._parts.values():
            yield from part.torn()

    def complete(self) -> None:
        for part in self._parts.values():
            part.complete()

    def scopes(self) -> Iterator[SetAside]:
        for part in tuple(self._parts.values()):
            yield from part.scopes()

    def adopt(self, scope: SetAside, route: Any) -> None:
        key, inner = route
        if key not in self._parts:
            self._parts[key] = self._make(key)
        self._parts[key].adopt(scope, inner)

    def resume(self, scope: SetAside, tails: tuple[Sequence[Event], Sequence[Event]]) -> Pairs:
        key = route_at(scope.example, self._depth)[0]
        pairs = self._parts[key].resume(scope, tails)
        self._forget_if_done(key, self._parts[key])
        return pairs
