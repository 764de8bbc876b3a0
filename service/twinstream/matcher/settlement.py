"""Surveys a run: its unmatched events, the progress of each side, and the time up to which all is settled.

The known end of a side is always some time old. So the end at the *last* survey counts: by now the side is
read up to it, or is behind. The result of a survey is published once the topics have been looked at since
(see `topic_monitor`).
"""

from __future__ import annotations

from collections.abc import Mapping

from twinstream.core.events import Side
from twinstream.intake.clock_skew import ClockSkew, SeenAt
from twinstream.matcher.comparison_run import ComparisonRun
from twinstream.ports import Clock, Source
from twinstream.reporting.verdict_status import Standing, Verified
from twinstream.status.timestamps import moment_of


class Settlement:
    """The surveys of one run. `at_end` says by side whether it was read to its end at the last one."""

    def __init__(self, run: ComparisonRun, source: Source, clock: Clock, clock_skew: ClockSkew) -> None:
        self._run, self._source, self._clock = run, source, clock
        self._clock_skew = clock_skew
        self._ends_before: Mapping[Side, Mapping[int, int]] = {side: {} for side in Side}
        self._asked = SeenAt.of(clock)
        self._standing: Standing | None = None
        self.at_end = (False, False)

    def take(self) -> None:
        """Survey the unmatched events, and note the standing of the run."""
        run, asked, ends = self._run, SeenAt.of(self._clock), self._source.ends()
        self.at_end = (self._has_read(Side.LEFT), self._has_read(Side.RIGHT))
        for side in Side:
            run.comparison.look(
                side, run.intake.positions[side], self._ends_before[side], self._clock.monotonic()
            )
            if run.intake.waiting is None:  # Else rows below the positions are held, and not taken yet.
                run.comparison.checks.look(side, run.intake.positions[side], run.comparison.certainty.moment)
        self._ends_before = {side: dict(ends[side]) for side in Side}
        run.situation.ends = self._ends_before
        seen = self._source.seen().topics
        run.situation.firsts = {
            side: topic.first if (topic := seen.get(side)) is not None else {} for side in Side
        }
        run.intake.survey(self.at_end)
        if self._standing is None:
            self._standing = Standing(
                run.comparison.certainty.moment,
                self._verified(),
                run.reporter.evidence(),
                run.reporter.explained_for_good(run.situation.standing),
            )
        self._asked = asked

    def vouch(self) -> None:
        """Publish the noted standing, if all input up to it is vouched for."""
        if self._standing is not None and self._standing.moment <= self._run.comparison.proven.vouched_at:
            self._run.situation.standing, self._standing = self._standing, None

    def _has_read(self, side: Side) -> bool:
        """Whether all records that were in the topic at the last survey have been read by now."""
        positions, ends = self._run.intake.positions[side], self._ends_before[side]
        return all(
            partition in ends and position >= ends[partition] for partition, position in positions.items()
        )

    def _verified(self) -> Verified | None:
        """The Kafka time up to which all events are settled; the earlier one if it is unknown now."""
        oldest_ms = self._run.comparison.surveyed.oldest_ms
        if oldest_ms is not None:
            stamps = self._run.intake.stamps.values()
            return Verified(moment_of(oldest_ms), self._clock_skew.moment_of(oldest_ms, stamps))
        if all(self.at_end) and self._run.begun() and self._source.trouble() is None:
            return Verified(*self._asked)  # Records written since may not have been read.
        standing = self._run.situation.standing
        return None if standing is None else standing.verified
