from __future__ import annotations

from zlib import crc32

import pytest

from twinstream.core.accounting.recent_matches import BYTES, SNAPSHOT_LIMIT, RecentMatches
from twinstream.core.events import Event, Form


class Recent(RecentMatches):
    """Asked for contents, each of which is a record."""

    def knows(self, content: bytes, *paired: bytes) -> bool:
        """Whether a content is a copy, also of those that are paired."""
        return self.is_copy(event(content), list(map(event, paired)))

    def restarted(self) -> Recent:
        fresh = Recent(self.limit, self.exact)
        fresh.restore(self.state())
        return fresh


def event(content: bytes) -> Event:
    return Event(Form("", content, "event", content), 0, 0, 0, 0.0)


def test_what_matched_is_known_in_any_representation() -> None:
    recent = Recent(10, bytes.lower)
    recent.note([b"A"])
    assert recent.knows(b"a")
    assert not recent.knows(b"b")


def test_the_oldest_matches_beyond_the_limit_are_forgotten() -> None:
    recent = Recent(2, bytes)
    recent.note([b"a", b"b"])
    assert recent.knows(b"a")
    recent.note([b"c"])
    assert [recent.knows(content) for content in (b"a", b"b", b"c")] == [False, True, True]


def test_a_copy_within_the_limit_keeps_a_content_known() -> None:
    recent = Recent(2, bytes)
    recent.note([b"a", b"a", b"b"])
    assert recent.knows(b"a")


def test_a_content_is_forgotten_with_the_last_of_its_copies() -> None:
    recent = Recent(2, bytes)
    known = []
    for content in (b"a", b"a", b"b", b"c"):
        recent.note([content])
        known.append(recent.knows(b"a"))
    assert known == [True, True, True, False]


def test_a_limit_of_nothing_remembers_nothing() -> None:
    recent = Recent(0, bytes)
    recent.note([b"a"])
    assert not recent.knows(b"a")
    assert recent.state() == []


def test_what_a_snapshot_kept_is_known_after_a_restart_and_after_the_next() -> None:
    recent = Recent(10, bytes)
    recent.note([b"a"])
    assert recent.knows(b"a")
    recent.note([b"b"])
    for _ in range(2):
        fresh = Recent(10, bytes)
        fresh.restore(recent.state())
        recent = fresh
    assert [recent.knows(content) for content in (b"a", b"b", b"c")] == [True, True, False]


@pytest.mark.parametrize("asked", [False, True])
def test_of_large_contents_fewer_are_remembered(asked: bool) -> None:
    recent, large = Recent(100_000, bytes), bytes(1 << 20)
    recent.note([b"old"])
    if asked:
        assert recent.knows(b"old")
    recent.note([large] * (2 * BYTES // len(large)))
    recent.trim()
    assert [recent.knows(content) for content in (b"old", large)] == [False, True]
    recent.note([b"small"] * 10_000)
    recent.trim()
    assert recent.knows(large)


def test_a_limit_of_nothing_calls_no_copy_of_what_is_paired_a_copy() -> None:
    assert Recent(1, bytes).knows(b"a", b"a")
    assert not Recent(0, bytes).knows(b"a", b"a")


def test_a_restart_forgets_no_copy_that_is_spelled_differently() -> None:
    recent, fresh = Recent(10, bytes.lower), Recent(10, bytes.lower)
    recent.note([b"A"])
    fresh.restore(recent.state())
    assert fresh.knows(b"a")


def test_checksums_of_an_older_version_call_nothing_a_copy() -> None:
    recent = Recent(10, bytes)
    recent.restore([crc32(b"a"), 7])
    assert not recent.knows(b"a")
    assert recent.state() == []


@pytest.mark.parametrize("limit", [1, 2, 3, SNAPSHOT_LIMIT])
def test_a_restart_behind_any_match_changes_nothing_that_is_known(limit: int) -> None:
    calm, shaken = Recent(limit, bytes), Recent(limit, bytes)
    for content in b"a", b"a", b"b", b"a", b"c", b"d", b"d", b"d", b"e":
        calm.note([content])
        shaken.note([content])
        shaken = shaken.restarted()
        asked = b"a", b"b", b"c", b"d", b"e"
        assert [shaken.knows(one) for one in asked] == [calm.knows(one) for one in asked]


def test_a_restart_makes_no_more_known_than_the_limit_allows() -> None:
    recent = Recent(2, bytes)
    recent.note([b"a", b"b"])
    recent = recent.restarted()
    recent.note([b"c"])
    assert [recent.knows(content) for content in (b"a", b"b", b"c")] == [False, True, True]
