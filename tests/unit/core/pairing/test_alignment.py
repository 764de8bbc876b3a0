from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.oracle import lcs_length
from twinstream.core.pairing.alignment import Alignment, align

words = st.text("abc", max_size=9)


def check_valid(alignment: Alignment, left: str, right: str) -> None:
    """Pairs are equal, in growing order, and below the ends."""
    assert alignment.left_end <= len(left)
    assert alignment.right_end <= len(right)
    assert all(left[i] == right[j] for i, j in alignment.pairs)
    assert all(i < alignment.left_end and j < alignment.right_end for i, j in alignment.pairs)
    assert all(
        a[0] < b[0] and a[1] < b[1] for a, b in zip(alignment.pairs, alignment.pairs[1:], strict=False)
    )


@given(words, words)
def test_a_whole_alignment_is_a_longest_common_subsequence(left: str, right: str) -> None:
    alignment = align(left, right, 20, whole=True)
    check_valid(alignment, left, right)
    assert (alignment.left_end, alignment.right_end) == (len(left), len(right))
    assert len(alignment.pairs) == lcs_length(left, right)


@given(words, words)
def test_an_open_alignment_ends_where_one_side_ends_and_is_longest_up_to_there(left: str, right: str) -> None:
    alignment = align(left, right, 20)
    check_valid(alignment, left, right)
    assert alignment.left_end == len(left) or alignment.right_end == len(right)
    assert len(alignment.pairs) == lcs_length(left[: alignment.left_end], right[: alignment.right_end])


@given(words, words, st.integers(0, 3), st.booleans())
def test_an_alignment_out_of_budget_is_valid_and_says_so(
    left: str, right: str, budget: int, whole: bool
) -> None:
    alignment = align(left, right, budget, whole=whole)
    check_valid(alignment, left, right)
    if not alignment.exhausted:
        assert alignment.left_end + alignment.right_end - 2 * len(alignment.pairs) <= budget
    if whole:
        assert (alignment.left_end, alignment.right_end) == (len(left), len(right))
        distance = len(left) + len(right) - 2 * lcs_length(left, right)
        assert alignment.exhausted == (distance > budget)


@given(st.permutations("abcdefgh"), st.permutations("abcdefgh"))
def test_out_of_budget_distinct_values_still_have_a_longest_common_subsequence(
    left: list[str], right: list[str]
) -> None:
    alignment = align(left[:6], right[2:], 0, whole=True)
    assert len(alignment.pairs) == lcs_length(left[:6], right[2:])


def test_of_equally_short_explanations_the_one_that_pairs_more_is_taken() -> None:
    assert align("ab", "b", 10).pairs == [(1, 0)]
