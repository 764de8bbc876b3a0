"""The arrival clock: the age of an unmatched event, by the timestamps of Kafka.

Among independent events no finite prefix distinguishes a lost one from a late one (DiffStream, section 4.4),
so matching alone would never report it. An unmatched event is therefore *overdue* when the other side has
gone on long enough without its partner.

The age of an event of side i, with j the other side, is Kafka time, from its arrival to the newest record
read from j, less every stretch in which j was *stalled*: from a record of i that j has not followed, to the
next record of j. So a side that is silent, stopped or behind makes no event overdue, nor does a burst that
catches up; time in which both are idle counts.

Production is remembered in ticks of a fraction of `after`; records within one tick follow each other. That
bounds memory and work, and ignores the ordinary alternation of two live sides.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from sortedcontainers import SortedSet

from twinstream.core.events import Side

TICKS_PER_LIMIT = 20
KEPT_TICKS = 100_000
"""Of each side; at most, and at least half as many of the newest."""


class ArrivalClock:
    """The ages of unmatched events, on Kafka's timestamps.

    `after_ms` is the age from which an event is overdue. Times are in milliseconds since the epoch.
    """

    def __init__(self, after_ms: int) -> None:
        self.after_ms = after_ms
        self._tick_ms = max(1, after_ms // TICKS_PER_LIMIT)
        self._ticks: tuple[SortedSet[int], SortedSet[int]] = (SortedSet(), SortedSet())
        self.newest_ms: list[int | None] = [None, None]
        self._until: dict[Side, float] = {}

    def saw(self, side: Side, times_ms: Sequence[int]) -> None:
        """Note the timestamps of a run of records of a side, in any order.

        Complexity: O(n), about 5 ns each for times that mostly increase, within a tick; 50 ns beyond.
        """
        in_order = sorted(times_ms)  # Any may be far off. Quicker than `min` and `max`.
        first, last = in_order[0], in_order[-1]
        newest = self.newest_ms[side]
        if first == last == newest:
            return
        self._until.clear()
        near = last - first <= self._tick_ms
        ticks = self._ticks[side]
        ticks.update(moment // self._tick_ms for moment in ((first, last) if near else in_order))
        while len(ticks) > KEPT_TICKS:
            self._forget(side)
        self.newest_ms[side] = last if newest is None else max(newest, last)

    def _forget(self, side: Side) -> None:
        """Forget the older half of the ticks of a side, but the newest of those that begin or end a stall.

        The ticks between two of the other side say the same as the first of them: so a side that is away for
        long stays known as away from its first moment on. Complexity: O(n log n) in the ticks forgotten.
        """
        ticks, other = self._ticks[side], self._ticks[side.other]
        older = ticks[: KEPT_TICKS // 2]
        told = [
            tick for before, tick in pairwise(older) if other.bisect_left(before) != other.bisect_right(tick)
        ]
        del ticks[: len(older)]
        ticks.update([*older[:1], *told][-KEPT_TICKS // 4 :])

    def stalls(self, waiting: Side) -> Stalls:
        """The stretches in which the side opposite to `waiting` did not follow it.

        Complexity: O(k) in the number of ticks kept.
        """
        own = self._ticks[waiting]
        other = list(self._ticks[waiting.other])  # It is indexed k times.
        starts: list[int] = []
        ends: list[int] = []
        for tick in own:
            if ends and tick < ends[-1]:
                continue
            follower = bisect_left(other, tick)
            if follower == len(other):
                break
            if other[follower] != tick:
                starts.append(tick)
                ends.append(other[follower])
        return Stalls(
            [tick * self._tick_ms for tick in starts],
            [tick * self._tick_ms for tick in ends],
            self.newest_ms[waiting.other],
        )

    def until(self, waiting: Side) -> float:
        """The latest arrival of a side that is overdue; below all times if none is.

        Complexity: as `stalls`, then O(1) until more records come.
        """
        if waiting not in self._until:
            latest = self.stalls(waiting).reached_before(self.after_ms)
            self._until[waiting] = -math.inf if latest is None else latest
        return self._until[waiting]

    def state(self) -> dict[str, object]:
        """The state as plain data."""
        return {"ticks": [list(ticks) for ticks in self._ticks], "newest_ms": list(self.newest_ms)}

    def restore(self, state: dict[str, list[list[int]]]) -> None:
        """Take over the `state`."""
        self._ticks = SortedSet(state["ticks"][0]), SortedSet(state["ticks"][1])
        self.newest_ms = list(state["newest_ms"])  # type: ignore[arg-type]


class Stalls:
    """The stalled stretches of one side, to subtract from ages. `now_ms` is its newest record."""

    def __init__(self, starts: list[int], ends: list[int], now_ms: int | None) -> None:
        self._starts, self._ends, self._now_ms = starts, ends, now_ms
        lengths = (end - start for start, end in zip(starts, ends, strict=True))
        self._lengths_before = list(accumulate(lengths, initial=0))

    def age_ms(self, arrived_ms: int) -> int:
        """The time that the side has gone on since `arrived_ms`; negative if it has not come so far.

        Complexity: O(log k).
        """
        if self._now_ms is None:
            return -1
        return (
            self._now_ms - arrived_ms - (self._stalled_until(self._now_ms) - self._stalled_until(arrived_ms))
        )

    def reached_before(self, age_ms: int) -> int | None:
        """The latest arrival that has this age by now; None if none has. Complexity: O(log² k)."""
        if self._now_ms is None:
            return None
        latest = self._now_ms - age_ms
        # No `bisect`: it counts in 64 bits, and timestamps may be further apart.
        first = low = latest - self._stalled_until(self._now_ms)
        high = latest + 1
        while low < high:
            middle = (low + high) // 2
            if self.age_ms(middle) < age_ms:
                high = middle
            else:
                low = middle + 1
        return low - 1 if low > first else None

    def _stalled_until(self, moment_ms: int) -> int:
        index = bisect_right(self._starts, moment_ms)
        if index == 0:
            return 0
        within = min(moment_ms, self._ends[index - 1]) - self._starts[index - 1]
        return self._lengths_before[index - 1] + within
