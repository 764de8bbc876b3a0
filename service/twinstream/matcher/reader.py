"""Reads both sides of a run, and keeps batches that cannot be taken yet.

A batch is kept, and its side is not polled, while the batch needs a schema or a control record, or while it
is unknown whether both sides begin at the same time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping

from twinstream.core.events import Side
from twinstream.errors import SourceError
from twinstream.intake.falls import Caution, without
from twinstream.matcher.comparison_run import ComparisonRun
from twinstream.ports import Batch, Clock, Item, Source

RETRY_SECONDS = 1.0
"""The interval after which a batch that could not be taken is tried again."""


class Reader:
    """Reads the sides of one run. `lacking` says, by side, what its kept batch waits for."""

    def __init__(self, run: ComparisonRun, source: Source, clock: Clock, caution: Caution) -> None:
        self._run, self._source, self._clock, self._caution = run, source, clock, caution
        self._unread: dict[Side, deque[Item]] = {}
        self._retry_at = dict.fromkeys(Side, 0.0)
        self._left_alone: dict[Side, frozenset[int]] = dict.fromkeys(Side, frozenset())
        self._asked = True
        self.lacking: dict[Side, str] = {}

    @property
    def goes_on(self) -> bool:
        """Whether the last round polled, and so may have waited for records."""
        return self._run.refusal is None and self._asked

    def take(self, side: Side, items: Iterable[Item]) -> bool:
        """Take items of a side that were read elsewhere, all of them; returns False if it has to wait."""
        self._unread.setdefault(side, deque()).extend(items)
        self._read(side)
        return side not in self._unread

    def read(self) -> bool:
        """Read each side whose turn it is, for one round; returns whether anything was taken."""
        self._asked = False
        sides = self._run.turns.next()
        self._leave_alone(self._run.turns.left_alone)
        counts = [self._read(side) for side in sides]
        return any(counts)

    def _leave_alone(self, partitions: Mapping[Side, frozenset[int]]) -> None:
        for side in Side:
            if partitions[side] != self._left_alone[side]:
                self._left_alone[side] = partitions[side]
                self._source.pause(side, partitions[side])

    def _read(self, side: Side) -> int:
        items = self._unread.pop(side, None) or self._poll(side)
        count = 0
        if items and not self._may_begin(side, items):
            self._unread[side] = items
            items = deque()
        while items:
            if not self._take(items[0]):
                self._unread[side] = items
                break
            item = items.popleft()
            count += len(item.records) if isinstance(item, Batch) else 1
        self._run.turns.note(side, count)
        return count

    def _may_begin(self, side: Side, items: Collection[Item]) -> bool:
        """Whether the first items of a side may be taken; if that is unknown, it is asked again later."""
        if self._clock.monotonic() < self._retry_at[side]:
            return False
        try:
            return self._run.same_start(side, items)
        except SourceError as error:
            self._retry_later(side, error)
            return False

    def _retry_later(self, side: Side, error: SourceError) -> None:
        self.lacking[side] = str(error)
        self._retry_at[side] = self._clock.monotonic() + RETRY_SECONDS

    def _poll(self, side: Side) -> deque[Item]:
        self._asked = True
        return deque(self._without_left_out(self._source.poll(side, self._run.turns.patience(side))))

    def _without_left_out(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items read, without the records that matchers fell over."""
        for item in items:
            if isinstance(item, Batch):
                yield from without(item, self._caution.left_out, self._topic(item.side))
            else:
                yield item

    def _topic(self, side: Side) -> str:
        return self._run.topics.ids().get(side, "")

    def _take(self, item: Item) -> bool:
        """Pass an item to the intake; False if it needs a schema or a control record."""
        side = item.side
        if self._clock.monotonic() < self._retry_at[side]:
            return False
        if isinstance(item, Batch):
            self._caution.trail.enter(item, self._topic(side))
            self._run.comparison.certainty.moment += len(item.records)
        try:
            self._run.intake.take(item)
        except SourceError as error:
            self._caution.trail.leave()
            self._retry_later(side, error)
            return False
        self._caution.trail.leave()
        self.lacking.pop(side, None)
        return True
