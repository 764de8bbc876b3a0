from fractions import Fraction

from twinstream.core.matching.times import MOST, Times


def filled(*times: int | Fraction) -> Times[str]:
    """Events numbered from 1, each named after its time."""
    filled = Times[str]()
    for number, time in enumerate(times, 1):
        filled.add(time, number, str(time))
    return filled


def test_bounds_are_not_part_of_the_range():
    for times in (filled(10), filled(10, 20, 30)):
        assert times.oldest(10, 20) is None
        assert times.oldest(9, 11) == (1, "10")
        assert times.oldest(None, 10) is None
        assert times.oldest(None, 11) == (1, "10")
        assert times.oldest(30, None) is None


def test_blocks_fill_up_when_times_come_in_order():
    times = filled(*range(MOST * MOST))
    root = times._root
    assert len(root.children) == MOST, "each leaf is full"


def test_a_window_that_moves_on_stays_small():
    times = filled(*range(100))
    for time in range(100, 20 * MOST):
        times.add(time, time + 1, str(time))
        times.discard(time - 100, time - 99)
        assert times.oldest(None, None) == (time - 98, str(time - 99))
    assert len(times._root.children) <= 4


def test_blocks_that_have_drained_are_put_together():
    size = 50 * MOST
    times = filled(*range(size))
    for time in range(size):
        if time % MOST:
            times.discard(time, time + 1)
    assert len(times) == 50
    assert len(times._root.children) <= 2 * 50 * 4 // MOST + 2
