"""Finds where two sides meet again after a scope was lost: at a barrier that both wrote.

The events of a lost scope are unknown. But a later barrier that both sides wrote cuts them off: the events
behind it can be compared again. Each side's events are kept from a barrier on until such a pair is found.
Beyond `limit` events the oldest epochs are dropped, since a later barrier will do as well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain

from twinstream.core.events import Event, Side


class BarrierResync:
    """The epochs of both sides since the scope was lost, each a list that begins with its barrier."""

    def __init__(self, limit: int, equal: Callable[[Event, Event], bool]) -> None:
        self._limit, self._equal = limit, equal
        self._epochs: tuple[deque[list[Event]], deque[list[Event]]] = (deque(), deque())

    def add(self, side: Side, event: Event) -> None:
        """Take an event that is not a barrier."""
        epochs = self._epochs[side]
        if epochs:
            epochs[-1].append(event)
            self._trim(side)

    def meet(self, side: Side, barrier: Event) -> list[Event] | None:
        """Take a barrier; returns the equal one of the other side with all events behind it, or None."""
        theirs = self._epochs[side.other]
        for place, (other, *_) in enumerate(theirs):
            if self._equal(other, barrier):
                return list(chain.from_iterable(list(theirs)[place:]))
        self._epochs[side].append([barrier])
        self._trim(side)
        return None

    def kept(self, side: Side) -> list[Event]:
        """The events of a side that are kept, in their order."""
        return list(chain.from_iterable(self._epochs[side]))

    def keep(self, side: Side, events: Iterable[Event], is_barrier: Callable[[Event], bool]) -> None:
        """Take over what was `kept` of a side, which begins with a barrier."""
        epochs = self._epochs[side]
        for event in events:
            if is_barrier(event):
                epochs.append([event])
            else:
                epochs[-1].append(event)

    def _trim(self, side: Side) -> None:
        epochs = self._epochs[side]
        while sum(map(len, epochs)) > self._limit:
            epochs.popleft()
