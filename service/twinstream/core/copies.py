"""Barriers with a copy in each partition: one stream out of the partitions of a side.

Kafka orders only inside a partition. A barrier that is to hold for a whole topic is therefore written to each
of its partitions. The copies are one logical event: the epoch of an event is the number of copies that its
own partition has delivered before it, and an epoch of a side is complete when all its partitions have
delivered their copy. What a partition delivers of later epochs waits until then.

The copy of the first partition stands for all of them; the others are settled as ignored. Each has to equal
each other one: else they are no copies of one barrier, which was not checked, and is reported.

Where the partitions of a side were dealt to other shards (`dealing_copies`), some may be past a barrier that
others have still to deliver. A copy that was settled before keeps its place in its partition as `SETTLED`,
since it counts the epochs behind it; what it was stands among the `given`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import itemgetter

from twinstream.core.events import Event
from twinstream.core.orders import BARRIER

LATEST = 20
SETTLED = None
"""A copy that was settled with its barrier before its partition came here."""


class Copies:
    """The partitions of one side, each with what waits of it. `equal` compares two barriers.

    `surplus` are the copies that others stand for, `unequal` those that are no copies of their barrier. Both
    are the caller's to take. `united` counts the barriers of which all copies were delivered,
    `latest` are the latest of them, and `given` those behind them of which a copy was settled before.
    `settled` tells of some partitions how many barriers were, for when they are dealt again.
    """

    def __init__(self, equal: Callable[[Event, Event], bool]) -> None:
        self._equal = equal
        self.surplus: list[Event] = []
        self.unequal: list[Event] = []
        self.partitions: frozenset[int] = frozenset()
        self.united = 0
        self.latest: deque[Event] = deque(maxlen=LATEST)
        self.given: deque[Event] = deque()
        self.settled: dict[int, int] = {}
        self._waiting: dict[int, deque[Event | None]] = {}
        self._delivered: dict[int, Event] = {}
        self._contents: dict[bytes, Event] = {}
        self._settled = 0

    def expect(self, partitions: Iterable[int]) -> None:
        """Name the partitions, before the first event."""
        self.partitions = frozenset(partitions)

    def arrange(self, partition: int, events: Iterable[Event]) -> list[Event]:
        """Take events of one partition; return what may be compared now, in order.

        Complexity: O(1) an event, and O(p) in the partitions for each barrier.
        """
        self.partitions |= {partition}
        self._waiting.setdefault(partition, deque()).extend(events)
        ready: list[Event] = []
        self._advance(partition, ready)
        self._unite_all(ready)
        return ready

    def put(self, partition: int, events: Iterable[Event | None]) -> None:
        """Let events of one partition wait behind those that do, settled copies among them."""
        self.partitions |= {partition}
        waiting = self._waiting.setdefault(partition, deque())
        for event in events:
            waiting.append(event)
            self._settled += event is SETTLED

    def advance(self) -> list[Event]:
        """What waits and may be compared now, in order: all that does, once everything was put here again."""
        ready: list[Event] = []
        for partition in tuple(self._waiting):
            self._advance(partition, ready)
        self._unite_all(ready)
        return ready

    def _unite_all(self, ready: list[Event]) -> None:
        while self._delivered and self._delivered.keys() >= self.partitions:
            self._unite(ready)
            for other in tuple(self._waiting):
                self._advance(other, ready)

    def _advance(self, partition: int, ready: list[Event]) -> None:
        """Take what waits of a partition up to its next copy of a barrier."""
        waiting = self._waiting[partition]
        while waiting and partition not in self._delivered:
            event = waiting.popleft() or self.given[0]
            if event[0][0] is not BARRIER:
                ready.append(event)
                continue
            if not all(self._equal(other, event) for other in self._contents.values()):
                self.unequal.append(event)
            self._contents.setdefault(event[0][1], event)
            self._delivered[partition] = event

    def _unite(self, ready: list[Event]) -> None:
        """Of the copies that were delivered, and not settled before, one stands for all of them."""
        first, *others = sorted(self._own(), key=itemgetter(1))
        self._settled -= len(self._delivered) - len(others) - 1
        if self.given:
            self.given.popleft()
        self.united += 1
        self.latest.append(first)
        ready.append(first)
        self.surplus += others
        self._delivered.clear()
        self._contents.clear()

    def finish(self) -> tuple[list[Event], frozenset[int]]:
        """Nothing more will come: what waited goes on with the copies that there are.

        Returns the events, and the partitions that lack a copy.
        """
        ready: list[Event] = []
        lacking: frozenset[int] = frozenset()
        while self._delivered:
            lacking |= self.partitions - self._delivered.keys()
            self._unite(ready)
            for partition in tuple(self._waiting):
                self._advance(partition, ready)
        return ready, lacking

    def _own(self) -> Iterator[Event]:
        """The copies of the next barrier that were delivered here, and not settled before."""
        settled = self.given[0] if self.given else None
        return (event for event in self._delivered.values() if event is not settled)

    def in_order(self) -> Iterator[tuple[int, Event | None]]:
        """What waits, with its partition, in the order of that; also the copies that were settled before."""
        own = set(map(id, self._own()))
        for partition, waiting in self._waiting.items():
            if (delivered := self._delivered.get(partition)) is not None:
                yield partition, delivered if id(delivered) in own else SETTLED
            for event in waiting:
                yield partition, event

    def __len__(self) -> int:
        return len(self._delivered) + sum(map(len, self._waiting.values())) - self._settled

    def __iter__(self) -> Iterator[Event]:
        """What waits; of each partition in its order."""
        waiting = chain.from_iterable(self._waiting.values())
        return chain(self._own(), (event for event in waiting if event is not SETTLED))
