"""The runs of one side that wait ahead of the index, as columns: see `whole_runs`.

They are unmatched events, so a look needs the same facts about them as about those in the index: the first
open offset of a partition, the oldest time, their size, the changes since the last checkpoint. Each fact is
computed once for a run, not once for an event. And the runs of a partition that came between two looks are a
*bundle*, so a look takes a step for each earlier look, however short the runs are. An event that waits here
costs its form and 24 bytes.

A bundle is *new* until the next look, then *seen*, and *saved* once a checkpoint has it.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import merge
from itertools import chain, repeat, takewhile
from operator import attrgetter, itemgetter

from twinstream.core.arrivals.run import Run
from twinstream.core.events import RECORD, ROUTE, Event, PartitionOffset


class _State(IntEnum):
    NEW = 0
    SEEN = 1
    SAVED = 2


@dataclass(slots=True)
class _Waiting:
    """A run, or the rest of one; its number is that of its coming."""

    number: int
    run: Run
    _between_ms: tuple[int, int] | None = None
    _in_bags: bool | None = None

    def in_bags(self) -> bool:
        """Whether it has events in bags, whose lanes are their contents; computed once."""
        if self._in_bags is None:
            self._in_bags = bytes in set(map(type, map(_ROUTE, self.run.forms)))
        return self._in_bags

    def between_ms(self) -> tuple[int, int]:
        """The smallest and the largest timestamp, computed once."""
        if self._between_ms is None:
            self._between_ms = min(self.run.timestamps_ms), max(self.run.timestamps_ms)
        return self._between_ms

    def until(self, moment_ms: float) -> int:
        """The number of its events with a timestamp up to a moment."""
        oldest_ms, newest_ms = self.between_ms()
        if oldest_ms <= moment_ms < newest_ms:
            return sum(1 for at_ms in self.run.timestamps_ms if at_ms <= moment_ms)
        return len(self.run.forms) if newest_ms <= moment_ms else 0

    def take(self, count: int) -> Run:
        """Remove the first events, which are so many; returns them."""
        run, self._between_ms = self.run, None
        self.run = run.behind(count)
        return run if count == len(run.forms) else run.first(count)


@dataclass(slots=True)
class _Bundle:
    """The runs of a partition that came between two looks, with the facts of all of them."""

    runs: deque[_Waiting] = field(default_factory=deque)
    state: _State = _State.NEW
    count: int = 0
    _between_ms: tuple[int, int] | None = None
    _in_bags: bool | None = None

    def append(self, waiting: _Waiting) -> None:
        self.runs.append(waiting)
        self._changed(len(waiting.run.forms))

    def take(self, count: int) -> Run:
        """Remove the first events of the first run, which are so many; returns them."""
        taken = self.runs[0].take(count)
        if not self.runs[0].run.forms:
            self.runs.popleft()
        self._changed(-count)
        return taken

    def _changed(self, more: int) -> None:
        self.count += more
        self._between_ms = self._in_bags = None

    def in_bags(self) -> bool:
        """Whether one of its runs has events in bags."""
        if self._in_bags is None:
            self._in_bags = any(waiting.in_bags() for waiting in self.runs)
        return self._in_bags

    def between_ms(self) -> tuple[int, int]:
        """The smallest and the largest timestamp."""
        if self._between_ms is None:
            oldest_ms, newest_ms = zip(*(waiting.between_ms() for waiting in self.runs), strict=True)
            self._between_ms = min(oldest_ms), max(newest_ms)
        return self._between_ms

    def until(self, moment_ms: float) -> int:
        """The number of events with a timestamp up to a moment."""
        oldest_ms, newest_ms = self.between_ms()
        if oldest_ms <= moment_ms < newest_ms:
            return sum(waiting.until(moment_ms) for waiting in self.runs)
        return self.count if newest_ms <= moment_ms else 0


class RunsAhead:
    """The runs of one side that wait ahead, by partition, each partition in its order.

    `size_bytes` is the size of the records seen at a look.

    >>> from twinstream.core.events import Form
    >>> ahead, form = RunsAhead(), Form("", b"1", "", b"1")
    >>> ahead.append(Run([form, form], 0, [7, 8], [70, 80], 0.0))
    >>> ahead.take(0, 1).offsets, ahead.first_open(), ahead.oldest_ms(), len(ahead)
    ([7], {0: 8}, 80, 1)
    """

    def __init__(self) -> None:
        self._parts: dict[int, deque[_Bundle]] = {}
        self._counts: dict[int, int] = {}
        self._begun: set[int] = set()
        self._came = 0
        self._removed: list[PartitionOffset] = []
        self._unswept: deque[_Bundle] = deque()
        self._sweeping: deque[_Waiting] = deque()
        self.size_bytes = 0

    # -- coming and leaving --------------------------------------------------------------------------------

    def append(self, run: Run) -> None:
        """Let a run wait behind the others of its partition."""
        partition, count = run.partition, len(run.forms)
        self._came += 1
        part = self._parts.setdefault(partition, deque())
        if not part or part[-1].state is not _State.NEW:
            part.append(_Bundle())
        part[-1].append(_Waiting(self._came, run._replace(twins=None, facts=None)))
        self._counts[partition] = self._counts.get(partition, 0) + count

    def take(self, partition: int, count: int) -> Run:
        """Remove the first events of the oldest run of a partition, which are so many; returns them."""
        saved = self._parts[partition][0].state is _State.SAVED
        taken = self._remove(partition, count)
        if saved:
            self._removed += zip(repeat(partition), taken.offsets, strict=False)
        return taken

    def enter(self, partition: int) -> tuple[Run, bool]:
        """Remove the oldest run of a partition, which enters the index; returns it, and whether it is saved.

        It stays unmatched, so a checkpoint that has it goes on to have it.
        """
        bundle = self._parts[partition][0]
        return self._remove(partition, len(bundle.runs[0].run.forms)), bundle.state is _State.SAVED

    def _remove(self, partition: int, count: int) -> Run:
        part = self._parts[partition]
        bundle = part[0]
        taken = bundle.take(count)
        self._counts[partition] -= count
        if not bundle.runs:
            part.popleft()
        self._begun.add(partition)
        if not part:
            del self._parts[partition], self._counts[partition]
            self._begun.discard(partition)
        if bundle.state is not _State.NEW:
            self.size_bytes -= _size(taken)
        return taken

    # -- reading -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return sum(self._counts.values())

    def partitions(self) -> list[int]:
        """The partitions in which runs wait."""
        return list(self._parts)

    def waiting(self, partition: int) -> int:
        """The number of events that wait in a partition."""
        return self._counts.get(partition, 0)

    def first(self, partition: int) -> Run | None:
        """The oldest run of a partition."""
        part = self._parts.get(partition)
        return part[0].runs[0].run if part else None

    def runs(self, partition: int) -> Iterator[Run]:
        """The runs of a partition in their order."""
        return (waiting.run for bundle in self._parts.get(partition, ()) for waiting in bundle.runs)

    def is_new(self, partition: int) -> bool:
        """Whether the oldest run of a partition came after the last look."""
        return self._parts[partition][0].state is _State.NEW

    def suits(self, partition: int, least: int) -> bool:
        """Whether the runs of a partition may wait over a look.

        It is of no use if they have fewer than `least` events each, in the mean: the index takes less memory.
        And once some of them have left, a copy in a bag may have been lost that hides behind fresh ones
        (`LanesIndex.chains`): only the index knows that.
        """
        part = self._parts[partition]
        if self._counts[partition] < least * sum(len(bundle.runs) for bundle in part):
            return False
        return not (partition in self._begun and any(bundle.in_bags() for bundle in part))

    def first_open(self) -> dict[int, int]:
        """The smallest offset in each partition."""
        return {partition: part[0].runs[0].run.offsets[0] for partition, part in self._parts.items()}

    def oldest_ms(self) -> int | None:
        """The smallest timestamp. Complexity: O(b) in the bundles."""
        return min((bundle.between_ms()[0] for bundle in self._all()), default=None)

    def until(self, moment_ms: float) -> int:
        """The number of events with a timestamp up to a moment. Complexity: O(b) in the bundles."""
        return sum(bundle.until(moment_ms) for bundle in self._all())

    def _all(self) -> Iterator[_Bundle]:
        return chain.from_iterable(self._parts.values())

    def __iter__(self) -> Iterator[Event]:
        """The events in the order in which their runs came."""
        parts = (chain.from_iterable(bundle.runs for bundle in part) for part in self._parts.values())
        in_order = merge(*parts, key=attrgetter("number"))
        return chain.from_iterable(waiting.run.events() for waiting in in_order)

    # -- looks and checkpoints -----------------------------------------------------------------------------

    def look(self) -> None:
        """Take in the runs that came since the last look. Complexity: about 30 ns an event."""
        for bundle in self._latest(_State.NEW):
            for waiting in bundle.runs:
                run = waiting.run
                offsets, times_ms = array("q", run.offsets), array("q", run.timestamps_ms)
                waiting.run = run._replace(offsets=offsets, timestamps_ms=times_ms)
                self.size_bytes += _size(run)
            bundle.state = _State.SEEN

    def take_changes(self) -> tuple[list[Event], list[PartitionOffset]]:
        """The events that came and stayed since the last call, and the places of those that left."""
        added: list[Event] = []
        for bundle in self._latest(_State.SEEN):
            for waiting in bundle.runs:
                added += waiting.run.events()
            bundle.state = _State.SAVED
        removed, self._removed = self._removed, []
        return added, removed

    def _latest(self, state: _State) -> Iterator[_Bundle]:
        """The last bundles of each partition, in their order, as far as none is in a later state."""
        for part in self._parts.values():
            latest = list(takewhile(lambda bundle: bundle.state <= state, reversed(part)))
            yield from reversed(latest)

    def begin_sweep(self) -> None:
        """Begin a sweep over all saved events. Complexity: O(b) in the bundles."""
        self._unswept = deque(bundle for bundle in self._all() if bundle.state is _State.SAVED)
        self._sweeping.clear()

    def sweep(self, most: int) -> list[Event]:
        """The next events of the sweep that still wait, by whole runs."""
        swept: list[Event] = []
        while self.sweeping and len(swept) < most:
            if self._sweeping:
                swept += self._sweeping.popleft().run.events()
            else:
                self._sweeping.extend(self._unswept.popleft().runs)
        return swept

    @property
    def sweeping(self) -> bool:
        """Whether a sweep has not ended yet."""
        return bool(self._sweeping or self._unswept)


_ROUTE = itemgetter(ROUTE)


def _size(run: Run) -> int:
    """The bytes of the records of a run."""
    return sum(len(form[RECORD]) for form in run.forms)
