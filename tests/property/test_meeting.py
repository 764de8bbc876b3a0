"""A meeting of two sequences is never missed: where the pieces have met, their newest rows told so."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.events import Side
from twinstream.core.meeting import Meeting
from twinstream.core.orders import Lanes
from twinstream.core.pairing import Item, pair

LETTERS = st.lists(st.sampled_from("abcd"), max_size=30)
LENGTH = 3


@given(LETTERS, LETTERS, LETTERS)
def test_pieces_whose_ends_are_equal_in_a_row_are_told(
    left: list[str], right: list[str], run: list[str]
) -> None:
    pieces = left + run, right + run
    meeting = Meeting(LENGTH)
    for side, piece in zip(Side, pieces, strict=True):
        for letter in piece:
            meeting.add(side, letter.encode())
    items = [[Item(place, letter.encode(), "lane") for place, letter in enumerate(piece)] for piece in pieces]
    if pair(Lanes(), items[0], items[1], lambda *_: False, whole=False).clean >= LENGTH:
        assert meeting.likely


@given(LETTERS, LETTERS)
def test_the_newest_row_of_one_side_stands_in_the_other(left: list[str], right: list[str]) -> None:
    meeting = Meeting(LENGTH)
    for side, piece in zip(Side, (left, right), strict=True):
        for letter in piece:
            meeting.add(side, letter.encode())
    words = "".join(left), "".join(right)
    found = [len(word) >= LENGTH and word[-LENGTH:] in other for word, other in (words, words[::-1])]
    assert meeting.likely == any(found)
