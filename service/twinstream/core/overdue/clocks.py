"""The clocks of one comparison, and the input that they receive.

Kafka's timestamps are always noted: they find a copy that hides behind fresh ones, whatever clock the
comparison file declares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twinstream.core.accounting.unmatched import UnmatchedEvents
from twinstream.core.arrivals.run import Run
from twinstream.core.clocks.arrival import ArrivalClock
from twinstream.core.clocks.event_time import EventTime, EventTimes
from twinstream.core.clocks.input import Finished, Input, InputProgress
from twinstream.core.clocks.late import LateCounts
from twinstream.core.events import Side
from twinstream.core.overdue.crossed import CrossedPairs
from twinstream.core.overdue.judging import Lag
from twinstream.core.overdue.points import PointsClock
from twinstream.core.rules import Rules


class Clocks:
    """`arrival`; `times` of events, if declared; `progress` where the versions report theirs.

    `late` are the rows that they report as dropped. `points` are those of unmatched events on the declared
    one of `times` and `progress`. `reads_input_marks`: the marks of events are read, which name the input
    record that an event comes from; then `crossed` are pairs of events from different ones.
    """

    def __init__(self, rules: Rules, held: Sequence[UnmatchedEvents]) -> None:
        passing = rules.passing
        self.arrival = ArrivalClock(rules.overdue_after_ms)
        self.times = EventTimes(passing) if isinstance(passing, EventTime) else None
        self.progress = InputProgress() if rules.hears else None
        self.late = LateCounts()
        declared = self.times or self.progress
        points = self.points = PointsClock(passing, declared, held) if passing and declared else None
        marks = self.reads_input_marks = isinstance(passing, Input) and rules.fold is None
        self.crossed = CrossedPairs(rules.form, points.point) if points and marks else None

    def expect(self, side: Side, partitions: frozenset[int]) -> None:
        """Set the partitions of a side."""
        if self.times is not None:
            self.times.expect(side, partitions)

    def saw(self, side: Side, run: Run) -> None:
        """Note the timestamps of a run of a side, and its event times: a clock is one for a whole side."""
        self.arrival.saw(side, run.timestamps_ms)
        if self.times is not None:
            self.times.saw(side, run.partition, run.forms, run.timestamps_ms)

    def note_finished(self, side: Side, fact: Finished) -> str | None:
        """Note a control record of a version; returns a sentence if input may have been left out."""
        if self.progress is None:
            return None
        self.late.note(side, fact)
        return self.progress.note(side, fact)

    def look(
        self, side: Side, positions: Mapping[int, int], ends: Mapping[int, int], now: float
    ) -> list[tuple[str, int]]:
        """Note the positions and the ends of a side; returns the queries and batches that these finish."""
        if self.times is not None:
            self.times.looked(side, positions, ends, now)
        return [] if self.progress is None else self.progress.read(side, positions)

    def lag(self, now: float) -> Lag:
        """What the clocks may prove once all records from before `now` are read; as of the last look."""
        points = self.points
        reached = None if points is None else (points.reached(Side.LEFT), points.reached(Side.RIGHT))
        return Lag(now, (self.arrival.until(Side.LEFT), self.arrival.until(Side.RIGHT)), reached)

    def state(self) -> dict[str, Any]:
        """The state as plain data."""
        return {
            "clock": self.arrival.state(),
            "passing": {} if self.times is None else {"times": self.times.state()},
            "progress": [] if self.progress is None else self.progress.state(),
            **({} if self.progress is None else {"late": self.late.state()}),
            **({} if self.crossed is None else {"crossed": self.crossed.state()}),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the `state`."""
        self.arrival.restore(state["clock"])
        if self.times is not None:
            self.times.restore(state["passing"]["times"])
        if self.progress is not None:
            self.progress.restore(state["progress"])
            if "late" in state:  # A checkpoint of an earlier version has none, and lacks only a hint.
                self.late.restore(state["late"])
        if self.crossed is not None and "crossed" in state:  # An earlier version has not noted these.
            self.crossed.restore(state["crossed"])
