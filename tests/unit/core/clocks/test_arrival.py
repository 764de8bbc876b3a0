"""Each test draws what either side wrote over time, and asks for the age of one event of the left."""

from __future__ import annotations

from collections.abc import Iterable

from twinstream.core.clocks.arrival import KEPT_TICKS, TICKS_PER_LIMIT, ArrivalClock
from twinstream.core.events import Side

LEFT, RIGHT = Side
SECOND = 1000
AFTER = 60 * SECOND
TICK = AFTER // TICKS_PER_LIMIT


def age(left: Iterable[int], right: Iterable[int], arrived: int) -> float:
    """In seconds, for sides that wrote at these seconds."""
    clock = ArrivalClock(AFTER)
    for side, seconds in ((LEFT, left), (RIGHT, right)):
        for moment in seconds:
            clock.saw(side, [moment * SECOND])
    return clock.stalls(LEFT).age_ms(arrived * SECOND) / SECOND


def test_while_both_sides_write_an_event_grows_older() -> None:
    assert age(range(100), range(100), arrived=10) == 89


def test_a_side_that_never_wrote_makes_nothing_overdue() -> None:
    assert age(range(100), [], arrived=10) < 0


def test_a_silent_side_makes_nothing_overdue() -> None:
    assert age(range(1000), range(20), arrived=10) == 9
    assert age(range(1000), range(20), arrived=500) < 0


def test_a_burst_that_catches_up_makes_nothing_overdue() -> None:
    burst = [*range(20), 600, 601]
    assert age(range(600), burst, arrived=300) <= 1


def test_nor_does_it_when_both_sides_are_read_in_long_runs() -> None:
    clock = ArrivalClock(AFTER)
    clock.saw(LEFT, [second * SECOND for second in range(602)])
    clock.saw(RIGHT, [second * SECOND for second in (*range(20), 600, 601)])
    assert clock.stalls(LEFT).age_ms(300 * SECOND) <= 2 * SECOND


def test_time_in_which_both_sides_are_idle_counts() -> None:
    assert age([0, 3, 6, 300], [0, 3, 6, 300], arrived=6) == 294


def test_only_the_stall_is_subtracted() -> None:
    left = [*range(100), *range(400, 500)]
    right = [*range(50), *range(400, 500)]
    assert abs(age(left, right, arrived=20) - (479 - 350)) <= TICK / SECOND


def test_a_stall_of_one_side_is_none_of_the_other() -> None:
    clock = ArrivalClock(AFTER)
    clock.saw(LEFT, [0, 300 * SECOND])
    clock.saw(RIGHT, [0, 100 * SECOND, 300 * SECOND])
    assert clock.stalls(LEFT).age_ms(0) == 300 * SECOND
    assert clock.stalls(RIGHT).age_ms(0) == (300 - 201) * SECOND


def test_memory_is_bounded() -> None:
    clock = ArrivalClock(AFTER)
    clock.saw(LEFT, [0])
    clock.saw(LEFT, [tick * TICK for tick in range(KEPT_TICKS + 10)])
    ticks = clock.state()["ticks"]
    assert isinstance(ticks, list)
    assert len(ticks[LEFT]) == KEPT_TICKS
