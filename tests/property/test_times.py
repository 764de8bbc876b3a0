"""Events by time against a plain list, in a tree of small blocks, so that few events make it deep."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.matching import times as module
from twinstream.core.matching.times import Times

TIMES = st.one_of(
    st.integers(-3, 12),
    st.integers(-100, 100),
    st.fractions(-5, 5, max_denominator=3),
    st.integers(-(10**40), 10**40),
)
BOUNDS = st.one_of(st.none(), TIMES)
RANGES = st.lists(st.tuples(BOUNDS, BOUNDS), min_size=1, max_size=5)


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST", 4)
        patch.setattr(module, "FEW", 2)
        yield


def plain_oldest(entries, low, high):
    inside = [
        (number, event)
        for time, number, event in entries
        if (low is None or time > low) and (high is None or time < high)
    ]
    return min(inside, default=None)


def check(block):
    """A block is neither empty nor too long, knows its smallest number, and where each child begins."""
    children = getattr(block, "children", [])
    assert 0 < len(block.times) <= module.MOST
    assert block.least == min(block.leasts if children else block.numbers)
    assert len({type(child) for child in children}) < 2
    for place, child in enumerate(children):
        assert block.leasts[place] == child.least
        assert (block.times[place], block.numbers[place]) <= next(iter(child.entries()))
        check(child)


def compare(times, entries, ranges):
    if times._root is not None:
        check(times._root)
    assert len(times) == len(entries)
    assert list(times) == sorted(entries)
    for low, high in ranges:
        assert times.oldest(low, high) == plain_oldest(entries, low, high)


def all_added(values):
    times, entries = Times(), []
    for number, time in enumerate(values):
        times.add(time, number, f"event {number}")
        entries.append((time, number, f"event {number}"))
    return times, entries


@given(st.lists(st.tuples(st.booleans(), TIMES, st.integers(0, 99))), RANGES)
def test_times_agree_with_a_list_after_every_operation(operations, ranges):
    times, entries = Times(), []
    for number, (adds, time, place) in enumerate(operations):
        if adds:
            times.add(time, number, number)
            entries.append((time, number, number))
        elif place % 3 == 0 or not entries:
            times.discard(time, number)  # which is not there
        else:
            gone = entries.pop(place % len(entries))
            assert times.discard(gone[0], gone[1]) == bool(entries)
        compare(times, entries, ranges)


@given(st.lists(TIMES, min_size=20, max_size=50), st.randoms(use_true_random=False), RANGES)
def test_times_agree_with_a_list_while_they_drain_in_any_order(values, random, ranges):
    times, entries = all_added(values)
    compare(times, entries, ranges)
    random.shuffle(entries)
    while entries:
        time, number, _ = entries.pop()
        times.discard(time, number)
        compare(times, entries, ranges)


@given(st.integers(1, 40), st.lists(st.integers(0, 6), min_size=30, max_size=80), RANGES)
def test_times_that_come_nearly_sorted_and_leave_at_the_front_agree_with_a_list(held, jitter, ranges):
    times, entries = all_added([])
    for number, late in enumerate(jitter):
        times.add(number - late, number, number)
        entries.append((number - late, number, number))
        if len(entries) > held:
            time, first, _ = entries.pop(0)
            times.discard(time, first)
        compare(times, entries, ranges)


@given(st.lists(st.sampled_from([1, 2]), min_size=30, max_size=100), st.randoms(use_true_random=False))
def test_among_many_events_of_one_time_the_right_one_is_discarded(values, random):
    times, entries = all_added(values)
    random.shuffle(entries)
    for _ in range(len(entries) // 2):
        times.discard(*entries.pop()[:2])
    compare(times, entries, [(0, 2), (1, 3), (None, None)])


def test_fractions_and_integers_stand_in_one_order():
    times, entries = all_added([Fraction(n, 2) if n % 2 else n // 2 for n in range(50)])
    compare(times, entries, [(Fraction(1, 2), 3), (3, Fraction(7, 2)), (Fraction(1, 3), None)])
