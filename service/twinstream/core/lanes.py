"""Matching: the unmatched events of both sides, and the step that pairs an arriving event.

The orders of this version (a bag, a sequence, a sequence per key) divide events into *lanes*: dependent
within, independent across. A bag has a lane for each canonical form, a sequence has one lane, a keyed order
one for each key. For an event x of side i, with j the other side, the three steps of the paper become:

1. no unmatched event of i depends on x   ⇔  the lane of x holds nothing of i;
   a minimal y of j equals x              ⇔  the oldest event of j in that lane equals x: both are matched;
2. else an event of j depends on x        ⇔  the lane holds something of j: the streams differ, known now;
3. else x waits in its lane.

A lane therefore never holds events of both sides, unless it is set aside (see `scopes`).

A lane with one event holds the event itself, since a queue of one costs 760 bytes; with more, a `Queue`.

Source: DiffStream, section 4.2 (the algorithm), 4.3 (its optimality).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import cast

from twinstream.core.events import Canonical, Event, Side
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
Conflict = Callable[[Side, Event, Hashable], None]


class Lanes:
    """The unmatched sets U[LEFT] and U[RIGHT], by lane.

    `conflict(side, event, lane)` is called when step 2 proves a difference; it must set the lane aside.
    """

    def __init__(self, canonical: Canonical, conflict: Conflict) -> None:
        self._canonical = canonical
        self._conflict = conflict
        self.held: tuple[dict[Hashable, Held], dict[Hashable, Held]] = ({}, {})

    def feed(self, side: Side, events: Iterable[Event]) -> list[Event]:  # noqa: PLR0912 - the hot loop
        """Take events of one side in their order; return the events of the other side they were paired with.

        Complexity: O(1) an event; about 0.2 µs where lanes hold one event.
        """
        mine, theirs = self.held[side], self.held[side.other]
        lookup, setdefault = theirs.get, mine.setdefault
        partners: list[Event] = []
        matched = partners.append
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
                if held[0][0][1] == form[1] or self._equal(held[0], event):
                    matched(held.popleft())
                    if not held:
                        del theirs[lane]
                else:
                    self._conflict(side, event, lane)
            elif type(held) is Scope:
                held.add(side, event)
            else:
                alone = cast("Event", held)
                if alone[0][1] == form[1] or self._equal(alone, event):
                    del theirs[lane]
                    matched(alone)
                else:
                    self._conflict(side, event, lane)
        return partners

    def _equal(self, one: Event, another: Event) -> bool:
        """Whether two events whose contents differ are equal all the same."""
        return self._canonical(one[0][1]) == self._canonical(another[0][1])

    def set_aside(self, scope: Scope) -> None:
        """Move what the lane of `scope` holds into it; later events of the lane go there, too."""
        for side in Side:
            for event in waiting(self.held[side].get(scope.lane)):
                scope.add(side, event)
            self.held[side][scope.lane] = scope

    def reopen(self, scope: Scope) -> None:
        """Give the lane of a closed scope back to matching, empty."""
        for side in Side:
            del self.held[side][scope.lane]

    def unmatched(self, side: Side) -> Iterator[tuple[Event, int]]:
        """The waiting events of a side, each with the timestamp since which its lane has not been empty.

        Events that are set aside are not among them. Those of a lane come oldest first.
        """
        for held in self.held[side].values():
            if type(held) is Queue:
                since_ms = held.since_ms
                for event in held:
                    yield event, since_ms
            elif type(held) is not Scope:
                event = cast("Event", held)
                yield event, event[3]

    def heads(self, side: Side) -> Iterator[Event]:
        """The oldest waiting event of each lane of a side."""
        for held in self.held[side].values():
            if type(held) is Queue:
                yield held[0]
            elif type(held) is not Scope:
                yield cast("Event", held)

    def remove(self, side: Side, events: Sequence[Event]) -> None:
        """Drop waiting events of a side: they are settled without a partner.

        Complexity: O(n) in the events that wait in their lanes.
        """
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

    def restore(self, side: Side, event: Event, since_ms: int) -> None:
        """Put back an event that waited when a snapshot was taken; those of a lane oldest first."""
        lane = event[0][0]
        ours = self.held[side].get(lane)
        if type(ours) is Queue:
            ours.append(event)
        elif ours is not None or since_ms != event[3]:
            self.held[side][lane] = queue_of((*waiting(ours), event), since_ms)
        else:
            self.held[side][lane] = event


def waiting(held: Held | None) -> Iterable[Event]:
    """The events of a lane, oldest first."""
    if held is None:
        return ()
    return held if type(held) is Queue else (cast("Event", held),)
