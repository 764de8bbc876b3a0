"""What is copied of two topics, and what is not."""

from __future__ import annotations

import orjson
import pytest

from tests.support.drilled import record, rides, spec_with
from twinstream.core.events import Side
from twinstream.drill.copies import in_order, lines_of, stretch_of
from twinstream.errors import SettingsError
from twinstream.spec.drills import DrillRecord


def test_events_that_only_one_side_has_at_its_ends_are_left_out() -> None:
    every = rides(100)
    found = stretch_of(spec_with(), every[:-3], every[5:])
    assert found.alone is None
    assert found.pair.reference == found.pair.candidate == every[5:-3]


def test_of_equal_events_the_latest_are_kept() -> None:
    spec = spec_with("unordered")
    every = [record(n, {"k": n % 2}) for n in range(60)]
    found = stretch_of(spec, every, every[20:])
    assert found.pair.reference == every[20:]


def test_a_candidate_that_differs_already_is_left_alone() -> None:
    swapped = rides(100)
    swapped[40], swapped[44] = swapped[44], swapped[40]
    found = stretch_of(spec_with(), rides(100), swapped)
    assert found.alone is not None
    assert found.alone.startswith("the outputs differ")
    assert found.pair.candidate == rides(100)


def test_a_candidate_that_is_far_behind_is_left_alone() -> None:
    found = stretch_of(spec_with(), rides(100), rides(30))
    assert found.alone == "the sides have only 30 of the last 100 events in common"
    assert found.pair.candidate == rides(100)


def test_topics_without_events_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"^topic rides.v1 has no record to copy: drill when"):
        stretch_of(spec_with(), [], [])


def test_a_few_events_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"rides.v1: the sides have only 5 of .* and 20 are needed$"):
        stretch_of(spec_with(), rides(5), rides(5))


def test_records_of_which_none_is_an_event_are_refused_with_the_reason() -> None:
    broken = [record(n, b"{") for n in range(30)]
    said = r"rides.v1: none is an event of this comparison, the first one because: .*JSON"
    with pytest.raises(SettingsError, match=said):
        stretch_of(spec_with(), broken, broken)


def test_sides_in_formats_of_their_own_have_no_stand_in() -> None:
    spec = spec_with("unordered", "decode: {format: json}\n").model_copy()
    own = spec.candidate.model_copy(update={"decode": spec.decode.model_copy(update={"format": "msgpack"})})
    with pytest.raises(SettingsError, match=r"since the sides have only 0 .* format of its own$"):
        stretch_of(spec.model_copy(update={"candidate": own}), rides(50), rides(50))


def test_records_that_are_left_out_by_rule_are_copied_and_those_that_are_no_event_are_not() -> None:
    spec = spec_with("unordered", "kinds: {beat: {where: {k: 9}, ignore: true}, ride: {}}\n")
    beat, broken = record(50, {"k": 9}), record(51, b"{")
    found = stretch_of(spec, [*rides(50), beat, broken], [*rides(50), beat, broken])
    assert found.pair.reference == [*rides(50), beat]


def test_partitions_are_joined_by_time_and_each_keeps_its_order() -> None:
    late = DrillRecord(0, 0, 5000, None, [], b"late")
    earlier = DrillRecord(0, 1, 1000, None, [], b"written later, with an earlier time")
    other = DrillRecord(1, 0, 3000, None, [], b"other")
    assert in_order([other, late, earlier]) == [other, late, earlier]


def test_a_burst_whose_times_fall_on_two_sides_of_a_millisecond_has_one_order_on_both_sides() -> None:
    def burst(later: int) -> list[DrillRecord]:
        """Two partitions by turns, a hundred records a millisecond."""
        stamp = 1_700_000_000_000
        return [
            record(n, {"k": n % 4, "n": n}, partition=n % 2)._replace(timestamp_ms=stamp + (n + later) // 100)
            for n in range(400)
        ]

    found = stretch_of(spec_with(), burst(0), burst(50))
    reference, candidate = ([record.offset for record in side] for side in found.pair)
    assert reference == candidate


def test_where_each_partition_has_barriers_all_begin_with_the_same_one() -> None:
    spec = spec_with(
        "{barrier: day, inner: unordered, copies: per_partition}",
        "kinds: {day: {where: {k: day}}, ride: {}}\n",
    )

    def ride(n: int, partition: int) -> DrillRecord:
        return record(n, {"k": 1, "n": n * 2 + partition}, partition=partition)

    def day(n: int, number: int, partition: int) -> DrillRecord:
        return record(n, {"k": "day", "n": number}, partition=partition)

    zero = [ride(0, 0), day(1, 1, 0), *(ride(n, 0) for n in range(2, 30)), day(30, 2, 0), ride(31, 0)]
    one = [*(ride(n, 1) for n in range(2, 30)), day(30, 2, 1), *(ride(n, 1) for n in range(31, 60))]
    found = stretch_of(spec, [*zero, *one], [*zero, *one])
    firsts = {part: next(r for r in found.pair.reference if r.partition == part) for part in (0, 1)}
    assert [orjson.loads(first.value or b"")["n"] for first in firsts.values()] == [2, 2]


def test_lines_have_the_offsets_that_the_copies_will_have() -> None:
    those = [record(7, {"k": 1}), record(9, {"k": 1}), record(8, {"k": 9}, partition=1)]
    found = stretch_of(spec_with(), [*rides(40), *those], [*rides(40), *those])
    lines = [line for line in lines_of(spec_with(), found.pair) if line.side is Side.RIGHT]
    offsets = [[line.offset for line in lines if line.partition == partition] for partition in (0, 1)]
    assert offsets == [list(range(42)), [0]]
