"""Streams are words whose letters are events."""

from __future__ import annotations

from typing import Any

import pytest

from twinstream.core.order import Keyed, Lanes, Order
from twinstream.core.pairing.pairing import pair, pair_bag
from twinstream.core.pairing.pieces import Item, Pairing


def items(word: str, lane: Any = None) -> list[Item]:
    """Events of one lane; without it, of a lane for each letter, which is a bag."""
    return [
        Item(place, letter.encode(), letter.encode() if lane is None else lane)
        for place, letter in enumerate(word)
    ]


def paired(left: list[Item], right: list[Item], order: Order | None = None, *, whole: bool = True) -> Pairing:
    return pair(order or Lanes(), left, right, lambda *_: False, whole=whole)


@pytest.mark.parametrize(
    ("left", "right", "clean"), [("xab", "aby", 0), ("abx", "yab", 0), ("xab", "yab", 2), ("ab", "ab", 2)]
)
def test_in_a_sequence_the_pairs_behind_the_last_difference_of_both_sides_are_clean(
    left: str, right: str, clean: int
) -> None:
    assert paired(items(left, "k"), items(right, "k")).clean == clean


@pytest.mark.parametrize(("left", "right", "clean"), [("abx", "ab", 0), ("ab", "abx", 0), ("ab", "ba", 2)])
def test_where_order_is_free_nothing_is_clean_while_anything_differs(
    left: str, right: str, clean: int
) -> None:
    one, other = ([item._replace(route=(item.route, "k")) for item in items(word)] for word in (left, right))
    assert paired(items(left), items(right)).clean == clean
    assert pair_bag(items(left), items(right), whole=True).clean == clean
    assert paired(one, other, Keyed(Lanes())).clean == clean


def test_each_key_is_paired_by_itself() -> None:
    left, right = (
        [item._replace(route=(key, "k")) for item, key in zip(items(word), "1122", strict=True)]
        for word in ("abcd", "acbd")
    )
    found = paired(left, right, Keyed(Lanes()))
    assert (found.pairs, found.rest[0], found.rest[1]) == ([(0, 0), (3, 3)], [1, 2], [1, 2])


def test_what_has_not_been_answered_keeps_its_order() -> None:
    found = pair_bag(items("abacb"), items("a"), whole=False)
    assert (found.pairs, found.tail[0], found.rest[0]) == ([(0, 0)], [1, 2, 3, 4], [])


@pytest.mark.parametrize(
    ("left", "right", "missing", "extra"),
    [
        ("abcd", "c", "ab", ""),
        ("c", "abcd", "", "ab"),
        ("abcdefgh", "efg", "abcd", ""),
        ("axbcd", "ayc", "xb", "y"),
    ],
)
def test_while_more_may_come_an_event_is_not_called_moved_before_one_that_it_passed_has_come(
    left: str, right: str, missing: str, extra: str
) -> None:
    found = paired(items(left, "k"), items(right, "k"), whole=False)
    assert "".join(left[i] for i in found.rest[0]) == missing
    assert "".join(right[j] for j in found.rest[1]) == extra
    assert found.clean == 0


@pytest.mark.parametrize(("left", "right"), [("abcd", "ca"), ("abcd", "cab"), ("abcd", "cabd")])
def test_an_event_that_came_before_one_that_it_follows_on_the_other_side_has_moved(
    left: str, right: str
) -> None:
    found = paired(items(left, "k"), items(right, "k"), whole=False)
    assert [right[j] for j in found.rest[1]] == ["c"]


def test_two_pieces_do_not_meet_by_a_guess() -> None:
    lost, run = "".join(map(chr, range(97, 117))), "".join(map(chr, range(200, 216)))
    assert paired(items(lost + run, "k"), items(run, "k"), whole=False).clean == 0
