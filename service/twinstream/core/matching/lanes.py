"""Lanes: the index of sequences side by side, and the fastest one.

Bags, sequences, and both by key or branch divide events into *lanes*: dependent within a lane, independent
across lanes. A bag has a lane for each canonical form. For an event x of side i, with j the other side, the
steps of the `algorithm` become:

1. no unmatched event of i depends on x   ⇔  the lane of x has no event of i;
   a minimal y of j equals x              ⇔  the oldest event of j in that lane equals x: both are matched;
2. else an event of j depends on x        ⇔  the lane has an event of j: the streams are now known to differ;
3. else x is unmatched, in its lane.

A lane therefore never holds events of both sides, unless it is set aside. (One exception: where equality has
a tolerance, events of one lane of a bag may be unequal; then both sides have unmatched events in it, and a
largest matching decides the pairs: see `bags`.)

A lane with one event holds the event itself, since a queue of one costs 760 bytes; with more, a `Queue`. The
lane of an event is its whole route, also where these lanes are part of another index.

Source: DiffStream, section 4.2 (the algorithm), 4.3 (its optimality).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, cast

from twinstream.core import order as orders
from twinstream.core.events import Event, Side
from twinstream.core.matching.bags import Bags
from twinstream.core.matching.index import UNANSWERED, Hooks, Index, Pairs, SetAside


class Queue(deque[Event]):
    """The unmatched events of one side in a lane, oldest first.

    `since_ms` is the timestamp of the event since which the lane has not been empty. It stays when that event
    is matched: a lost copy of an event must not hide behind fresh copies.
    """

    __slots__ = ("since_ms",)
    since_ms: int


def queue_of(events: Iterable[Event], since_ms: int) -> Queue:
    """A queue with its `since_ms`; an ``__init__`` in Python would double the cost."""
    queue = Queue(events)
    queue.since_ms = since_ms
    return queue


LaneContent = tuple[object, ...] | Queue | SetAside
"""The content of a lane on one side: one event (a tuple of the shape of `Event`), several, or a scope."""


class LanesIndex(Index):
    """The unmatched events of both sides, by lane; `depth` is that of its node in the routes."""

    __slots__ = ("_chained", "_depth", "_hooks", "_order", "_scopes", "held")

    def __init__(self, order: orders.Lanes, hooks: Hooks, depth: int) -> None:
        self._order, self._hooks, self._depth = order, hooks, depth
        self._scopes: dict[Hashable, SetAside] = {}
        self.held: tuple[dict[Hashable, LaneContent], dict[Hashable, LaneContent]] = ({}, {})
        # The lanes of bags that lost a copy and still have one: all lanes that may be chains, and some more.
        self._chained: tuple[dict[Hashable, Queue], dict[Hashable, Queue]] = ({}, {})

    def feed(self, side: Side, events: Iterable[Event]) -> Pairs:
        """Take events of one side in their order.

        Complexity: O(1) an event; about 0.2 µs where lanes hold one event.
        """
        if self._hooks.bags is not None:
            return self._feed_bags(side, events, self._hooks.bags)
        return self._feed(side, events)

    def _feed_bags(self, side: Side, events: Iterable[Event], bags: Bags) -> Pairs:
        """`feed` where the events of a lane of a bag may be unequal."""
        pairs, events = Pairs([], []), list(events)
        if not any(self._is_bag(event[0][0]) for event in events):
            return self._feed(side, events)
        for event in events:
            if not self._is_bag(event[0][0]):
                found = self._feed(side, (event,))
                pairs.partners.extend(found.partners)
                pairs.events.extend(found.events)
            elif (partner := self._take_of_bag(side, event, bags)) is not None:
                pairs.partners.append(partner)
                pairs.events.append(event)
        return pairs

    def _take_of_bag(self, side: Side, event: Event, bags: Bags) -> Event | None:
        """The event that this one matches, or allows to match (see `bags`); else this one is unmatched."""
        lane = event[0][0]
        held = self.held[side.other].get(lane)
        queue = held if type(held) is Queue else waiting(held)
        partner = bags.partner(side, event, queue, self._depth)
        if partner is not None:
            self._drop(side.other, lane, partner)
        else:
            self.restore(side, event, lane, event[3])
        return partner

    def _is_bag(self, lane: Any) -> bool:
        """Whether a route is a lane of a bag."""
        for _ in range(self._depth):
            lane = lane[1]
        return type(lane) is bytes

    def _feed(self, side: Side, events: Iterable[Event]) -> Pairs:  # noqa: C901, PLR0912 - the hot loop
        mine, theirs, chained = self.held[side], self.held[side.other], self._chained[side.other]
        is_bag, aside, depth = self._is_bag, self._scopes, self._depth
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
                    elif (depth or type(lane) is bytes) and is_bag(lane):
                        chained[lane] = held
                elif (partner := self._unlike(side, event, held)) is not None:
                    waited(partner)
                    came(event)
            elif aside and lane in aside:
                aside[lane].add(side, event)
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

    def shrink(self) -> None:
        for held in self.held:  # They stay the same dictionaries: `bags` looks at them, too.
            kept = dict(held)
            held.clear()
            held.update(kept)

    def is_free(self, side: Side, lanes: Iterable[Hashable]) -> bool:
        """Whether none of these lanes has an unmatched event of a side, or is set aside."""
        held = self.held[side]
        return not held or held.keys().isdisjoint(lanes)

    def match_twins(self, side: Side, twins: Sequence[Event]) -> int:
        """See `Index`. Complexity: O(1) a twin; about 0.1 µs.

        A twin that is the oldest event of its lane is minimal, and no event of `side` is in that lane.
        """
        theirs, chained = self.held[side.other], self._chained[side.other]
        is_bag, depth, lookup = self._is_bag, self._depth, theirs.get
        for number, twin in enumerate(twins):
            lane = twin[0][0]
            held: Any = lookup(lane)
            if held is twin:
                del theirs[lane]
            elif type(held) is Queue and held[0] is twin:
                held.popleft()
                if not held:
                    del theirs[lane]
                elif (depth or type(lane) is bytes) and is_bag(lane):
                    chained[lane] = held
            else:
                return number
        return len(twins)

    def take(self, side: Side, event: Event, route: Any) -> Event | None:
        partners, _ = self.feed(side, (event,))
        return partners[0] if partners else None

    def answer(self, side: Side, event: Event, route: Any) -> Event | None:
        lane = event[0][0]
        if lane not in self.held[side.other]:
            return UNANSWERED
        partner = self.take(side, event, route)
        if partner is None and self._is_bag(lane) and lane in self.held[side]:
            self.remove(side, (event,))
            if self._hooks.bags is not None and self._hooks.bags.forgot(lane, self._depth):
                self._hooks.doubt()
            return UNANSWERED
        return partner

    def answers(self, side: Side, events: Iterator[Event], pairs: Pairs) -> Event | None:
        """Call `answer` for events in order, up to the first unanswered one, which is returned.

        Complexity: O(1) an event; about 0.2 µs where lanes hold one event.
        """
        theirs = self.held[side.other]
        lookup, by_bags = theirs.get, self._hooks.bags is not None
        waited, came = pairs.partners.append, pairs.events.append
        for event in events:
            form = event[0]
            held: Any = lookup(form[0])
            if type(held) is tuple and held[0][1] == form[1] and not by_bags:
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

    def _unlike(self, side: Side, event: Event, held: LaneContent) -> Event | None:
        """The oldest event of a lane if it equals the event despite other bytes; else set the lane aside."""
        lane, oldest = event[0][0], held[0] if type(held) is Queue else cast("Event", held)
        if self._hooks.equal(oldest, event):
            self._drop(side.other, lane, oldest)
            return oldest
        self._set_aside(side, event, lane)
        return None

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
            scope.begin(owner, waiting(self.held[owner].get(lane)))
        self._place(scope, lane)
        scope.add(side, event)

    def _place(self, scope: SetAside, lane: Hashable) -> None:
        self._scopes[lane] = scope
        for side in Side:
            self.held[side][lane] = scope

    def adopt(self, scope: SetAside, route: Any) -> None:
        scope.owner = self
        self._place(scope, scope.example[0][0])

    def resume(self, scope: SetAside, tails: tuple[Sequence[Event], Sequence[Event]]) -> Pairs:
        lane = scope.example[0][0]
        del self._scopes[lane]
        for side in Side:
            del self.held[side][lane]
        ahead = max(Side, key=lambda side: len(tails[side]))
        if len(tails[ahead]) < 2 or self._hooks.bags is not None:
            return self.feed_again(scope, tails)
        # The lane is empty, so all of one side's events are unmatched: the longer one's, at little cost.
        self.held[ahead][lane] = queue_of(tails[ahead], tails[ahead][0][3])
        pairs = self.feed(ahead.other, tails[ahead.other])
        return pairs if ahead is Side.LEFT else Pairs(pairs.events, pairs.partners)

    def scopes(self) -> Iterator[SetAside]:
        return iter(tuple(self._scopes.values()))

    def empty(self, side: Side) -> bool:
        return len(self.held[side]) == len(self._scopes)

    def unmatched(self, side: Side) -> Iterator[tuple[Event, int]]:
        for lane, held in self.held[side].items():
            if type(held) is Queue:
                since_ms = held.since_ms
                for event in held:
                    yield event, since_ms
            elif lane not in self._scopes:
                event = cast("Event", held)
                yield event, event[3]

    def chains(self, side: Side) -> Iterator[tuple[int, Sequence[Event]]]:
        """Complexity: O(c) in the chains, and in the lanes that lost a copy since the last call."""
        lanes, chained = self.held[side], self._chained[side]
        for lane, queue in tuple(chained.items()):
            if self._is_bag(lane) and lanes.get(lane) is queue and queue.since_ms != queue[0][3]:
                yield queue.since_ms, queue
            else:
                del chained[lane]

    def remove(self, side: Side, events: Sequence[Event]) -> None:
        """Drop unmatched events of a side. Complexity: O(n) in the unmatched events of their lanes."""
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
        if self._hooks.bags is not None and lane in self.held[side.other] and self._is_bag(lane):
            self._hooks.bags.crowd(lane, self.held, self._depth)
        ours = self.held[side].get(lane)
        if type(ours) is Queue:
            ours.append(event)
        elif ours is not None:
            alone = cast("Event", ours)
            self.held[side][lane] = queue_of((alone, event), alone[3])
        else:
            self.held[side][lane] = event if since_ms == event[3] else queue_of((event,), since_ms)
        if since_ms != event[3]:  # Where states were joined, it may be that of a later event.
            queue = self._chained[side][lane] = cast("Queue", self.held[side][lane])
            queue.since_ms = since_ms


def waiting(held: LaneContent | None) -> Sequence[Event]:
    """The events of a lane, oldest first."""
    if held is None:
        return ()
    return tuple(held) if type(held) is Queue else (cast("Event", held),)
