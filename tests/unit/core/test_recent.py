from __future__ import annotations

import pytest

from twinstream.core.recent import BYTES, RecentMatches


def test_what_matched_is_known_in_any_representation() -> None:
    recent = RecentMatches(10, bytes.lower)
    recent.note([b"A"])
    assert recent.has(b"a")
    assert not recent.has(b"b")


def test_the_oldest_matches_beyond_the_limit_are_forgotten() -> None:
    recent = RecentMatches(2, bytes)
    recent.note([b"a", b"b"])
    assert recent.has(b"a")
    recent.note([b"c"])
    assert [recent.has(content) for content in (b"a", b"b", b"c")] == [False, True, True]


def test_a_copy_within_the_limit_keeps_a_content_known() -> None:
    recent = RecentMatches(2, bytes)
    recent.note([b"a", b"a", b"b"])
    assert recent.has(b"a")


def test_a_content_is_forgotten_with_the_last_of_its_copies() -> None:
    recent = RecentMatches(2, bytes)
    known = []
    for content in (b"a", b"a", b"b", b"c"):
        recent.note([content])
        known.append(recent.has(b"a"))
    assert known == [True, True, True, False]


def test_a_limit_of_nothing_remembers_nothing() -> None:
    recent = RecentMatches(0, bytes)
    recent.note([b"a"])
    assert not recent.has(b"a")
    assert recent.snapshot() == []


def test_what_a_snapshot_kept_is_known_after_a_restart_and_after_the_next() -> None:
    recent = RecentMatches(10, bytes)
    recent.note([b"a"])
    assert recent.has(b"a")
    recent.note([b"b"])
    for _ in range(2):
        fresh = RecentMatches(10, bytes)
        fresh.restore(recent.snapshot())
        recent = fresh
    assert [recent.has(content) for content in (b"a", b"b", b"c")] == [True, True, False]


@pytest.mark.parametrize("asked", [False, True])
def test_of_large_contents_fewer_are_remembered(asked: bool) -> None:
    recent, large = RecentMatches(100_000, bytes), bytes(1 << 20)
    recent.note([b"old"])
    if asked:
        assert recent.has(b"old")
    recent.note([large] * (2 * BYTES // len(large)))
    recent.trim()
    assert [recent.has(content) for content in (b"old", large)] == [False, True]
    recent.note([b"small"] * 10_000)
    recent.trim()
    assert recent.has(large)
