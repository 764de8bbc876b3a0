"""Rows that the watermark settles, against a plain account of what each side settles of a key.

A side settles the latest row of a key when the watermark has passed its window. A row that comes for a closed
window is late: a difference. Rows may name an earlier or a later end than those before them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.support.searching import examples
from tests.support.streams import SPEAKING, Driver, record
from twinstream.core.clocks.input import Finished
from twinstream.core.events import Side
from twinstream.spec.load import loads

ORDERS = SPEAKING.replace("order: unordered", "order: {per_key: [id]}") + (
    "emits: {retract: {id: id, valid_from: starts, valid_to: ends, settled_by: {watermark: ends}}}\n"
    "overdue: {clock: input, window_end: ends}\n"
)
STARTS, LAST = 1, 9


class Order(NamedTuple):
    """A row: the lifetime of an order, which is taken back where it ends as it starts."""

    id: int
    ends: int

    def record(self) -> bytes:
        return record({"id": self.id, "starts": STARTS, "ends": self.ends})


class Batch(NamedTuple):
    """One batch of a version: the rows that it writes, and the watermark; whether its record is `said`."""

    rows: list[Order]
    watermark: int
    said: bool = True


Versions = tuple[list[Batch], list[Batch]]


def passed_by(batches: list[Batch]) -> int:
    """The watermark that counts as passed in the batch behind these."""
    return max((batch.watermark for batch in batches), default=-1)


def joined(batches: list[Batch]) -> list[Batch]:
    """The batches that are said, each with the rows of those before it that are not."""
    found, rows = [], []
    for batch in batches:
        rows = rows + batch.rows
        if batch.said:
            found.append(batch._replace(rows=rows))
            rows = []
    return found


def late(batches: list[Batch]) -> list[Order]:
    """The rows for windows that were closed before their batch."""
    found = []
    for number, batch in enumerate(batches):
        closed = passed_by(batches[: max(0, number - 1)])
        found += [row for row in batch.rows if row.ends <= closed]
    return found


def settled(batches: list[Batch]) -> dict[int, list[int]]:
    """By order, the ends that a version settles, one after the other."""
    found: dict[int, list[int]] = defaultdict(list)
    pending: dict[int, int] = {}
    passed = -1
    for number, batch in enumerate(batches):
        pending |= {row.id: row.ends for row in batch.rows if row.ends > passed}
        passed = passed_by(batches[:number])
        for key in [key for key, ends in pending.items() if ends <= passed]:
            if (ends := pending.pop(key)) != STARTS:
                found[key].append(ends)
    return found


class Reading:
    """A matcher that reads both versions; it hears of batches in their order."""

    def __init__(self, versions: Versions) -> None:
        self.driver = Driver(loads(ORDERS))
        self._rows = [[row.record() for batch in of for row in batch.rows] for of in versions]
        self._said = [_said(of) for of in versions]

    def read(self, side: Side, count: int) -> None:
        rows, self._rows[side] = self._rows[side][:count], self._rows[side][count:]
        if rows:
            self.driver.feed(side, rows)

    def hear(self, side: Side, count: int) -> None:
        for fact in self._said[side][:count]:
            self.driver.comparison.note_finished(side, fact)
        del self._said[side][:count]

    def look(self) -> None:
        self.driver.look()
        self.driver.comparison.review()

    def follow(self, side: Side, batches: list[Batch]) -> None:
        """Read a side batch by batch, each with what its version says of it."""
        for batch in batches:
            self.read(side, len(batch.rows))
            self.hear(side, int(batch.said))
            self.look()

    def answer(self) -> tuple[bool, int, list[list[int]], list[str]]:
        """Whether the sides differ, the pairs, the rows that wait on both sides, and the holes."""
        comparison = self.driver.comparison
        waiting = [self.driver.held(side) for side in Side]
        return comparison.diverged, comparison.matched, waiting, [hole.reason for hole in comparison.holes]


def _said(batches: list[Batch]) -> list[Finished]:
    said, written = [], 0
    for number, batch in enumerate(batches):
        written += len(batch.rows)
        if batch.said:
            said.append(Finished("q", "r", number, {("in", 0): number + 1}, batch.watermark, {0: written}))
    return said


CLOSING = [Batch([], LAST + 1)] * 3
"""Batches without input, after which all windows are closed, and all orders overdue."""


rows = st.builds(Order, st.integers(0, 1), st.integers(STARTS, LAST))
batches = st.lists(
    st.builds(Batch, st.lists(rows, max_size=3), st.integers(0, LAST), st.integers(0, 3).map(bool)),
    max_size=5,
).map(lambda found: found + CLOSING)


def versions() -> st.SearchStrategy[Versions]:
    """Two versions: of any rows, or the same but for some rows and batches."""
    return st.one_of(st.tuples(batches, batches), batches.flatmap(_alike))


def _alike(one: list[Batch]) -> st.SearchStrategy[Versions]:
    other = [st.one_of(st.just(batch), st.just(batch._replace(rows=batch.rows[-1:]))) for batch in one]
    return st.tuples(st.just(one), st.tuples(*other).map(list))


def batch_by_batch(both: Versions) -> Reading:
    """Read one side after the other."""
    reading = Reading(both)
    for side, of in zip(Side, both, strict=True):
        reading.follow(side, of)
    return reading


@examples(400)
@given(versions())
def test_orders_differ_where_what_each_side_settles_differs_and_where_a_row_is_late(both: Versions) -> None:
    said = list(map(joined, both))
    left, right = map(settled, said)
    diverged, matched, waiting, holes = batch_by_batch(both).answer()
    assert (diverged, holes) == (left != right or any(map(late, said)), [])
    assert diverged or (matched, waiting) == (sum(map(len, left.values())), [[], []])


sides, counts = st.sampled_from(Side), st.integers(1, 4)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("read"), sides, counts),
        st.tuples(st.just("hear"), sides, counts),
        st.tuples(st.just("look")),
        st.tuples(st.just("restart")),
    ),
    max_size=30,
)


@examples(400)
@given(versions(), steps)
def test_neither_pace_nor_restarts_change_the_answer(both: Versions, steps: list[tuple[Any, ...]]) -> None:
    reading = Reading(both)
    for step in steps:
        match step:
            case "read", side, count:
                reading.read(side, count)
            case "hear", side, count:
                reading.hear(side, count)
            case ("look",):
                reading.look()
            case ("restart",):
                reading.driver.restart()
    for side in Side:
        reading.read(side, 100)
        reading.hear(side, 100)
    reading.look()
    assert reading.answer() == batch_by_batch(both).answer()
