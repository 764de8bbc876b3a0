"""Looks at the topics, to vouch that records were read from the topics that are compared.

A consumer does not notice that its topic was deleted and recreated: it goes on at its offset. The new records
are compared as if they were of the old topic, and differ as a matter of course. So a difference counts only
once a look that *began after its records were read* has found both topics unchanged, since topic ids are
never reused (`Proven.vouch`). If a look finds a change, the differences found since the last look without
one are disowned (`Comparison.disown`).

A look takes a few milliseconds, and the matcher goes on meanwhile. One is requested once a second if records
were read, and at once if a difference waits for it.

Kafka keeps no order between partitions, and they are read one after the other. So what looks like another
order may be dependent events of one version in two partitions, of which the earlier one was not read yet. So
a difference waits, for `PATIENCE_SECONDS` at most, until all partitions were read as far as the side behind
was then, or to their ends. Such events are a hole, which withdraws what waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from twinstream.core.accounts import Hole
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.intake.intake import Intake
from twinstream.intake.topics import TopicBook
from twinstream.ports import Clock, Positions, Source, Topic

PATIENCE_SECONDS = 10.0
"""A partition may not come up at all, as where a transaction stays open."""


class _Asked(NamedTuple):
    """The number of the look that was requested, and the moment up to which it vouches.

    `read_ms` is how far the side behind had been read, in Kafka's time; `at` is on the monotonic clock.
    """

    number: int
    moment: int
    read_ms: int
    at: float


class TopicMonitor:
    """Vouches for the input of a comparison by the looks of its source."""

    def __init__(
        self, source: Source, book: TopicBook, comparison: Comparison, intake: Intake, clock: Clock
    ) -> None:
        self._source, self._book, self._comparison = source, book, comparison
        self._intake, self._clock = intake, clock
        self._asked: _Asked | None = None
        self._topics: Mapping[Side, Topic | None] = {}

    def begin(
        self, topics: Mapping[Side, Topic | None], positions: Positions, said: int | None
    ) -> list[Hole]:
        """Look at the topics before any new record of them is read; returns their changes. See `take`."""
        changes = self._note(topics, positions, said)
        self._comparison.proven.vouch(self._comparison.certainty.moment)
        return changes

    def ask(self) -> None:
        """Request a look that covers all input so far, if one is needed and none is under way."""
        moment = self._comparison.certainty.moment
        if self._asked is None and moment > self._comparison.proven.vouched_at:
            newest = self._intake.newest_ms
            read_ms = min(max(newest[side].values(), default=0) for side in Side)
            self._asked = _Asked(self._source.look(), moment, read_ms, self._clock.monotonic())

    def take(self, said: int | None) -> list[Hole]:
        """Apply the last look; returns the changes. `said` is the next offset of the control topic."""
        seen, changes = self._source.seen(), []
        if seen.topics is not self._topics:
            self._topics = seen.topics
            changes = self._note(seen.topics, self._intake.positions, said)
        asked = self._asked
        if asked is not None and seen.number >= asked.number and self._is_ripe(asked):
            if not self._book.missing:
                self._comparison.proven.vouch(asked.moment)
            self._asked = None
        return changes

    def _is_ripe(self, asked: _Asked) -> bool:
        """Whether no difference waits for partitions that are behind."""
        if not self._comparison.diverged or self._comparison.proven.for_sure:
            return True
        if self._clock.monotonic() >= asked.at + PATIENCE_SECONDS:
            return True
        intake, ends = self._intake, self._source.ends()
        return all(
            intake.newest_ms[side].get(partition, -1) >= asked.read_ms
            for side in Side
            for partition in intake.unread(side, ends[side])
        )

    def _note(
        self, topics: Mapping[Side, Topic | None], positions: Positions, said: int | None
    ) -> list[Hole]:
        changes = self._book.changes(topics, positions, said)
        if changes:
            self._comparison.disown()
        for change in changes:
            self._comparison.hole(change)
        return changes
