"""Epochs: the index of events between barriers.

A barrier depends on everything, so no event may pass it. While neither side is past a barrier that the other
lacks, both are in one *open* epoch, which has its own index. A side that is *ahead* has written barriers that
the other has not: these wait in a queue, each with an index for the epoch behind it. So for an event x of
side i, with j the other side, the questions of the `algorithm` become:

- the oldest equal event of j is minimal  ⇔  it is so in the open epoch; for a barrier x: it is the first in
  the queue of j, and the open epoch is empty;
- an event of j depends on x              ⇔  one of the open epoch does; or x is a barrier and any event of j
  is unmatched; or j is ahead, since its first queued barrier depends on x;
- x is unmatched                              in the open epoch; where i is ahead, in that behind its last
  barrier.

So the side behind may hold no unmatched event: each of its events must match in the open epoch. Its next
barrier must match the oldest queued one, once the side ahead has no unmatched event in the open epoch. Then
the epoch behind that barrier becomes the open one: a pointer is swapped.

Events that cannot match that way are a difference, and go to a scope. While the side behind is in the open
epoch the scope *gathers*: events that have a partner there still match, so the two epochs alone decide which
events are left over, not which side came first. When both sides are at the end of the epoch, the scope takes
all events left in it, all queued ones with their barriers, and all that come from there on. Where no event is
left over and the barriers are equal, the scopes inside the open epoch are finished. Under rules such a scope
is of a whole class of events, and takes over the gathered events of this class.

So the standing of its side (`Standing`) decides what happens to an event:

| its side is | an event                              | a barrier                                            |
| ----------- | ------------------------------------- | ---------------------------------------------------- |
| TOGETHER    | matches or waits in the open epoch    | is queued: its side is ahead                         |
| AHEAD       | waits behind the last queued barrier  | is queued                                            |
| BEHIND      | matches in the open epoch, or gathers | matches the first queued one, or all are set aside   |
| ASIDE       | goes to the scope                     | goes to the scope                                    |

A scope that is lost starts again at a barrier that came on both sides after that (see `barrier_resync`).

Source: DiffStream, section 2.2 (barriers); data-trace types, section 3.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

from twinstream.core.events import Event, Side, place_in_side
from twinstream.core.matching.bags import path_of
from twinstream.core.matching.barrier_resync import BarrierResync
from twinstream.core.matching.index import UNANSWERED, Hooks, Index, Pairs, SetAside, route_at
from twinstream.core.matching.lanes import LanesIndex
from twinstream.core.order import BARRIER, Epochs, Pairwise, Ruled, nodes, ordered_class


class Standing(Enum):
    """The standing of a side in the epochs; see the table above."""

    TOGETHER = "neither side is past a barrier that the other lacks"
    AHEAD = "it is past a barrier that the other side lacks"
    BEHIND = "the other side is past a barrier that it lacks"
    ASIDE = "all of the node is set aside"


_IN_OPEN_EPOCH = (Standing.TOGETHER, Standing.BEHIND)


class Queued(NamedTuple):
    """A barrier of the side ahead, the time since which it is unmatched, and the epoch behind it."""

    barrier: Event
    since_ms: int
    epoch: Index


class EpochsIndex(Index):
    """The unmatched events of both sides, by epoch. `make` builds the index of one epoch."""

    __slots__ = (
        "_ahead",
        "_aside",
        "_barred",
        "_classes",
        "_depth",
        "_hooks",
        "_lost",
        "_make",
        "_open",
        "_order",
        "_queued",
    )

    def __init__(self, order: Epochs, hooks: Hooks, depth: int, make: Callable[[], Index]) -> None:
        self._order, self._hooks, self._depth, self._make = order, hooks, depth, make
        self._open = make()
        self._ahead: Side | None = None
        self._barred: Side | None = None  # The side whose barrier here had no answer: it is past this epoch.
        self._queued: deque[Queued] = deque()
        self._aside: SetAside | None = None
        self._classes: set[Hashable] | None = None
        """The classes of the gathered events, once they were needed."""
        self._lost: BarrierResync | None = None

    # -- matching ------------------------------------------------------------------------------------------

    def standing(self, side: Side) -> Standing:
        """The standing of a side now."""
        if self._aside is not None and not self._aside.gathering:
            return Standing.ASIDE
        if self._ahead is None:
            return Standing.TOGETHER
        return Standing.AHEAD if self._ahead is side else Standing.BEHIND

    def take(self, side: Side, event: Event, route: Any) -> Event | None:
        standing = self.standing(side)
        if standing is Standing.ASIDE:
            return self._add_aside(side, event, route)
        if route is BARRIER:
            if standing is Standing.BEHIND:
                return self._meet(side, event)
            self._queue(side, event)
            return None
        if standing is Standing.BEHIND:
            return self._answered(side, event, route)
        return self._epoch_of(side).take(side, event, route)

    def _epoch_of(self, side: Side) -> Index:
        """The epoch that an event of a side belongs to: the open one, or that behind its last barrier."""
        return self._queued[-1].epoch if self._ahead is side else self._open

    def _add_aside(self, side: Side, event: Event, route: Any) -> Event | None:
        """Add an event to the scope; a lost scope keeps only events that help the sides to meet again."""
        scope = self._aside
        assert scope is not None
        if scope.lost:
            self._lost = self._lost or BarrierResync(self._hooks.limit, self._hooks.equal)
            if route is not BARRIER:
                self._lost.add(side, event)
            elif (met := self._lost.meet(side, event)) is not None:
                return self._go_on(scope, side.other, met)
        scope.add(side, event)
        return None

    def _go_on(self, scope: SetAside, other: Side, events: list[Event]) -> Event:
        """Go on behind the barrier at which both sides met: the first of these `events` of the other side."""
        self._hooks.finish(scope)
        self._hooks.came_back(other, events)
        barrier, *behind = events
        for event in behind:
            self.take(other, event, scope.route(event))
        return barrier

    def answer(self, side: Side, event: Event, route: Any) -> Event | None:
        standing = self.standing(side)
        if standing is Standing.ASIDE or standing is Standing.BEHIND:
            return self.take(side, event, route)
        if self._barred is side:
            return UNANSWERED
        if route is not BARRIER and standing is Standing.TOGETHER:
            return self._open.answer(side, event, route)
        self._barred = side
        return UNANSWERED

    def _answered(self, side: Side, event: Event, route: Any) -> Event | None:
        """Match an event of the side behind, which may not stay unmatched."""
        partner = self._open.answer(side, event, route)
        if partner is UNANSWERED:
            self._gather(side, event)
            return None
        if partner is None and self._aside is not None and _has_rules(self._order):
            self._let_have(side, event, route)
        return partner

    def _queue(self, side: Side, barrier: Event) -> None:
        """Queue a barrier that the other side lacks."""
        if self._ahead is None:
            self._gather_waiting(side.other)
            self._ahead = side
        self._queued.append(Queued(barrier, barrier[3], self._make()))

    def _meet(self, side: Side, barrier: Event) -> Event | None:
        """Take the barrier of the side behind, which ends the open epoch for both sides."""
        self._hooks.settle(self._open)
        oldest = self._queued[0].barrier
        done = self._aside is None and self._open.empty(side) and self._open.empty(side.other)
        if done and self._hooks.equal(oldest, barrier):
            self._pass()
            return oldest
        self._collect(side, barrier)
        return None

    def _pass(self) -> None:
        """Open the next epoch: both sides are past the oldest queued barrier."""
        for scope in self._open.scopes():
            self._hooks.finish(scope)
        passed = self._queued.popleft()
        self._open, self._barred = passed.epoch, None
        if self._hooks.bags is not None:
            self._hooks.bags.close(passed.barrier[0][0], self._depth)
        if not self._queued:
            self._ahead = None

    def feed(self, side: Side, events: Iterable[Event]) -> Pairs:
        """Take events of one side; all events between two barriers go to one index at once.

        Complexity: O(1) an event over lanes; about 0.3 µs.
        """
        pairs = Pairs([], [])
        waiting = iter(events)
        for stretch, barrier in _stretches(waiting):
            self._feed_stretch(side, stretch, pairs)
            if barrier is not None and (partner := self.take(side, barrier, BARRIER)) is not None:
                pairs.partners.append(partner)
                pairs.events.append(barrier)
        return pairs

    def match_twins(self, side: Side, twins: Sequence[Event]) -> int:
        """See `Index`. Complexity: O(1) a twin over lanes.

        A side that is ahead has no partners here: its events belong behind its last barrier.
        """
        matched = 0
        while self.standing(side) in _IN_OPEN_EPOCH:
            matched += self._open.match_twins(side, twins[matched:])
            if matched == len(twins) or not self._is_met_by(twins[matched]):
                break
            self._meet(side, twins[matched])
            matched += 1
        return matched

    def _is_met_by(self, twin: Event) -> bool:
        """Whether a twin is the oldest queued barrier, and nothing is left of the open epoch."""
        at_end = bool(self._queued) and self._queued[0].barrier is twin and self._aside is None
        return at_end and all(map(self._open.empty, Side)) and not tuple(self._open.scopes())

    def _feed_stretch(self, side: Side, stretch: list[Event], pairs: Pairs) -> None:
        standing = self.standing(side)
        if standing is Standing.TOGETHER or standing is Standing.AHEAD:
            found = self._epoch_of(side).feed(side, stretch)
            pairs.partners.extend(found.partners)
            pairs.events.extend(found.events)
            return
        events = iter(stretch)
        if standing is Standing.BEHIND and type(self._open) is LanesIndex:
            while (unanswered := self._open.answers(side, events, pairs)) is not None:
                self._gather(side, unanswered)
        for event in events:
            if (partner := self.take(side, event, event[0][0])) is not None:
                pairs.partners.append(partner)
                pairs.events.append(event)

    # -- after a difference --------------------------------------------------------------------------------

    def _gather(self, side: Side, event: Event) -> None:
        """Gather an event of the open epoch that cannot match any more, since the other side is past it."""
        if self._aside is None:
            self._aside = self._hooks.open(self, self._order, self._depth)
            self._aside.step("gather")
            self._classes = None
        self._aside.add(side, event)
        if self._classes is not None:
            self._classes.add(self._class_of(event))

    def _let_have(self, side: Side, event: Event, route: Any) -> None:
        """Move gathered events of its class to the scope of an event set aside within the open epoch.

        Under rules a scope is of a whole class, including events independent of the difference. Had the
        barrier of the other side come later, these would still be unmatched, and be in the scope.
        """
        gathering, whole = self._aside, ordered_class(self._order.inner, route)
        assert gathering is not None, "asked where something was gathered"
        if self._classes is None:
            self._classes = set(map(self._class_of, gathering.pieces[side]))
        if whole not in self._classes:
            return
        found = (scope for scope in self._open.scopes() if event in scope.pieces[side][-1:])
        scope = next(found, None)
        if scope is None or not isinstance(scope.order, Ruled | Pairwise):
            return
        gathering.give(side, [one for one in gathering.pieces[side] if self._class_of(one) == whole], scope)
        self._classes.discard(whole)
        if not len(gathering):
            self._aside = None
            self._hooks.absorb(scope, gathering)

    def _class_of(self, event: Event) -> Hashable:
        return ordered_class(self._order.inner, route_at(event, self._depth))

    def _gather_waiting(self, side: Side) -> None:
        """Gather the unmatched events of a side in the open epoch, which cannot match any more."""
        waiting = [event for event, _ in self._open.unmatched(side)]
        if waiting:
            self._doubt_forgotten(waiting[0])
            self._open.remove(side, waiting)
        for event in sorted(waiting, key=place_in_side):
            self._gather(side, event)

    def _collect(self, side: Side, barrier: Event) -> None:
        """Make one scope of all events in the open epoch, which has ended for both sides, and behind it."""
        self._doubt_forgotten(barrier)
        self._complete(self._aside or self._hooks.open(self, self._order, self._depth), barrier)
        assert self._aside is not None
        self._aside.add(side, barrier)

    def _is_torn(self) -> bool:
        """Whether events of the open epoch are set aside, and one side is past its end.

        The side behind may have lost that barrier. Then the partners of its events are behind it, and only
        both epochs together show what is left over.
        """
        return self._ahead is not None and next(self._open.scopes(), None) is not None

    def torn(self) -> Iterator[Index]:
        return iter((self,)) if self._is_torn() else self._open.torn()

    def gathered(self, side: Side) -> Iterator[Event]:
        if self._is_torn() or (self._aside is not None and self._aside.gathering):
            return (event for event, _ in self.unmatched(side))
        return self._open.gathered(side)

    def complete(self) -> None:
        if self._ahead is not None:
            self._hooks.settle(self._open)
        if self._aside is not None and self._aside.gathering:
            self._doubt_forgotten(self._aside.example)
            self._complete(self._aside)
        elif self._is_torn():
            barrier = self._queued[0].barrier
            self._doubt_forgotten(barrier)
            self._complete(self._hooks.open(self, self._order, self._depth), barrier)
        else:
            self._open.complete()

    def _complete(self, whole: SetAside, barrier: Event | None = None) -> None:
        """Make one scope of all unmatched events here, and of the scopes inside the open epoch."""
        example = barrier or whole.example
        if self._hooks.bags is not None:
            self._hooks.bags.lose(example[0][0], self._depth)
        self._open.complete()
        inner = tuple(self._open.scopes())
        left = [[event for event, _ in self._open.unmatched(owner)] for owner in Side]
        queued, ahead = tuple(self._queued), self._ahead
        self._clear()
        self._aside = whole
        for part in inner:
            whole.absorb(part)
        for owner in Side:
            whole.begin(owner, left[owner])
        whole.put_in_order()
        for first, _, epoch in queued:
            assert ahead is not None, "what is queued is of the side ahead"
            behind = sorted((event for event, _ in epoch.unmatched(ahead)), key=place_in_side)
            whole.begin(ahead, [first, *behind])
        whole.step("collect")
        for part in inner:
            self._hooks.absorb(whole, part)

    def _doubt_forgotten(self, event: Event) -> None:
        """Raise a doubt if the events set aside might have matched with pairs that were forgotten."""
        if self._hooks.bags is not None:
            here = path_of(event[0][0], self._depth)
            if any(path_of(lane, self._depth) == here for lane in self._hooks.bags.doubtful()):
                self._hooks.doubt()

    def _clear(self) -> None:
        self._open, self._ahead, self._barred = self._make(), None, None
        self._queued.clear()

    def adopt(self, scope: SetAside, route: Any) -> None:
        if scope.order is self._order:
            scope.owner = self
            self._aside, self._classes = scope, None
        else:
            self._open.adopt(scope, route)

    def kept_since_lost(self, scope: SetAside) -> tuple[list[Event], list[Event]]:
        if self._lost is None or scope is not self._aside:
            return [], []
        return self._lost.kept(Side.LEFT), self._lost.kept(Side.RIGHT)

    def keep_since_lost(self, scope: SetAside, kept: tuple[Sequence[Event], Sequence[Event]]) -> None:
        assert scope is self._aside, "it was adopted"
        self._lost = BarrierResync(self._hooks.limit, self._hooks.equal)
        for side in Side:
            self._lost.keep(side, kept[side], lambda event: route_at(event, self._depth) is BARRIER)

    def resume(self, scope: SetAside, tails: tuple[Sequence[Event], Sequence[Event]]) -> Pairs:
        if scope is not self._aside:
            return self._resume_inner(scope, tails)
        self._aside = self._lost = None
        if self._hooks.bags is not None and self._is_past_barrier(scope, tails):
            self._hooks.bags.close(scope.example[0][0], self._depth)
        return self.feed_again(scope, tails)

    def _is_past_barrier(self, scope: SetAside, tails: tuple[Sequence[Event], Sequence[Event]]) -> bool:
        """Whether a scope settled a barrier, so that the events fed again are of another epoch."""
        return any(
            sum(route_at(event, self._depth) is BARRIER for event in piece)
            > sum(route_at(event, self._depth) is BARRIER for event in tail)
            for piece, tail in zip(scope.pieces, tails, strict=True)
        )

    def _resume_inner(self, scope: SetAside, tails: tuple[Sequence[Event], Sequence[Event]]) -> Pairs:
        """Resume a scope of the open epoch; the unmatched events of the side behind are then gathered."""
        pairs = scope.owner.resume(scope, tails)
        if self._ahead is not None:
            self._gather_waiting(self._ahead.other)
        return pairs

    def scopes(self) -> Iterator[SetAside]:
        if self._aside is not None:
            yield self._aside
        yield from self._open.scopes()

    # -- reading and restoring -----------------------------------------------------------------------------

    def empty(self, side: Side) -> bool:
        return self._ahead is not side and self._open.empty(side)

    def unmatched(self, side: Side) -> Iterator[tuple[Event, int]]:
        yield from self._open.unmatched(side)
        if self._ahead is side:
            yield from self._queued_events()

    def _queued_events(self) -> Iterator[tuple[Event, int]]:
        """The queued barriers and the events behind each, in the manner of `unmatched`."""
        for barrier, since_ms, epoch in self._queued:
            yield barrier, since_ms
            assert self._ahead is not None, "what is queued is of the side ahead"
            yield from epoch.unmatched(self._ahead)

    def chains(self, side: Side) -> Iterator[tuple[int, Sequence[Event]]]:
        yield from self._open.chains(side)
        if self._ahead is side:
            for queued in self._queued:
                yield from queued.epoch.chains(side)

    def restore(self, side: Side, event: Event, route: Any, since_ms: int) -> None:
        if route is BARRIER:
            self._ahead = side
            self._queued.append(Queued(event, since_ms, self._make()))
        else:
            self._epoch_of(side).restore(side, event, route, since_ms)

    def remove(self, side: Side, events: Sequence[Event]) -> None:
        """Drop unmatched events; two epochs whose barrier is dropped become one. Complexity: O(n)."""
        gone = set(map(id, events))
        open_gone = [event for event, _ in self._open.unmatched(side) if id(event) in gone]
        if open_gone:
            self._open.remove(side, open_gone)
        if self._ahead is side:
            rest = [event for event, _ in self._queued_events() if id(event) not in gone]
            self._queued.clear()
            self._ahead = None
            for event in rest:
                self._wait_again(side, event, route_at(event, self._depth))

    def _wait_again(self, side: Side, event: Event, route: Any) -> None:
        """Put an event of the side ahead where it belongs without a barrier that was dropped before it.

        In the open epoch the other side holds nothing, so it waits, or goes to the scope of its part.
        """
        if route is BARRIER:
            self.restore(side, event, route, event[3])
        else:
            partner = self._epoch_of(side).take(side, event, route)
            assert partner is None, "the side behind holds nothing that could match"


@cache
def _has_rules(order: Epochs) -> bool:
    """Whether a scope within an epoch may include events that are independent of its difference."""
    return any(isinstance(node.order, Ruled | Pairwise) for node in nodes(order.inner))


def _stretches(events: Iterator[Event]) -> Iterator[tuple[list[Event], Event | None]]:
    """The events before each barrier with that barrier, and at the end those behind the last one."""
    waiting = list(events)
    start = 0
    for place in [place for place, event in enumerate(waiting) if event[0][0] is BARRIER]:
        yield waiting[start:place], waiting[place]
        start = place + 1
    yield waiting[start:], None
