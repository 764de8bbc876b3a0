"""All unmatched events of both sides, in the order in which they came.

Indexes, scopes and copies of barriers hold the unsettled events where matching needs them. A monitor needs
facts about all of them: the first open offset of a partition, the oldest time, their size, the changes since
the last checkpoint. Computing these there would walk over all events once a second. So they are listed here
once more, and only events that *stay* have a cost:

- On the hot path, events that come and leave are only listed. `settle` brings both lists together at each
  look: an event that came and left in between was never held. `thin` keeps the lists short meanwhile.
- The events of a partition come in the order of their offsets, so the first open one is the front of a
  queue, once those that left are removed.
- Events are distinguished by object identity: two equal ones are two.
- The order is that in which events came to matching. Where they were read in another order, since they
  waited for other partitions, `entered` corrects it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from twinstream.core.events import Event, PartitionOffset, Side

SETTLE_AT = 32_768
"""The most events listed as come and gone; each uses memory until `thin` or `settle` removes it."""
FULL_RUN, SETTLE_SOON = 500, 4_096
"""Where runs are small there is time to settle more often, and the next look has less to do."""
SLACK = 1000
"""The queues are rebuilt when they have twice as many entries as events are held, and so many more."""


class Changes(NamedTuple):
    """The changes on a side: events that came and stayed, and the places of those that left."""

    added: list[Event]
    removed: list[PartitionOffset]


class UnmatchedEvents:
    """The unsettled events of both sides.

    >>> from twinstream.core.events import Form
    >>> held = UnmatchedEvents()
    >>> one, two = (Event(Form("", b"", "", b"{}"), 0, at, 10 + at, 0.0) for at in (7, 8))
    >>> held.came(Side.LEFT, (one, two)), held.left((one,)), held.settle()
    (None, None, None)
    >>> held.of(Side.LEFT).first_open(), held.of(Side.LEFT).oldest_ms(), len(held.of(Side.LEFT))
    ({0: 8}, 18, 1)
    """

    def __init__(self) -> None:
        self._came: tuple[list[Event], list[Event]] = ([], [])
        self._left: list[Event] = []
        self._entered: tuple[list[Event], list[Event]] = ([], [])
        self._sides = OneSide(), OneSide()
        self._pace = 0  # The length of recent runs.

    def of(self, side: Side) -> OneSide:
        """The unsettled events of one side, as of the last `settle`."""
        return self._sides[side]

    def came(self, side: Side, events: Iterable[Event]) -> None:
        """Note events of a side. Complexity: about 10 ns each."""
        self._came[side].extend(events)

    def entered(self, side: Side, events: Iterable[Event]) -> None:
        """Note events of a side that go to matching only now, whether they came now or earlier."""
        self._entered[side].extend(events)

    def left(self, events: Iterable[Event]) -> None:
        """Note events of any side that are settled or given up. Complexity: about 10 ns each."""
        self._left.extend(events)

    def came_back(self, side: Side, events: Iterable[Event]) -> None:
        """Undo `left` for some events. Complexity: O(n) in the events that came and left since `settle`."""
        back = {id(event): event for event in events}
        self._left[:] = [event for event in self._left if id(event) not in back]
        known = set(map(id, self._came[side])) | set(map(id, self._sides[side]))
        self._came[side].extend(event for key, event in back.items() if key not in known)

    @property
    def pending(self) -> int:
        """The number of events that are listed and not yet settled."""
        return len(self._came[0]) + len(self._came[1]) + len(self._left)

    def is_full(self, count: int) -> bool:
        """Whether the lists are full, after a run of so many events."""
        self._pace = max(count, self._pace * 7 // 8)
        return self.pending > self._limit

    @property
    def _limit(self) -> int:
        return SETTLE_AT if self._pace >= FULL_RUN else SETTLE_SOON

    def thin(self) -> None:
        """Remove events from the lists that came and left; settle if those that stay half fill the lists.

        Complexity: about 0.1 µs for each listed event, 0.5 µs for one that leaves and had stayed.
        """
        gone = set(map(id, self._left))
        for came, held in zip(self._came, self._sides, strict=True):
            held.drop(gone)
            came[:] = [event for event in came if id(event) not in gone]
        self._left.clear()
        if self.pending > self._limit // 2 or any(self._entered):
            self.settle()

    def settle(self) -> None:
        """Apply the lists. Complexity: about 0.1 µs an event, 0.5 µs if it stays or had stayed."""
        gone = set(map(id, self._left))
        for came, entered, held in zip(self._came, self._entered, self._sides, strict=True):
            held.drop(gone)
            held.add([event for event in came if id(event) not in gone])
            held.move_behind(entered)
            came.clear()
            entered.clear()
        self._left.clear()


class OneSide:
    """The unsettled events of one side."""

    def __init__(self) -> None:
        self._events: dict[int, Event] = {}
        self._queues: dict[int, deque[Event]] = {}
        self._queued = 0
        self._times: Counter[int] = Counter()
        self._added: dict[int, Event] = {}
        self._removed: list[PartitionOffset] = []
        self._unswept: list[Event] = []
        self._news: list[Event] | None = None
        self.size_bytes = 0

    def watch(self) -> None:
        """Collect the events that come and stay, for `take_news`."""
        self._news = list(self._events.values())

    def take_news(self) -> list[Event]:
        """The events that came and stayed since the last call; some may have left in the meantime."""
        news, self._news = self._news or [], []
        return news

    def holds(self, event: Event) -> bool:
        """Whether this very event is held."""
        return self._events.get(id(event)) is event

    def drop(self, gone: Set[int]) -> None:
        """Drop the held events that are gone; `gone` has object ids, also of events that were never held."""
        self._remove([self._events.pop(key) for key in self._events.keys() & gone])
        for queue in self._queues.values():
            self._queued -= _trim(queue, self._events)
        if self._queued > 2 * len(self._events) + SLACK:
            self._queues.clear()
            self._queued = 0
            self._enqueue(self._events.values())

    def move_behind(self, events: Iterable[Event]) -> None:
        """Move those of some events that are held behind all others."""
        for event in events:
            key = id(event)
            if self._events.pop(key, None) is not None:
                self._events[key] = event
                if self._added.pop(key, None) is None:
                    self._removed.append((event[1], event[2]))
                self._added[key] = event

    def _remove(self, events: list[Event]) -> None:
        times, added = self._times, self._added
        for event in events:
            moment = event[3]
            if times[moment] == 1:
                del times[moment]
            else:
                times[moment] -= 1
            if added.pop(id(event), None) is None:
                self._removed.append((event[1], event[2]))
        self.size_bytes -= sum(len(event[0][3]) for event in events)

    def add(self, events: list[Event]) -> None:
        """Add events that came and stayed."""
        fresh = {id(event): event for event in events}
        self._events.update(fresh)
        self._added.update(fresh)
        self._times.update(event[3] for event in events)
        self.size_bytes += sum(len(event[0][3]) for event in events)
        self._enqueue(events)
        if self._news is not None:
            self._news += events

    def _enqueue(self, events: Iterable[Event]) -> None:
        queues = self._queues
        for event in events:
            queue = queues.get(event[1])
            if queue is None:
                queue = queues[event[1]] = deque()
            queue.append(event)
            self._queued += 1

    def first_open(self) -> dict[int, int]:
        """The smallest offset in each partition that has an event. Complexity: O(1) amortised."""
        found = {}
        for partition, queue in tuple(self._queues.items()):
            self._queued -= _trim(queue, self._events)
            if queue:
                found[partition] = queue[0][2]
            else:
                del self._queues[partition]
        return found

    def oldest_ms(self) -> int | None:
        """The smallest timestamp. Complexity: O(k) in the distinct timestamps, about 20 ns each."""
        return min(self._times, default=None)

    def until(self, moment_ms: float) -> int:
        """The number of events with a timestamp up to a moment. Complexity: O(k) in distinct timestamps."""
        return sum(count for moment, count in self._times.items() if moment <= moment_ms)

    def take_changes(self) -> Changes:
        """The changes since the last call."""
        changes = Changes(list(self._added.values()), self._removed)
        self._added, self._removed = {}, []
        return changes

    def begin_sweep(self) -> None:
        """Begin a sweep over all events that are held now. Complexity: O(n), about 10 ns each."""
        self._unswept = list(reversed(self._events.values()))

    def sweep(self, most: int) -> list[Event]:
        """The next events of the sweep that are still held, in the order in which they came."""
        swept: list[Event] = []
        while self._unswept and len(swept) < most:
            event = self._unswept.pop()
            if id(event) in self._events:
                swept.append(event)
        return swept

    @property
    def sweeping(self) -> bool:
        """Whether a sweep has not ended yet."""
        return bool(self._unswept)

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        """The events in the order in which they came."""
        return iter(self._events.values())


def _trim(queue: deque[Event], held: Mapping[int, Event]) -> int:
    """Remove events from the front of a queue that are no longer held; returns their number."""
    length = len(queue)
    while queue and id(queue[0]) not in held:
        queue.popleft()
    return length - len(queue)
