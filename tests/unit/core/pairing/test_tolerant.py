from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from tests.support import oracle
from twinstream.core.pairing.tolerant import matching

numbers = st.lists(st.integers(0, 8), max_size=6)


def near(one: int, other: int) -> bool:
    return abs(one - other) <= 1


@given(numbers, numbers)
def test_a_matching_has_as_many_pairs_of_equal_things_as_there_can_be(
    left: list[int], right: list[int]
) -> None:
    found = matching(left, right, near)
    assert len(found) == len(oracle.matching(left, right, near))
    assert all(near(left[i], right[j]) for i, j in found)
    assert len({i for i, _ in found}) == len({j for _, j in found}) == len(found)


def test_of_equal_lists_each_thing_is_asked_for_once_and_paired_in_order() -> None:
    asked = []

    def equal(one: int, other: int) -> bool:
        asked.append((one, other))
        return one == other

    things = random.Random(1).sample(range(5000), 5000)
    assert matching(things, things, equal) == [(place, place) for place in range(5000)]
    assert len(asked) == 5000
