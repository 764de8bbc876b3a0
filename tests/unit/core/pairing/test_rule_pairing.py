"""Pairing under rules: equal events are interchangeable, so their copies are paired in order."""

from __future__ import annotations

import pytest

from twinstream.core.events import Side
from twinstream.core.pairing.pieces import Item, Pairing
from twinstream.core.pairing.rule_pairing import pair_related


def pairing(left: str, right: str, dependent: str, *, whole: bool = True) -> Pairing:
    """Of words whose letters are events; `dependent` lists the pairs of letters that are."""
    words = left, right
    pieces = [[Item(place, letter.encode(), None) for place, letter in enumerate(word)] for word in words]
    pairs = {frozenset(pair) for pair in dependent.split()}

    def related(side: Side, one: int, other: Side, another: int) -> bool:
        return frozenset((words[side][one], words[other][another])) in pairs

    return pair_related(*pieces, related, whole=whole)


@pytest.mark.parametrize(
    ("left", "right", "dependent", "missing", "extra"),
    [
        ("pqq", "zqpq", "qq zp", "", "z"),
        ("zqpq", "pqq", "qq zp", "z", ""),
        ("pqqq", "qqqp", "qq", "", ""),
        ("rpqq", "qrpq", "qr", "q", "q"),
        ("pq", "qp", "pq", "p", "p"),
        ("xyaz", "azxy", "ax ay az", "a", "a"),
        ("xyabu", "abuyx", "ax ay bx by", "xy", "yx"),
    ],
)
def test_what_is_left_over_is_not_more_than_what_differs(
    left: str, right: str, dependent: str, missing: str, extra: str
) -> None:
    found = pairing(left, right, dependent)
    rest = [left[place] for place in found.rest[0]], [right[place] for place in found.rest[1]]
    assert ("".join(rest[0]), "".join(rest[1])) == (missing, extra)


@pytest.mark.parametrize(
    ("left", "right", "dependent", "lost", "open_still"),
    [("xqa", "a", "xa", [0], [1]), ("yax", "a", "ya xa", [0], [2]), ("xa", "ax", "xa", [0], [])],
)
def test_while_the_sides_go_on_only_what_the_other_is_past_or_has_moved_is_a_difference(
    left: str, right: str, dependent: str, lost: list[int], open_still: list[int]
) -> None:
    found = pairing(left, right, dependent, whole=False)
    assert (found.rest[0], found.tail[0]) == (lost, open_still)


@pytest.mark.parametrize(("left", "right"), [("acba", "zcab"), ("aba", "zab"), ("cba", "zcb")])
def test_it_does_not_matter_how_much_of_a_common_beginning_was_matched_before(left: str, right: str) -> None:
    """Of `acba` and `zcab`, `c` may be matched before `z` is seen, as `a` may."""
    found = pairing(left, right, "ab bb bc bz")
    assert [len(found.rest[0]), len(found.rest[1])] == [1, 1]


def test_where_the_other_is_past_nothing_the_oldest_event_is_the_best_guess() -> None:
    for left, right, rest in (("xy", "z", ([0], [])), ("", "yz", ([], [0]))):
        found = pairing(left, right, "", whole=False)
        assert (found.rest[0], found.rest[1], found.clean) == (*rest, 0)


@pytest.mark.parametrize(
    ("left", "right", "clean"), [("xab", "ab", 2), ("ab", "xab", 2), ("axb", "ab", 1), ("ab", "axb", 1)]
)
@pytest.mark.parametrize("whole", [True, False])
def test_the_pairs_behind_the_last_difference_are_clean(
    left: str, right: str, clean: int, whole: bool
) -> None:
    assert pairing(left, right, "ab xa xb", whole=whole).clean == clean
    assert pairing("ab", "ab", "ab").clean == 2
