"""All unmatched events of both sides, in the order in which they came.

Indexes, scopes and copies of barriers hold the unsettled events where matching needs them. What a monitor
asks of all of them together (the first open offset of a partition, the oldest time, their size, what changed
since the last checkpoint) would mean to walk over all of them, once a second. So they stand here once more,
and only what *stays* costs something:

- On the hot path, what came and what left is only listed. `settle` brings both together, for each look: an
  event that came and left in between was never held. `thin` keeps the lists short meanwhile.
- The events of a partition come in the order of their offsets, so the first open one is the front of a
  queue, after those that left.
- Events are known by identity: two equal ones are two.
- The order is that in which events came to matching. Where that is not the order in which they were read,
  since they waited for other partitions, `entered` tells.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from twinstream.core.events import Event, PartitionOffset, Side

SETTLE_AT = 32_768
"""So many events may be listed as come and gone; each takes up memory until it is struck out or taken in."""
FULL_RUN, SETTLE_SOON = 500, 4_096
"""Where runs are small there is time, and what is taken in by and by does not wait for the next look."""
SLACK = 1000
"""So many events more than twice those held may stand in the queues before these are made anew."""


class Changes(NamedTuple):
    """What changed on a side: events that came and stayed, and the places of those that left."""

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
        self._pace = 0  # The length of runs, of late.

    def of(self, side: Side) -> OneSide:
        """What is held of one side, as of the last `settle`."""
        return self._sides[side]

    def came(self, side: Side, events: Iterable[Event]) -> None:
        """Note events of a side. Complexity: about 10 ns each."""
        self._came[side].extend(events)

    def entered(self, side: Side, events: Iterable[Event]) -> None:
        """Note events of a side that came, now or before, and go to matching only now."""
        self._entered[side].extend(events)

    def left(self, events: Iterable[Event]) -> None:
        """Note events of any side that are settled, or given up. Complexity: about 10 ns each."""
        self._left.extend(events)

    def came_back(self, side: Side, events: Iterable[Event]) -> None:
        """Take back that events left. Complexity: O(n) in what came and left since `settle`."""
        back = {id(event): event for event in events}
        self._left[:] = [event for event in self._left if id(event) not in back]
        known = set(map(id, self._came[side])) | set(map(id, self._sides[side]))
        self._came[side].extend(event for key, event in back.items() if key not in known)

    @property
    def pending(self) -> int:
        """How many events are listed and not taken in yet."""
        return len(self._came[0]) + len(self._came[1]) + len(self._left)

    def is_full(self, count: int) -> bool:
        """Whether as much is listed as should be, behind a run of so many events."""
        self._pace = max(count, self._pace * 7 // 8)
        return self.pending > self._limit

    @property
    def _limit(self) -> int:
        return SETTLE_AT if self._pace >= FULL_RUN else SETTLE_SOON

    def thin(self) -> None:
        """Strike out what came and left. What came and stayed is taken in where it fills the lists by half.

        Complexity: about 0.1 µs for each that is listed, 0.5 µs for what leaves and had stayed.
        """
        gone = set(map(id, self._left))
        for came, held in zip(self._came, self._sides, strict=True):
            held.drop(gone)
            came[:] = [event for event in came if id(event) not in gone]
        self._left.clear()
        if self.pending > self._limit // 2 or any(self._entered):
            self.settle()

    def settle(self) -> None:
        """Take in what came and left. Complexity: about 0.1 µs each, 0.5 µs for what stays or had stayed."""
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
        """Keep the events that come and stay for `take_news`."""
        self._news = list(self._events.values())

    def take_news(self) -> list[Event]:
        """The events that came and stayed since the last call; some may have left in the meantime."""
        news, self._news = self._news or [], []
        return news

    def holds(self, event: Event) -> bool:
        """Whether this very event is held."""
        return self._events.get(id(event)) is event

    def drop(self, gone: Set[int]) -> None:
        """Drop those held that are gone; `gone` has identities, also of events that were never held."""
        self._remove([self._events.pop(key) for key in self._events.keys() & gone])
        for queue in self._queues.values():
            self._queued -= _trim(queue, self._events)
        if self._queued > 2 * len(self._events) + SLACK:
            self._queues.clear()
            self._queued = 0
            self._enqueue(self._events.values())

    def move_behind(self, events: Iterable[Event]) -> None:
        """Let those of some events that are held stand behind all others."""
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
        """Take in events that came and stayed."""
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
        """The smallest offset in each partition that has any. Complexity: O(1) amortised."""
        found = {}
        for partition, queue in tuple(self._queues.items()):
            self._queued -= _trim(queue, self._events)
            if queue:
                found[partition] = queue[0][2]
            else:
                del self._queues[partition]
        return found

    def oldest_ms(self) -> int | None:
        """The smallest timestamp. Complexity: O(k) in the different timestamps, about 20 ns each."""
        return min(self._times, default=None)

    def until(self, moment_ms: int) -> int:
        """How many have a timestamp up to a moment. Complexity: O(k) in the different timestamps."""
        return sum(count for moment, count in self._times.items() if moment <= moment_ms)

    def take_changes(self) -> Changes:
        """What changed since the last call."""
        changes = Changes(list(self._added.values()), self._removed)
        self._added, self._removed = {}, []
        return changes

    def begin_sweep(self) -> None:
        """Begin to go once more over all that is held now. Complexity: O(n), about 10 ns each."""
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
        """Whether a sweep has not come to its end."""
        return bool(self._unswept)

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        """All of them, in the order in which they came."""
        return iter(self._events.values())


def _trim(queue: deque[Event], held: Mapping[int, Event]) -> int:
    """Take from the front of a queue what is not held any more; how many these were."""
    length = len(queue)
    while queue and id(queue[0]) not in held:
        queue.popleft()
    return length - len(queue)
