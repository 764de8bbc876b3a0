"""The clock of the input settles a key when both rows show it after the same input, and not before."""

from __future__ import annotations

import pytest

from tests.support.streams import LEFT, record
from tests.support.tables import Pair
from twinstream.core.clocks.input import Effect
from twinstream.core.events import Event, Form
from twinstream.core.tables import by_input, settled
from twinstream.core.tables.by_input import ByInput
from twinstream.core.tables.declared import Step
from twinstream.core.tables.rows import PendingRows, Row


@pytest.fixture(params=[False, True], ids=["", "restarted behind every step"])
def pair(request: pytest.FixtureRequest) -> Pair:
    return Pair(restarts=request.param)


def test_rows_of_one_prefix_are_compared_when_both_versions_have_consumed_it(pair: Pair) -> None:
    assert pair.go_on("L:a=1 L!10 R:a=1") == (0, [], [[0], [0]])
    assert pair.go_on("R!7") == (0, [], [[0], [0]])
    assert pair.go_on("R!12") == (1, [], [[], []])


def test_a_row_behind_the_end_of_a_batch_belongs_to_the_next_one(pair: Pair) -> None:
    # The second row of the left is of the next batch, which is not finished.
    assert pair.go_on("L:a=1 R:a=1 L:a=2 R!10 L!10/1") == (0, [], [[1], [0]])
    assert pair.go_on("L!20 R:a=2 R!20") == (1, [], [[], []])
    assert pair.superseded() == [1, 1]


def test_a_key_that_changes_before_the_other_side_has_caught_up_stays_pending(pair: Pair) -> None:
    words = (f"L:a={at} L!{at} R:a={at + 5} R!{at + 5}" for at in range(10, 100, 10))
    assert pair.go_on(" ".join(words)) == (0, [], [[8], [8]])
    survey = pair.driver.look()
    assert survey.first_open == ({0: 0}, {0: 0}), "verified is what lies before the first row of the key"


def test_a_deletion_is_compared_only_where_the_table_had_the_key(pair: Pair) -> None:
    assert pair.go_on("L:a=1 L:a=- L!10 R!10") == (0, [], [[], []])
    assert pair.go_on("L:a=2 L!20 R:a=2 R!20 L:a=- L!30 R!30") == (1, ["missing"], [[], []])


def test_a_row_of_one_side_that_both_then_delete_leaves_nothing_behind(pair: Pair) -> None:
    assert pair.go_on("R:a=5 R!5 L!6 L:a=- R:a=- L!9 R!9") == (0, ["extra"], [[], []])


def test_a_row_that_says_what_the_table_holds_changes_nothing(pair: Pair) -> None:
    assert pair.go_on("L:a=1 L!10 R:a=1 R!10 R:a=1 L!20 R!20") == (1, [], [[], []])
    assert pair.superseded() == [0, 1]


def test_a_second_query_of_a_version_is_a_hole(pair: Pair) -> None:
    pair.go_on("L:a=1 L!10")
    pair.finish(LEFT, 20, query="another")
    assert ["two queries" in hole.reason for hole in pair.driver.comparison.holes] == [True]


def test_a_row_on_one_side_of_a_key_settled_too_long_ago_is_unclear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settled.Settled.__init__, "__defaults__", (2,))
    pair = Pair()
    pair.go_on("L:a=1,b=1,c=1 R:a=1,b=1,c=1 L!10 R!10")
    assert pair.go_on("L:a=1 L!20 R!20") == (3, [], [[], []])
    assert not pair.driver.comparison.diverged
    assert ["not among the last" in hole.reason for hole in pair.driver.comparison.holes] == [True]


def test_a_key_in_two_partitions_of_a_side_is_a_hole(pair: Pair) -> None:
    pair.go_on("L:a=1")
    pair.driver.feed(LEFT, [record({"k": "a", "v": 2})], partition=1)
    pair.go_on("L!10 R!10")
    assert ["two partitions" in hole.reason for hole in pair.driver.comparison.holes] == [True]


def test_a_row_whose_batch_is_finished_counts_no_more_when_a_newer_one_has_come(pair: Pair) -> None:
    assert pair.go_on("L:a=1 L!10 L:a=2 R:a=1 R!10") == (0, [], [[1], [0]])


def test_a_side_that_stands_still_costs_no_memory_for_rows_that_were_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(by_input, "SLACK", 3)
    pair = Pair()
    pair.go_on("L:once=1 " + " ".join(f"L:often={batch} L!{batch}" for batch in range(100)))
    tables = pair.driver.comparison.tables
    assert tables is not None
    consumed, groups = tables.state(whole=True)["batches"][LEFT]
    assert consumed == [["in", 0, 99]]
    assert 2 <= len(groups) <= 7, "one for each pending row, and a few more"
    assert pair.go_on("R:once=1,often=99 R!99") == (2, [], [[], []])


def test_a_row_for_no_input_at_all_waits_for_the_first_batch_of_the_other_side(pair: Pair) -> None:
    assert pair.go_on("L:total=0 L!0") == (0, [], [[0], []])
    assert pair.go_on("R:total=0 R!0") == (1, [], [[], []])


class Watched(Row):
    """A row that counts how often it is looked at."""

    __slots__ = ("_event",)
    looks = 0

    @property
    def event(self) -> Event:
        Watched.looks += 1
        return self._event

    @event.setter
    def event(self, event: Event) -> None:
        self._event = event


def test_a_batch_looks_at_its_own_rows_and_not_at_those_of_the_batches_behind_it() -> None:
    count, rows = 500, (PendingRows(repr), PendingRows(repr))
    tables = ByInput(rows, settled.Settled(), lambda _: None, lambda key: repr(key).encode())
    for key in range(count):
        tables.came(LEFT, key, Watched(Event(Form("", b"", "", b""), key % 2, key // 2, 0, 0.0)))
    Watched.looks = 0
    for batch in range(1, count // 2 + 1):
        tables.finish(LEFT, Effect(batch, {("in", 0): batch}, {0: batch, 1: batch}), Step())
    assert Watched.looks < 10 * count
    consumed, groups = tables.state()[LEFT]
    assert (consumed, len(groups)) == ([["in", 0, count // 2]], count // 2)


def test_a_batch_has_the_rows_below_its_end_whenever_their_keys_came_first(pair: Pair) -> None:
    # Key a is open for longer than b, and its latest row is of the next batch.
    assert pair.go_on("L:a=1,b=1,a=2 L!10/2 R:b=1 R!10") == (1, [], [[2], []])
