"""Records over which a task of Spark falls are found by copies of its process, and left out."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from multiprocessing import RawArray

import pytest

from twinstream.core.events import Side
from twinstream.errors import QueryFailed, SourceError
from twinstream.intake.falls import Trail
from twinstream.ports import Batch, Gap, Item, Passed
from twinstream.spark.matcher.rehearsal import MOST_LEFT_OUT, Step, shared_trail, survivable

NAMES, IDS = {Side.LEFT: "orders", Side.RIGHT: "orders.next"}, dict.fromkeys(Side, "an id")


def batch(side: Side, offsets: range, partition: int = 0) -> Batch:
    return Batch(side, partition, [b"%d" % one for one in offsets], list(offsets), [0] * len(offsets))


STEPS: list[Step] = [
    (Side.LEFT, [batch(Side.LEFT, range(5)), Passed(Side.LEFT, 0, 9, 0)]),
    (Side.RIGHT, [batch(Side.RIGHT, range(5)), batch(Side.RIGHT, range(5), partition=1)]),
]


def falling(trail: Trail, fall: Callable[[Item], object]) -> Callable[[Side, Sequence[Item]], None]:
    """Takes batches as a matcher does, and calls `fall` with each."""

    def take(side: Side, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Batch):
                trail.enter(item, IDS[side])
                fall(item)
                trail.leave()

    return take


def left_of(fall: Callable[[Item], object]) -> list[Step]:
    trail = shared_trail()
    return survivable(STEPS, falling(trail, fall), trail, NAMES, IDS)


def raises(item: Batch) -> None:
    if item.partition == 1 and b"3" in item.records:
        raise ZeroDivisionError


def dies(item: Batch) -> None:
    if item.partition == 1 and b"3" in item.records:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("fall", [raises, dies])
def test_a_record_over_which_every_copy_falls_is_a_gap_between_the_others(
    fall: Callable[[Item], object],
) -> None:
    reference, (side, (whole, *parts)) = left_of(fall)
    assert (reference, side, whole) == (STEPS[0], Side.RIGHT, STEPS[1][1][0])
    assert parts == [
        batch(Side.RIGHT, range(3), 1),
        Gap(Side.RIGHT, 1, 3, 4, left_out=True),
        batch(Side.RIGHT, range(4, 5), 1),
    ]


def test_records_that_no_copy_falls_over_twice_are_taken_as_they_are() -> None:
    fallen = RawArray("q", 1)

    def once(_: Item) -> None:
        fallen[0] += 1
        if fallen[0] == 2:
            raise ZeroDivisionError

    assert left_of(once) == STEPS


def test_an_error_that_says_what_to_do_leaves_nothing_out() -> None:
    def lacks(_: Item) -> None:
        raise SourceError("the registry is away")

    assert left_of(lacks) == STEPS


def test_a_batch_of_many_such_records_ends_with_a_sentence_that_names_one() -> None:
    trail = shared_trail()
    steps: list[Step] = [(Side.LEFT, [batch(Side.LEFT, range(MOST_LEFT_OUT + 5))])]
    with pytest.raises(
        QueryFailed, match=r"more than 10 records of one batch, and offset 10 of .* of orders is"
    ):
        survivable(steps, falling(trail, lambda _: os._exit(1)), trail, NAMES, IDS)
