from __future__ import annotations

from twinstream.core.clocks.arrival import KEPT_TICKS, TICKS_PER_LIMIT, ArrivalClock
from twinstream.core.events import Side

LEFT, RIGHT = Side
SECOND = 1000
AFTER = 60 * SECOND
TICK = AFTER // TICKS_PER_LIMIT


def test_memory_is_bounded() -> None:
    """Two sides that follow each other all the time: each tick tells something."""
    clock = ArrivalClock(AFTER)
    for begin in range(0, 3 * KEPT_TICKS, 1000):
        for side in Side:
            clock.saw(side, [tick * TICK for tick in range(begin, begin + 1000)])
    ticks = clock.state()["ticks"]
    assert isinstance(ticks, list)
    assert [KEPT_TICKS // 2 <= len(ticks[side]) <= KEPT_TICKS for side in Side] == [True, True]


def test_a_side_that_is_away_for_longer_than_ticks_are_kept_makes_nothing_overdue() -> None:
    clock = ArrivalClock(AFTER)
    clock.saw(RIGHT, [0])
    for begin in range(0, 3 * KEPT_TICKS, 1000):
        clock.saw(LEFT, [tick * TICK for tick in range(begin, begin + 1000)])
    clock.saw(RIGHT, [3 * KEPT_TICKS * TICK])
    ages = [clock.stalls(LEFT).age_ms(part * KEPT_TICKS // 4 * TICK) for part in range(12)]
    assert [age for age in ages if age > 2 * TICK] == []


def test_a_time_in_the_middle_of_a_run_counts_as_in_a_run_of_its_own() -> None:
    times = [0, 50 * SECOND, 400]
    whole, single = ArrivalClock(AFTER), ArrivalClock(AFTER)
    whole.saw(LEFT, times)
    for moment in times:
        single.saw(LEFT, [moment])
    assert whole.state() == single.state()
    assert whole.newest_ms[LEFT] == 50 * SECOND
