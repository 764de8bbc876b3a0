"""How far a side has come in the times that its events carry."""

from __future__ import annotations

import pytest

from twinstream.core.clocks.event_time import SAMPLE, EventTime, EventTimes, Front
from twinstream.core.events import Form, Side

LEFT, RIGHT = Side
SECOND, HOUR = 1000, 3_600_000
AFTER = 10 * SECOND


def times(*partitions: int) -> EventTimes:
    """A clock that waits 10 s, lets an hour be jumped and calls a partition idle after 30 s."""
    clock = EventTimes(EventTime(lambda record: int(record) if record else None, AFTER, HOUR, 30.0))
    clock.expect(LEFT, partitions)
    return clock


@pytest.fixture
def clock() -> EventTimes:
    return times(0)


@pytest.fixture
def pair() -> EventTimes:
    """A clock of two partitions."""
    return times(0, 1)


def saw(clock: EventTimes, *seconds: float, partition: int = 0, at: float = 0) -> None:
    """Events of the left with these times; Kafka took them at a time of its own."""
    forms = [Form("", b"", "", b"%d" % int(second * SECOND)) for second in seconds]
    clock.saw(LEFT, partition, forms, [int(at * SECOND)] * len(forms))


def look(clock: EventTimes, now: float = 0, ends: dict[int, int] | None = None, position: int = 5) -> Front:
    """The front after a look; of what is in `ends` all is read."""
    positions = dict.fromkeys((*clock._sides[LEFT],), position)
    clock.looked(LEFT, positions, ends or {}, now)
    return clock.front(LEFT)


def test_the_frontier_is_the_largest_time_less_what_may_be_late(clock: EventTimes) -> None:
    assert look(clock).reached_ms is None
    saw(clock, 100, 130, 120)
    assert look(clock).reached_ms == 120 * SECOND


def test_the_frontier_is_that_of_the_slowest_partition_which_is_named(pair: EventTimes) -> None:
    saw(pair, 100, 130)
    saw(pair, 100, 120, partition=1)
    front = look(pair)
    assert (front.reached_ms, front.slowest) == (110 * SECOND, 1)


def test_a_partition_without_events_holds_back_until_it_is_idle(pair: EventTimes) -> None:
    saw(pair, 100, 130)
    assert look(pair, now=0, ends={1: 5}).slowest == 1
    saw(pair, 131)
    assert look(pair, now=29, ends={1: 5}).reached_ms is None
    assert look(pair, now=30, ends={1: 5}).reached_ms == 121 * SECOND


def test_a_partition_that_is_not_read_to_its_end_is_not_idle(pair: EventTimes) -> None:
    saw(pair, 100, 130)
    for now in (0, 100):
        assert look(pair, now=now, ends={1: 6}).reached_ms is None


def test_a_partition_that_brings_something_is_not_idle_any_more(pair: EventTimes) -> None:
    saw(pair, 100, 130)
    saw(pair, 50, 51, partition=1)
    for now in (0, 30):
        look(pair, now=now, ends={1: 5})
    assert look(pair, now=30, ends={1: 5}).slowest is None
    saw(pair, 52, partition=1)
    assert look(pair, now=31, ends={1: 6}, position=6).slowest == 1


def test_a_side_that_is_silent_as_a_whole_stays_where_it_is(pair: EventTimes) -> None:
    saw(pair, 100, 130)
    saw(pair, 50, 51, partition=1)
    for now in (0, 30, 60):
        front = look(pair, now=now, ends={0: 5, 1: 5})
    assert (front.reached_ms, front.resting) == (41 * SECOND, True)


def test_where_every_partition_is_idle_at_once_all_of_them_count() -> None:
    clock = EventTimes(EventTime(int, AFTER, HOUR, 0.0))
    clock.expect(LEFT, (0, 1))
    saw(clock, 100, 130)
    saw(clock, 100, 120, partition=1)
    assert look(clock, ends={0: 5, 1: 5}).reached_ms == 110 * SECOND


def test_the_frontier_never_goes_back(pair: EventTimes) -> None:
    saw(pair, 100, 130)
    look(pair, now=0, ends={1: 5})
    look(pair, now=30, ends={1: 5})
    saw(pair, 50, 51, partition=1)
    assert look(pair, now=31, ends={1: 7}).reached_ms == 120 * SECOND


def test_a_jump_into_the_future_does_not_count_and_is_told(clock: EventTimes) -> None:
    saw(clock, 100, 130, 130 + 3601)
    front = look(clock)
    assert (front.reached_ms, front.jumps) == (120 * SECOND, {0: 3731 * SECOND})
    saw(clock, 140)
    assert look(clock).reached_ms == 130 * SECOND


def test_a_jump_of_exactly_what_is_allowed_counts(clock: EventTimes) -> None:
    saw(clock, 100, 130, 130 + 3600)
    assert look(clock).jumps == {}


def test_a_jump_counts_where_kafkas_clock_has_gone_on_as_well(clock: EventTimes) -> None:
    saw(clock, 100, 130, at=130)
    saw(clock, 130 + 8 * 3600, at=130 + 8 * 3600)
    front = look(clock)
    assert (front.reached_ms, front.jumps) == ((120 + 8 * 3600) * SECOND, {})


def test_a_first_time_far_in_the_future_does_not_count(clock: EventTimes) -> None:
    saw(clock, 10**9)
    assert look(clock).reached_ms is None
    saw(clock, 100)
    assert look(clock).reached_ms is None
    saw(clock, 101)
    assert look(clock).reached_ms == 91 * SECOND


def test_events_without_a_time_do_not_count(clock: EventTimes) -> None:
    clock.saw(LEFT, 0, [Form("", b"", "", b"")], [0])
    assert look(clock).reached_ms is None


def test_of_a_long_run_a_sample_is_read_and_the_last_always() -> None:
    read: list[bytes] = []

    def time_of(record: bytes) -> int:
        read.append(record)
        return int(record)

    clock = EventTimes(EventTime(time_of, 0, HOUR, 30.0))
    for length in (1, 2, SAMPLE - 1, SAMPLE, SAMPLE + 1, 1000):
        read.clear()
        clock.saw(LEFT, 0, [Form("", b"", "", b"%d" % n) for n in range(length)], [0] * length)
        assert len(read) == min(length, SAMPLE) or SAMPLE // 2 <= len(read) <= SAMPLE
        assert read[-1] == b"%d" % (length - 1)


def test_times_far_apart_are_no_jump_where_others_of_their_run_lie_between_them(clock: EventTimes) -> None:
    count, steps = 10 * SAMPLE, 6 * 60
    seconds = [place * steps for place in range(count)]
    saw(clock, 0, 0)
    saw(clock, *seconds)
    front = look(clock)
    assert (front.reached_ms, front.jumps) == (seconds[-1] * SECOND - AFTER, {})


@pytest.mark.parametrize("size", [1, SAMPLE, 10 * SAMPLE])
def test_a_jump_is_left_out_of_a_long_run_as_of_a_short_one(clock: EventTimes, size: int) -> None:
    seconds = [float(place) for place in range(10 * SAMPLE)]
    seconds[0] = seconds[-1] = 99_999
    saw(clock, 0, 0)
    for first in range(0, len(seconds), size):
        saw(clock, *seconds[first : first + size])
    front = look(clock)
    assert (front.reached_ms, front.jumps) == (int(seconds[-2]) * SECOND - AFTER, {0: 99_999 * SECOND})


def test_each_side_has_a_frontier_of_its_own(clock: EventTimes) -> None:
    saw(clock, 100, 130)
    look(clock)
    assert clock.reached(RIGHT) is None


def test_a_restored_clock_knows_what_it_knew() -> None:
    clock, fresh = times(0, 1), times(0, 1)
    saw(clock, 100, 130, 99_999)
    saw(clock, 100, 120, partition=1)
    front = look(clock)
    fresh.restore(clock.state())
    assert fresh.front(LEFT) == front
    assert fresh.state() == clock.state()
