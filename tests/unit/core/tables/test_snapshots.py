"""Whole tables are compared when both versions have written them for the same input, and not before."""

from __future__ import annotations

import pytest

from tests.support.streams import LEFT, RIGHT, SPEAKING, Driver, record
from twinstream.core.clocks.input import Finished
from twinstream.core.events import Side
from twinstream.spec.load import loads

SPEC = SPEAKING + "emits: {complete: {key: [k], settled_by: input}}\noverdue: {clock: input}\n"


class Pair:
    """Two versions that write whole tables, and a matcher that may restart behind every step."""

    def __init__(self, *, restarts: bool) -> None:
        self._restarts = restarts
        self.driver = Driver(loads(SPEC))

    def write(self, side: Side, batch: int, table: str) -> None:
        """Rows from words ``KEY:VALUE``."""
        rows = [word.split(":") for word in table.split()]
        records = [record({"k": key, "v": value}) for key, value in rows]
        self.driver.feed(side, records, marks=[batch] * len(rows))
        self._restart()

    def finish(self, side: Side, batch: int, consumed: int, written: int | None = None) -> None:
        end = self.driver.offsets[side] if written is None else written
        fact = Finished("q", "run", batch, {("in", 0): consumed}, None, {0: end})
        self.driver.comparison.note_finished(side, fact)
        self.driver.look()
        self._restart()

    def _restart(self) -> None:
        if self._restarts:
            self.driver.findings()
            self.driver.restart()

    def outcome(self) -> tuple[int, list[str], list[int]]:
        """The pairs, the kinds of the differences, and the number of pending rows by side."""
        return (
            self.driver.comparison.matched,
            self.driver.kinds(),
            [len(self.driver.held(side)) for side in Side],
        )


@pytest.fixture(params=[False, True], ids=["", "restarted behind every step"])
def pair(request: pytest.FixtureRequest) -> Pair:
    return Pair(restarts=request.param)


def test_tables_of_different_inputs_are_not_compared(pair: Pair) -> None:
    pair.write(LEFT, 0, "a:1 b:1")
    pair.finish(LEFT, 0, 10)
    pair.write(RIGHT, 0, "a:2")
    pair.finish(RIGHT, 0, 15)
    assert pair.outcome() == (0, [], [2, 1])
    pair.write(LEFT, 1, "a:2")
    pair.finish(LEFT, 1, 15)
    assert pair.outcome() == (1, [], [0, 0])
    assert pair.driver.comparison.accounts[LEFT].superseded == 2


def test_a_key_that_one_table_lacks_is_missing_and_another_value_is_changed(pair: Pair) -> None:
    pair.write(LEFT, 0, "a:1 b:1 c:1")
    pair.write(RIGHT, 0, "a:1 c:2")
    for side in Side:
        pair.finish(side, 0, 10)
    assert pair.outcome() == (1, ["changed", "missing"], [0, 0])


def test_a_table_of_which_only_a_part_was_read_is_not_compared(pair: Pair) -> None:
    for side in Side:
        pair.write(side, 0, "a:1 b:1")
        pair.finish(side, 0, 10)
    assert pair.outcome() == (2, [], [0, 0])
    pair.write(LEFT, 1, "a:1")
    pair.write(RIGHT, 1, "a:1 b:1")
    pair.finish(RIGHT, 1, 10)
    assert pair.outcome() == (2, [], [1, 2])
    pair.write(LEFT, 1, "b:1")
    pair.finish(LEFT, 1, 10)
    assert pair.outcome() == (4, [], [0, 0])


def test_a_batch_that_is_written_again_is_no_news(pair: Pair) -> None:
    for side in Side:
        pair.write(side, 0, "a:1 b:1")
        pair.finish(side, 0, 10)
    pair.write(LEFT, 0, "a:1 b:1")
    fact = Finished("q", "another run", 0, {("in", 0): 10}, None, {0: 4})
    pair.driver.comparison.note_finished(LEFT, fact)
    pair.driver.look()
    assert pair.outcome() == (2, [], [0, 0])
    assert pair.driver.comparison.accounts[LEFT].superseded == 2


def test_a_batch_that_consumed_something_and_wrote_no_row_has_emptied_the_table(pair: Pair) -> None:
    for side in Side:
        pair.write(side, 0, "a:1")
        pair.finish(side, 0, 10)
    pair.finish(LEFT, 1, 20)
    pair.write(RIGHT, 1, "a:1")
    pair.finish(RIGHT, 1, 20)
    assert pair.outcome() == (1, ["extra"], [0, 0])


def test_a_batch_without_input_that_wrote_no_row_leaves_the_table_as_it_was(pair: Pair) -> None:
    for side in Side:
        pair.write(side, 0, "a:1")
        pair.finish(side, 0, 10)
    pair.finish(LEFT, 1, 10)
    pair.write(RIGHT, 1, "a:1")
    pair.finish(RIGHT, 1, 10)
    assert pair.outcome() == (1, [], [0, 0])
