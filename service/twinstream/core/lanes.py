"""Lanes: the index of sequences side by side, and the fastest one.

Bags, sequences, and both by key or branch divide events into *lanes*: dependent within, independent across.
A bag has a lane for each canonical form. For an event x of side i, with j the other side, the three steps
become:

1. no unmatched event of i depends on x   ⇔  the lane of x holds nothing of i;
   a minimal y of j equals x              ⇔  the oldest event of j in that lane equals x: both are matched;
2. else an event of j depends on x        ⇔  the lane holds something of j: the streams differ, known now;
3. else x waits in its lane.

A lane therefore never holds events of both sides, unless it is set aside. (One exception: where equality has
a tolerance, events of one lane of a bag may be unequal; they wait side by side.)

A lane with one event holds the event itself, since a queue of one costs 760 bytes; with more, a `Queue`. The
lane of an event is its whole route, also where these lanes are part of another index.

Source: DiffStream, section 4.2 (the algorithm), 4.3 (its optimality).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, cast

from twinstream.core import orders
from twinstream.core.events import Event, Side
from twinstream.core.index import UNANSWERED, Hooks, Index, Pairs
from twinstream.core.scopes import Scope


class Queue(deque[Event]):
    """The unmatched events of one side in a lane, oldest first.

    `since_ms` is the timestamp of the event since which the lane has not been empty. It stays when that event
    is matched: a lost copy of an event must not hide behind fresh copies.
    """

    __slots__ = ("since_ms",)
    since_ms: int


def queue_of(events: Iterable[Event], since_ms: int) -> Queue:
    """A queue with its time; an ``__init__`` in Python would double the cost."""
    queue = Queue(events)
    queue.since_ms = since_ms
    return queue


Held = tuple[object, ...] | Queue | Scope
"""What a side has in a lane: one event alone (a tuple of the shape of `Event`), several, or a scope."""


class LanesIndex(Index):
    """The unmatched events of both sides, by lane; `depth` is that of its node in the routes."""

    __slots__ = ("_chained", "_depth", "_hooks", "_order", "_scopes", "held")

    def __init__(self, order: orders.Lanes, hooks: Hooks, depth: int) -> None:
        self._order, self._hooks, self._depth = order, hooks, depth
        self._scopes: dict[Hashable, Scope] = {}
        self.held: tuple[dict[Hashable, Held], dict[Hashable, Held]] = ({}, {})
        # The lanes of bags of which a copy has left and another waits: all that may be chains, and some more.
        self._chained: tuple[dict[Hashable, Queue], dict[Hashable, Queue]] = ({}, {})

    def feed(self, side: Side, events: Iterable[Event]) -> Pairs:  # noqa: C901, PLR0912 - the hot loop
        """Take events of one side in their order.

        Complexity: O(1) an event; about 0.2 µs where lanes hold one event.
        """
        mine, theirs, chained = self.held[side], self.held[side.other], self._chained[side.other]
        lookup, setdefault = theirs.get, mine.setdefault
        pairs = Pairs([], [])
        waited, came = pairs.partners.append, pairs.events.append
        for event in events:
            form = event[0]
            lane = form[0]
            held = lookup(lane)
            if held is None:
                ours = setdefault(lane, event)
                if ours is not event:
                    if type(ours) is Queue:
                        ours.append(event)
                    else:
                        mine[lane] = queue_of((cast("Event", ours), event), cast("Event", ours)[3])
            elif type(held) is Queue:
                if held[0][0][1] == form[1]:
                    waited(held.popleft())
                    came(event)
                    if not held:
                        del theirs[lane]
                    elif type(lane) is bytes:
                        chained[lane] = held
                elif (partner := self._unlike(side, event, held)) is not None:
                    waited(partner)
                    came(event)
            elif type(held) is Scope:
                held.add(side, event)
            else:
                alone = cast("Event", held)
                if alone[0][1] == form[1]:
                    del theirs[lane]
                    waited(alone)
                    came(event)
                elif (partner := self._unlike(side, event, held)) is not None:
                    waited(partner)
                    came(event)
        return pairs

    def take(self, side: Side, event: Event, route: Any) -> Event | None:
        partners, _ = self.feed(side, (event,))
        return partners[0] if partners else None

    def answer(self, side: Side, event: Event, route: Any) -> Event | None:
        if event[0][0] not in self.held[side.other]:
            return UNANSWERED
        partner = self.take(side, event, route)
        if partner is None and type(event[0][0]) is bytes and event[0][0] in self.held[side]:
            self.remove(side, (event,))
            return UNANSWERED
        return partner

    def answers(self, side: Side, events: Iterator[Event], pairs: Pairs) -> Event | None:
        """`answer` for events in their order; the first that has no answer ends it and is returned.

        Complexity: O(1) an event; about 0.2 µs where lanes hold one event.
        """
        theirs = self.held[side.other]
        lookup = theirs.get
        waited, came = pairs.partners.append, pairs.events.append
        for event in events:
            form = event[0]
            held: Any = lookup(form[0])
            if type(held) is tuple and held[0][1] == form[1]:
                del theirs[form[0]]
                waited(cast("Event", held))
                came(event)
                continue
            partner = self.answer(side, event, form[0])
            if partner is UNANSWERED:
                return event
            if partner is not None:
                waited(partner)
                came(event)
        return None

    def _unlike(self, side: Side, event: Event, held: Held) -> Event | None:
        """The partner among events whose contents differ, if any; else the event waits or is in conflict."""
        lane, equal = event[0][0], self._hooks.equal
        candidates = waiting(held) if type(lane) is bytes else (_oldest(held),)
        partner = next((other for other in candidates if equal(other, event)), None)
        if partner is not None:
            self._drop(side.other, lane, partner)
        elif type(lane) is bytes:
            self.restore(side, event, lane, event[3])
        else:
            self._set_aside(side, event, lane)
        return partner

    def _drop(self, side: Side, lane: Hashable, event: Event) -> None:
        held = self.held[side][lane]
        if type(held) is Queue:
            held.remove(event)
            if held:
                self._chained[side][lane] = held
                return
        del self.held[side][lane]

    def _set_aside(self, side: Side, event: Event, lane: Hashable) -> None:
        scope = self._hooks.open(self, self._order, self._depth)
        for owner in Side:
            for held in waiting(self.held[owner].get(lane)):
                scope.add(owner, held)
        self._place(scope, lane)
        scope.add(side, event)

    def _place(self, scope: Scope, lane: Hashable) -> None:
        self._scopes[lane] = scope
        for side in Side:
            self.held[side][lane] = scope

    def adopt(self, scope: Scope, route: Any) -> None:
        assert scope.example is not None, "a scope is adopted by an event of it"
        scope.owner = self
        self._place(scope, scope.example[0][0])

    def resume(self, scope: Scope, tails: tuple[Sequence[Event], Sequence[Event]]) -> Pairs:
        assert scope.example is not None, "a scope has an event"
        lane = scope.example[0][0]
        del self._scopes[lane]
        for side in Side:
            del self.held[side][lane]
        return self.feed_again(scope, tails)

    def scopes(self) -> Iterator[Scope]:
        return iter(tuple(self._scopes.values()))

    def empty(self, side: Side) -> bool:
        return len(self.held[side]) == len(self._scopes)

    def unmatched(self, side: Side) -> Iterator[tuple[Event, int]]:
        for held in self.held[side].values():
            if type(held) is Queue:
                since_ms = held.since_ms
                for event in held:
                    yield event, since_ms
            elif type(held) is not Scope:
                event = cast("Event", held)
                yield event, event[3]

    def chains(self, side: Side) -> Iterator[tuple[int, Sequence[Event]]]:
        """Complexity: O(c) in the chains, and in the lanes that lost a copy since the last call."""
        lanes, chained = self.held[side], self._chained[side]
        for lane, queue in tuple(chained.items()):
            if type(lane) is bytes and lanes.get(lane) is queue and queue.since_ms < queue[0][3]:
                yield queue.since_ms, queue
            else:
                del chained[lane]

    def remove(self, side: Side, events: Sequence[Event]) -> None:
        """Drop waiting events of a side. Complexity: O(n) in the events that wait in their lanes."""
        gone = set(map(id, events))
        for lane in {event[0][0] for event in events}:
            held = self.held[side][lane]
            rest = [event for event in waiting(held) if id(event) not in gone]
            if rest and type(held) is Queue:
                held.clear()
                held.extend(rest)
                held.since_ms = rest[0][3]
            else:
                del self.held[side][lane]

    def restore(self, side: Side, event: Event, route: Any, since_ms: int) -> None:
        lane = event[0][0]
        ours = self.held[side].get(lane)
        if type(ours) is Queue:
            ours.append(event)
        elif ours is not None:
            alone = cast("Event", ours)
            self.held[side][lane] = queue_of((alone, event), alone[3])
        elif since_ms != event[3]:
            self.held[side][lane] = self._chained[side][lane] = queue_of((event,), since_ms)
        else:
            self.held[side][lane] = event


def _oldest(held: Held) -> Event:
    return held[0] if type(held) is Queue else cast("Event", held)


def waiting(held: Held | None) -> Iterable[Event]:
    """The events of a lane, oldest first."""
    if held is None:
        return ()
    return tuple(held) if type(held) is Queue else (cast("Event", held),)
