from __future__ import annotations

import pytest

from twinstream.core.accounting.recent_matches import BYTES, RecentMatches
from twinstream.core.events import Event, Form


def knows(recent: RecentMatches, content: bytes) -> bool:
    return recent.is_copy(Event(Form("", content, "event", content), 0, 0, 0, 0.0))


@pytest.mark.parametrize("asked", [False, True])
def test_of_large_contents_fewer_are_remembered(asked: bool) -> None:
    recent, large = RecentMatches(100_000, bytes), bytes(1 << 20)
    recent.note([b"old"])
    if asked:
        assert knows(recent, b"old")
    recent.note([large] * (2 * BYTES // len(large)))
    recent.trim()
    assert [knows(recent, content) for content in (b"old", large)] == [False, True]
    recent.note([b"small"] * 10_000)
    recent.trim()
    assert knows(recent, large)


def test_contents_whose_sizes_are_taken_for_larger_than_they_are_can_all_be_forgotten() -> None:
    recent, large = RecentMatches(100_000, bytes), bytes(BYTES // 40)
    recent.note([large if place % 4 == 0 else b"" for place in range(220)])
    recent.trim()
    recent.note([large])
    assert knows(recent, large)
