"""What a version says of its progress, and what of it holds."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from twinstream.core.clocks.input import PENDING_LIMIT, Finished, InputProgress, WaitsFor
from twinstream.core.events import Side

LEFT, RIGHT = Side
IN = ("clicks", 0)


def finished(
    batch: int,
    consumed: int = 0,
    written: Mapping[int, int] | None = None,
    watermark: int | None = None,
    *,
    query: str = "q",
    run: str = "r",
    place: tuple[str, int] = IN,
) -> Finished:
    return Finished(query, run, batch, {place: consumed}, watermark, {} if written is None else written)


def progress(*facts: Finished, read: Mapping[int, int] | None = None) -> InputProgress:
    """What the left has said, with its output read up to `read`."""
    made = InputProgress()
    for fact in facts:
        assert made.note(LEFT, fact) is None
    made.read(LEFT, read or {})
    return made


def test_only_what_a_version_has_named_is_consumed() -> None:
    made = progress(finished(0, consumed=10))
    assert (made.consumed(LEFT), made.consumed(RIGHT)) == ({IN: 10}, {})


def test_a_record_holds_once_every_partition_is_read_up_to_what_was_written() -> None:
    made = progress(finished(0, consumed=10, written={0: 3, 1: 2}), read={0: 3, 1: 1})
    assert made.consumed(LEFT) == {}
    assert list(made.awaited(LEFT, {0: 3, 1: 1})) == [WaitsFor("q", 0, 1, 2, 1)]
    assert made.read(LEFT, {0: 3, 1: 2}) == [("q", 0)]
    assert made.consumed(LEFT) == {IN: 10}
    assert list(made.awaited(LEFT, {0: 3, 1: 2})) == []


def test_a_batch_that_was_heard_of_says_nothing_new() -> None:
    made = progress(finished(3, 30), finished(3, 99), finished(2, 99))
    assert made.consumed(LEFT) == {IN: 30}


def test_a_record_that_names_another_topic_only_does_not_count() -> None:
    made = InputProgress()
    assert made.note(LEFT, Finished("q", "r", 0, {IN: 10}, None, None)) is None
    made.read(LEFT, {})
    assert not made.queries(LEFT)
    assert made.consumed(LEFT) == {}


# -- windows -----------------------------------------------------------------------------------------------


def test_a_watermark_counts_once_a_later_batch_holds() -> None:
    made = progress(finished(0, watermark=100))
    assert made.watermark_ms(LEFT) is None
    made.note(LEFT, finished(1, watermark=200))
    made.read(LEFT, {})
    assert made.watermark_ms(LEFT) == 100


def test_a_watermark_does_not_count_while_the_later_batch_is_not_read() -> None:
    made = progress(finished(0, watermark=100), finished(1, written={0: 1}, watermark=200))
    assert made.watermark_ms(LEFT) is None


def test_a_batch_that_is_done_again_is_no_later_one() -> None:
    made = progress(finished(0, watermark=100))
    made.note(LEFT, finished(0, watermark=100, run="s"))
    assert made.read(LEFT, {}) == [("q", 0)]
    assert made.watermark_ms(LEFT) is None
    made.note(LEFT, finished(1, watermark=100, run="s"))
    made.read(LEFT, {})
    assert made.watermark_ms(LEFT) == 100


def test_a_query_without_a_watermark_has_none_and_does_not_hold_others_back() -> None:
    facts = [finished(batch, watermark=100 * batch) for batch in range(3)]
    made = progress(*facts, finished(9, query="other", place=("views", 0)))
    assert made.watermark_ms(LEFT) == 100


# -- runs and queries --------------------------------------------------------------------------------------


def test_the_newest_run_of_a_query_is_heard() -> None:
    made = progress(finished(3, 30), finished(3, 31, run="s"), finished(4, 99), finished(4, 41, run="s"))
    assert made.consumed(LEFT) == {IN: 41}


@pytest.mark.parametrize("late", [finished(2, 30, {0: 5}, run="s"), finished(3, 30, {0: 5}, run="s")])
def test_a_run_that_goes_back_takes_nothing_back_and_silences_nobody(late: Finished) -> None:
    facts = finished(3, 99, {0: 10}), late
    assert progress(*facts, read={0: 10}).consumed(LEFT) == {IN: 99}
    assert progress(*facts, finished(4, 120, {0: 11}), read={0: 11}).consumed(LEFT) == {IN: 120}
    assert progress(*facts, finished(4, 120, {0: 11}, run="s"), read={0: 11}).consumed(LEFT) == {IN: 120}


def test_of_several_queries_the_smallest_counts() -> None:
    made = progress(finished(0, 10), finished(0, 5, query="p"))
    assert made.consumed(LEFT) == {IN: 5}


def test_a_query_whose_record_does_not_hold_yet_holds_the_others_back() -> None:
    made = progress(finished(0, 10), finished(0, 20, {0: 1}, query="p"))
    assert made.consumed(LEFT) == {IN: 0}


def test_queries_of_other_input_do_not_hold_back() -> None:
    made = progress(finished(0, 10), finished(0, 5, query="p", place=("views", 0)))
    assert made.consumed(LEFT) == {IN: 10, ("views", 0): 5}


def test_a_query_that_reads_other_partitions_of_a_topic_holds_it_back() -> None:
    made = progress(finished(0, 10), finished(0, 5, query="p", place=("clicks", 1)))
    assert made.consumed(LEFT) == {IN: 0, ("clicks", 1): 0}


def test_a_lower_batch_under_a_new_query_is_a_re_creation() -> None:
    made = progress(finished(7, 70))
    reason = made.note(LEFT, finished(0, 3, query="p"))
    assert reason is not None
    assert reason.startswith("query p begins at batch 0, while query q of this version had reached batch 7")
    made.read(LEFT, {})
    assert made.consumed(LEFT) == {IN: 3}


def test_a_new_query_of_other_input_is_no_re_creation() -> None:
    made = progress(finished(7, 70))
    assert made.note(LEFT, finished(0, 3, query="p", place=("views", 0))) is None


def test_queries_that_begin_together_are_no_re_creation() -> None:
    made = progress(finished(0, 70))
    assert made.note(LEFT, finished(0, 3, query="p")) is None
    assert made.note(RIGHT, finished(0, 3, query="x")) is None


@pytest.mark.parametrize("count", [PENDING_LIMIT + 1, 3 * PENDING_LIMIT])
def test_records_that_wait_for_long_are_bounded(count: int) -> None:
    facts = [finished(batch, batch, {0: batch}) for batch in range(count)]
    made = progress(*facts)
    assert len(made._sides[LEFT]["q"].pending) <= PENDING_LIMIT
    made.read(LEFT, {0: len(facts)})
    assert made.consumed(LEFT) == {IN: len(facts) - 1}


def test_a_restored_progress_goes_on_as_the_old_one() -> None:
    old, fresh = InputProgress(), InputProgress()
    for fact in (finished(0, 10, watermark=5), finished(1, 20, {0: 4}, 7), finished(2, 1, query="p")):
        old.note(LEFT, fact)
    old.read(LEFT, {0: 3})
    fresh.restore(old.state())
    assert fresh.state() == old.state()
    for each in (old, fresh):
        assert each.read(LEFT, {0: 4}) == [("q", 1)]
        assert each.note(LEFT, finished(1, 99, query="p")) is None
    assert fresh.consumed(LEFT) == old.consumed(LEFT) == {IN: 1}
    assert fresh.watermark_ms(LEFT) == old.watermark_ms(LEFT) == 5
