"""Where two sequences meet is told by the sequences: once it is known, and the same however they come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.oracle import lcs_length
from twinstream.core.diagnosis.resync import Lengths, Resync

LETTERS = st.text("abcd", max_size=24)
STEPS = st.lists(st.booleans(), max_size=80)
RUN, BUDGET = 3, 6
OPEN, ENDED = (False, False), (True, True)


def meeting(left: str, right: str) -> Resync:
    return Resync(RUN, BUDGET, lambda i, j: left[i] == right[j])


def differences(left: str, right: str) -> int:
    """The fewest letters of both without a partner."""
    return len(left) + len(right) - 2 * lcs_length(left, right)


def fewest(left: str, right: str) -> int | None:
    """The fewest differences behind which a run stands, by trying all places."""
    places = [(i, j) for i in range(RUN, len(left) + 1) for j in range(RUN, len(right) + 1)]
    runs = [(i, j) for i, j in places if left[i - RUN : i] == right[j - RUN : j]]
    return min((differences(left[:i], right[:j]) for i, j in runs), default=None)


@given(LETTERS, LETTERS, STEPS)
def test_the_place_is_the_same_however_the_sequences_come(left: str, right: str, steps: list[bool]) -> None:
    search, came = meeting(left, right), [0, 0]
    found: Lengths | None = None
    for of_right in steps:
        if found is None and came[of_right] < len((left, right)[of_right]):
            came[of_right] += 1
            found = search.look((came[0], came[1]), OPEN)
    at_once = meeting(left, right).look((len(left), len(right)), ENDED)
    assert at_once == (search.look((len(left), len(right)), ENDED) if found is None else found)


@given(LETTERS, LETTERS)
def test_fewer_differences_come_before_no_other_run(left: str, right: str) -> None:
    place = meeting(left, right).look((len(left), len(right)), ENDED)
    least = fewest(left, right)
    if place is None:
        assert least is None or least > BUDGET
    else:
        i, j = place
        assert left[i - RUN : i] == right[j - RUN : j]
        assert differences(left[:i], right[:j]) == least


@given(LETTERS, LETTERS)
def test_the_place_is_that_of_the_other_side_where_the_sides_are_exchanged(left: str, right: str) -> None:
    one = meeting(left, right).look((len(left), len(right)), ENDED)
    other = meeting(right, left).look((len(right), len(left)), ENDED)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert sum(one) == sum(other)
