"""Rows that the watermark settles, against a plain account of what each side hands on of a key.

A side hands on the latest row of a key when the watermark has passed its window. Rows may name an earlier or
a later end than those before them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

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
    """One batch of a version: the rows that it writes, and the watermark that it reports."""

    rows: list[Order]
    watermark: int


def passed_by(batches: list[Batch]) -> int:
    """The watermark that counts as passed in the batch behind these."""
    return max((batch.watermark for batch in batches), default=-1)


def handed_on(batches: list[Batch]) -> dict[int, list[int]]:
    """By order, the ends that a version settles, one after the other."""
    found: dict[int, list[int]] = defaultdict(list)
    pending: dict[int, int] = {}
    for number, batch in enumerate(batches):
        pending |= {row.id: row.ends for row in batch.rows}
        passed = passed_by(batches[:number])
        for key in [key for key, ends in pending.items() if ends <= passed]:
            if (ends := pending.pop(key)) != STARTS:
                found[key].append(ends)
    return found


class Reading:
    """A matcher that reads both versions; it hears of batches in their order."""

    def __init__(self, versions: tuple[list[Batch], list[Batch]]) -> None:
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
            self.hear(side, 1)
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
        said.append(Finished("q", "r", number, {("in", 0): number + 1}, batch.watermark, {0: written}))
    return said


CLOSING = [Batch([], LAST + 1)] * 3
"""Batches without input, after which all windows are closed, and all orders overdue."""


def timely(batches: list[Batch]) -> list[Batch]:
    """Batches without the rows for windows that were closed before."""
    return [
        batch._replace(
            rows=[row for row in batch.rows if row.ends > passed_by(batches[: max(0, number - 1)])]
        )
        for number, batch in enumerate(batches)
    ]


rows = st.builds(Order, st.integers(0, 1), st.integers(STARTS, LAST))
batches = st.lists(st.builds(Batch, st.lists(rows, max_size=3), st.integers(0, LAST)), max_size=5).map(
    lambda found: timely(found) + CLOSING
)


def versions() -> st.SearchStrategy[tuple[list[Batch], list[Batch]]]:
    """Two versions: of any rows, or the same but for some rows and batches."""
    return st.one_of(st.tuples(batches, batches), batches.flatmap(_alike))


def _alike(one: list[Batch]) -> st.SearchStrategy[tuple[list[Batch], list[Batch]]]:
    other = [st.one_of(st.just(batch), st.just(batch._replace(rows=batch.rows[-1:]))) for batch in one]
    return st.tuples(st.just(one), st.tuples(*other).map(list))


@examples(400)
@given(versions())
def test_orders_differ_where_what_each_side_settles_differs(both: tuple[list[Batch], list[Batch]]) -> None:
    reading = Reading(both)
    for side, of in zip(Side, both, strict=True):
        reading.follow(side, of)
    left, right = map(handed_on, both)
    diverged, matched, waiting, holes = reading.answer()
    assert (diverged, holes) == (left != right, [])
    assert diverged or (matched, waiting) == (sum(map(len, left.values())), [[], []])
