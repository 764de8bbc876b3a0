"""The rows that two versions dropped as late are compared where both counts are known, and nowhere else."""

from __future__ import annotations

import pytest

from twinstream.core.clocks.input import DroppedRows, Finished
from twinstream.core.clocks.late import LEVELS_LIMIT, MEMORY, DroppedUnevenly, LateCounts
from twinstream.core.events import Side

LEFT, RIGHT = Side


@pytest.fixture
def counts() -> LateCounts:
    return LateCounts()


def tell(
    counts: LateCounts,
    side: Side,
    *told: tuple[int, int],
    run: str = "r",
    query: str = "q",
    batch: int = 0,
    since: int = 0,
) -> None:
    """The count of a version after so many records of its input, batch after batch."""
    for number, (consumed, rows) in enumerate(told, start=batch):
        late = DroppedRows(rows, since, {("in", 0): consumed})
        counts.note(side, Finished(query, run, number, {}, None, {}, late=late))


def uneven(first: int, end: int, left: int, right: int) -> DroppedUnevenly:
    return DroppedUnevenly((("in", 0, first, end),), left, right)


Counts = list[tuple[int, int]]
COMPARED: dict[str, tuple[Counts, Counts, DroppedUnevenly | None]] = {
    "from the first input that both know to the last": (
        [(10, 0), (20, 2), (30, 3)], [(20, 7), (30, 7)], uneven(20, 30, 1, 0),
    ),
    "where batches end elsewhere and counts stay the same": (
        [(10, 0), (25, 0)], [(8, 0), (12, 0), (18, 4), (28, 4)], uneven(10, 25, 0, 4),
    ),
    "not between two places where rows were dropped: they may stand behind 25": (
        [(10, 0), (25, 0)], [(8, 0), (12, 0), (28, 4)], None,
    ),
    "as far as the version came that is behind": (
        [(10, 0), (20, 0), (90, 9)], [(10, 0), (20, 1)], uneven(10, 20, 0, 1),
    ),
    "not where they change without input": (
        [(10, 0), (20, 0), (30, 0)], [(10, 0), (20, 1), (20, 2), (30, 2)], None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", COMPARED.values(), ids=COMPARED)
def test_counts_are_compared(counts: LateCounts, case: tuple[Counts, Counts, DroppedUnevenly | None]) -> None:
    left, right, told = case
    tell(counts, LEFT, *left)
    tell(counts, RIGHT, *right)
    assert counts.uneven() == told


@pytest.mark.parametrize("anew", [{"run": "s"}, {"query": "p"}, {"since": 4}])
def test_a_count_that_begins_anew_has_no_past(counts: LateCounts, anew: dict[str, object]) -> None:
    tell(counts, LEFT, (10, 0), (20, 5), (30, 5), (40, 5))
    tell(counts, RIGHT, (10, 0), (20, 0))
    assert counts.uneven() == uneven(10, 20, 5, 0)
    tell(counts, RIGHT, (30, 0), (40, 1), batch=4, **anew)  # type: ignore[arg-type]
    assert counts.uneven() == uneven(30, 40, 0, 1)


def test_two_queries_of_a_version_are_not_compared(counts: LateCounts) -> None:
    tell(counts, LEFT, (10, 0), (40, 0))
    for batch, consumed in enumerate((10, 20, 30, 40)):
        tell(counts, RIGHT, (consumed, batch), query="p", batch=batch)
        tell(counts, RIGHT, (consumed, 0), query="q", batch=batch)
    assert counts.uneven() is None


def test_a_query_that_writes_elsewhere_is_not_counted(counts: LateCounts) -> None:
    tell(counts, LEFT, (10, 0), (20, 5))
    tell(counts, RIGHT, (10, 0))
    elsewhere = DroppedRows(9, 0, {("in", 0): 15})
    counts.note(RIGHT, Finished("p", "r", 0, {}, None, None, late=elsewhere))
    tell(counts, RIGHT, (20, 0), batch=1)
    assert counts.uneven() == uneven(10, 20, 5, 0)


def test_nothing_is_known_of_a_version_that_does_not_tell(counts: LateCounts) -> None:
    tell(counts, LEFT, (10, 0), (20, 5))
    for batch in range(3):
        counts.note(RIGHT, Finished("q", "r", batch, {("in", 0): 10 * batch}, None, {}))
    assert counts.uneven() is None


def test_inputs_that_have_nothing_in_common_are_not_compared(counts: LateCounts) -> None:
    tell(counts, LEFT, (10, 0), (20, 5))
    for consumed in (10, 20):
        late = DroppedRows(0, 0, {("elsewhere", 0): consumed})
        counts.note(RIGHT, Finished("q", "r", consumed, {}, None, {}, late=late))
    assert counts.uneven() is None


def test_of_many_counts_the_first_and_the_last_are_kept(counts: LateCounts) -> None:
    many = 10 * LEVELS_LIMIT
    tell(counts, LEFT, *((10 * n, n) for n in range(1, many)))
    tell(counts, RIGHT, (10, 0), (10 * many, 0))
    assert counts.uneven() == uneven(10, 10 * (many - 1), many - 2, 0)
    assert len(counts.state()[LEFT][1]) <= LEVELS_LIMIT


def test_what_was_dropped_long_ago_is_forgotten(counts: LateCounts) -> None:
    tell(counts, LEFT, (10, 0), (20, 5))
    tell(counts, RIGHT, (10, 0), (20, 0))
    tell(counts, LEFT, (30, 5), batch=MEMORY - 1)
    assert counts.uneven() is not None
    tell(counts, LEFT, (40, 5), batch=MEMORY)
    tell(counts, RIGHT, (40, 0), batch=MEMORY)
    assert counts.uneven() is None
