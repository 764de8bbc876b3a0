from __future__ import annotations

from twinstream.core.clocks.arrival import KEPT_TICKS, TICKS_PER_LIMIT, ArrivalClock
from twinstream.core.events import Side

LEFT, RIGHT = Side
SECOND = 1000
AFTER = 60 * SECOND
TICK = AFTER // TICKS_PER_LIMIT


def test_memory_is_bounded() -> None:
    clock = ArrivalClock(AFTER)
    clock.saw(LEFT, [0])
    clock.saw(LEFT, [tick * TICK for tick in range(KEPT_TICKS + 10)])
    ticks = clock.state()["ticks"]
    assert isinstance(ticks, list)
    assert len(ticks[LEFT]) == KEPT_TICKS


def test_a_time_in_the_middle_of_a_run_counts_as_in_a_run_of_its_own() -> None:
    times = [0, 50 * SECOND, 400]
    whole, single = ArrivalClock(AFTER), ArrivalClock(AFTER)
    whole.saw(LEFT, times)
    for moment in times:
        single.saw(LEFT, [moment])
    assert whole.state() == single.state()
    assert whole.newest_ms[LEFT] == 50 * SECOND
