"""The watermark settles rows by the batches that wrote them, however far a side was read at a look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from tests.support.streams import LEFT, RIGHT, SPEAKING, Driver, record
from twinstream.core.clocks.input import Finished
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.state.restore import restore
from twinstream.core.state.snapshot import snapshot
from twinstream.core.tables import by_watermark
from twinstream.spec.load import loads

WINDOWS = SPEAKING + (
    "emits: {upsert: {key: [k, end], settled_by: {watermark: end}}}\n"
    "overdue: {clock: input, window_end: end}\n"
)


class Batch(NamedTuple):
    """The values that a batch writes of one key, whose window ends at 5, and its watermark."""

    values: Sequence[int]
    watermark: int


IDLE = Batch([], 10)
BATCH_BY_BATCH, AT_ONCE = [1, 1, 1, 1, 1], [5]
paces = pytest.mark.parametrize("pace", [BATCH_BY_BATCH, AT_ONCE], ids=["batch by batch", "at once"])
restarts = pytest.mark.parametrize("restarts", [False, True], ids=["", "restarted"])


class Reading:
    """A matcher that reads some batches of a side, hears of them, and looks; `restarts` in between."""

    def __init__(self, *, restarts: bool = False) -> None:
        self.driver = Driver(loads(WINDOWS))
        self._restarts = restarts
        self._batches = [0, 0]

    def read(self, side: Side, batches: Sequence[Batch]) -> list[Finished]:
        """Read what the batches wrote; returns what their version says of them."""
        said = []
        for batch in batches:
            if batch.values:
                self.driver.feed(side, [record({"k": 1, "end": 5, "v": value}) for value in batch.values])
            self._batches[side] += 1
            number, written = self._batches[side], {0: self.driver.offsets[side]}
            said.append(Finished("q", "r", number, {("in", 0): number}, batch.watermark, written))
        if self._restarts:
            self.driver.findings()
            self.driver.restart()
        return said

    def hear(self, side: Side, said: Sequence[Finished]) -> None:
        for fact in said:
            self.driver.comparison.note_finished(side, fact)
        self.driver.look()
        self.driver.comparison.review()

    def follow(self, side: Side, batches: Sequence[Batch], pace: Sequence[int]) -> None:
        """Read so many batches at a time."""
        first = 0
        for count in pace:
            self.hear(side, self.read(side, batches[first : first + count]))
            first += count

    def superseded(self) -> list[int]:
        return [account.superseded for account in self.driver.comparison.accounts]


@paces
@restarts
def test_a_late_row_does_not_repair_a_wrong_one_that_was_settled(pace: list[int], restarts: bool) -> None:
    reading = Reading(restarts=restarts)
    reading.follow(LEFT, [Batch([1], 0), IDLE, IDLE, IDLE, IDLE], pace)
    reading.follow(RIGHT, [Batch([7], 0), IDLE, IDLE, Batch([1], 10), IDLE], pace)
    assert (reading.driver.comparison.matched, reading.superseded()) == (0, [0, 0])
    assert reading.driver.kinds() == ["changed", "extra"]


@paces
@restarts
def test_a_late_row_is_a_difference_even_if_both_sides_wrote_it(pace: list[int], restarts: bool) -> None:
    reading = Reading(restarts=restarts)
    for side in Side:
        reading.follow(side, [Batch([1], 0), IDLE, IDLE, Batch([2], 10), IDLE], pace)
    assert (reading.driver.comparison.diverged, reading.driver.comparison.matched) == (True, 1)


@paces
@restarts
def test_rows_before_the_watermark_has_passed_fold(pace: list[int], restarts: bool) -> None:
    reading = Reading(restarts=restarts)
    reading.follow(LEFT, [Batch([1, 2], 0), Batch([3], 10), Batch([4], 10), IDLE, IDLE], pace)
    reading.follow(RIGHT, [Batch([], 0), Batch([], 0), Batch([4], 0), IDLE, IDLE], pace)
    assert (reading.driver.comparison.diverged, reading.driver.comparison.matched) == (False, 1)
    assert reading.superseded() == [3, 0]


def test_a_row_waits_until_its_version_has_said_that_its_batch_is_finished() -> None:
    reading = Reading()
    said = reading.read(LEFT, [Batch([1], 0), Batch([2], 10), IDLE])
    reading.hear(LEFT, said[:1])
    assert (reading.driver.held(LEFT), reading.superseded()) == ([0, 1], [0, 0])
    reading.hear(LEFT, said[1:2])
    assert (reading.driver.held(LEFT), reading.superseded()) == ([1], [1, 0])
    assert reading.driver.look().first_open == ({0: 0}, {}), "the key is open since its first row"


def test_rows_of_two_batches_of_which_one_record_was_lost_are_those_of_the_other() -> None:
    reading = Reading()
    for side in Side:
        first, lost, *others = reading.read(side, [Batch([1], 0), Batch([side], 10), Batch([3], 10), IDLE])
        reading.hear(side, [first, *others])
        assert lost.written == {0: 2}
    assert (reading.driver.comparison.diverged, reading.superseded()) == (False, [2, 2])


def test_at_the_end_of_a_side_the_rows_that_wait_fold_and_those_for_closed_windows_are_late() -> None:
    reading = Reading()
    for side in Side:
        reading.follow(side, [Batch([1], 0), IDLE, IDLE], [3])
        reading.read(side, [Batch([2], 10)])  # Nobody says that it is finished.
        reading.driver.feed(side, [record({"k": 1, "end": 50, "v": value}) for value in (3, 4)])
    assert not reading.driver.comparison.diverged
    reading.driver.end()
    assert (reading.driver.comparison.diverged, reading.driver.comparison.matched) == (True, 2)
    assert [reading.driver.held(side) for side in Side] == [[], []]
    assert reading.superseded() == [1, 1]


@pytest.mark.parametrize(("late", "holes"), [(False, 0), (True, 1)])
def test_rows_too_many_to_wait_fold_and_a_late_one_among_them_is_a_hole(
    monkeypatch: pytest.MonkeyPatch, late: bool, holes: int
) -> None:
    monkeypatch.setattr(by_watermark, "WAITING_LIMIT", 2)
    reading = Reading()
    batches = [Batch([1, 2, 3], 0), IDLE, IDLE, Batch([4] * late, 10)]
    for side in Side:
        said = reading.read(side, batches)
        reading.read(side, [Batch([5, 6, 7] * late, 10)])
        assert len(reading.driver.held(side)) == 3
        reading.hear(side, said[:3])
    assert [hole.reason for hole in reading.driver.comparison.holes] == [by_watermark.EARLY] * holes * 2
    assert (reading.driver.comparison.diverged, reading.driver.comparison.matched) == (False, 1)


@restarts
def test_a_row_too_many_that_replaced_one_of_a_closed_window_is_a_hole_whatever_window_it_names(
    monkeypatch: pytest.MonkeyPatch, restarts: bool
) -> None:
    monkeypatch.setattr(by_watermark, "WAITING_LIMIT", 1)
    driver = Driver(loads(WINDOWS.replace("[k, end]", "[k]")))
    driver.feed(LEFT, [record({"k": key, "end": end, "v": key}) for key, end in ((1, 5), (1, 50), (9, 90))])
    if restarts:
        driver.restart()
    for batch, written in enumerate((1, 1, 1, 3), 1):
        said = Finished("q", "r", batch, {("in", 0): batch}, 10, {0: written})
        driver.comparison.note_finished(LEFT, said)
        driver.look()
    assert [hole.reason for hole in driver.comparison.holes] == [by_watermark.EARLY]


def test_the_rows_of_a_state_of_an_earlier_version_are_settled_by_their_own_windows() -> None:
    reading = Reading()
    reading.follow(LEFT, [Batch([1], 0)], [1])
    state = snapshot(reading.driver.comparison)
    for rows in state["tables"]["rows"]:
        del rows["first_ends_ms"]
    reading.driver.comparison = Comparison(reading.driver.comparison.rules)
    restore(reading.driver.comparison, state, reading.driver.codec.form_again, 0.0)
    reading.follow(RIGHT, [Batch([1], 0), IDLE, IDLE], [3])
    assert reading.driver.comparison.matched == 0
    reading.follow(LEFT, [IDLE, IDLE], [2])
    assert reading.driver.comparison.matched == 1


def test_recorded_rows_that_no_control_record_speaks_of_are_folded_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(by_watermark, "WAITING_LIMIT", 2)
    reading = Reading(restarts=True)
    for side in Side:
        reading.read(side, [Batch(range(10 * side, 99), 0)])
    reading.driver.end()
    assert (reading.driver.comparison.diverged, reading.driver.comparison.matched) == (False, 1)
    assert reading.superseded() == [98, 88]


@pytest.mark.parametrize("behind", [False, True])
def test_a_late_row_is_one_whether_or_not_its_run_began_before_the_windows_were_read(behind: bool) -> None:
    driver = Driver(loads(WINDOWS))

    def row(value: int) -> bytes:
        return record({"k": 1, "end": 5, "v": value})

    first, later = ["first"] * 5, ["first"] * 3 + ["later"] * 2
    late = {0: row(7), 3: row(1)}  # Settled wrong, and put right by a later run, behind the watermark.
    said: list[tuple[Side, Finished]] = []
    for batch in range(5):
        for side, rows, runs in ((LEFT, {0: row(1)}, first), (RIGHT, late, later)):
            if batch in rows:
                driver.feed(side, [rows[batch]])
            written = {0: driver.offsets[side]}
            said.append(
                (side, Finished("q", runs[batch], batch, {("in", 0): batch + 1}, 10 * batch, written))
            )
            if not behind:
                driver.comparison.note_finished(*said[-1])
                driver.look()
    for fact in said if behind else ():
        driver.comparison.note_finished(*fact)
    driver.look()
    driver.comparison.review()
    assert (driver.comparison.diverged, driver.comparison.matched) == (True, 0)
    assert sorted(driver.kinds()) == ["changed", "extra"]
