from __future__ import annotations

from twinstream.core.events import Side
from twinstream.core.strays import Strays

LEFT, RIGHT = Side


def noted(*letters: str, limit: int = 10, limit_bytes: int = 1000) -> Strays[int]:
    """The left's strays with these letters, numbered from 0; each takes as many bytes as its number says."""
    strays = Strays[int](lambda number: number, limit, limit_bytes)
    for number, letter in enumerate(letters):
        strays.note(LEFT, letter, number)
    return strays


def test_of_equal_strays_the_oldest_is_claimed_first_and_each_once() -> None:
    strays = noted("a", "b", "a")
    assert [strays.claim(LEFT, "a") for _ in range(3)] == [0, 2, None]
    assert strays.claim(LEFT, "b") == 1
    assert strays._waiting == ({}, {})


def test_a_stray_is_claimed_of_its_own_side_only() -> None:
    assert noted("a").claim(RIGHT, "a") is None


def test_beyond_the_limit_the_oldest_are_forgotten() -> None:
    assert list(noted("a", "b", "a", "c", limit=3).all(LEFT)) == [1, 2, 3]


def test_beyond_the_limit_in_bytes_the_oldest_are_forgotten() -> None:
    strays = noted("a", "b", "a", "c", "d", limit_bytes=7)
    assert list(strays.all(LEFT)) == [3, 4]
    strays.claim(LEFT, "d")
    strays.note(LEFT, "e", 4)
    assert list(strays.all(LEFT)) == [3, 4]
    strays.note(LEFT, "f", 8)
    assert list(strays.all(LEFT)) == []
    assert strays.claim(LEFT, "f") is None


def test_what_was_claimed_makes_room() -> None:
    strays = noted("a", "b", limit=2)
    strays.claim(LEFT, "b")
    strays.note(LEFT, "c", 2)
    assert list(strays.all(LEFT)) == [0, 2]


def test_whether_something_has_changed_is_told_once() -> None:
    strays = noted("a")
    assert [strays.take_changed() for _ in range(2)] == [True, False]
    strays.claim(LEFT, "b")
    assert not strays.take_changed()
    strays.claim(LEFT, "a")
    assert strays.take_changed()


def test_all_are_told_oldest_first_and_equal_ones_each() -> None:
    strays = noted("b", "a", "b", "a")
    assert list(strays.all(LEFT)) == [0, 1, 2, 3]
    strays.claim(LEFT, "b")
    assert list(strays.all(LEFT)) == [1, 2, 3]


def test_what_is_known_by_now_takes_the_place_of_what_was_known() -> None:
    strays = noted("a", "b", "a")
    strays.take_changed()
    strays.amend(lambda number: number * 10)
    assert list(strays.all(LEFT)) == [0, 10, 20]
    assert strays.take_changed()
