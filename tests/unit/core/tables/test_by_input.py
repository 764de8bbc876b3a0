"""The clock of the input settles a key when both rows show it after the same input, and not before."""

from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, SPEAKING, Driver, record
from twinstream.core.clocks.input import Finished
from twinstream.core.events import Side
from twinstream.core.tables import by_input, settled
from twinstream.spec.decode.deletions import deletion
from twinstream.spec.load import loads

SPEC = SPEAKING + "emits: {upsert: {key: [k], settled_by: input}}\noverdue: {clock: input}\n"


class Pair:
    """Two versions with one input partition and one output partition; what they say is heard at once.

    `restarts`: the matcher restarts from its checkpoints behind every step.
    """

    def __init__(self, *, restarts: bool) -> None:
        self._restarts = restarts
        self.driver = Driver(loads(SPEC))
        self._batches = [0, 0]

    def write(self, side: Side, key: str, value: int | None) -> None:
        row = deletion(key.encode()) if value is None else record({"k": key, "v": value})
        assert row is not None
        self.driver.feed(side, [row])
        self._restart()

    def _restart(self) -> None:
        if self._restarts:
            self.driver.findings()
            self.driver.restart()

    def finish(self, side: Side, consumed: int, written: int | None = None, query: str = "q") -> None:
        """A batch is finished that has consumed so far; its output ends at `written`, else here."""
        self._batches[side] += 1
        end = self.driver.offsets[side] if written is None else written
        fact = Finished(query, "run", self._batches[side], {("in", 0): consumed}, None, {0: end})
        self.driver.comparison.note_finished(side, fact)
        self.driver.look()
        self._restart()

    def outcome(self) -> tuple[int, list[str], list[list[int]]]:
        """The pairs, the kinds of the differences, and the offsets of pending rows by side."""
        return self.driver.comparison.matched, self.driver.kinds(), [self.driver.held(side) for side in Side]


@pytest.fixture(params=[False, True], ids=["", "restarted behind every step"])
def pair(request: pytest.FixtureRequest) -> Pair:
    return Pair(restarts=request.param)


def test_rows_of_one_prefix_are_compared_when_both_versions_have_consumed_it(pair: Pair) -> None:
    pair.write(LEFT, "a", 1)
    pair.finish(LEFT, 10)
    pair.write(RIGHT, "a", 1)
    assert pair.outcome() == (0, [], [[0], [0]])
    pair.finish(RIGHT, 7)
    assert pair.outcome() == (0, [], [[0], [0]])
    pair.finish(RIGHT, 12)
    assert pair.outcome() == (1, [], [[], []])


def test_a_row_behind_the_end_of_a_batch_belongs_to_the_next_one(pair: Pair) -> None:
    for side in Side:
        pair.write(side, "a", 1)
    pair.write(LEFT, "a", 2)  # The next batch has begun to write, and is not finished.
    pair.finish(RIGHT, 10)
    pair.finish(LEFT, 10, written=1)
    assert pair.outcome() == (0, [], [[1], [0]])
    pair.finish(LEFT, 20)
    pair.write(RIGHT, "a", 2)
    pair.finish(RIGHT, 20)
    assert pair.outcome() == (1, [], [[], []])
    assert [account.superseded for account in pair.driver.comparison.accounts] == [1, 1]


def test_different_rows_of_one_prefix_are_one_changed_at_once(pair: Pair) -> None:
    for side, value in ((LEFT, 1), (RIGHT, 2)):
        pair.write(side, "a", value)
        pair.finish(side, 10)
    assert pair.driver.comparison.diverged
    assert pair.outcome() == (0, ["changed"], [[], []])


def test_a_key_that_one_version_never_wrote_is_missing_once_it_has_consumed_its_input(pair: Pair) -> None:
    pair.write(LEFT, "a", 1)
    pair.finish(LEFT, 10)
    pair.finish(RIGHT, 9)
    assert pair.outcome() == (0, [], [[0], []])
    pair.finish(RIGHT, 10)
    assert pair.outcome() == (0, ["missing"], [[], []])


def test_a_key_that_changes_before_the_other_side_has_caught_up_stays_pending(pair: Pair) -> None:
    for consumed in range(10, 100, 10):
        for side, ahead in ((LEFT, 0), (RIGHT, 5)):
            pair.write(side, "a", consumed + ahead)
            pair.finish(side, consumed + ahead)
    matched, kinds, held = pair.outcome()
    assert (matched, kinds, held) == (0, [], [[8], [8]])
    survey = pair.driver.look()
    assert survey.first_open == ({0: 0}, {0: 0}), "verified is what lies before the first row of the key"


def test_a_deletion_is_compared_only_where_the_table_had_the_key(pair: Pair) -> None:
    pair.write(LEFT, "a", 1)
    pair.write(LEFT, "a", None)
    for side in Side:
        pair.finish(side, 10)
    assert pair.outcome() == (0, [], [[], []])
    for side in Side:
        pair.write(side, "a", 2)
        pair.finish(side, 20)
    pair.write(LEFT, "a", None)
    for side in Side:
        pair.finish(side, 30)
    assert pair.outcome() == (1, ["missing"], [[], []])


def test_a_row_that_says_what_the_table_holds_changes_nothing(pair: Pair) -> None:
    for side in Side:
        pair.write(side, "a", 1)
        pair.finish(side, 10)
    pair.write(RIGHT, "a", 1)
    for side in Side:
        pair.finish(side, 20)
    assert pair.outcome() == (1, [], [[], []])
    assert pair.driver.comparison.accounts[RIGHT].superseded == 1


def test_a_second_query_of_a_version_is_a_hole(pair: Pair) -> None:
    pair.write(LEFT, "a", 1)
    pair.finish(LEFT, 10)
    pair.finish(LEFT, 20, query="another")
    assert ["two queries" in hole.reason for hole in pair.driver.comparison.holes] == [True]


def test_a_row_on_one_side_of_a_key_settled_too_long_ago_is_unclear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settled.Settled.__init__, "__defaults__", (2,))
    pair = Pair(restarts=False)
    for key in "abc":
        for side in Side:
            pair.write(side, key, 1)
    for side in Side:
        pair.finish(side, 10)
    pair.write(LEFT, "a", 1)
    for side in Side:
        pair.finish(side, 20)
    assert pair.outcome() == (3, [], [[], []])
    assert not pair.driver.comparison.diverged
    assert ["not among the last" in hole.reason for hole in pair.driver.comparison.holes] == [True]


def test_a_key_in_two_partitions_of_a_side_is_a_hole(pair: Pair) -> None:
    pair.write(LEFT, "a", 1)
    pair.driver.feed(LEFT, [record({"k": "a", "v": 2})], partition=1)
    assert ["two partitions" in hole.reason for hole in pair.driver.comparison.holes] == [True]


def test_a_row_whose_batch_is_finished_counts_no_more_when_a_newer_one_has_come(pair: Pair) -> None:
    pair.write(LEFT, "a", 1)
    pair.finish(LEFT, 10)
    pair.write(LEFT, "a", 2)
    pair.write(RIGHT, "a", 1)
    pair.finish(RIGHT, 10)
    assert pair.outcome() == (0, [], [[1], [0]])


def test_a_side_that_stands_still_costs_no_memory_for_rows_that_were_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(by_input, "SLACK", 3)
    pair = Pair(restarts=False)
    pair.write(LEFT, "once", 1)
    for batch in range(100):
        pair.write(LEFT, "often", batch)
        pair.finish(LEFT, batch)
    tables = pair.driver.comparison.tables
    assert tables is not None
    consumed, groups = tables.state(whole=True)["batches"][LEFT]
    assert consumed == [["in", 0, 99]]
    assert 2 <= len(groups) <= 7, "one for each pending row, and a few more"
    pair.write(RIGHT, "once", 1)
    pair.write(RIGHT, "often", 99)
    pair.finish(RIGHT, 99)
    assert pair.outcome() == (2, [], [[], []])


def test_a_row_for_no_input_at_all_waits_for_the_first_batch_of_the_other_side(pair: Pair) -> None:
    pair.write(LEFT, "total", 0)
    pair.finish(LEFT, 0)
    assert pair.outcome() == (0, [], [[0], []])
    pair.write(RIGHT, "total", 0)
    pair.finish(RIGHT, 0)
    assert pair.outcome() == (1, [], [[], []])
