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


def test_only_the_stall_is_subtracted() -> None:
    left = [*range(100), *range(400, 500)]
    right = [*range(50), *range(400, 500)]
    assert abs(age(left, right, arrived=20) - (479 - 350)) <= TICK / SECOND


def test_memory_is_bounded() -> None:
    clock = ArrivalClock(AFTER)
    clock.saw(LEFT, [0])
    clock.saw(LEFT, [tick * TICK for tick in range(KEPT_TICKS + 10)])
    ticks = clock.state()["ticks"]
    assert isinstance(ticks, list)
    assert len(ticks[LEFT]) == KEPT_TICKS
