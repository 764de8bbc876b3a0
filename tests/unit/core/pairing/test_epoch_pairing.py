"""Streams are words: ``E``, ``F``, ``G`` and ``H`` are barriers, every other letter is an event of a bag."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import permutations, product

import pytest

from twinstream.core.order import BARRIER
from twinstream.core.pairing import epoch_pairing
from twinstream.core.pairing.epoch_pairing import BARRIER_COST, EVENT_COST, _cut, _Search, pair_epochs
from twinstream.core.pairing.pairing import pair_bag
from twinstream.core.pairing.pieces import Item, Items, Pairing

Way = list[tuple[int, int]]
BARRIERS = "EFGH"


def items(word: str) -> list[Item]:
    return [
        Item(place, letter.encode(), BARRIER if letter in BARRIERS else letter)
        for place, letter in enumerate(word)
    ]


def bag(left: Items, right: Items, whole: bool) -> Pairing:
    return pair_bag(left, right, whole=whole)


def paired(left: str, right: str, *, whole: bool = True) -> Pairing:
    return pair_epochs(bag, items(left), items(right), whole=whole)


def cut(word: str) -> list[Counter[str]]:
    """The events between the barriers."""
    return [Counter(epoch) for epoch in re.split(f"[{BARRIERS}]", word)]


def ways(left: str, right: str, start: tuple[int, int] = (0, 0), *, straight: bool = False) -> Iterator[Way]:
    """Every way to pair equal barriers in order, or those that go straight on where the epochs are equal."""
    epochs, marks = (cut(left), cut(right)), [[x for x in word if x in BARRIERS] for word in (left, right)]
    pairs = [
        (i, j)
        for i, j in product(range(start[0], len(marks[0])), range(start[1], len(marks[1])))
        if marks[0][i] == marks[1][j]
    ]
    if straight and start in pairs and epochs[0][start[0]] == epochs[1][start[1]]:
        pairs = [start]
    else:
        yield []
    for i, j in pairs:
        following = (i + 1, j + 1)
        yield from ([following, *rest] for rest in ways(left, right, following, straight=straight))


def cost(left: str, right: str, way: Way, *, whole: bool) -> int:
    """What is unpaired on this way; while the sides are open, only what will not be answered any more."""
    epochs = cut(left), cut(right)
    total, place = 0, (0, 0)

    def unlike(end: tuple[int, int]) -> tuple[int, int]:
        lacking, surplus = (sum(epochs[side][place[side] : end[side]], Counter[str]()) for side in (0, 1))
        return (lacking - surplus).total(), (surplus - lacking).total()

    for following in way:
        skipped = following[0] - place[0] + following[1] - place[1] - 2
        total += BARRIER_COST * skipped + EVENT_COST * sum(unlike(following))
        place = following
    ahead = len(epochs[0]) - 1 - place[0], len(epochs[1]) - 1 - place[1]
    if whole or all(ahead):
        return total + BARRIER_COST * sum(ahead) + EVENT_COST * sum(unlike((len(epochs[0]), len(epochs[1]))))
    lacking, surplus = unlike((place[0] + 1, place[1] + 1))
    if not any(ahead):
        return total + EVENT_COST * min(lacking, surplus)
    side = 1 if ahead[0] else 0
    awaiting, going_on = (lacking, surplus)[side], unlike((len(epochs[0]), len(epochs[1])))[side]
    return total + min(EVENT_COST * awaiting, BARRIER_COST * sum(ahead) + EVENT_COST * going_on)


WORDS = ["".join(letters) for size in range(6) for letters in product("abE", repeat=size)]
FEW = [word for word in WORDS if word.count("E") <= 2 and word.count("b") <= 1]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("left", FEW[::7])
def test_barriers_are_paired_the_cheapest_way(left: str, whole: bool) -> None:
    for right in FEW[::5]:
        found = _Search((_cut(items(left)), _cut(items(right))), whole).path()
        possible = ways(left, right, straight=not whole)
        least = min(cost(left, right, way, whole=whole) for way in possible)
        assert cost(left, right, found, whole=whole) == least, (left, right)


ONCE = ["".join(word) for size in range(6) for word in permutations("aaEFGH", size)]


@pytest.mark.parametrize("left", sorted(set(ONCE))[::11])
def test_different_barriers_are_paired_the_cheapest_way(left: str) -> None:
    for right in sorted(set(ONCE))[::7]:
        found = _Search((_cut(items(left)), _cut(items(right))), True).path()
        least = min(cost(left, right, way, whole=True) for way in ways(left, right))
        assert cost(left, right, found, whole=True) == least, (left, right)


@pytest.mark.parametrize(("left", "right"), [("Ea", "FGa"), ("EHaHbH", "FGHaHbH")])
def test_barriers_behind_others_without_partners_have_theirs(left: str, right: str) -> None:
    for one, other in ((left, right), (right, left)):
        found = paired(one, other)
        assert {one[place] for place in found.rest[0]} | {other[place] for place in found.rest[1]} == set(
            "EFG"
        )


@pytest.mark.parametrize("limit", ["STEPS_LIMIT", "WORK_LIMIT"])
def test_when_there_is_no_cheap_way_barriers_are_paired_by_what_they_are(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epoch_pairing, limit, 0)
    pairing = paired("aFbEcE", "aFbEEc")
    assert sorted(pairing.pairs) == [(0, 0), (1, 1), (2, 2), (3, 3), (5, 4)]
    assert (pairing.rest[0], pairing.rest[1]) == ([4], [5])


def test_what_differs_behind_the_last_barrier_is_no_meeting() -> None:
    assert paired("aE", "bE", whole=False).clean == 1
    assert paired("a", "b", whole=False).clean == 0
    assert paired("Ea", "Eb", whole=False).clean == 1


def test_a_barrier_without_a_partner_that_one_side_only_has_come_to_is_no_meeting() -> None:
    assert paired("Eabcd", "FabcdE", whole=False).clean == 0
    assert paired("Eabcd", "Fabcd", whole=False).clean == 4
    assert paired("Eabcd", "abFcd", whole=False).clean == 2


def test_where_the_epoch_goes_on_behind_a_barrier_of_one_side_that_has_no_partner() -> None:
    """Two events behind it tell so; fewer are what the other side has written before its own."""
    for left, right in (("abcd", "aEbcd"), ("aEbcd", "abcd")):
        found = paired(left, right, whole=False)
        assert (sorted(map(len, found.rest)), len(found.pairs), found.clean) == ([0, 1], 4, 3)
    assert paired("aab", "aEb", whole=False).rest == ([1, 2], [])
