"""The clocks of one comparison, and what they hear.

Kafka's timestamps are always noted: a copy that hides behind fresh ones is found by them whatever clock the
comparison file declares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinstream.core.accounting.unmatched import UnmatchedEvents
from twinstream.core.arrivals.run import Run
from twinstream.core.clocks.arrival import ArrivalClock
from twinstream.core.clocks.input import Finished, InputProgress
from twinstream.core.events import Side
from twinstream.core.overdue.points import PointsClock
from twinstream.core.rules import Rules


class Clocks:
    """`arrival`; `points` on a declared clock of progress; `progress` where the versions tell theirs."""

    def __init__(self, rules: Rules, held: UnmatchedEvents) -> None:
        self.arrival = ArrivalClock(rules.overdue_after_ms)
        self.progress = InputProgress() if rules.hears else None
        self.points = None if rules.passing is None else PointsClock(rules.passing, held, self.progress)

    @property
    def reads_input_marks(self) -> bool:
        """Whether the marks of events are read: those that name the input record that an event comes from."""
        return self.points is not None and self.points.progress is not None

    def expect(self, side: Side, partitions: frozenset[int]) -> None:
        """Name the partitions of a side."""
        if self.points is not None:
            self.points.expect(side, partitions)

    def saw(self, side: Side, run: Run) -> None:
        """Note when a run of a side was written, and its event times: clocks are those of a whole side."""
        self.arrival.saw(side, run.timestamps_ms)
        if self.points is not None:
            self.points.saw(side, run.partition, run.forms, run.timestamps_ms)

    def note_finished(self, side: Side, fact: Finished) -> str | None:
        """Hear what a version says; a sentence where something may have been left out."""
        return None if self.progress is None else self.progress.note(side, fact)

    def look(
        self, side: Side, positions: Mapping[int, int], ends: Mapping[int, int], now: float
    ) -> list[tuple[str, int]]:
        """Note how far a side was fed and where it ended; the queries and batches finished by that."""
        if self.points is not None:
            self.points.looked(side, positions, ends, now)
        return [] if self.progress is None else self.progress.read(side, positions)

    def state(self) -> dict[str, Any]:
        """The state as plain data."""
        return {
            "clock": self.arrival.state(),
            "passing": {} if self.points is None else self.points.state(),
            "progress": [] if self.progress is None else self.progress.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the `state`."""
        self.arrival.restore(state["clock"])
        passing = state.get("passing", {})
        if self.points is not None:
            self.points.restore(passing)
        said = state.get("progress") or passing.get("progress")  # Earlier it was a part of that clock.
        if self.progress is not None and said:
            self.progress.restore(said)
