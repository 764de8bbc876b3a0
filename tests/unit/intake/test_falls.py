"""Batches that a matcher falls over: counted, and left out as a hole."""

from __future__ import annotations

import random

import pytest

from twinstream.core.events import Side
from twinstream.intake.falls import FALLS_TO_LEAVE_OUT, TRAIL_LENGTH, FallenStretch, Falls, Trail, without
from twinstream.ports import Batch, Gap

LEFT, RIGHT = Side


def batch(offsets: range | list[int], partition: int = 2) -> Batch:
    records = [b"%d" % offset for offset in offsets]
    times, keys = [offset * 10 for offset in offsets], [b"key %d" % offset for offset in offsets]
    return Batch(RIGHT, partition, records, offsets, times, keys=keys)


def stretch(first: int, last: int, partition: int = 2, topic: int = 0) -> FallenStretch:
    return FallenStretch(RIGHT, partition, first, last, topic)


def gap(wanted: int, available: int) -> Gap:
    return Gap(RIGHT, 2, wanted, available, left_out=True)


def offsets(parts: list[Batch | Gap]) -> list[list[int] | Gap]:
    return [part if isinstance(part, Gap) else list(part.offsets) for part in parts]


def test_a_trail_tells_what_was_being_taken_until_it_was_left() -> None:
    memory = [0] * TRAIL_LENGTH
    trail = Trail(memory)
    assert trail.stretch() is None
    trail.enter(batch(range(100, 200)))
    assert Trail(memory).stretch() == stretch(100, 199)
    trail.leave()
    assert Trail(memory).stretch() is None


def test_a_batch_of_which_nothing_is_left_out_is_taken_as_it_is() -> None:
    whole = batch(range(5))
    others = (stretch(5, 9), stretch(0, 4, partition=1), FallenStretch(LEFT, 2, 0, 4, 0))
    assert [list(without(whole, left_out)) for left_out in ((), others)] == [[whole], [whole]]


def test_what_is_left_out_is_a_gap_and_what_is_around_it_is_taken() -> None:
    parts = list(without(batch(range(100)), (stretch(60, 69), stretch(10, 19))))
    assert offsets(parts) == [
        list(range(10)),
        gap(10, 20),
        list(range(20, 60)),
        gap(60, 70),
        list(range(70, 100)),
    ]
    part = parts[2]
    assert isinstance(part, Batch)
    assert (part.records[0], part.timestamps_ms[0], (part.keys or ())[0]) == (b"20", 200, b"key 20")
    assert list(without(batch(range(10, 20)), (stretch(10, 19),))) == [gap(10, 20)]


def test_what_is_left_out_is_named_from_the_first_record_that_is_there_to_its_end() -> None:
    """The partition may be compacted, and the rest may come with another batch."""
    left_out = (stretch(4, 8),)
    assert offsets(list(without(batch([3, 5, 6]), left_out))) == [[3], gap(5, 9)]
    assert offsets(list(without(batch([7, 9]), left_out))) == [gap(7, 9), [9]]
    assert offsets(list(without(batch([3, 9]), left_out))) == [[3, 9]]


def test_falls_over_different_batches_and_over_none_leave_nothing_out() -> None:
    falls = Falls()
    for first in range(0, 10_000, 100):
        assert not falls.fell_over(stretch(first, first + 99))
        assert not falls.fell_over(None)
    assert falls.left_out == ()


def test_a_matcher_that_came_past_a_batch_has_not_fallen_over_it_any_more() -> None:
    falls = Falls()
    for _ in range(10):
        falls.fell_over(stretch(0, 99))
        falls.fell_over(stretch(0, 99))
        falls.fell_over(stretch(100, 199))
    assert falls.left_out == ()


def test_what_a_matcher_fell_over_three_times_is_left_out_and_counted_for_each_partition() -> None:
    falls = Falls()
    for fallen in (False, True, True):
        assert falls.left_out == ()
        assert falls.fell_over(stretch(0, 99, partition=0)) is fallen
        assert falls.fell_over(stretch(50, 80, partition=1)) is fallen
    assert falls.left_out == (stretch(0, 99, partition=0), stretch(50, 80, partition=1))


def test_a_topic_that_is_created_anew_has_other_records_at_the_same_offsets() -> None:
    trail, falls = Trail(), Falls()
    for topic in ("old", "old", "new", "old", "old"):
        trail.enter(batch(range(5)), topic)
        falls.fell_over(trail.stretch())
    assert falls.left_out == ()
    falls.fell_over(trail.stretch())
    whole = batch(range(5))
    assert offsets(list(without(whole, falls.left_out, "old"))) == [gap(0, 5)]
    assert list(without(whole, falls.left_out, "new")) == [whole]


def test_of_batches_that_were_read_otherwise_each_time_what_all_had_is_left_out() -> None:
    falls = Falls()
    assert [falls.fell_over(stretch(*of)) for of in ((0, 99), (40, 139), (20, 59))] == [False, True, True]
    assert falls.left_out == (stretch(40, 59),)


@pytest.mark.parametrize("poison", [{0}, {999}, {500}, {3, 4, 700}, {0, 250, 500, 750, 999}])
def test_whatever_kills_a_matcher_is_left_out_in_the_end_however_batches_come(poison: set[int]) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    drawn, falls, taken = random.Random(seed), Falls(), set[int]()
    for _ in range(FALLS_TO_LEAVE_OUT * len(poison) + 1):
        taken, position, fell = set(), 0, False
        while position < 1000 and not fell:
            end = min(1000, position + drawn.randrange(1, 400))
            for part in without(batch(range(position, end)), falls.left_out):
                if isinstance(part, Batch) and poison & {*part.offsets}:
                    falls.fell_over(stretch(part.offsets[0], part.offsets[-1]))
                    fell = True
                    break
                taken |= {*part.offsets} if isinstance(part, Batch) else set()
            position = end
        if not fell:
            break
    left_out = {offset for one in falls.left_out for offset in range(one.first, one.last + 1)}
    assert poison <= left_out
    assert taken == {*range(1000)} - left_out
