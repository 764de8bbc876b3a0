"""The arrival clock against its definition, millisecond by millisecond."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.clocks.arrival import TICKS_PER_LIMIT, ArrivalClock
from twinstream.core.events import Side

LEFT, RIGHT = Side
TICK = 3
AFTER = TICK * TICKS_PER_LIMIT


def stalled(own: list[int], other: list[int]) -> set[int]:
    """The milliseconds in which a side was stalled: from a record that it has not followed to its next one.

    Records within one tick follow each other; a stretch begins and ends with a tick.
    """
    own_ticks, other_ticks = ({moment // TICK for moment in times} for times in (own, other))
    found: set[int] = set()
    for tick in own_ticks - other_ticks:
        following = [later for later in other_ticks if later > tick]
        if following:
            found.update(range(tick * TICK, min(following) * TICK))
    return found


def age(own: list[int], other: list[int], arrived: int) -> int:
    if not other:
        return -1
    now = max(other)
    return now - arrived - len(stalled(own, other).intersection(range(arrived, now)))


times = st.lists(st.integers(0, 150), max_size=12)


def saw(clock: ArrivalClock, side: Side, times: list[int], sizes: list[int]) -> None:
    rest, place = list(times), 0
    while rest:
        size = sizes[place % len(sizes)]
        clock.saw(side, rest[:size])
        rest, place = rest[size:], place + 1


@given(times.filter(bool), times, st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_ages_are_those_of_the_definition_whatever_the_runs(
    own: list[int], other: list[int], sizes: list[int]
) -> None:
    clock = ArrivalClock(AFTER)
    saw(clock, LEFT, own, sizes)
    saw(clock, RIGHT, other, sizes[::-1])
    stalls = clock.stalls(LEFT)
    for arrived in own:
        expected = age(own, other, arrived)
        assert stalls.age_ms(arrived) == expected or (stalls.age_ms(arrived) < 0 and expected < 0)


@given(times, times, times, times)
def test_a_restored_clock_goes_on_as_the_old_one(
    a: list[int], b: list[int], c: list[int], d: list[int]
) -> None:
    clock, restored = ArrivalClock(AFTER), ArrivalClock(AFTER)
    saw(clock, LEFT, a, [2])
    saw(clock, RIGHT, b, [2])
    restored.restore(clock.state())  # type: ignore[arg-type]
    for each in (clock, restored):
        saw(each, LEFT, c, [2])
        saw(each, RIGHT, d, [2])
    assert clock.state() == restored.state()
    ages = [
        [each.stalls(side).age_ms(moment) for side in Side for moment in (*a, *c)]
        for each in (clock, restored)
    ]
    assert ages[0] == ages[1]
