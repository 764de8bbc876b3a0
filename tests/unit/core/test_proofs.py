"""What proves a difference, and what was not checked."""

from __future__ import annotations

from tests.support.streams import LEFT, RIGHT
from twinstream.core.events import Event, Form, Place, Side
from twinstream.core.proofs import NOTHING, UncheckedFrom, needs_of


def at(side: Side, offset: int, partition: int = 0) -> Place:
    return side, partition, offset


def event(offset: int) -> Event:
    return Event(Form("lane", b"", "event", b""), 0, offset, 0, 0.0)


def test_what_stands_before_a_start_or_in_another_partition_is_spared() -> None:
    unchecked = UncheckedFrom()
    unchecked.note(LEFT, {0: 5})
    assert unchecked.spares([at(LEFT, 4), at(RIGHT, 9)])
    assert unchecked.spares([at(LEFT, 9, partition=1)])
    assert not unchecked.spares([at(LEFT, 5), at(RIGHT, 0)])


def test_of_several_starts_the_first_counts() -> None:
    unchecked = UncheckedFrom()
    for start in (5, 3, 8):
        unchecked.note(LEFT, {0: start})
    assert not unchecked.spares([at(LEFT, 3)])
    assert unchecked.spares([at(LEFT, 2)])


def test_without_a_place_nothing_is_spared() -> None:
    for side, starts in ((None, {0: 5}), (LEFT, {})):
        unchecked = UncheckedFrom()
        unchecked.note(side, starts)
        assert not unchecked.spares([at(RIGHT, 0)])


def test_an_end_proves_nothing_where_something_of_the_side_that_ended_was_not_checked() -> None:
    unchecked = UncheckedFrom()
    unchecked.note(LEFT, {0: 5})
    assert not unchecked.spares_at_an_end(RIGHT, event(0))
    assert unchecked.spares_at_an_end(LEFT, event(4))
    assert not unchecked.spares_at_an_end(LEFT, event(5))


def test_a_difference_needs_the_batches_that_what_proves_it_stands_in_or_behind() -> None:
    one, two, other = (LEFT, "q", 1), (LEFT, "q", 2), (RIGHT, "q", 1)
    batches = [(one, {0: 0}), (two, {0: 4}), (other, {1: 0})]
    assert needs_of([at(LEFT, 3), at(RIGHT, 7)], batches) == {one}
    assert needs_of([at(LEFT, 4)], batches) == {one, two}
    assert needs_of([at(RIGHT, 0, partition=1)], batches) == {other}
    assert needs_of([at(RIGHT, 0)], batches) == NOTHING
    assert needs_of(None, batches) == {one, two, other}
