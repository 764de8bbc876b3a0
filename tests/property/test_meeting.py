"""Where two sequences meet is told by the sequences: once it is known, and the same however they come."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from twinstream.core.diagnosis.resync import Lengths, Resync

LETTERS = st.text("aAbc", max_size=24)
"""A letter is alike to itself in the other case."""
STEPS = st.lists(st.booleans(), max_size=80)
RUN, BUDGET = 3, 6
ENDED = (True, True)
tolerant = pytest.mark.parametrize("tolerance", [False, True], ids=["exact", "tolerant"])


def alike(one: str, other: str) -> bool:
    return one.lower() == other.lower()


def meeting(left: str, right: str, tolerance: bool) -> Resync:
    changed = (lambda i, j: alike(left[i], right[j])) if tolerance else None
    return Resync(RUN, BUDGET, lambda i, j: left[i] == right[j], changed)


def at_once(left: str, right: str, tolerance: bool) -> Lengths | None:
    return meeting(left, right, tolerance).look((len(left), len(right)), ENDED)


def fewest(left: str, right: str, tolerance: bool) -> list[list[int]]:
    """By lengths of both, the fewest differences between their beginnings."""
    costs = [[i + j for j in range(len(right) + 1)] for i in range(len(left) + 1)]
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            both = 0 if one == other else 1 if tolerance and alike(one, other) else 2
            costs[i + 1][j + 1] = min(costs[i][j] + both, costs[i][j + 1] + 1, costs[i + 1][j] + 1)
    return costs


def place_of(left: str, right: str, tolerance: bool) -> Lengths | None:
    """The place behind the fewest differences, by trying all places with a run."""
    costs = fewest(left, right, tolerance)
    places = [(i, j) for i in range(RUN, len(left) + 1) for j in range(RUN, len(right) + 1)]
    runs = [(i, j) for i, j in places if left[i - RUN : i] == right[j - RUN : j] and costs[i][j] <= BUDGET]
    return min(runs, key=lambda at: (costs[at[0]][at[1]], abs(at[0] - at[1]), sum(at), at), default=None)


@tolerant
@given(LETTERS, LETTERS)
@example("abaa", "abbaba").via("the furthest place on a diagonal lies behind a run on it")
@example("aAA", "AaaAcaaAAab").via("a step that changes nothing reaches as far as one that does")
def test_fewer_differences_come_before_no_other_run(tolerance: bool, left: str, right: str) -> None:
    assert at_once(left, right, tolerance) == place_of(left, right, tolerance)


@tolerant
@given(LETTERS, LETTERS, STEPS)
@example("AAA", "cAAcaAAAaba", [False, False, False]).via("one side has ended before the other has come")
def test_the_place_is_the_same_however_the_sequences_come(
    tolerance: bool, left: str, right: str, steps: list[bool]
) -> None:
    search, came = meeting(left, right, tolerance), [0, 0]
    found: Lengths | None = None
    for of_right in [*steps, *[False] * len(left), *[True] * len(right)]:
        if found is None and came[of_right] < len((left, right)[of_right]):
            came[of_right] += 1
            ended = came[0] == len(left), came[1] == len(right)
            found = search.look((came[0], came[1]), ended)
    assert found == at_once(left, right, tolerance)


@tolerant
@given(LETTERS, LETTERS)
@example("aaaab", "aabaaa").via("as many differences before runs on both sides of the middle")
def test_the_place_is_that_of_the_other_side_where_the_sides_are_exchanged(
    tolerance: bool, left: str, right: str
) -> None:
    one, other = at_once(left, right, tolerance), at_once(right, left, tolerance)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert sum(one) == sum(other)
