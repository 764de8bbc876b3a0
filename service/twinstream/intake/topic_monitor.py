"""Looks at the topics, to vouch that records were read from the topics that are compared.

A consumer does not notice that its topic was deleted and recreated: it goes on at its offset. The new records
are compared as if they were of the old topic, and differ as a matter of course. So a difference counts only
once a look that *began after its records were read* has found both topics unchanged, since topic ids are
never reused (`Proven.vouch`). If a look finds a change, the differences found since the last look without
one are disowned (`Comparison.disown`).

A look takes a few milliseconds, and the matcher goes on meanwhile. One is requested once a second if records
were read, and at once if a difference waits for it.
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
    """The number of the look that was requested, and the moment up to which it vouches."""

    number: int
    moment: int


class TopicMonitor:
    """Vouches for the input of a comparison by the looks of its source."""

    def __init__(self, source: Source, book: TopicBook, comparison: Comparison) -> None:
        self._source, self._book, self._comparison = source, book, comparison
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
            self._asked = _Asked(self._source.look(), moment)

    def take(self, positions: Positions, said: int | None) -> list[Hole]:
        """Apply the last look; returns the changes.

        `positions` are the next offsets to read, and `said` is that of the control topic.
        """
        seen, changes = self._source.seen(), []
        if seen.topics is not self._topics:
            self._topics = seen.topics
            changes = self._note(seen.topics, positions, said)
        if self._asked is not None and seen.number >= self._asked.number:
            if not self._book.missing:
                self._comparison.proven.vouch(self._asked.moment)
            self._asked = None
        return changes

    def _note(
        self, topics: Mapping[Side, Topic | None], positions: Positions, said: int | None
    ) -> list[Hole]:
        changes = self._book.changes(topics, positions, said)
        if changes:
            self._comparison.disown()
        for change in changes:
            self._comparison.hole(change)
        return changes
