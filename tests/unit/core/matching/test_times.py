from fractions import Fraction

from twinstream.core.matching.times import MOST, Times


def filled(*times: int | Fraction) -> Times[str]:
    """Events numbered from 1, each named after its time."""
    filled = Times[str]()
    for number, time in enumerate(times, 1):
        filled.add(time, number, str(time))
    return filled


def numbers_by_time(times: Times[str]) -> list[int]:
    return [number for _, number, _ in times]


def test_without_events_there_is_no_oldest():
    assert filled().oldest(None, None) is None
    assert len(filled()) == 0
    assert list(filled()) == []


def test_the_oldest_is_the_one_that_arrived_first_not_the_one_of_the_smallest_time():
    assert filled(30, 10, 20).oldest(None, None) == (1, "30")


def test_bounds_are_not_part_of_the_range():
    for times in (filled(10), filled(10, 20, 30)):
        assert times.oldest(10, 20) is None
        assert times.oldest(9, 11) == (1, "10")
        assert times.oldest(None, 10) is None
        assert times.oldest(None, 11) == (1, "10")
        assert times.oldest(30, None) is None


def test_an_empty_range_holds_nothing():
    for times in (filled(10), filled(10, 20), filled(*range(10 * MOST))):
        assert times.oldest(10, 10) is None
        assert times.oldest(11, 9) is None


def test_without_bounds_every_event_is_in_the_range():
    assert filled(20, 10).oldest(None, None) == (1, "20")
    assert filled(20, 10).oldest(15, None) == (1, "20")
    assert filled(20, 10).oldest(None, 15) == (2, "10")


def test_integers_and_fractions_are_compared_exactly():
    large = 10**30
    times = filled(large + 1, Fraction(1, 3), Fraction(3 * large + 1, 3), large)
    assert times.oldest(large, large + 1) == (3, str(Fraction(3 * large + 1, 3)))
    assert times.oldest(0, 1) == (2, "1/3")


def test_of_events_of_one_time_any_can_be_discarded():
    times = filled(*[7] * (5 * MOST))
    for number in (1, 3 * MOST, 5 * MOST, 2):
        times.discard(7, number)
        assert number not in numbers_by_time(times)
        times.check()
    assert times.oldest(6, 8) == (3, "7")
    assert len(times) == 5 * MOST - 4


def test_discarding_what_is_not_there_changes_nothing():
    for times in (filled(), filled(10), filled(10, 20), filled(*range(3 * MOST))):
        before = list(times)
        times.discard(10, 4 * MOST)
        assert list(times) == before


def test_discarding_tells_whether_an_event_is_left():
    assert not filled().discard(10, 1)
    assert filled(10).discard(20, 2)
    assert not filled(10).discard(10, 1)
    times = filled(10, 20, 30)
    assert [times.discard(10 * number, number) for number in (2, 2, 1, 3, 3)] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_one_event_alone_can_come_and_go():
    times = filled(10)
    assert (len(times), list(times)) == (1, [(10, 1, "10")])
    times.discard(10, 1)
    assert times.oldest(None, None) is None
    times.add(20, 2, "20")
    assert times.oldest(None, None) == (2, "20")
    times.check()


def test_events_that_were_all_discarded_leave_room_for_new_ones():
    times = filled(10, 20)
    times.discard(20, 2)
    times.discard(10, 1)
    assert len(times) == 0
    times.add(5, 3, "5")
    assert list(times) == [(5, 3, "5")]


def test_events_stand_by_time_and_those_of_one_time_by_arrival():
    times = filled(*(number % 3 for number in range(3 * MOST)))
    entries = [(time, number) for time, number, _ in times]
    assert entries == sorted(entries)
    times.check()


def test_blocks_fill_up_when_times_come_in_order():
    times = filled(*range(MOST * MOST))
    root = times._root
    assert len(root.children) == MOST, "each leaf is full"
    times.check()


def test_a_window_that_moves_on_stays_small():
    times = filled(*range(100))
    for time in range(100, 20 * MOST):
        times.add(time, time + 1, str(time))
        times.discard(time - 100, time - 99)
        assert times.oldest(None, None) == (time - 98, str(time - 99))
    assert len(times._root.children) <= 4
    times.check()


def test_blocks_that_have_drained_are_put_together():
    size = 50 * MOST
    times = filled(*range(size))
    for time in range(size):
        if time % MOST:
            times.discard(time, time + 1)
    assert len(times) == 50
    assert len(times._root.children) <= 2 * 50 * 4 // MOST + 2
    times.check()
