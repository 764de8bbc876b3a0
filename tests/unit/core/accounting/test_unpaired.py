from __future__ import annotations

from twinstream.core.accounting.unpaired import Lookups, Unpaired
from twinstream.core.events import Side

LEFT, RIGHT = Side


def noted(*letters: str, limit: int = 10, limit_bytes: int = 1000) -> Unpaired[int]:
    """The left's strays with these letters, numbered from 0; each takes as many bytes as its number says."""
    strays = Unpaired[int](lambda number: number, limit, limit_bytes)
    for number, letter in enumerate(letters):
        strays.note(LEFT, keys(letter), number)
    return strays


def keys(letter: str, identity: str | None = None) -> Lookups:
    return Lookups(letter.encode(), identity)


def claim(strays: Unpaired[int], side: Side, letter: str) -> int | None:
    return strays.claim_equal(side, keys(letter), lambda _: True)


def test_of_equal_strays_the_oldest_is_claimed_first_and_each_once() -> None:
    strays = noted("a", "b", "a")
    assert [claim(strays, LEFT, "a") for _ in range(3)] == [0, 2, None]
    assert claim(strays, LEFT, "b") == 1
    assert len(strays) == 0


def test_a_stray_is_claimed_of_its_own_side_only() -> None:
    assert claim(noted("a"), RIGHT, "a") is None


def test_beyond_the_limit_the_oldest_are_forgotten() -> None:
    assert list(noted("a", "b", "a", "c", limit=3).all(LEFT)) == [1, 2, 3]


def test_beyond_the_limit_in_bytes_the_oldest_are_forgotten() -> None:
    strays = noted("a", "b", "a", "c", "d", limit_bytes=7)
    assert list(strays.all(LEFT)) == [3, 4]
    claim(strays, LEFT, "d")
    strays.note(LEFT, keys("e"), 4)
    assert list(strays.all(LEFT)) == [3, 4]
    strays.note(LEFT, keys("f"), 8)
    assert list(strays.all(LEFT)) == []
    assert claim(strays, LEFT, "f") is None


def test_what_was_claimed_makes_room() -> None:
    strays = noted("a", "b", limit=2)
    claim(strays, LEFT, "b")
    strays.note(LEFT, keys("c"), 2)
    assert list(strays.all(LEFT)) == [0, 2]


def test_whether_something_has_changed_is_told_once() -> None:
    strays = noted("a")
    assert [strays.take_changed() for _ in range(2)] == [True, False]
    claim(strays, LEFT, "b")
    assert not strays.take_changed()
    claim(strays, LEFT, "a")
    assert strays.take_changed()


def test_all_are_told_oldest_first_and_equal_ones_each() -> None:
    strays = noted("b", "a", "b", "a")
    assert list(strays.all(LEFT)) == [0, 1, 2, 3]
    claim(strays, LEFT, "b")
    assert list(strays.all(LEFT)) == [1, 2, 3]


def test_what_is_known_by_now_takes_the_place_of_what_was_known() -> None:
    strays = noted("a", "b", "a")
    strays.take_changed()
    strays.amend(lambda number: number * 10)
    assert list(strays.all(LEFT)) == [0, 10, 20]
    assert strays.take_changed()


def test_the_oldest_that_fits_is_claimed_and_those_that_do_not_are_kept() -> None:
    strays = noted("a", "a", "a")
    assert strays.claim_equal(LEFT, keys("a"), lambda number: number > 0) == 1
    assert list(strays.all(LEFT)) == [0, 2]


def test_a_stray_is_found_by_its_identity_too_and_gone_for_both_then() -> None:
    strays = Unpaired[int](lambda _: 1)
    for number, identity in enumerate(["i", "j", "i"]):
        strays.note(LEFT, keys("abc"[number], identity), number)
    assert strays.claim_named(LEFT, keys("x"), lambda _: True) is None
    assert strays.claim_named(LEFT, keys("x", "i"), lambda _: True) == 0
    assert claim(strays, LEFT, "a") is None
    assert claim(strays, LEFT, "c") == 2
    assert strays.claim_named(LEFT, keys("x", "i"), lambda _: True) is None


def test_those_that_are_done_are_taken_oldest_first() -> None:
    strays = noted("a", "b", "a", "c")
    assert strays.take(LEFT, lambda number: number % 2 == 0) == [0, 2]
    assert list(strays.all(LEFT)) == [1, 3]
