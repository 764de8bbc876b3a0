from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product

import pytest

from tests.support.rides import KINDS, day
from tests.support.streams import LEFT, RIGHT, Driver, record, spec
from twinstream.core.events import Side
from twinstream.core.state.merge import merged
from twinstream.core.state.snapshot import Sweep, begin_sweep, delta, snapshot

ORDER = "{barrier: day, inner: {per_key: [k]}, copies: per_partition}"
UNEQUAL = "the copies of one barrier in several partitions are not equal"


@pytest.fixture
def driver() -> Driver:
    made = Driver(spec(ORDER, KINDS))
    for side in Side:
        made.comparison.expect_partitions(side, (0, 1))
    return made


def ride(key: int, number: int = 0) -> bytes:
    return record({"t": "ride", "k": key, "n": number})


def feed(driver: Driver, side: Side, *steps: tuple[int, bytes]) -> None:
    for partition, event in steps:
        driver.feed(side, [event], partition=partition)


def test_which_copy_of_a_barrier_came_first_says_nothing_of_the_partitions_of_pairs(driver: Driver) -> None:
    driver.comparison.watch.keeps_partitions = True
    feed(driver, LEFT, (0, day(1)), (1, day(1)))
    feed(driver, RIGHT, (1, day(1)), (0, day(1)))
    assert (driver.comparison.matched, driver.comparison.holes) == (1, [])
    feed(driver, LEFT, (0, ride(2)))
    feed(driver, RIGHT, (1, ride(2)))
    assert "`co_partitioned: true`" in driver.comparison.holes[0].reason


def test_unequal_copies_are_a_hole(driver: Driver) -> None:
    feed(driver, LEFT, (0, day(1)), (1, day(2)))
    (hole,) = driver.comparison.holes
    assert "copies of one barrier" in hole.reason
    assert (hole.side, hole.partition) == (LEFT, 1)


@pytest.mark.parametrize("restarts", [(), (1,), (0, 1)])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_an_unequal_copy_is_the_same_one_over_a_restart_whichever_partition_wrote_first(
    order: Sequence[int], restarts: Sequence[int]
) -> None:
    driver = Driver(spec(ORDER, KINDS))
    driver.comparison.expect_partitions(LEFT, range(3))
    feed(driver, LEFT, (0, ride(0)), (1, ride(1)), (2, ride(2)))
    for number, partition in enumerate(order[:2]):
        feed(driver, LEFT, (partition, day(number)), (partition, day(3 + number)))
        if number in restarts:
            driver.restart()
    feed(driver, LEFT, (order[2], day(0)), (order[2], day(3)))
    second_epoch = sorted(order[:2])
    assert [hole.partition for hole in driver.comparison.holes] == [*order[1:], second_epoch[1], order[2]]


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize(
    ("numbers", "unequal"), [((10, 10.25, 10.5), False), ((10, 10.5, 9.5), True), ((10, 10, 11), True)]
)
def test_copies_are_close_to_each_other_whichever_came_first(
    order: Sequence[int], numbers: Sequence[float], *, unequal: bool
) -> None:
    driver = Driver(spec(ORDER, f"{KINDS}equality: {{tolerance: {{n: {{abs: 0.5}}}}}}"))
    driver.comparison.expect_partitions(LEFT, range(3))
    for partition in order:
        feed(driver, LEFT, (partition, record({"t": "day", "n": numbers[partition]})))
    assert {hole.reason for hole in driver.comparison.holes} == ({UNEQUAL} if unequal else set())


@pytest.mark.parametrize("order", list(product(permutations(range(2)), repeat=2)))
def test_the_barriers_of_both_sides_are_compared_by_the_same_partition_whichever_came_first(
    order: tuple[Sequence[int], Sequence[int]],
) -> None:
    driver = Driver(spec(ORDER, f"{KINDS}equality: {{tolerance: {{n: {{abs: 0.5}}}}}}"))
    numbers = (10, 10.25), (10.25, 10.75)
    for side in Side:
        driver.comparison.expect_partitions(side, range(2))
        for partition in order[side]:
            feed(driver, side, (partition, record({"t": "day", "n": numbers[side][partition]})))
    assert (driver.comparison.matched, driver.comparison.diverged, driver.comparison.holes) == (1, False, [])


@pytest.mark.parametrize("restarts", [False, True])
def test_a_barrier_that_lacks_the_same_copies_on_both_sides_at_the_end_is_no_difference(
    driver: Driver, restarts: bool
) -> None:
    for side in Side:
        feed(driver, side, (0, ride(1)), (0, day(1)), (0, ride(3)), (1, ride(2)))
    driver.comparison.end(LEFT)
    if restarts:
        driver.restart()
    driver.comparison.end(RIGHT)
    assert (driver.comparison.matched, driver.comparison.diverged, driver.comparison.holes) == (4, False, [])


@pytest.mark.parametrize("first", Side)
def test_behind_a_barrier_that_lacks_copies_a_copy_is_told_whichever_side_ends_first(first: Side) -> None:
    driver = Driver(spec(ORDER, f"{KINDS}equality: {{tolerance: {{v: {{abs: 0.5}}}}}}"))
    written = {LEFT: [10], RIGHT: [10.25, 10.25]}
    for side in Side:
        driver.comparison.expect_partitions(side, (0, 1))
        rides = [record({"t": "ride", "k": 1, "v": v}) for v in written[side]]
        feed(driver, side, (0, day(1)), *((0, one) for one in rides), (1, ride(2)))
    for side in (first, first.other):
        driver.comparison.end(side)
    assert driver.kinds() == ["duplicate"]


def test_the_copies_that_a_barrier_has_at_the_end_are_one_event_all_the_same() -> None:
    driver = Driver(spec(ORDER, KINDS))
    for side in Side:
        driver.comparison.expect_partitions(side, range(4))
        feed(driver, side, (0, day(1)), (1, day(1)), (2, day(1)), (1, ride(2)))
        assert len(driver.comparison.copies[side]) == len(list(driver.comparison.copies[side])) == 4
    driver.end()
    assert (driver.comparison.matched, driver.comparison.diverged) == (2, False)
    assert [driver.comparison.accounts[side].ignored for side in Side] == [2, 2]
    assert not any(driver.comparison.unmatched(side) for side in Side)


def test_a_copy_that_only_one_side_has_at_the_end_is_never_passed_over(driver: Driver) -> None:
    feed(driver, LEFT, (0, day(1)), (1, day(1)))
    feed(driver, RIGHT, (0, day(1)))
    driver.end()
    assert driver.comparison.holes
    assert "lacks copies" in driver.comparison.holes[0].reason


def test_a_side_far_ahead_in_one_partition_is_taken_in_without_recursion(driver: Driver) -> None:
    days = [day(number) for number in range(5000)]
    for side in Side:
        driver.feed(side, days, partition=0)
        driver.feed(side, days, partition=1)
    assert driver.comparison.matched == 5000


def test_an_event_of_a_bag_that_crosses_copied_barriers_changed_places_however_late_that_shows() -> None:
    driver = Driver(spec(ORDER.replace("{per_key: [k]}", "unordered"), KINDS))

    def go_on(number: int) -> None:
        for side in Side:
            feed(driver, side, (0, ride(2, number)), (0, day(number)))
        driver.comparison.review()

    for side in Side:
        driver.comparison.expect_partitions(side, (0,))
    feed(driver, LEFT, (0, ride(1)))
    for number in range(4):
        go_on(number)
    assert driver.kinds() == ["missing"]
    feed(driver, RIGHT, (0, ride(1)))
    for number in range(4, 8):
        go_on(number)
    assert driver.kinds() == ["reordered"]


def test_an_event_that_moves_behind_the_others_while_a_sweep_has_it_is_in_the_checkpoint_once(
    driver: Driver,
) -> None:
    feed(driver, LEFT, (1, day(1)), (1, ride(1)))
    bodies = [snapshot(driver.comparison), delta(driver.comparison)]
    begin_sweep(driver.comparison)
    feed(driver, LEFT, (0, day(1)))
    bodies.append(delta(driver.comparison, Sweep(100, first=True)))
    held = [(event[1], event[2]) for event in driver.comparison.ledger.held[LEFT]]
    kept = merged(bodies[0], bodies[1:])["held"][LEFT]
    assert list(zip(kept["partitions"], kept["offsets"], strict=True)) == held
