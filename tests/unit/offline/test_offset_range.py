"""A bounded stretch of two topics is read: what stood there, as far as asked, and nothing is waited for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from loadtest.memory import ManualClock, MemorySource
from twinstream.core.events import Side
from twinstream.errors import SettingsError, SourceError
from twinstream.offline.offset_range import ALL_OFFSETS, PATIENCE_SECONDS, Ranges, Recorded
from twinstream.ports import Gap, Item

NAMES = {Side.LEFT: "one", Side.RIGHT: "two"}


def filled(count: int, partitions: int = 1) -> MemorySource:
    source = MemorySource(partitions, batch=7)
    for side in Side:
        for n in range(count):
            source.append(side, n % partitions, b"%d" % n, n)
    return source


def read(source: MemorySource, ranges: Ranges | None = None, limit: int = 1000) -> tuple[list[bytes], bool]:
    recorded = Recorded(source, NAMES, ranges or {}, limit, ManualClock())
    found = [line.record or b"" for line in recorded.lines(Side.LEFT)]
    return found, Side.LEFT in recorded.cut


def test_what_stands_there_is_read_once_and_to_its_end() -> None:
    assert read(filled(20)) == ([b"%d" % n for n in range(20)], False)


def test_an_empty_topic_is_read_at_once() -> None:
    assert read(filled(0)) == ([], False)


def test_a_range_is_read_from_its_first_offset_up_to_below_its_end() -> None:
    assert read(filled(20), {Side.LEFT: {0: ALL_OFFSETS[5:9]}}) == ([b"5", b"6", b"7", b"8"], True)
    assert read(filled(20), {Side.LEFT: {0: ALL_OFFSETS[18:]}}) == ([b"18", b"19"], False)


def test_each_partition_is_read_up_to_its_share_of_the_limit() -> None:
    found, cut = read(filled(40, partitions=2), limit=10)
    assert sorted(int(record) for record in found) == list(range(10))
    assert cut


def test_what_comes_meanwhile_is_left() -> None:
    source = filled(5)
    recorded = Recorded(source, NAMES, {}, 1000, ManualClock())
    for n in range(5):
        source.append(Side.LEFT, 0, b"later %d" % n)
    assert len(list(recorded.lines(Side.LEFT))) == 5


def test_a_partition_that_is_not_there_is_named() -> None:
    with pytest.raises(SettingsError, match="topic one has no partition 3"):
        read(filled(5), {Side.LEFT: {3: ALL_OFFSETS}})


def wait_where_nothing_comes(source: MemorySource, clock: ManualClock) -> None:
    """Have a poll of a source that brings nothing take a quarter of the patience."""
    poll = source.poll

    def slow(side: Side, timeout: float) -> Sequence[Item]:
        items = poll(side, timeout)
        if not items:
            clock.advance(PATIENCE_SECONDS / 4)
        return items

    source.poll = slow  # type: ignore[assignment]


def test_lost_offsets_are_an_error() -> None:
    source = filled(20)
    recorded = Recorded(source, NAMES, {}, 1000, ManualClock())
    source.retain(Side.LEFT, 0, 10)
    with pytest.raises(SourceError, match=r"no longer has offsets 0–9 of one partition 0 \(reference\)"):
        list(recorded.lines(Side.LEFT))


def test_a_topic_that_is_deleted_while_it_is_read_is_named() -> None:
    source, clock = filled(20), ManualClock()
    recorded = Recorded(source, NAMES, {}, 1000, clock)
    lines = recorded.lines(Side.LEFT)
    next(lines)
    source.delete(Side.LEFT)
    wait_where_nothing_comes(source, clock)
    with pytest.raises(SourceError, match="topic LEFT: there is no such topic: nothing more can be read"):
        list(lines)


def test_lost_offsets_are_told_where_somebody_listens() -> None:
    source, told = filled(20), []
    recorded = Recorded(source, NAMES, {}, 1000, ManualClock(), told.append)
    source.retain(Side.LEFT, 0, 10)
    assert [line.record for line in recorded.lines(Side.LEFT)] == [b"%d" % n for n in range(10, 20)]
    assert told == [Gap(Side.LEFT, 0, 0, 10)]


def test_both_sides_come_in_step_by_the_time_of_their_records() -> None:
    lines = list(Recorded(filled(20), NAMES, {}, 1000, ManualClock()).in_step())
    assert [line.timestamp_ms for line in lines] == sorted(2 * list(range(20)))
    assert [line.position for line in lines] == list(range(1, 41))


def test_a_topic_that_brings_nothing_is_given_up() -> None:
    """What Kafka says is there may never come, as behind a transaction that stays open."""
    source, clock = filled(5), ManualClock()
    recorded = Recorded(source, NAMES, {}, 1000, clock)
    source.cut_off(Side.LEFT, 0, 3)
    wait_where_nothing_comes(source, clock)
    lines = recorded.lines(Side.LEFT)
    assert [next(lines).record for _ in range(3)] == [b"0", b"1", b"2"]
    clock.advance(2 * PATIENCE_SECONDS)  # whoever takes the lines takes his time
    with pytest.raises(
        SourceError, match="no record of one came for 30 s, and partition 0 is not read up to"
    ):
        next(lines)
    assert clock.monotonic() > 3 * PATIENCE_SECONDS


def test_a_partition_that_brings_nothing_is_given_up_beside_one_that_is_read_and_goes_on() -> None:
    source, clock = filled(10, partitions=2), ManualClock()
    recorded = Recorded(source, NAMES, {}, 1000, clock)
    source.cut_off(Side.LEFT, 1, 3)
    poll = source.poll

    def busy(side: Side, timeout: float) -> Sequence[Item]:
        items = poll(side, timeout)
        clock.advance(PATIENCE_SECONDS / 4)
        source.append(side, 0, b"more")
        return items

    source.poll = busy  # type: ignore[assignment]
    with pytest.raises(SourceError, match="partition 1 is not read up to offset 5"):
        list(recorded.lines(Side.LEFT))
