"""Finds the unmatched events that the other side has passed, on a clock of progress.

Such a clock gives each event a *point*: a place on one of several axes (its event time; the offset of its
input record, each input partition being an axis; the end of its window). And it says how far a side has
*reached* on each axis. An unsettled event is passed when the other side has reached beyond its point.

Points are read once, for events still unmatched at a look, and kept in a heap for each axis. So the cost of a
look depends on the changes since the last one, not on the number of events held.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import count

from twinstream.core.accounting.unmatched import UnmatchedEvents
from twinstream.core.clocks.event_time import EventTime, EventTimes
from twinstream.core.clocks.input import Input, InputPosition, InputProgress
from twinstream.core.events import FORM, MARK, RECORD, Event, Side

SLACK = 1000
"""The heaps are rebuilt when they have twice as many entries as events are held, and so many more."""

Point = tuple[Hashable, int]
"""An axis, and a place on it."""
Reached = Mapping[Hashable, int]
"""By axis, the first point that a side has not passed."""
TIME = "time"
"""The axis of event times, and of ends of windows."""


class PointsClock:
    """The points of the unmatched events of both sides, on the clock of event time or of the input.

    `progress` says how far each side has come on it. `needs_ends`: both sides must be read to their ends
    before anything is overdue.
    """

    def __init__(
        self, clock: EventTime | Input, progress: EventTimes | InputProgress, held: Sequence[UnmatchedEvents]
    ) -> None:
        self.progress, self._clock = progress, clock
        self.needs_ends = isinstance(clock, EventTime)
        self._waiting = Points(held[0], self.point), Points(held[1], self.point)

    def point(self, event: Event) -> Point | None:
        """The point of an event; None if it has none, and so is never passed."""
        if isinstance(self._clock, EventTime):
            time_ms = self._clock.time_of(event[FORM][RECORD])
        else:
            if event[MARK] is not None and self._clock.place_of is not None:
                return _on_its_partition(self._clock.place_of(event[MARK]))
            window_end_of = self._clock.window_end_of
            time_ms = None if window_end_of is None else window_end_of(event[FORM][RECORD])
        return None if time_ms is None else (TIME, time_ms)

    def reached(self, side: Side) -> Reached:
        """By axis, the first point that a side has not passed."""
        if isinstance(self.progress, EventTimes):
            reached_ms = self.progress.reached(side)
            return {} if reached_ms is None else {TIME: reached_ms}
        found: dict[Hashable, int] = dict(self.progress.consumed(side))
        watermark_ms = self.progress.watermark_ms(side)
        if watermark_ms is not None:
            found[TIME] = watermark_ms + 1
        return found

    def is_below(self, reached: Reached, event: Event) -> bool:
        """Whether a side that has reached so far has passed an event."""
        point = self.point(event)
        return point is not None and point[1] < reached.get(point[0], point[1])

    def passed(self, side: Side) -> dict[int, Event]:
        """The unsettled events of a side that the other one has passed, by object id; as of `settle`."""
        return self._waiting[side].passed(self.reached(side.other))


def _on_its_partition(place: InputPosition | None) -> Point | None:
    if place is None:
        return None  # It comes from one record of the input, and its mark does not tell which.
    topic, partition, offset = place
    return (topic, partition), offset


class Points:
    """The unsettled events of one side by their points."""

    def __init__(self, held: UnmatchedEvents, point: Callable[[Event], Point | None]) -> None:
        self._held, self._point = held, point
        self._heaps: dict[Hashable, list[tuple[int, int, Event]]] = {}
        self._serial = count()
        self._passed: dict[int, Event] = {}
        held.watch()

    def passed(self, reached: Reached) -> dict[int, Event]:
        """The events below the reached points. Complexity: O(log n) for each that came or is passed."""
        for event in self._held.take_news():
            self._add(event)
        for axis, limit in reached.items():
            heap = self._heaps.get(axis, ())
            while heap and heap[0][0] < limit:
                event = heappop(heap)[2]
                self._passed[id(event)] = event
        self._passed = {key: event for key, event in self._passed.items() if self._held.holds(event)}
        if sum(map(len, self._heaps.values())) > 2 * len(self._held) + SLACK:
            self._forget()
        return self._passed

    def _add(self, event: Event) -> None:
        if self._held.holds(event):
            point = self._point(event)
            if point is not None:
                heappush(self._heaps.setdefault(point[0], []), (point[1], next(self._serial), event))

    def _forget(self) -> None:
        """Drop the settled events."""
        for axis, heap in tuple(self._heaps.items()):
            heap[:] = [entry for entry in heap if self._held.holds(entry[2])]
            heapify(heap)
            if not heap:
                del self._heaps[axis]
