"""Counts of late rows are compared exactly, wherever the batches of two versions end, and over restarts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.clocks.input import DroppedRows, Finished
from twinstream.core.clocks.late import LateCounts
from twinstream.core.events import Side

PARTITIONS, LENGTH = 2, 20
PLACES = [(partition, offset) for partition in range(PARTITIONS) for offset in range(LENGTH)]
Place = tuple[int, int]
Dropped = frozenset[Place]

dropped = st.frozensets(st.sampled_from(PLACES), max_size=5)
cuts = st.lists(st.tuples(*[st.integers(0, LENGTH)] * PARTITIONS), min_size=1, max_size=12).map(
    lambda drawn: [*zip(*map(sorted, zip(*drawn, strict=True)), strict=True)]
)
"""How far each batch of a version consumes each partition."""


def facts(late: Dropped, ends: list[tuple[int, ...]]) -> list[Finished]:
    """The control records of a version that drops these input records."""
    told = []
    for batch, end in enumerate(ends):
        rows = sum(offset < end[partition] for partition, offset in late)
        consumed = {("in", partition): offset for partition, offset in enumerate(end)}
        told.append(Finished("q", "r", batch, {}, None, {}, late=DroppedRows(rows, 0, consumed)))
    return told


def fed(pair: tuple[list[Finished], list[Finished]], restart_at: int | None = None) -> LateCounts:
    counts = LateCounts()
    told = [(side, fact) for side in Side for fact in pair[side]]
    for step, (side, fact) in enumerate(told):
        if step == restart_at:
            state = counts.state()
            counts = LateCounts()
            counts.restore(state)
        counts.note(side, fact)
    return counts


@given(dropped, dropped, cuts, cuts, st.integers(0, 24))
def test_what_is_told_was_dropped_of_the_input_that_is_named(
    left: Dropped, right: Dropped, one: list[tuple[int, ...]], other: list[tuple[int, ...]], restart_at: int
) -> None:
    pair = facts(left, one), facts(right, other)
    uneven = fed(pair).uneven()
    assert fed(pair, restart_at).uneven() == uneven, "a restart changes nothing"
    if uneven is not None:
        named = {partition: range(first, end) for _, partition, first, end in uneven.input}
        counted = [sum(o in named.get(p, ()) for p, o in late) for late in (left, right)]
        assert [uneven.left, uneven.right] == counted
        assert uneven.left != uneven.right


@given(dropped, dropped, cuts)
def test_versions_that_cut_their_input_alike_are_told_apart_by_their_counts(
    left: Dropped, right: Dropped, ends: list[tuple[int, ...]]
) -> None:
    def between(late: Dropped) -> int:
        return sum(ends[0][partition] <= offset < ends[-1][partition] for partition, offset in late)

    uneven = fed((facts(left, ends), facts(right, ends))).uneven()
    told = None if uneven is None else (uneven.left, uneven.right)
    expected = between(left), between(right)
    assert told == (None if expected[0] == expected[1] else expected)


@given(dropped, cuts, cuts)
def test_versions_that_drop_the_same_are_never_told_apart(
    late: Dropped, one: list[tuple[int, ...]], other: list[tuple[int, ...]]
) -> None:
    assert fed((facts(late, one), facts(late, other))).uneven() is None
