"""Records that a matcher falls over: found by bisection, and left out."""

from __future__ import annotations

import pytest

from twinstream.core.events import Side
from twinstream.ports import Batch
from twinstream.runtime.poison import (
    NO_SUSPICION,
    TRAIL_LENGTH,
    Isolation,
    Poison,
    Stretch,
    Suspicion,
    Trail,
    carefully,
)
from twinstream.runtime.supervisor import trial_over

LEFT, RIGHT = Side


def batch(offsets: range | list[int], partition: int = 2) -> Batch:
    records = [b"%d" % offset for offset in offsets]
    return Batch(RIGHT, partition, records, offsets, [offset * 10 for offset in offsets])


def stretch(first: int, last: int, partition: int = 2) -> Stretch:
    return Stretch(RIGHT, partition, first, last)


def offsets(parts: list[Batch | Poison]) -> list[list[int] | int]:
    return [part.offset if isinstance(part, Poison) else list(part.offsets) for part in parts]


def test_a_trail_tells_what_was_being_taken_until_it_was_left() -> None:
    memory = [0] * TRAIL_LENGTH
    trail = Trail(memory)
    assert trail.stretch() is None
    trail.enter(batch(range(100, 200)))
    assert Trail(memory).stretch() == stretch(100, 199)
    trail.leave()
    assert Trail(memory).stretch() is None


def test_what_a_trial_takes_is_not_held_against_the_records_of_the_comparison() -> None:
    memory = [0] * TRAIL_LENGTH
    trail = Trail(memory)
    trail.enter_trial(batch(range(100, 200)))
    assert (trail.stretch(), Trail(memory).trial_stretch()) == (None, stretch(100, 199))
    assert trial_over(Trail(memory), 1) == (
        "the matcher fell while the trial took offsets 100 to 199 of partition 2 of the candidate"
    )
    trail.enter(batch(range(5)))
    assert (trail.stretch(), trail.trial_stretch()) == (stretch(0, 4), None)
    assert trial_over(trail, 1) is None
    assert trial_over(trail, 2) == "the matcher fell 2 times in a row, and the trial may be the reason"


def test_a_batch_that_nobody_suspects_is_taken_as_it_is() -> None:
    whole = batch(range(5))
    assert list(carefully(whole, NO_SUSPICION)) == [whole]
    assert list(carefully(whole, Suspicion(stretch(5, 9), (stretch(7, 7),)))) == [whole]
    assert list(carefully(whole, Suspicion(stretch(0, 4, partition=1)))) == [whole]


def test_a_suspected_stretch_is_taken_in_pieces_and_what_is_around_it_at_once() -> None:
    parts = list(carefully(batch(range(100)), Suspicion(stretch(40, 59))))
    assert offsets(parts) == [
        list(range(40)),
        *[[first, first + 1] for first in range(40, 60, 2)],
        list(range(60, 100)),
    ]
    assert parts[1].records == [b"40", b"41"]  # type: ignore[union-attr]
    assert parts[1].timestamps_ms == [400, 410]  # type: ignore[union-attr]


def test_poison_is_left_out_and_everything_else_is_taken() -> None:
    parts = list(
        carefully(batch([3, 5, 8, 9]), Suspicion(None, (stretch(5, 5), stretch(9, 9), stretch(6, 6))))
    )
    assert offsets(parts) == [[3], 5, [8], 9]


@pytest.mark.parametrize("poison", [0, 1, 499, 998, 999])
def test_of_a_thousand_records_the_one_is_found_after_five_falls(poison: int) -> None:
    isolation, suspicion, falls = Isolation(), NO_SUSPICION, 0
    while not suspicion.poison:
        for part in carefully(batch(range(1000)), suspicion):
            assert isinstance(part, Batch)
            if poison in part.offsets:
                suspicion = isolation.fell_in(stretch(part.offsets[0], part.offsets[-1]))
                break
        falls += 1
    assert suspicion == Suspicion(None, (stretch(poison, poison),))
    assert falls == 5


def test_a_fall_by_chance_blames_nobody() -> None:
    isolation = Isolation()
    isolation.fell_in(stretch(0, 99))
    assert isolation.fell_in(stretch(500, 599)) == Suspicion(stretch(500, 599))
    assert isolation.fell_in(None) == Suspicion(stretch(500, 599))


def test_two_records_of_one_batch_are_both_found() -> None:
    isolation, suspicion = Isolation(), NO_SUSPICION
    for _ in range(20):
        for part in carefully(batch(range(100)), suspicion):
            if isinstance(part, Batch) and {20, 21} & set(part.offsets):
                suspicion = isolation.fell_in(stretch(part.offsets[0], part.offsets[-1]))
                break
    assert {one.first for one in suspicion.poison} == {20, 21}


def test_a_fall_over_the_same_records_is_known_as_one_more() -> None:
    isolation = Isolation()
    assert not isolation.narrows(stretch(0, 99))
    isolation.fell_in(stretch(0, 99))
    assert isolation.narrows(stretch(10, 19))
    assert not isolation.narrows(stretch(100, 199))
    assert not isolation.narrows(None)
