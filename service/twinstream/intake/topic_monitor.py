"""Looks at the topics: up to where they are known to be the same as when their records were read.

A consumer does not notice that its topic was deleted and created anew: it goes on at its offset. What it
reads then is compared as if it were of the old topic, and differs as a matter of run. So what was found
counts only when a look that *began after the records were read* has found both topics as they were, since ids
never come back (`Comparison.vouch`). Where a look finds a change, what was found since the last one that did
not is disowned (`Comparison.disown`).

A look takes a few milliseconds, and the matcher goes on meanwhile. One is asked for once a second where
something was read, and at once where a difference waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from twinstream.core.accounts import Hole
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.intake.topics import TopicBook
from twinstream.ports import Positions, Source, Topic


class _Asked(NamedTuple):
    """The number of the look that was asked for, and the moment up to which it vouches."""

    number: int
    moment: int


class TopicMonitor:
    """What the looks of a source say of what a comparison was fed."""

    def __init__(self, source: Source, book: TopicBook, comparison: Comparison) -> None:
        self._source, self._book, self._comparison = source, book, comparison
        self._asked: _Asked | None = None
        self._topics: Mapping[Side, Topic | None] = {}

    def begin(self, topics: Mapping[Side, Topic | None], positions: Positions) -> list[Hole]:
        """Take a look at topics of which nothing was read since the state was saved: what changed."""
        changes = self._note(topics, positions)
        self._comparison.vouch(self._comparison.moment)
        return changes

    def ask(self) -> None:
        """Ask for a look behind all that was fed, where one is wanting and none is on its way."""
        moment = self._comparison.moment
        if self._asked is None and moment > self._comparison.ledger.vouched_at:
            self._asked = _Asked(self._source.look(), moment)

    def take(self, positions: Positions) -> list[Hole]:
        """Take in the last look: what changed. `positions` are the offsets to be read next."""
        seen, changes = self._source.seen(), []
        if seen.topics is not self._topics:
            self._topics = seen.topics
            changes = self._note(seen.topics, positions)
        if self._asked is not None and seen.number >= self._asked.number:
            if not self._book.missing:
                self._comparison.vouch(self._asked.moment)
            self._asked = None
        return changes

    def _note(self, topics: Mapping[Side, Topic | None], positions: Positions) -> list[Hole]:
        changes = self._book.changes(topics, positions)
        if changes:
            self._comparison.disown()
        for change in changes:
            self._comparison.hole(change)
        return changes
