"""A run: consecutive records of one partition as columns, the unit that is fed to a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple, cast

from twinstream.core.arrivals.attempts import Attempt
from twinstream.core.events import Event, Form


class Run(NamedTuple):
    """Columns of consecutive decoded records of one partition.

    `marks` are given where a clock reads any; `attempts` where replays are to be recognised; `facts` where
    checks are declared: of each record a fact for each check (see `checks`). `twins` are unmatched events of
    the other side with equal records, where they are looked up (see `Comparison.known`).
    """

    forms: Sequence[Form]
    partition: int
    offsets: Sequence[int]
    timestamps_ms: Sequence[int]
    read_at: float
    marks: Sequence[Any] | None = None
    attempts: Sequence[Attempt | None] | None = None
    facts: Sequence[Sequence[Any]] | None = None
    twins: Sequence[Event | None] | None = None

    def only(self, places: Sequence[int]) -> Run:
        """The records at these indices."""
        columns = [
            [column[place] for place in places] if isinstance(column, Sequence) else column for column in self
        ]
        return Run._make(columns)

    def first(self, count: int) -> Run:
        """The first records, which are so many."""
        return self._slice(slice(count))

    def behind(self, count: int) -> Run:
        """The records behind the first ones, which are so many."""
        return self._slice(slice(count, None)) if count else self

    def _slice(self, part: slice) -> Run:
        return Run._make(column[part] if isinstance(column, Sequence) else column for column in self)

    def events(self) -> Iterator[Event]:
        """The records as events. Complexity: about 30 ns each."""
        marks = repeat(None) if self.marks is None else self.marks
        columns = (repeat(self.partition), self.offsets, self.timestamps_ms, repeat(self.read_at), marks)
        return cast("Iterator[Event]", zip(self.forms, *columns, strict=False))

    def singly(self) -> Iterator[Run]:
        """Each of the records as a run of its own. Complexity: about 0.5 µs a record."""
        columns = (zip(column) if isinstance(column, Sequence) else repeat(column) for column in self)
        return map(Run._make, zip(*columns, strict=False))
