"""The streams that the benchmark of matching feeds: equivalent under the order that they measure."""

from itertools import combinations

import pytest

from loadtest.matching import RUN, measure_matching, measure_plain, new_comparison, runs, verdicts
from loadtest.matching_scenarios import SCENARIOS, Scenario, Stream
from loadtest.plain_pairwise import Pairwise
from twinstream.core.events import Side

CASES = [
    pytest.param(scenario, keys, partners, id=f"{scenario.name}, {keys} keys, {partners}")
    for scenario in SCENARIOS.values()
    for keys in (1, 7)
    for partners in ("fifo", "random")
    if scenario.allows(partners, keys)
]
PHASE, DRIFT, COUNT = 20, 10, 100


def plain_verdict(scenario: Scenario, left: list, right: list) -> tuple[bool, int]:
    """Whether the plain matcher finds a difference, and how many events it leaves unmatched."""
    matcher = Pairwise(scenario.dependent)
    for item in left:
        matcher.feed(0, item)
    for item in right:
        matcher.feed(1, item)
    return matcher.diverged, len(matcher.unmatched[0]) + len(matcher.unmatched[1])


@pytest.mark.parametrize(("scenario", "keys", "partners"), CASES)
def test_the_right_stream_is_the_left_one_in_an_order_that_is_allowed(scenario, keys, partners):
    stream = Stream(scenario, keys, PHASE)
    numbers = stream.right(COUNT, DRIFT, partners)
    assert sorted(numbers) == list(range(COUNT))
    assert all(number <= place + DRIFT for place, number in enumerate(numbers)), "the partner is there"
    swapped = ((later, earlier) for earlier, later in combinations(numbers, 2) if later < earlier)
    assert not any(scenario.dependent(*map(stream.item, pair)) for pair in swapped)


@pytest.mark.parametrize(("scenario", "keys", "partners"), CASES)
def test_the_index_and_the_plain_matcher_pair_all_events(scenario, keys, partners):
    stream = Stream(scenario, keys, PHASE)
    numbers = stream.right(COUNT, DRIFT, partners)
    comparison = new_comparison(scenario)
    for side, some in ((Side.LEFT, list(range(COUNT))), (Side.RIGHT, numbers)):
        for _, run in runs(stream, some):
            comparison.feed(side, run)
    assert (comparison.diverged, comparison.matched) == (False, COUNT)
    items = [stream.item(number) for number in range(COUNT)]
    assert plain_verdict(scenario, items, [stream.item(number) for number in numbers]) == (False, 0)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_index_and_the_plain_matcher_agree_that_two_events_may_not_be_swapped(scenario):
    """So what is measured is an order, and the same one."""
    stream = Stream(scenario, 1, PHASE)
    numbers = [*range(PHASE - 1), PHASE, PHASE - 1]
    items = [stream.item(number) for number in range(PHASE + 1)]
    dependent = scenario.dependent(items[PHASE - 1], items[PHASE])
    comparison = new_comparison(scenario)
    for side, some in ((Side.LEFT, list(range(PHASE + 1))), (Side.RIGHT, numbers)):
        for _, run in runs(stream, some):
            comparison.feed(side, run)
    assert comparison.diverged is dependent
    assert dependent is (scenario.name not in ("unordered", "within, scattered"))
    assert plain_verdict(scenario, items, [items[number] for number in numbers])[0] is dependent


def test_a_measurement_has_a_time_for_each_round():
    found = measure_matching("per_key", 7, "random", 10, rounds=2, length=1)
    assert len(found["rounds_ns"]) == len(found["yardstick_ns"]) == 2
    assert 0 < found["least_ns"] <= found["median_ns"]
    plain = measure_plain("per_key", 7, [10], rounds=2)
    assert 0 < plain[10]["least_ns"] <= plain[10]["median_ns"]


def test_an_event_is_of_the_size_that_its_run_says():
    stream = Stream(SCENARIOS["unordered"], 1, PHASE)
    (_, first), (_, last) = runs(stream, range(RUN + 5))
    assert (len(first.forms), len(last.forms)) == (RUN, 5)
    assert list(last.offsets) == list(range(RUN, RUN + 5))


def test_a_median_above_its_target_misses_it():
    row = {"target_ns": 1000, "by_drift": {10: {"median_ns": 900}, 10_000: {"median_ns": 1001}}}
    assert verdicts(row, None) == {"time": False}
    row["by_drift"] |= {10_000: {"median_ns": 1000}, 1_000_000: {"median_ns": 1500}}
    assert verdicts(row, None) == {"time": True, "growth": True}
    assert verdicts(row, 1.5) == {"time": True, "growth": False}
