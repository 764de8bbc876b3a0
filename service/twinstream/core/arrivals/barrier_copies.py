"""Makes one stream of the partitions of a side, where each barrier has a copy in each partition.

Kafka orders only within a partition. A barrier for a whole topic is therefore written to each of its
partitions. The copies are one logical event: the epoch of an event is the number of copies that its own
partition has delivered before it, and an epoch of a side is complete when all its partitions have delivered
their copy. Events of later epochs wait until then.

The copy of the first partition stands for all of them; the others are settled as ignored. All must be equal
to each other: if not, they are not copies of one barrier, which is reported as a hole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from twinstream.core.events import CONTENT, FORM, OFFSET, PARTITION, ROUTE, Event, PartitionOffset
from twinstream.core.order import BARRIER


class Copies:
    """The partitions of one side, each with its waiting events. `equal` compares two barriers.

    `surplus` are the copies that others stand for, `unequal` those that are not equal to their barrier. The
    caller takes both. `lacking` are the partitions that lack a copy at the end.
    """

    def __init__(self, equal: Callable[[Event, Event], bool]) -> None:
        self._equal = equal
        self.surplus: list[Event] = []
        self.unequal: list[Event] = []
        self.partitions: frozenset[int] = frozenset()
        self.lacking: frozenset[int] = frozenset()
        self._waiting: dict[int, deque[Event]] = {}
        self._delivered: dict[int, Event] = {}
        self._contents: dict[bytes, Event] = {}

    def expect(self, partitions: Iterable[int]) -> None:
        """Set the partitions, before the first event."""
        self.partitions = frozenset(partitions)

    def arrange(self, partition: int, events: Iterable[Event]) -> list[Event]:
        """Take events of one partition; return the events that can be compared now, in order.

        Complexity: O(1) an event, and O(p log p) in the partitions for each barrier.
        """
        self.partitions |= {partition}
        self._waiting.setdefault(partition, deque()).extend(events)
        ready: list[Event] = []
        self._advance(partition, ready)
        while self._delivered and self._delivered.keys() >= self.partitions:
            self._unite(ready)
        return ready

    def _advance(self, partition: int, ready: list[Event]) -> None:
        """Release the waiting events of a partition up to its next copy of a barrier."""
        waiting = self._waiting[partition]
        while waiting and partition not in self._delivered:
            event = waiting.popleft()
            if event[FORM][ROUTE] is not BARRIER:
                ready.append(event)
                continue
            if not all(self._equal(other, event) for other in self._contents.values()):
                self.unequal.append(event)
            self._contents.setdefault(event[FORM][CONTENT], event)
            self._delivered[partition] = event

    def _unite(self, ready: list[Event]) -> None:
        """Release one of the delivered copies, which stands for all of them, and what waits behind them."""
        first, *others = sorted(self._delivered.values(), key=itemgetter(1))
        ready.append(first)
        self.surplus += others
        self._delivered.clear()
        self._contents.clear()
        for partition in sorted(self._waiting):  # By number: a restart forgets which one wrote first.
            self._advance(partition, ready)

    def finish(self) -> list[Event]:
        """Release all waiting events: no more copies will come, so barriers do with those they have."""
        ready: list[Event] = []
        while self._delivered:
            self.lacking |= self.partitions - self._delivered.keys()
            self._unite(ready)
        return ready

    def __len__(self) -> int:
        return len(self._delivered) + sum(map(len, self._waiting.values()))

    def __iter__(self) -> Iterator[Event]:
        """The waiting events, those of each partition in order; the partition that delivered first is first.

        Nothing waits in a partition that has not delivered its copy.
        """
        for partition, delivered in self._delivered.items():
            yield delivered
            yield from self._waiting[partition]

    def state(self) -> dict[str, Any]:
        """The state as plain data."""
        return {
            "places": [[event[PARTITION], event[OFFSET]] for event in self],
            "expected": sorted(self.partitions),
            "lacking": sorted(self.lacking),
        }

    def restore(self, state: Mapping[str, Any], held: Mapping[PartitionOffset, Event]) -> None:
        """Take over the `state`; `held` are the unsettled events, by place.

        The copies are delivered in the same order as before, so the same ones are unequal to others.
        """
        self.lacking = frozenset(state["lacking"])
        for partition, offset in state["places"]:
            self.partitions |= {partition}
            self._waiting.setdefault(partition, deque()).append(held[partition, offset])
            self._advance(partition, [])
