"""Surveys a run: its unmatched events, the progress of each side, and the time up to which all is settled.

The known end of a side is always some time old. So the end at the *last* survey counts: by now the side is
read up to it, or is behind. To suspect, the ends suffice that the consumer was told with the records. To
prove, and to say up to when all is verified, a partition that is not fetched must not count as read: the ends
count as of a look that began after an earlier survey. The result of a survey is published once the topics
have been looked at since (see `topic_monitor`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from twinstream.core.events import Side
from twinstream.core.overdue.judging import UNKNOWN_LAG, Lag
from twinstream.core.overdue.points import Reached
from twinstream.intake.clock_skew import ClockSkew, SeenAt
from twinstream.matcher.comparison_run import ComparisonRun
from twinstream.ports import Clock, Positions, Source, TopicsLook
from twinstream.reporting.verdict_status import Standing, Verified
from twinstream.status.timestamps import moment_of

Unread = Sequence[tuple[Side, int]]
"""The partitions that are not read to their ends, as of the last look or the last survey."""
_AT = attrgetter("at")


class _Look(NamedTuple):
    """A look that was requested: its number, when, and the number of events fed by then.

    `reached` is, by side, how far it had come by then on a clock of progress.
    """

    number: int
    asked: SeenAt
    moment: int
    reached: tuple[Reached, Reached] | None


class Settlement:
    """The surveys of one run. `at_end` says by side whether it was read to its end at the last one."""

    def __init__(self, run: ComparisonRun, source: Source, clock: Clock, clock_skew: ClockSkew) -> None:
        self._run, self._source, self._clock = run, source, clock
        self._clock_skew = clock_skew
        self._ends_before: Mapping[Side, Mapping[int, int]] = {side: {} for side in Side}
        self._look: _Look | None = None
        self._standing: Standing | None = None
        self._read_at: dict[tuple[Side, int], SeenAt] = {}
        self.at_end = (False, False)

    def take(self) -> None:
        """Survey the unmatched events, and note the standing of the run."""
        run, ends, seen = self._run, self._source.ends(), self._source.seen()
        told, committed = self._ends_before, self._committed(seen)
        self.at_end = (self._is_read(Side.LEFT, committed), self._is_read(Side.RIGHT, committed))
        run.comparison.arrivals.note_ends((self._is_read(Side.LEFT, told), self._is_read(Side.RIGHT, told)))
        for side in Side:
            run.comparison.look(
                side, run.intake.positions[side], self._ends_before[side], self._clock.monotonic()
            )
            if run.intake.waiting is None:  # Else rows below the positions are held, and not taken yet.
                run.comparison.checks.look(side, run.intake.positions[side], run.comparison.certainty.moment)
        unread = self._unread(seen.ends)
        self._ends_before = {side: dict(ends[side]) for side in Side}
        run.situation.ends = self._ends_before
        run.situation.firsts = {
            side: topic.first if (topic := seen.topics.get(side)) is not None else {} for side in Side
        }
        look = self._look
        read_up_to = self._read_up_to(seen.number, unread)
        run.intake.survey(self.at_end, self._lag(look, read_up_to))
        if self._standing is None:
            self._standing = Standing(
                run.comparison.certainty.moment,
                self._verified(read_up_to, unread),
                run.reporter.evidence(),
                run.reporter.explained_for_good(run.situation.standing),
            )

    def _lag(self, look: _Look | None, read_up_to: SeenAt | None) -> Lag:
        """How far some of the records read may be ahead of others that are not."""
        if look is None or read_up_to is None:
            return UNKNOWN_LAG
        at_rest = look.moment == self._run.comparison.certainty.moment
        return Lag(0.0 if at_rest else self._clock.monotonic() - read_up_to.at, look.reached)

    def _read_up_to(self, seen: int, unread: Unread) -> SeenAt | None:
        """The time up to which all records are read, as a look requested then has found; None if unknown.

        `seen` is the last look. The next one is requested once the requested one is made.
        """
        look = self._look
        if look is not None and seen < look.number:
            return None
        comparison = self._run.comparison
        moment, reached = comparison.certainty.moment, comparison.clocks.reached()
        self._look = _Look(self._source.look(), SeenAt.of(self._clock), moment, reached)
        if look is None:
            return None
        read = {(side, place) for side in Side for place in self._run.intake.positions[side]}
        self._read_at |= dict.fromkeys(read.difference(unread), look.asked)
        return None if unread else look.asked

    def vouch(self) -> None:
        """Publish the noted standing, if all input up to it is vouched for."""
        if self._standing is not None and self._standing.moment <= self._run.comparison.proven.vouched_at:
            self._run.situation.standing, self._standing = self._standing, None

    def _committed(self, seen: TopicsLook) -> Positions:
        """The ends at the last survey without the records of open transactions, which a look does not see.

        So an event that waits for these is suspected, and not proven to have no partner.
        """
        told = self._ends_before
        looked = {side: seen.ends.get(side, {}) for side in Side}
        return {
            side: {p: min(end, looked[side].get(p, end)) for p, end in told[side].items()} for side in Side
        }

    def _is_read(self, side: Side, ends: Positions) -> bool:
        """Whether all records of a side up to these ends have been read by now."""
        known, positions = ends[side], self._run.intake.positions[side]
        return all(p in known and position >= known[p] for p, position in positions.items())

    def _unread(self, looked: Positions) -> Unread:
        """The partitions that are not read to the ends of a look, nor to those of the last survey.

        A look does not see the records of an open transaction; a consumer was told that they are there.
        """
        before = self._ends_before
        ends = {
            side: {p: max(end, before[side].get(p, end)) for p, end in looked.get(side, {}).items()}
            for side in Side
        }
        return [(side, place) for side in Side for place in self._run.intake.unread(side, ends[side])]

    def _verified(self, read_up_to: SeenAt | None, unread: Unread) -> Verified | None:
        """The Kafka time up to which all events are settled; the earlier one if it is unknown now."""
        standing, oldest_ms = self._run.situation.standing, self._run.comparison.surveyed.oldest_ms
        earlier = None if standing is None else standing.verified
        if unread:
            read = self._read_before(unread, earlier)
            return read if oldest_ms is None or read is None else min(read, self._at(oldest_ms), key=_AT)
        if oldest_ms is not None:
            return self._at(oldest_ms)
        if read_up_to is not None and self._run.begun():
            return Verified(*read_up_to)
        return earlier

    def _read_before(self, unread: Unread, earlier: Verified | None) -> Verified | None:
        """The time before which all is read in partitions that are behind, at least the earlier one."""
        reached = [self._reached(*place) for place in unread]
        if None in reached:
            return earlier
        return max(filter(None, (earlier, min(filter(None, reached), key=_AT))), key=_AT)

    def _reached(self, side: Side, partition: int) -> Verified | None:
        """The time of the newest record of a partition, or when all of it was read last, if there is one."""
        newest_ms = self._run.intake.newest_ms[side].get(partition)
        read_at = self._read_at.get((side, partition))
        newest = None if newest_ms is None else self._at(newest_ms)
        read = None if read_at is None else Verified(*read_at)
        return max(filter(None, (newest, read)), key=_AT, default=None)

    def _at(self, moment_ms: int) -> Verified:
        """What is settled up to an event of that time."""
        moment = self._clock_skew.moment_of(moment_ms, self._run.intake.stamps.values())
        return Verified(moment_of(moment_ms), moment)
