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
a difference waits until each partition is read to its end as of that look, or beyond the time up to which its
side was read before it. Such events are a hole, which withdraws what waits. A partition that is not read any
further, while Kafka can be read, holds a difference up for `PATIENCE_SECONDS` at most. Time in which nobody
read counts little, as where a job is down or a batch takes long: from one `take` to the next at most
`STEP_SECONDS`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from twinstream.core.accounts import Hole
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.intake.intake import Intake
from twinstream.intake.topics import Heard, TopicBook
from twinstream.ports import Clock, Positions, Source, Topic

PATIENCE_SECONDS = 60.0
"""A partition may not come up at all, as where its side is ahead, and full."""
STEP_SECONDS = 10.0
"""The most of the patience that passes from one `take` to the next."""


class _Asked(NamedTuple):
    """The number of the look that was requested, and the moment up to which it vouches.

    `read_ms` is by side how far it had been read, in Kafka's time; `ends` are as of the look, once made,
    without the marks of transactions that are known by now.
    """

    number: int
    moment: int
    read_ms: Mapping[Side, float]
    ends: Positions | None = None


class TopicMonitor:
    """Vouches for the input of a comparison by the looks of its source."""

    def __init__(
        self, source: Source, book: TopicBook, comparison: Comparison, intake: Intake, clock: Clock
    ) -> None:
        self._source, self._book, self._comparison = source, book, comparison
        self._intake, self._clock = intake, clock
        self._asked: _Asked | None = None
        self._patience, self._tried_at = 0.0, -math.inf  # The seconds left, and when that was so.
        self._topics: Mapping[Side, Topic | None] = {}

    def state(self) -> list[Any] | None:
        """The look that a difference waits for, as plain data; None if there is none."""
        asked = self._asked
        if asked is None or not self._waits:
            return None
        return [asked.moment, [asked.read_ms[side] for side in Side], self._patience, self._tried_at]

    def restore(self, state: Sequence[Any] | None) -> None:
        """Request the look of a `state` again, if its times are of this clock, or a new one if one is needed.

        Call it before more is read: this process may get one batch only.
        """
        if state is not None:
            moment, read_ms, self._patience, self._tried_at = state
            self._asked = _Asked(self._source.look(), moment, {side: read_ms[side] for side in Side})
        elif self._waits:
            self.ask()

    def begin(self, topics: Mapping[Side, Topic | None], positions: Positions, said: Heard) -> list[Hole]:
        """Look at the topics before any new record of them is read; returns their changes. See `take`."""
        changes = self._note(topics, positions, said)
        if not self._waits:
            self._comparison.proven.vouch(self._comparison.certainty.moment)
        return changes

    @property
    def _waits(self) -> bool:
        """Whether a difference waits to be vouched for."""
        return self._comparison.diverged and not self._comparison.proven.for_sure

    def ask(self) -> None:
        """Request a look that covers all input so far, if one is needed and none is under way."""
        moment = self._comparison.certainty.moment
        if self._asked is None and moment > self._comparison.proven.vouched_at:
            newest = self._intake.newest_ms
            read_ms = {side: max(newest[side].values(), default=math.inf) for side in Side}
            self._asked = _Asked(self._source.look(), moment, read_ms)
            self._patience, self._tried_at = PATIENCE_SECONDS, self._clock.monotonic()

    def take(self, said: Heard) -> list[Hole]:
        """Apply the last look; returns the changes. `said` is how far the control topic is heard."""
        seen, changes = self._source.seen(), []
        if seen.topics is not self._topics:
            self._topics = seen.topics
            changes = self._note(seen.topics, self._intake.positions, said)
        asked = self._asked
        if asked is None or seen.number < asked.number:
            return changes
        ends = seen.ends if asked.ends is None else _earlier(asked.ends, seen.ends)
        asked = self._asked = asked._replace(ends=ends)
        if self._is_ripe(asked, ends):
            if not self._book.missing:
                self._comparison.proven.vouch(asked.moment)
            self._asked = None
        return changes

    def _is_ripe(self, asked: _Asked, ends: Positions) -> bool:
        """Whether no difference waits for partitions that are behind."""
        if not self._waits:
            return True
        intake, now = self._intake, self._clock.monotonic()
        self._patience -= min(now - self._tried_at, STEP_SECONDS)
        self._tried_at = now
        if self._source.trouble() is not None:
            self._patience = PATIENCE_SECONDS
        return self._patience <= 0 or all(
            intake.newest_ms[side].get(partition, -1) > asked.read_ms[side]
            for side in Side
            for partition in intake.unread(side, ends.get(side, {}))
        )

    def _note(self, topics: Mapping[Side, Topic | None], positions: Positions, said: Heard) -> list[Hole]:
        changes = self._book.changes(topics, positions, said)
        if changes:
            self._comparison.disown()
        for change in changes:
            self._comparison.hole(change)
        return changes


def _earlier(ends: Positions, now: Positions) -> Positions:
    """The ends as of a look, or those of now where they are earlier: behind these are only marks."""
    return {
        side: {partition: min(end, now.get(side, {}).get(partition, end)) for partition, end in of.items()}
        for side, of in ends.items()
    }
