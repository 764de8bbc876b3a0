"""Differences over time: what the bins count is a function of the times alone."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from twinstream.grouping.found import BINS, TimesFound
from twinstream.status.comparison import FoundOverTime

NOW = 1_790_000_000
SECONDS = st.integers(0, 100) | st.integers(NOW, NOW + 50) | st.integers(NOW, NOW + 3_000_000)


def fed(seconds: list[int]) -> TimesFound:
    found = TimesFound()
    for second in seconds:
        found.add(datetime.fromtimestamp(second + 0.999, UTC))
    return found


def restarted(found: TimesFound) -> TimesFound:
    head = msgpack.unpackb(msgpack.packb(found.told().model_dump()))
    return TimesFound([FoundOverTime(**head)])


def plain(seconds: list[int]) -> FoundOverTime:
    """What the bins are by definition."""
    width = 1
    while max(seconds) // width - min(seconds) // width >= BINS:
        width *= 2
    counts = Counter(second // width for second in seconds)
    numbers = range(min(counts), max(counts) + 1)
    return FoundOverTime(
        width_seconds=width,
        begins=[number * width for number in numbers],
        counts=[counts[number] for number in numbers],
    )


@given(st.lists(SECONDS, min_size=1))
def test_bins_are_as_narrow_as_sixty_of_them_allow_and_count_each_difference_once(seconds: list[int]) -> None:
    told = fed(seconds).told()
    assert told == plain(seconds)
    assert len(told.counts) <= BINS
    assert sum(told.counts) == len(seconds)


@given(st.lists(SECONDS, min_size=1), st.lists(st.lists(SECONDS), max_size=3))
def test_several_matchers_count_together_what_one_would_count(
    first: list[int], others: list[list[int]]
) -> None:
    parts = [fed(seconds).told() for seconds in (first, *others)]
    assert TimesFound(parts).told() == plain([*first, *(one for part in others for one in part)])


@given(st.lists(SECONDS), st.lists(SECONDS, min_size=1))
def test_a_restart_changes_nothing(before: list[int], behind: list[int]) -> None:
    found = restarted(fed(before))
    for second in behind:
        found.add(datetime.fromtimestamp(second, UTC))
    assert found.told() == plain([*before, *behind])


def test_without_a_difference_there_is_no_bin() -> None:
    assert TimesFound([FoundOverTime(), TimesFound().told()]).told() == FoundOverTime()
