"""The clock of event time: the progress of a side, by the times that its events carry.

The *frontier* of a side is the smallest over its partitions of the largest event time seen there, less
`after`: older events should have come. Three cases would make that wrong, or useless:

- One record with a time in the future would carry the frontier away. So a time that is more than `max_jump`
  beyond the largest of its partition does not count, unless Kafka's clock has advanced as much since: a topic
  that was idle over night goes on. The first time of a partition counts once a second one is near it.
- A partition without events would hold the frontier back for ever. So one that was read to its end and had
  no new records for `idle_after` does not, as long as another partition of the side goes on.
- A side that is silent as a whole is stopped, and its next events are unknown: its frontier stays.

The frontier never goes back. Of a run `SAMPLE` records are read, which can only make it later. But times far
apart may have others between them: if one of the sample does not count, all records of the run are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from twinstream.core.events import Form, Side

SAMPLE = 64

TimeOf = Callable[[bytes], int | None]
"""The event time of a record in milliseconds; None if it has none that can be read."""


class EventTime(NamedTuple):
    """The parameters of this clock in the comparison file."""

    time_of: TimeOf
    after_ms: int
    max_jump_ms: int
    idle_after_s: float


class Front(NamedTuple):
    """The frontier of a side, None before there is one.

    `slowest` is the partition that holds it back, None if no other is further; `resting`: all partitions are
    idle. `jumps` are by partition the times that were left out and are still ahead.
    """

    reached_ms: int | None
    slowest: int | None
    resting: bool
    jumps: Mapping[int, int]


class EventTimes:
    """The event times of both sides. Times are in milliseconds since the epoch, `now` in seconds."""

    def __init__(self, clock: EventTime) -> None:
        self._clock = clock
        self._sides: tuple[dict[int, _Partition], dict[int, _Partition]] = ({}, {})
        self._reached: list[int | None] = [None, None]

    def expect(self, side: Side, partitions: Iterable[int]) -> None:
        """Add partitions of a side: one without records holds the frontier back until it is idle."""
        for partition in partitions:
            self._sides[side].setdefault(partition, _Partition())

    def saw(self, side: Side, partition: int, forms: Sequence[Form], timestamps_ms: Sequence[int]) -> None:
        """Note events of a partition.

        Complexity: O(1), at most `SAMPLE` records are read; O(n) for a run in which one of them is a jump.
        """
        seen = self._sides[side].setdefault(partition, _Partition())
        last = len(forms) - 1
        sample = (*range(0, last, max(1, -(-last // (SAMPLE - 1)))), last)
        before = seen.row()
        if not self._note(seen, sample, forms, timestamps_ms) and len(sample) < len(forms):
            seen.go_back(*before)
            self._note(seen, range(len(forms)), forms, timestamps_ms)

    def _note(
        self, seen: _Partition, places: Iterable[int], forms: Sequence[Form], timestamps_ms: Sequence[int]
    ) -> bool:
        """Note these events of a run; returns whether all their times count."""
        count = True
        for place in places:
            time_ms = self._clock.time_of(forms[place][3])
            if time_ms is not None:
                count &= seen.note(time_ms, timestamps_ms[place], self._clock.max_jump_ms)
        return count

    def looked(self, side: Side, positions: Mapping[int, int], ends: Mapping[int, int], now: float) -> None:
        """Note the position in each partition, and its end."""
        for partition, position in positions.items():
            seen = self._sides[side].setdefault(partition, _Partition())
            seen.look(position, at_end=partition in ends and position >= ends[partition], now=now)
        self._advance(side)

    def front(self, side: Side) -> Front:
        """The frontier of a side and its causes, as of the last look. Complexity: O(p) in its partitions."""
        parts = self._sides[side]
        holding = self._holding(side)
        slowest = min(holding, key=lambda p: -1 if (t := parts[p].counted_ms) is None else t, default=None)
        times = {parts[partition].counted_ms for partition in holding}
        jumps = {p: part.jump_ms for p, part in parts.items() if part.jump_ms is not None}
        resting = bool(parts) and all(map(self._idle, parts.values()))
        behind = slowest if len(times) > 1 or None in times else None
        return Front(self._reached[side], behind, resting, jumps)

    def reached(self, side: Side) -> int | None:
        """The frontier of a side: an event with a smaller time should have come."""
        return self._reached[side]

    def newest_ms(self, side: Side, partition: int) -> int | None:
        """The largest event time of a partition that counts."""
        return self._sides[side][partition].counted_ms

    def _advance(self, side: Side) -> None:
        times = [self._sides[side][partition].counted_ms for partition in self._holding(side)]
        known = [time for time in times if time is not None]
        if known and len(known) == len(times):
            reached, before = min(known) - self._clock.after_ms, self._reached[side]
            self._reached[side] = reached if before is None else max(before, reached)

    def _holding(self, side: Side) -> list[int]:
        """The partitions that count: those that are not idle, or all if all are."""
        parts = self._sides[side]
        return [partition for partition, part in parts.items() if not self._idle(part)] or list(parts)

    def _idle(self, part: _Partition) -> bool:
        return part.quiet_s >= self._clock.idle_after_s

    def state(self) -> dict[str, Any]:
        """The state as plain data, without the idle times of partitions."""
        rows = [[[partition, *part.row()] for partition, part in side.items()] for side in self._sides]
        return {"partitions": rows, "reached_ms": list(self._reached)}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the `state`."""
        for side, rows in zip(self._sides, state["partitions"], strict=True):
            side.update({row[0]: _Partition(*row[1:]) for row in rows})
        self._reached = list(state["reached_ms"])

    def resting(self) -> list[list[list[Any]]]:
        """By side and partition, the position at the last look, and since when that has been the end."""
        return [[[partition, *part.rest()] for partition, part in side.items()] for side in self._sides]

    def go_on_resting(self, state: Sequence[Sequence[Sequence[Any]]]) -> None:
        """Take over what was `resting`; its times must be of the clock that looks are given."""
        for side, rows in zip(self._sides, state, strict=True):
            for partition, *rest in rows:
                side[partition].go_on_resting(*rest)


@dataclass(slots=True)
class _Partition:
    """The largest event time of one partition, and the time since its last record.

    `at_ms` is Kafka's time of the record with the largest. `sure`: a second record was near it.
    """

    largest_ms: int | None = None
    at_ms: int = 0
    sure: bool = False
    _jump_ms: int | None = None
    _position: int | None = None
    _since: float = 0.0
    quiet_s: float = 0.0

    @property
    def counted_ms(self) -> int | None:
        """The largest time, once it counts."""
        return self.largest_ms if self.sure else None

    @property
    def jump_ms(self) -> int | None:
        """The largest time that was left out, while it is ahead."""
        ahead = self._jump_ms is not None and (self.largest_ms is None or self._jump_ms > self.largest_ms)
        return self._jump_ms if ahead else None

    def note(self, time_ms: int, at_ms: int, max_jump_ms: int) -> bool:
        """Note the event time of a record, and Kafka's time of it; returns False if it is a jump."""
        if self.largest_ms is None:
            self.largest_ms, self.at_ms = time_ms, at_ms
            return True
        ahead = time_ms - self.largest_ms
        if ahead > max_jump_ms + max(0, at_ms - self.at_ms) or (not self.sure and ahead < -max_jump_ms):
            if self.sure:
                self._jump_ms = time_ms if self._jump_ms is None else max(self._jump_ms, time_ms)
            else:
                self.largest_ms, self.at_ms = time_ms, at_ms
            return False
        self.sure = True
        if ahead > 0:
            self.largest_ms, self.at_ms = time_ms, at_ms
        return True

    def look(self, position: int, *, at_end: bool, now: float) -> None:
        """Note the position now."""
        if not at_end or position != self._position:
            self._since = now
        self._position = position
        self.quiet_s = now - self._since

    def go_back(self, largest_ms: int | None, at_ms: int, sure: bool, jump_ms: int | None) -> None:
        """Forget what was noted since these were the `row`."""
        self.largest_ms, self.at_ms, self.sure, self._jump_ms = largest_ms, at_ms, sure, jump_ms

    def rest(self) -> tuple[int | None, float]:
        """The position at the last look, and since when it is the end."""
        return self._position, self._since

    def go_on_resting(self, position: int | None, since: float) -> None:
        """Take over a `rest`."""
        self._position, self._since = position, since

    def row(self) -> tuple[int | None, int, bool, int | None]:
        """The state as a row."""
        return self.largest_ms, self.at_ms, self.sure, self._jump_ms
