"""Where an order is broken: the fewest events that moved."""

from __future__ import annotations

from random import Random

from twinstream.calibration.ordering import Broken, broken
from twinstream.core.events import Form
from twinstream.core.order import BARRIER, Epochs, Keyed, Lanes, Order, Pairwise


def moved(order: Order, routes: list[object], places: list[int]) -> list[tuple[int, int]]:
    return [tuple(one) for one in broken(order, [Form(r, b"", "event", b"") for r in routes], places)]  # type: ignore[arg-type]


def test_one_event_that_comes_late_is_one_and_not_all_that_went_ahead() -> None:
    assert moved(Lanes(), [()] * 6, [5, 0, 1, 2, 3, 4]) == [(0, 1)]


def test_only_events_of_one_lane_are_out_of_order_and_none_of_a_bag() -> None:
    assert moved(Lanes(), ["a", "b", "a", "b"], [1, 0, 3, 2]) == []
    assert moved(Lanes(), ["a", "a", "b", "b"], [1, 0, 3, 2]) == [(0, 1), (2, 3)]
    assert moved(Lanes(), [b"x", b"x"], [1, 0]) == []


def test_keys_are_looked_at_one_by_one() -> None:
    assert moved(Keyed(Lanes()), [(1, ()), (2, ()), (1, ()), (2, ())], [2, 1, 0, 3]) == [(0, 2)]


def test_an_event_that_passed_a_barrier_moved_and_others_are_held_inside_their_epoch() -> None:
    routes: list[object] = ["a", "b", BARRIER, "a", "b"]
    assert moved(Epochs(Lanes()), routes, [1, 0, 2, 4, 3]) == []
    assert moved(Epochs(Lanes()), routes, [0, 2, 1, 3, 4]) == [(1, 2)]
    assert moved(Epochs(Lanes()), ["a", "a", BARRIER], [1, 0, 2]) == [(0, 1)]


def test_copies_of_a_barrier_say_nothing_of_single_events() -> None:
    assert moved(Epochs(Lanes(), copies=True), ["a", BARRIER, "a"], [2, 1, 0]) == [(0, 2)]


def test_of_a_function_the_events_in_most_broken_pairs_moved() -> None:
    order = Pairwise(lambda one, other: {one.route, other.route} <= {"x", "y"})
    assert moved(order, ["x", "y", "y", "z", "y"], [4, 0, 1, 2, 3]) == [(0, 1)]


def test_without_the_events_that_moved_a_sequence_is_kept() -> None:
    """And with fewer of them it is not: the rest is the longest that ascends."""
    for seed in range(40):
        random = Random(seed)
        places = random.sample(range(12), 12)
        gone = {one.moved for one in broken(Lanes(), [Form((), b"", "e", b"")] * 12, places)}
        kept = [place for number, place in enumerate(places) if number not in gone]
        assert kept == sorted(kept), f"seed {seed}"
        assert len(kept) == longest(places), f"seed {seed}"


def longest(places: list[int]) -> int:
    """By trying all ends: slow, and by another way."""
    best = [1] * len(places)
    for i in range(len(places)):
        best[i] = 1 + max((best[j] for j in range(i) if places[j] < places[i]), default=0)
    return max(best)


def test_each_broken_pair_is_out_of_order() -> None:
    random = Random(3)
    places = random.sample(range(50), 50)
    for one in broken(Lanes(), [Form((), b"", "e", b"")] * 50, places):
        assert isinstance(one, Broken)
        assert (one.moved < one.passed) != (places[one.moved] < places[one.passed])
