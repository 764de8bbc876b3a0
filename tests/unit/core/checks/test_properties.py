"""Each property by itself: what it cannot judge, what it forgets, and what it says of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from twinstream.core.checks import closed_windows
from twinstream.core.checks.ascending import Ascending
from twinstream.core.checks.closed_windows import SILENCE_MS, ClosedWindows
from twinstream.core.checks.key_partition import KeyPartition, key_hash
from twinstream.core.checks.once import Once
from twinstream.core.checks.property import BARRIER, Finding, Property, Row
from twinstream.core.checks.settled_keys import GONE, SettledKeys
from twinstream.core.checks.watermark import NOTHING_HEARD, NeverBack
from twinstream.core.clocks.input import Finished


def taken(judge: Property, *facts: Any, partition: int = 0, first: int = 0) -> list[Finding]:
    """What is found in rows with these facts, one millisecond after the other."""
    rows = (Row(partition, first + n, first + n, fact) for n, fact in enumerate(facts))
    return [finding for row in rows if (finding := judge.take(row)) is not None]


def finished(
    batch: int, watermark: int | None, written: dict[int, int] | None = None, **more: Any
) -> Finished:
    one = {"query": "q", "run": "r", "consumed": {}, **more}
    return Finished(batch=batch, watermark_ms=watermark, written={} if written is None else written, **one)


def heard(judge: Property, facts: Iterable[Finished]) -> list[Finding]:
    return [finding for fact in facts for finding in judge.hear(fact)]


# -- once --------------------------------------------------------------------------------------------------


def test_a_second_row_names_the_first() -> None:
    (finding,) = taken(Once(100, 10), b"a", b"b", b"a")
    assert finding == Finding(0, 2, "is a second one of its key, after that at offset 0 of partition 0")


def test_a_row_further_away_than_the_horizon_is_another_one_in_either_direction() -> None:
    once = Once(100, 10)
    rows = [Row(0, 0, 1000, b"a"), Row(0, 1, 1101, b"a"), Row(0, 2, 1001, b"a"), Row(0, 3, 900, b"a")]
    assert [once.take(row) is None for row in rows] == [True, True, False, True]


def test_a_row_that_may_be_a_second_one_of_a_forgotten_key_is_a_doubt() -> None:
    (finding,) = taken(Once(100, 2), b"a", b"b", b"c", b"a")
    assert finding.doubt
    assert (finding.offset, "`keys` (2)" in finding.text) == (3, True)


def test_keys_beyond_the_horizon_of_all_partitions_are_forgotten_without_a_doubt() -> None:
    once = Once(100, 1_000_000)
    once.expect(2)
    for n in range(1000):
        for partition in range(2):
            assert once.take(Row(partition, n, n * 50, b"%d/%d" % (n, partition))) is None
    assert len(once.state(whole=True)["memory"]["keys"]) < 20


def test_an_idle_partition_holds_back_what_is_forgotten() -> None:
    once = Once(100, 1_000_000)
    once.expect_rows(2)
    assert taken(once, *(b"%d" % n for n in range(1000))) == []
    assert len(once.state(whole=True)["memory"]["keys"]) == 1000


# -- ascending ---------------------------------------------------------------------------------------------


def test_equal_values_ascend_and_numbers_are_exact() -> None:
    judge = Ascending("n", 10)
    assert taken(judge, (b"k", 2**70), (b"k", 2**70), (b"k", 2**70 + 1)) == []
    (finding,) = taken(judge, (b"k", 2**70), first=3)
    assert finding == Finding(0, 3, "has a smaller `n` than that at offset 2 of partition 0")


def test_without_a_key_each_partition_ascends_by_itself() -> None:
    judge = Ascending("n", 10)
    assert taken(judge, (None, 5), partition=0) + taken(judge, (None, 3), partition=1) == []
    assert [finding.offset for finding in taken(judge, (None, 4), partition=0, first=1)] == [1]


@pytest.mark.parametrize(
    ("fact", "partition", "text"),
    [
        ((b"k", 6), 1, "are of one key in two partitions, between which there is no order"),
        ((b"k", "6"), 0, "have a text and a number in `n`"),
    ],
)
def test_what_has_no_order_is_a_doubt(fact: Any, partition: int, text: str) -> None:
    judge = Ascending("n", 10)
    taken(judge, (b"k", 5))
    (finding,) = taken(judge, fact, partition=partition, first=1)
    assert finding.doubt
    assert finding.text == f"and that at offset 0 of partition 0 {text}"


def test_a_deletion_in_another_partition_ends_nothing_for_certain() -> None:
    judge = Ascending("n", 10)
    taken(judge, (b"k", 5))
    (finding,) = taken(judge, (b"k", None), partition=1)
    assert finding.doubt


# -- final_after_settled -----------------------------------------------------------------------------------


def test_only_another_value_of_a_key_that_a_barrier_has_settled_is_found() -> None:
    rows = [(b"k", b"1"), (b"k", b"2"), BARRIER, (b"k", b"2"), (b"j", b"1"), (b"k", b"3"), (b"k", b"2")]
    (finding,) = taken(SettledKeys(10), *rows)
    text = "has another value for a key that a barrier has settled, with the row at offset 1 of its partition"
    assert finding == Finding(0, 5, text)


def test_the_deletion_of_a_settled_key_is_another_value_and_one_before_settles_nothing() -> None:
    judge = SettledKeys(10)
    assert taken(judge, (b"k", b"1"), (b"k", GONE), BARRIER, (b"k", b"2"), BARRIER) == []
    (finding,) = taken(judge, (b"k", GONE), first=5)
    assert finding.text.startswith("deletes a key that a barrier has settled")
    assert len(taken(judge, BARRIER, (b"k", GONE), (b"k", b"2"), first=6)) == 1


def test_a_barrier_settles_the_keys_of_its_own_partition() -> None:
    judge = SettledKeys(10)
    taken(judge, (b"k", b"1"), partition=1)
    assert taken(judge, BARRIER) + taken(judge, (b"k", b"2"), partition=1, first=1) == []
    (finding,) = taken(judge, (b"k", b"3"), first=1)
    apart = "are of one key in two partitions, between which there is no order"
    assert (finding.doubt, finding.text) == (True, f"and that at offset 1 of partition 1 {apart}")


# -- key_partition -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_is_hashed_as_kafkas_own_tests_say(key: bytes, hashed: int) -> None:
    assert key_hash(key) == hashed & 0x7FFFFFFF


def test_a_row_without_a_key_and_one_elsewhere_are_found() -> None:
    judge = KeyPartition(None, 10)
    assert judge.unsettled() is not None
    judge.expect(4)
    assert judge.unsettled() is None
    found = taken(judge, (None, b"a"), (8, b"b"), (9, b"c"))
    assert found == [Finding(0, 0, "has no key"), Finding(0, 2, "has a key of partition 1")]


def test_one_value_in_two_partitions_is_found_where_each_lies_by_its_key() -> None:
    judge = KeyPartition(4, 10)
    taken(judge, (8, b"a"))
    (finding,) = taken(judge, (9, b"a"), partition=1, first=1)
    assert finding.text == "has the value of that at offset 0 of partition 0"


# -- closed_windows ----------------------------------------------------------------------------------------


def test_a_late_row_is_found_at_once_where_the_records_are_known() -> None:
    judge = ClosedWindows()
    heard(judge, [finished(0, 100), finished(1, 200, {0: 0})])
    assert list(judge.look({0: 0})) == []
    assert [finding.offset for finding in taken(judge, 101, 100)] == [1]


@pytest.mark.parametrize("empty", [{}, {0: 0}])
def test_before_its_first_row_a_partition_need_not_be_named(empty: dict[int, int]) -> None:
    judge = ClosedWindows()
    heard(judge, [finished(0, 100, {1: 1}), finished(1, 200, {**empty, 1: 1}), finished(2, 200, {1: 1})])
    assert list(judge.look({0: 0, 1: 1})) == []
    fresh = ClosedWindows()
    fresh.restore(judge.state(whole=True))
    for each in (judge, fresh):
        assert [finding.offset for finding in taken(each, 201, 200)] == [1]


def test_a_row_that_is_read_before_its_partition_is_named_is_judged_by_the_records_before_it() -> None:
    judge = ClosedWindows()
    assert taken(judge, 100, 101) == []
    heard(judge, [finished(0, 100), finished(1, 200), finished(2, 200, {0: 2})])
    assert [finding.offset for finding in judge.look({0: 2})] == [0]


def test_a_partition_that_is_not_named_any_more_tells_nothing_new() -> None:
    judge = ClosedWindows()
    heard(judge, [finished(0, 100), finished(1, 200, {0: 1}), finished(2, 300), finished(3, 300)])
    assert list(judge.look({0: 1})) == []
    assert taken(judge, 101, first=1) == []


def test_a_state_that_an_earlier_version_has_saved_goes_on_with_the_next_record() -> None:
    judge, fresh = ClosedWindows(), ClosedWindows()
    heard(judge, [finished(0, 100), finished(1, 200)])
    assert list(judge.look({})) == []
    state = judge.state(whole=True)
    del state["closed_elsewhere_ms"]
    fresh.restore(state)
    assert taken(fresh, 100) == []
    heard(fresh, [finished(2, 200)])
    assert [finding.offset for finding in fresh.look({0: 1})] == [0]


def test_a_batch_that_is_done_again_closes_nothing_more() -> None:
    judge = ClosedWindows()
    again = [finished(0, 100), finished(1, 200, {0: 2}), finished(1, 200, {0: 4}, run="s")]
    heard(judge, again)
    assert taken(judge, 150, 150, 150, 150, 150) == []
    assert list(judge.look({0: 5})) == []


def test_records_of_an_earlier_run_and_of_other_topics_say_nothing() -> None:
    judge = ClosedWindows()
    records = [finished(0, 100), finished(1, 100, {0: 0}, run="s"), finished(9, 900, {0: 0})]
    heard(judge, [*records, finished(10, 900, {0: 0}, run="s")._replace(written=None)])
    assert list(judge.look({0: 0})) == []
    assert taken(judge, 101, 900) == []


def test_a_row_behind_a_batch_without_a_watermark_is_late_by_the_watermark_before_it() -> None:
    judge = ClosedWindows()
    heard(judge, [finished(0, 100, {0: 1}), finished(1, None, {0: 2}), finished(2, 100, {0: 3})])
    taken(judge, 500, 500, 100)
    assert [finding.offset for finding in judge.look({0: 3})] == [2]


def test_a_query_without_a_watermark_is_none_of_several() -> None:
    judge = ClosedWindows()
    heard(judge, [finished(0, 100), finished(7, None, {0: 0}, query="other"), finished(1, 200, {0: 1})])
    assert list(judge.look({0: 1})) == []
    assert taken(judge, 100, 101) == [Finding(0, 0, "is of a window that was closed")]
    assert judge.unsettled() is None


def test_without_records_with_several_queries_and_in_silence_it_is_undecided() -> None:
    judge = ClosedWindows()
    heard(judge, [finished(0, None)])
    assert judge.unsettled() == f"{NOTHING_HEARD}, and has a watermark"
    heard(judge, [finished(0, 100, {0: 1}), finished(1, 100, {0: 1})])
    assert (judge.unsettled() or "").startswith("no control record of this version has taken effect")
    list(judge.look({0: 1}))
    judge.take(Row(0, 0, 0, 500))
    judge.take(Row(0, 1, SILENCE_MS, 500))
    assert judge.unsettled() is None
    judge.take(Row(0, 2, SILENCE_MS + 1, 500))
    assert judge.unsettled() == "rows of more than 5 min wait for the control record of their batch"
    heard(judge, [finished(0, 100, query="other")])
    assert "several queries" in (judge.unsettled() or "")


@pytest.mark.parametrize(
    ("limit", "text"), [("WAITING_LIMIT", "more than 3 rows"), ("EDGES_LIMIT", "more than 3 control")]
)
def test_what_waits_is_bounded_and_what_is_lost_is_said(
    monkeypatch: pytest.MonkeyPatch, limit: str, text: str
) -> None:
    monkeypatch.setattr(closed_windows, limit, 3)
    judge, restored = ClosedWindows(), ClosedWindows()
    taken(judge, *([500] * 4))
    heard(judge, [finished(batch, 100, {0: 100}) for batch in range(4)])
    assert (judge.unsettled() or "").startswith(text)
    restored.restore(judge.state(whole=True))
    assert restored.unsettled() == judge.unsettled()


# -- watermark ---------------------------------------------------------------------------------------------


def test_queries_go_by_themselves_and_earlier_runs_and_repeated_batches_are_passed_over() -> None:
    judge = NeverBack()
    facts = [finished(5, 100), finished(0, 10, query="other"), finished(5, 90), finished(5, 100, run="s")]
    assert heard(judge, [*facts, finished(6, 20)]) == []
    assert len(heard(judge, [finished(6, 99, run="s")])) == 1
