"""Surveys a run: its unmatched events, the progress of each side, and the time up to which all is settled.

The known end of a side is always some time old. So the end at the *last* survey counts: by now the side is
read up to it, or is behind. To suspect, the ends suffice that the consumer was told with the records. To
prove, and to say up to when all is verified, a partition that is not fetched must not count as read. So a
look at the topics is requested. Once all partitions are read to the ends that it finds, with the records of
open transactions, all is read up to the time of the request. Some partition may always have such a
transaction, and so never be read to its end: looks are kept until their own ends are read. The result of a
survey is published once the topics have been looked at since (see `topic_monitor`).

All this outlasts a process where the next one has the same clock (`worker.Ports`): what was read by when is
saved with the positions that it is true of. A look that was requested and not made is requested again: a
later one finds at least as much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from twinstream.checkpoints.moving import READING
from twinstream.core.accounting.event_rows import pairs_of
from twinstream.core.events import Side
from twinstream.core.overdue.judging import UNKNOWN_LAG, Lag
from twinstream.core.overdue.points import TIME, Reached
from twinstream.core.overdue.survey import Survey
from twinstream.intake.clock_skew import ClockSkew, SeenAt
from twinstream.matcher.comparison_run import ComparisonRun
from twinstream.ports import Clock, Positions, Source, TopicsLook
from twinstream.reporting.verdict_status import Standing, Verified
from twinstream.status.timestamps import moment_of

KEPT_LOOKS = 64
"""Looks whose ends are not read yet. Of more, every second one is forgotten: what is read is found later."""
SAVED_LOOKS = 8
"""The most of them in a checkpoint: each has the ends of all partitions."""
CLOCK = "clock"
"""The part of a head that names the clock of its process, and tells the time at which it was saved."""
_AT, _NUMBER = attrgetter("at"), attrgetter("number")


class _Look(NamedTuple):
    """A look that was requested: its number, when, and what clocks may prove once its `ends` are read.

    Looks are numbered from 1, over all processes that go on from each other.
    """

    number: int
    asked: SeenAt | None
    lag: Lag
    ends: Positions = MappingProxyType({})

    def row(self) -> list[Any]:
        """It as plain data. Of what was reached, only event time can prove anything by a look."""
        asked, reached = self.asked, self.lag.reached
        return [
            self.number,
            None if asked is None else [asked.when.isoformat(), asked.at],
            [self.lag.read_s, *self.lag.until],
            None if reached is None else [of.get(TIME) for of in reached],
            [pairs_of(self.ends.get(side, {})) for side in Side],
        ]

    @classmethod
    def of(cls, row: Sequence[Any]) -> _Look:
        """A look from its `row`."""
        number, asked, (read_s, left, right), reached, ends = row
        seen = None if asked is None else SeenAt(datetime.fromisoformat(asked[0]), asked[1])
        on_time = None if reached is None else (_on_time(reached[0]), _on_time(reached[1]))
        lag = Lag(read_s, (left, right), on_time)
        return cls(number, seen, lag, {side: dict(ends[side]) for side in Side})


def _on_time(reached: int | None) -> Reached:
    return {} if reached is None else {TIME: reached}


_NO_LOOK = _Look(0, None, UNKNOWN_LAG)


class Settlement:
    """The surveys of one run. `at_end` says by side whether it was read to its end at the last one."""

    def __init__(self, run: ComparisonRun, source: Source, clock: Clock, clock_skew: ClockSkew) -> None:
        self._run, self._source, self._clock = run, source, clock
        self._clock_skew = clock_skew
        self._ends_before: Mapping[Side, Mapping[int, int]] = {side: {} for side in Side}
        self._asked = self._all_read = _NO_LOOK
        self._awaited = self._begins = 0  # Numbers of the source: the look asked for, and the first of ours.
        self._looks: list[_Look] = []
        self._read: dict[tuple[Side, int], _Look] = {}
        self._standing: Standing | None = None
        self.at_end = (False, False)

    def take(self) -> None:
        """Survey the unmatched events, and note the standing of the run."""
        run, ends, seen = self._run, self._source.ends(), self._source.seen()
        committed = self._committed(seen)
        self.at_end = (self._is_read(Side.LEFT, committed), self._is_read(Side.RIGHT, committed))
        for side in Side:
            run.comparison.look(
                side, run.intake.positions[side], self._ends_before[side], self._clock.monotonic()
            )
            if run.intake.waiting is None:  # Else rows below the positions are held, and not taken yet.
                run.comparison.checks.look(side, run.intake.positions[side], run.comparison.certainty.moment)
        self._ends_before = {side: dict(ends[side]) for side in Side}
        run.situation.ends = self._ends_before
        run.situation.firsts = {
            side: topic.first if (topic := seen.topics.get(side)) is not None else {} for side in Side
        }
        self._look(seen)
        self._note_read()
        run.intake.survey(self.at_end, self._all_read.lag)
        if self._standing is None:
            self._standing = run.reporter.standing(self._verified(), run.situation.standing)

    def _look(self, seen: TopicsLook) -> None:
        """Keep the requested look once it is made, and request the next one."""
        if seen.number < self._awaited:
            return
        comparison, now = self._run.comparison, SeenAt.of(self._clock)
        made = self._asked._replace(ends=seen.written)
        self._looks.append(made)
        self._awaited = self._source.look()
        number = max(made.number, comparison.arrivals.requested) + 1
        self._asked = _Look(number, now, comparison.clocks.lag(now.at))
        comparison.arrivals.note_request(number)

    def _note_read(self) -> None:
        """Find by partition the newest look whose end is read, and the oldest of these."""
        positions = self._run.intake.positions
        places = [(side, partition) for side in Side for partition in positions[side]]
        for side, partition in places:
            for look in reversed(self._looks):
                if positions[side][partition] >= look.ends.get(side, {}).get(partition, math.inf):
                    self._read[side, partition] = look
                    break
        read = {side: [self._read.get((side, p), _NO_LOOK) for p in positions[side]] for side in Side}
        for side, looks in read.items():
            oldest = min(looks, key=_NUMBER, default=_NO_LOOK)
            self._run.comparison.arrivals.note_read(side, oldest.number)
        self._all_read = min(chain(*read.values()), key=_NUMBER, default=_NO_LOOK)
        self._looks = [look for look in self._looks if look.number > self._all_read.number]
        if len(self._looks) > KEPT_LOOKS:
            del self._looks[1::2]

    def vouch(self) -> None:
        """Publish the noted standing, if all input up to it is vouched for."""
        if self._standing is not None and self._standing.moment <= self._run.comparison.proven.vouched_at:
            self._run.situation.standing, self._standing = self._standing, None

    def _committed(self, seen: TopicsLook) -> Positions:
        """The ends at the last survey without the records of open transactions, which a look does not see.

        So an event that waits for these is suspected, and not proven to have no partner.
        """
        told = self._ends_before
        ours = seen.number >= self._begins  # Else another process has read beyond it.
        looked = {side: seen.ends.get(side, {}) if ours else {} for side in Side}
        return {
            side: {p: min(end, looked[side].get(p, end)) for p, end in told[side].items()} for side in Side
        }

    def _is_read(self, side: Side, ends: Positions) -> bool:
        """Whether all records of a side up to these ends have been read by now."""
        known, positions = ends[side], self._run.intake.positions[side]
        return all(p in known and position >= known[p] for p, position in positions.items())

    def _verified(self) -> Verified | None:
        """The Kafka time up to which all events are settled; the earlier one if it is unknown now."""
        standing, oldest_ms = self._run.situation.standing, self._run.comparison.surveyed.oldest_ms
        asked = self._all_read.asked
        if asked is None or not self._run.begun():
            return None if standing is None else standing.verified
        read = Verified(*asked)
        return read if oldest_ms is None else min(read, self._at(oldest_ms), key=_AT)

    def _at(self, moment_ms: int) -> Verified:
        """What is settled up to an event of that time."""
        moment = self._clock_skew.moment_of(moment_ms, self._run.intake.stamps.values())
        return Verified(moment_of(moment_ms), moment)

    # -- state ---------------------------------------------------------------------------------------------

    def state(self, clock_name: str | None) -> dict[str, Any]:
        """What is read by when, as a member of a head: as of the last survey, and true of its positions only.

        Nothing, where the clock has no name: no other process could use it.
        """
        if clock_name is None:
            return {}
        verified = self._verified()
        looks = self._looks[:: max(1, -(-len(self._looks) // SAVED_LOOKS))]
        state = {
            "clock": clock_name,
            "at": self._clock.monotonic(),
            "ends": [pairs_of(self._ends_before[side]) for side in Side],
            "looks": [look.row() for look in (self._asked, self._all_read, *looks)],
            "vouching": self._run.topic_monitor.state(),
            "verified": None if verified is None else [verified.through.isoformat(), verified.at],
            "oldest_ms": self._run.comparison.surveyed.oldest_ms,
            "resting": None if (times := self._run.comparison.clocks.times) is None else times.resting(),
        }
        return {READING: state}

    def restore(self, state: Mapping[str, Any], positions: Sequence[Sequence[Sequence[int]]]) -> None:
        """Go on from a `state`, in a run restored from what was saved with it, and at the same positions.

        Its times must be of this clock. Call it once the topics were looked at: see `vouch`.
        """
        run = self._run
        self._asked, self._all_read, *self._looks = map(_Look.of, state["looks"])
        self._awaited = self._begins = self._source.look()
        run.comparison.arrivals.note_request(self._asked.number)  # An earlier version did not save it.
        places = [(side, partition) for side in Side for partition, _ in positions[side]]
        self._read = dict.fromkeys(places, self._all_read)
        self._ends_before = {side: dict(state["ends"][side]) for side in Side}
        if (times := run.comparison.clocks.times) is not None:
            times.go_on_resting(state["resting"])
        run.comparison.surveyed = Survey(oldest_ms=state["oldest_ms"])
        if (verified := state["verified"]) is not None:
            through, at = verified
            self._standing = run.reporter.standing(Verified(datetime.fromisoformat(through), at))
        run.topic_monitor.restore(state.get("vouching"))


def saved_at(head: Mapping[str, Any], clock_name: str | None, clock: Clock) -> float | None:
    """The time of this clock at which a head was saved; None if that is not known."""
    name, at = head.get(CLOCK, (None, math.inf))
    known = name is not None and name == clock_name and at <= clock.monotonic()
    return at if known else None


def reading_of(head: Mapping[str, Any], clock_name: str | None, clock: Clock) -> Mapping[str, Any] | None:
    """The `Settlement.state` in a head, if it is of this clock; that of an earlier version has none."""
    reading: Mapping[str, Any] | None = head.get(READING)
    if reading is None or clock_name is None or reading["clock"] != clock_name:
        return None
    return reading if reading["at"] <= clock.monotonic() else None
