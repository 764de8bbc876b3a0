"""Whose turn it is to be read: the side that is behind, so that one that runs ahead waits for the other.

Reading both alike would fill the memory with what waits for a side that is slower. The side behind is always
read; the one ahead waits while the other has something, once it leads in events or in Kafka time. Above half
of a limit it waits whatever the other has, until it holds less than a quarter. Once a limit was reached
nothing more is kept, and so nobody waits: both are counted to their ends.
"""

from __future__ import annotations

from datetime import timedelta

from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.runtime.intake import Intake
from twinstream.spec.model import Limits

POLL_SECONDS = 0.02
FULL_POLL = 1000
LEAD_EVENTS = 20_000
"""A side that is ahead by so many events waits for the other, as long as the other has something."""
HOLD_ABOVE, READ_ON_BELOW = 0.5, 0.25
"""Shares of a limit between which a side that is ahead is left alone."""


class Turns:
    """The turns of the sides of one comparison."""

    def __init__(self, limits: Limits, comparison: Comparison, intake: Intake) -> None:
        self._limits, self._comparison, self._intake = limits, comparison, intake
        self._read = dict.fromkeys(Side, 0)
        self._held_back: Side | None = None

    def next(self) -> list[Side]:
        """The sides to read in this round: the one behind first, one far ahead not at all."""
        ahead, behind = Side.LEFT, Side.RIGHT
        if self._waits(behind) > self._waits(ahead):
            ahead, behind = behind, ahead
        self._hold_back(ahead)
        if self._held_back is not None:
            return [self._held_back.other]
        return [behind] if self._read[behind] and self._leads(ahead) else [behind, ahead]

    def patience(self, side: Side) -> float:
        """For how many seconds a side may be waited for: not at all while the other has plenty."""
        return 0.0 if self._read[side.other] >= FULL_POLL else POLL_SECONDS

    def note(self, side: Side, count: int) -> None:
        """So many records were read of a side in its last turn."""
        self._read[side] = count

    def _leads(self, side: Side) -> bool:
        """Whether a side is too far ahead, in unmatched events or in Kafka time."""
        newest = self._intake.newest_ms
        if self._waits(side) - self._waits(side.other) > LEAD_EVENTS:
            return True
        own, other = max(newest[side].values(), default=0), max(newest[side.other].values(), default=0)
        return own - other > self._limits.lead // timedelta(milliseconds=1)

    def _hold_back(self, ahead: Side) -> None:
        """Stop reading a side that holds half of the limit, until it holds less than a quarter."""
        if self._comparison.overflowing:
            self._held_back = None
        elif self._held_back is None and self._filled(ahead) > HOLD_ABOVE:
            self._held_back = ahead
        elif self._held_back is not None and self._filled(self._held_back) < READ_ON_BELOW:
            self._held_back = None

    def _filled(self, side: Side) -> float:
        """The share of the limits that the unmatched events of a side take; bytes as of the last survey."""
        limits, held = self._limits, self._comparison.surveyed.held_bytes[side]
        return max(self._waits(side) / limits.unmatched_events, held / limits.unmatched_bytes)

    def _waits(self, side: Side) -> int:
        """What was given up holds nobody up: no memory is taken by it, and no partner awaited."""
        return self._comparison.ledger.waits(side)
