"""The day that the benchmark of growth replays, and what it makes of its samples."""

from collections import Counter

import pytest

from loadtest import day
from loadtest.growth import quarters, slope
from twinstream.core.events import Side

BLOCKS = 2 * day.LIFE_BLOCKS


def offsets_of(stream) -> list[tuple[int, int]]:
    return [(batch.partition, at) for batch in stream if batch is not None for at in batch.offsets]


@pytest.mark.parametrize("stream", [day.reference, day.candidate])
def test_offsets_have_no_gaps(stream):
    found = offsets_of(stream(BLOCKS))
    ends = Counter(partition for partition, _ in found)
    assert sorted(found) == [(partition, at) for partition in range(4) for at in range(ends[partition])]


def test_but_for_bugs_and_retries_both_sides_put_out_the_same():
    written = []
    for stream in (day.reference, day.candidate):
        batches = [batch for batch in stream(BLOCKS) if batch is not None]
        halves = {id(batch) for batch in batches if len(batch.records) < 900}
        written.append(Counter(row for batch in batches if id(batch) not in halves for row in batch.records))
        assert halves, "some tasks are run again"
    bugs = day.planted(BLOCKS)
    assert bugs == dict.fromkeys(day.BUG_KINDS, 1)
    missing, surplus = written[0] - written[1], written[1] - written[0]
    assert missing.total() == bugs["missing"] + bugs["changed"]
    assert surplus.total() == bugs["duplicate"] + bugs["changed"]


def test_the_slope_leaves_the_first_quarter_out():
    samples = [{"events": at * 1e6, "memory": 0.0 if at < 2 else 10.0 + at} for at in range(8)]
    assert slope(samples, "memory") == 1.0
    assert quarters([1.0, 3.0, 5.0, 5.0]) == [{"median": at, "peak": at} for at in (1.0, 3.0, 5.0, 5.0)]


def test_the_sides_are_those_of_the_comparison():
    assert {batch.side for batch in day.reference(1)} == {Side.LEFT}
    assert {batch.side for batch in day.candidate(1) if batch} == {Side.RIGHT}
