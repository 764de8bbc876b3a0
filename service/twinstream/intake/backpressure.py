"""Decides which side is read next: the one that is behind, so that the other waits for it.

Reading both sides equally would fill the memory with events whose partners are not read yet. So

- the side behind is always read. The other waits for it if it leads by too many events or too much Kafka
  time, as long as the side behind has more: a side that is known to be read to its end does not hold up the
  other, and one whose end is unknown counts as behind;
- while unmatched events take more than half of a limit, the side with more of them is not read, whatever the
  other has, until they take less than a quarter. That side may change from round to round; the other is
  always read;
- while unmatched events take more than a quarter of a limit, the partitions of a side that are further in
  Kafka time wait for its others: else one partition would go on that the other side has not reached.

Once a limit was reached no more events are kept, so no side waits: all records are counted to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.intake.intake import Intake
from twinstream.ports import Positions
from twinstream.spec.file.model import Limits

POLL_SECONDS = 0.02
FULL_POLL = 1000
LEAD_EVENTS = 20_000
"""A side that is ahead by so many events waits for the other, as long as the other has more records."""
HOLD_ABOVE, READ_ON_BELOW = 0.5, 0.25
"""Shares of a limit, of both sides together: a side is held back above the first, until below the second."""
HOLD_ALWAYS_ABOVE = 0.75
LEVEL_ABOVE, LEAVE_BELOW = 0.25, 0.125
"""The same shares for the partitions of a side."""
_NOTHING = float("-inf")


class Backpressure:
    """The turns of the sides of one comparison, and of their partitions.

    `ends` returns the ends of the partitions as last polled. `left_alone` are the partitions of each side
    that are not to be read in this round. `in_vain` is the side with unread records that waits for the other
    though the other is read to its end: nothing goes on until the other writes.
    """

    def __init__(
        self, limits: Limits, comparison: Comparison, intake: Intake, ends: Callable[[], Positions]
    ) -> None:
        self._limits, self._comparison, self._intake, self._ends = limits, comparison, intake, ends
        self._lead_ms = limits.lead // timedelta(milliseconds=1)
        self._read = dict.fromkeys(Side, 0)
        self._first_ms: dict[Side, int] = {}
        self._holds_back = self._levels = False
        self._target_ms = dict.fromkeys(Side, _NOTHING)
        self.left_alone: dict[Side, frozenset[int]] = dict.fromkeys(Side, frozenset())
        self.in_vain: Side | None = None

    def next(self) -> list[Side]:
        """The sides to read in this round: the one behind first; one far ahead is left out."""
        self._level()
        ahead = self._held_back()
        self.in_vain = ahead if ahead is not None and self._waits_in_vain(ahead) else None
        if ahead is None:
            ahead = next((side for side in Side if self._is_far_ahead(side)), None)
        if ahead is not None:
            self._read[ahead] = 0
            return [ahead.other]
        behind = Side.LEFT if self._waits(Side.RIGHT) > self._waits(Side.LEFT) else Side.RIGHT
        return [behind, behind.other]

    def patience(self, side: Side) -> float:
        """The seconds that a poll of a side may wait: none while the other has plenty of records."""
        return 0.0 if self._read[side.other] >= FULL_POLL else POLL_SECONDS

    def note(self, side: Side, count: int) -> None:
        """Note the number of records that were read of a side in its last turn."""
        self._read[side] = count

    # -- sides ---------------------------------------------------------------------------------------------

    def _is_far_ahead(self, side: Side) -> bool:
        """Whether a side leads too far; never both do, since a lead in events outweighs one in time."""
        lead = self._waits(side) - self._waits(side.other)
        too_far = lead > LEAD_EVENTS or (lead >= -LEAD_EVENTS and self._leads_ms(side) > self._lead_ms)
        return too_far and self._has_more(side.other)

    def _leads_ms(self, side: Side) -> int:
        """The Kafka time by which a side leads: from its own first batch while the other has none."""
        own, other = (max(self._intake.newest_ms[of].values(), default=None) for of in (side, side.other))
        if own is None:
            return 0
        return own - (self._first_ms.setdefault(side, own) if other is None else other)

    def _has_more(self, side: Side) -> bool:
        """Whether a side is not known to be read to its end."""
        return self._read[side] > 0 or bool(self._intake.unread(side, self._ends()[side]))

    def _held_back(self) -> Side | None:
        """The side not read since too many events are unmatched; bytes are as of the last survey.

        If the other side has no more records, there is room left for the partners of its own events.
        """
        share = self._share()
        self._holds_back = share > HOLD_ABOVE or (self._holds_back and share >= READ_ON_BELOW)
        if not self._holds_back:
            return None
        fuller = Side.RIGHT if self._filled(Side.RIGHT) > self._filled(Side.LEFT) else Side.LEFT
        room = share <= HOLD_ALWAYS_ABOVE and self._filled(fuller) <= HOLD_ABOVE
        return None if room and not self._has_more(fuller.other) else fuller

    def _waits_in_vain(self, side: Side) -> bool:
        return bool(self._intake.unread(side, self._ends()[side])) and not self._has_more(side.other)

    def _share(self) -> float:
        """The share of the limits that all unmatched events take; 0 once no more events are kept."""
        return 0.0 if self._comparison.overflowing else self._filled(*Side)

    def _filled(self, *sides: Side) -> float:
        """The share of the limits that the unmatched events of these sides take."""
        held = sum(self._comparison.surveyed.held_bytes[side] for side in sides)
        waits = sum(map(self._waits, sides))
        return max(waits / self._limits.unmatched_events, held / self._limits.unmatched_bytes)

    def _waits(self, side: Side) -> int:
        """The number of unmatched events of a side that are kept: those given up take no memory."""
        return self._comparison.ledger.waits(side)

    # -- partitions ----------------------------------------------------------------------------------------

    def _level(self) -> None:
        """Leave alone the partitions of each side that are further than others, while many are unmatched.

        Complexity: O(p) in the partitions while they are levelled, else O(1).
        """
        share = self._share()
        self._levels = share > LEVEL_ABOVE or (self._levels and share >= LEAVE_BELOW)
        if self._levels:
            ends = self._ends()
            for side in Side:
                self._level_side(side, ends[side])
        elif any(self.left_alone.values()):
            self.left_alone = dict.fromkeys(Side, frozenset())

    def _level_side(self, side: Side, ends: Mapping[int, int]) -> None:
        """Read the partitions behind until they have halved the lead of the furthest, and so on from there.

        One that is known to be read to its end holds up no other, and is still polled.
        """
        newest = self._intake.newest_ms[side]
        reached = {
            partition: newest.get(partition, _NOTHING) for partition in self._intake.unread(side, ends)
        }
        low, high = min(reached.values(), default=_NOTHING), max(reached.values(), default=_NOTHING)
        if low > self._target_ms[side] or not self.left_alone[side]:
            self._target_ms[side] = low if low == _NOTHING else low + (high - low) // 2
        self.left_alone[side] = frozenset(
            partition for partition, at in reached.items() if at > self._target_ms[side]
        )
