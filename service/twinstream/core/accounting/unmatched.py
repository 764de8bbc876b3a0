"""All unmatched events of a side, in the order in which they came.

Indexes, scopes and copies of barriers hold the unsettled events where matching needs them. A monitor needs
facts about all of them: the first open offset of a partition, the oldest time, their size, the changes since
the last checkpoint. Computing these there would walk over all events once a second. So they are listed here
once more, in two generations:

- Events that came since the last look are *fresh*: an entry in one dictionary, which is all that most of them
  ever cost. Each look takes those that have stayed into the facts (`settle`).
- Nearly all events of a partition come in the order of their offsets, so the first open one is the front of a
  queue, once those that left are removed. Those that come behind a later one (rows that are renewed, events
  read again from a checkpoint) are in a heap.
- Events are distinguished by object identity: two equal ones are two.
- A new record of the other side finds its *twin*, an event with the same bytes, here (`by_record`).
- Events that wait *ahead* of the index are columns (`arrivals.ahead`); `enter` makes events of them.
- The order is that in which events came to matching. Where they were read in another order, since they
  waited for other partitions, `entered` corrects it.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush, merge
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

from twinstream.core.accounting.by_record import EventsByRecord, Records, records_of
from twinstream.core.arrivals.ahead import RunsAhead
from twinstream.core.events import (
    OFFSET,
    PARTITION,
    READ_AT,
    TIMESTAMP_MS,
    Event,
    PartitionOffset,
    place_in_side,
)

SLACK = 1000
"""The queues are rebuilt when they have twice as many entries as events are held, and so many more."""
FRESH_LIMIT = 32_768
"""The most fresh events of a side. More are taken in without a look, so that no look takes long."""


class Changes(NamedTuple):
    """The changes on a side: events that came and stayed, and the places of those that left."""

    added: list[Event]
    removed: list[PartitionOffset]


class UnmatchedEvents:
    """The unsettled events of one side; some may be `ahead` of the index.

    What is read of them is as of the last `settle`.

    >>> from twinstream.core.events import Form
    >>> held = UnmatchedEvents()
    >>> one, two = (Event(Form("", b"", "", b"{}"), 0, at, 10 + at, 0.0) for at in (7, 8))
    >>> held.came((one, two)), held.left((one,)), held.settle()
    (None, None, None)
    >>> held.first_open(), held.oldest_ms(), len(held)
    ({0: 8}, 18, 1)
    """

    def __init__(self) -> None:
        self.ahead = RunsAhead()
        self._fresh, self._events = EventsByRecord(), EventsByRecord()
        self._entered: list[Event] = []
        self._early: list[Event] = []
        self._queues: defaultdict[int, deque[list[Event]]] = defaultdict(deque)
        self._behind: defaultdict[int, list[tuple[int, int, Event]]] = defaultdict(list)
        self._queued = 0
        self._times: Counter[int] = Counter()
        self._times_left: Counter[int] = Counter()
        self._added: dict[int, Event] = {}
        self._removed: list[PartitionOffset] = []
        self._unswept: deque[Event] = deque()
        self._news: list[Event] | None = None
        self._size_bytes = 0

    # -- coming and leaving --------------------------------------------------------------------------------

    def came(self, events: Sequence[Event]) -> None:
        """Note events. Complexity: about 0.1 µs each."""
        fresh = self._fresh
        fresh.add(events)
        for event in self._early:
            fresh.discard(event)
        self._early.clear()
        if max(len(fresh), len(self._entered)) > FRESH_LIMIT:
            self.settle()

    def entered(self, events: Iterable[Event]) -> None:
        """Note events that go to matching only now, whether they came now or earlier."""
        self._entered.extend(events)

    def left(self, events: Sequence[Event]) -> None:
        """Note events that are settled or given up.

        Those of the run that is being matched may leave before they are noted as come.

        Complexity: about 0.15 µs for a fresh event, 0.4 µs for one that stayed over a look.
        """
        records = records_of(events)
        if self._fresh.take(events, records):
            return
        if self._events.take(events, records):
            self._note_left(events)
            return
        for event in events:
            if self._fresh.discard(event):
                continue
            if self._events.discard(event):
                self._note_left((event,))
            else:
                self._early.append(event)

    def twins(self, records: Records) -> list[Event | None]:
        """For each record an unsettled event that has the same bytes, if there is one.

        Complexity: about 0.1 µs each.
        """
        found = self._fresh.twins(records)
        return found if all(found) else self._events.twins(records, found)

    def came_back(self, events: Sequence[Event]) -> None:
        """Undo `left` for some events."""
        gone = [event for event in events if not self.holds(event)]
        self._early = [event for event in self._early if not any(event is one for one in gone)]
        self._fresh.add([event for event in gone if event not in self._fresh])

    def settle(self) -> None:
        """Take in the events that came since the last call. Complexity: about 0.4 µs for each that stayed."""
        if len(self._fresh):
            self._include(list(self._fresh), saved=False)
            self._fresh.clear()
        for event in self._entered:
            self._move_behind(event)
        self._entered.clear()
        self.ahead.look()
        self._events.shrink()

    def _note_left(self, events: Sequence[Event]) -> None:
        self._times_left.update(map(_TIME, events))
        self._size_bytes -= _size(events)
        if added := self._added:
            events = [event for event in events if added.pop(id(event), None) is None]
        self._removed += map(place_in_side, events)

    def _move_behind(self, event: Event) -> None:
        """Move an event behind all others, if it is held."""
        if self._events.discard(event):
            self._events.add([event])
            if self._added.pop(id(event), None) is None:
                self._removed.append(place_in_side(event))
            self._added[id(event)] = event

    def enter(self, partition: int) -> list[Event]:
        """Make events of the oldest run that is ahead in a partition, and was there at the last look."""
        run, saved = self.ahead.enter(partition)
        events = list(run.events())
        self._include(events, saved=saved)
        if saved and self.sweeping:
            self._unswept += events
        return events

    def _include(self, events: list[Event], *, saved: bool) -> None:
        if not saved:
            self._added.update(zip(map(id, events), events, strict=True))
        if self._news is not None:
            self._news += events
        self._events.add(events)
        self._times.update(map(_TIME, events))
        self._size_bytes += _size(events)
        self._enqueue(events)

    def _enqueue(self, events: Iterable[Event]) -> None:
        for partition, run in groupby(events, _PARTITION):
            in_order, queue = sorted(run, key=_OFFSET), self._queues[partition]
            self._queued += len(in_order)
            if queue and in_order[0][OFFSET] < queue[-1][-1][OFFSET]:
                for event in in_order:
                    heappush(self._behind[partition], (event[OFFSET], id(event), event))
            else:
                queue.append(in_order)

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def size_bytes(self) -> int:
        """The bytes of the records of all events."""
        return self._size_bytes + self.ahead.size_bytes

    def watch(self) -> None:
        """Collect the events that come and stay, for `take_news`."""
        self._news = list(self._events)

    def take_news(self) -> list[Event]:
        """The events that came and stayed since the last call; some may have left in the meantime."""
        news, self._news = self._news or [], []
        return news

    def holds(self, event: Event) -> bool:
        """Whether this very event is held."""
        return event in self._events

    def first_open(self) -> dict[int, int]:
        """The smallest offset in each partition that has an event.

        Complexity: O(1) amortised, O(log n) for an event that came behind a later one.
        """
        found = self.ahead.first_open()
        if self._queued > 2 * len(self._events) + SLACK:
            self._queues.clear()
            self._behind.clear()
            self._queued = 0
            self._enqueue(sorted(self._events, key=place_in_side))
        for partition, queue in tuple(self._queues.items()):
            self._trim(queue)
            if queue:
                found[partition] = queue[0][0][OFFSET]
            else:
                del self._queues[partition]
        for partition, heap in tuple(self._behind.items()):
            while heap and heap[0][-1] not in self._events:
                heappop(heap)
                self._queued -= 1
            if heap:
                found[partition] = min(found.get(partition, heap[0][0]), heap[0][0])
            else:
                del self._behind[partition]
        return found

    def _trim(self, queue: deque[list[Event]]) -> None:
        """Remove events from the front of a queue that are no longer held."""
        while queue:
            run = queue[0]
            gone = self._events.first_of(run)
            self._queued -= len(run) if gone is None else gone
            if gone is not None:
                del run[:gone]
                return
            queue.popleft()

    def oldest_ms(self) -> int | None:
        """The smallest timestamp. Complexity: O(k) in the distinct timestamps, about 20 ns each."""
        times, ahead_ms = self._open_times(), self.ahead.oldest_ms()
        return min(times if ahead_ms is None else chain(times, (ahead_ms,)), default=None)

    def until(self, moment_ms: float) -> int:
        """The number of events with a timestamp up to a moment. Complexity: O(k) in distinct timestamps."""
        here = sum(count for moment, count in self._open_times().items() if moment <= moment_ms)
        return here + self.ahead.until(moment_ms)

    def _open_times(self) -> Mapping[int, int]:
        """The number of events with each timestamp."""
        times = self._times
        for moment, count in self._times_left.items():
            if times[moment] == count:
                del times[moment]
            else:
                times[moment] -= count
        self._times_left.clear()
        return times

    def take_changes(self) -> Changes:
        """The changes since the last call."""
        added, removed = self.ahead.take_changes()
        changes = Changes([*self._added.values(), *added], self._removed + removed)
        self._added, self._removed = {}, []
        return changes

    def begin_sweep(self) -> None:
        """Begin a sweep over all events that are held now. Complexity: O(n), about 10 ns each."""
        self._unswept = deque(self._events)
        self.ahead.begin_sweep()

    def sweep(self, most: int) -> list[Event]:
        """The next events of the sweep that are still held, in the order in which they came."""
        swept: list[Event] = []
        while self._unswept and len(swept) < most:
            event = self._unswept.popleft()
            if event in self._events:
                swept.append(event)
        return swept + self.ahead.sweep(most - len(swept))

    @property
    def sweeping(self) -> bool:
        """Whether a sweep has not ended yet."""
        return bool(self._unswept) or self.ahead.sweeping

    def __len__(self) -> int:
        return len(self._events) + len(self.ahead)

    def __iter__(self) -> Iterator[Event]:
        """The events; those of a partition are in the order in which they came."""
        return chain(self._events, self.ahead)

    def oldest_first(self) -> Iterator[Event]:
        """The events in the order in which they came."""
        return merge(self._events, self.ahead, key=_READ_AT)


_TIME = itemgetter(TIMESTAMP_MS)
_PARTITION = itemgetter(PARTITION)
_OFFSET = itemgetter(OFFSET)
_READ_AT = itemgetter(READ_AT)


def _size(events: Sequence[Event]) -> int:
    """The bytes of the records of some events."""
    return sum(map(len, records_of(events)))
