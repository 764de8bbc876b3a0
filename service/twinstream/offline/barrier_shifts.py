"""Tells whether equal barriers of a range may have other partners than those that the comparison gave them.

Equal barriers are paired in their order: the first of a side with the first of the other. In a range between
two times, the partners of a side's first barriers may lie before all that is read. Then each barrier of the
other side belongs to a later one of that side. The comparison holds epochs against each other that do not
belong together. What it finds in them proves nothing, unless an event has no equal one near enough.

Such a *shift* fits if the barriers that it pairs are at most the slack apart, and each barrier that it leaves
alone may have a partner that was not read. Where equal barriers follow each other more slowly than that, no
shift fits. Nor does one where a barrier of the range was lost: the outputs differ, whichever events show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple


class ReadBarrier(NamedTuple):
    """A barrier; its partner may lie `before` all that is read of the other side, or `behind`."""

    time_ms: float
    before: bool
    behind: bool


def may_be_shifted(one: Sequence[ReadBarrier], other: Sequence[ReadBarrier], slack_ms: float) -> bool:
    """Whether equal barriers, in the order in which they were read, may belong to others than their like.

    Complexity: O(n) for each barrier at the beginning whose partner may lie before.

    >>> first, last = ReadBarrier(1_000, True, False), ReadBarrier(1_200, False, True)
    >>> may_be_shifted([first], [last], slack_ms=100), may_be_shifted([last], [last], slack_ms=100)
    (True, False)
    """
    return any(_shifts(one, other, slack_ms)) or any(_shifts(other, one, slack_ms))


def _shifts(one: Sequence[ReadBarrier], other: Sequence[ReadBarrier], slack_ms: float) -> Iterator[bool]:
    """For each number of barriers of the other side that may have lost their partners: whether it fits."""
    needed, needed_too = _needed(one), _needed(other)
    leading = sum(1 for _ in takewhile(lambda barrier: barrier.before, other)) if one else 0
    for lost in range(1, leading + 1):
        paired = min(len(one), len(other) - lost)
        pairs = range(paired) if paired >= needed and lost + paired >= needed_too else None
        yield pairs is not None and all(
            abs(one[number].time_ms - other[lost + number].time_ms) <= slack_ms for number in pairs
        )


def _needed(barriers: Sequence[ReadBarrier]) -> int:
    """How many of the first barriers must have partners: those of the others may not have been read."""
    return len(barriers) - sum(1 for _ in takewhile(lambda barrier: barrier.behind, reversed(barriers)))
