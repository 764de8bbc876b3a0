"""What proves a difference, and what was not checked."""

from __future__ import annotations

from tests.support.streams import LEFT, RIGHT
from twinstream.core.events import Place, Side
from twinstream.core.proofs import UncheckedFrom


def at(side: Side, offset: int, partition: int = 0) -> Place:
    return side, partition, offset


def test_of_several_starts_the_first_counts() -> None:
    unchecked = UncheckedFrom()
    for start in (5, 3, 8):
        unchecked.note(LEFT, {0: start})
    assert not unchecked.spares([at(LEFT, 3)])
    assert unchecked.spares([at(LEFT, 2)])


def test_without_a_place_nothing_is_spared() -> None:
    for side, starts in ((None, {0: 5}), (LEFT, {})):
        unchecked = UncheckedFrom()
        unchecked.note(side, starts)
        assert not unchecked.spares([at(RIGHT, 0)])
