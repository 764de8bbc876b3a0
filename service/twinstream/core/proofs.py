"""The proof of a difference: the events that prove it. A difference counts if its proof was checked.

Step 2 of matching proves a difference in a sequence by two events: the first of each side that has no partner
there. No later event can weaken it. So a hole puts in doubt what the events at or behind its start prove,
and nothing before it, whichever was read first. This holds for each partition by itself, since the dependent
events of a side are in one partition.

The end of a side proves a difference by an event of the other side, and by all events of the side itself: so
the difference is in doubt if there is a hole anywhere in that side, or one before the event.

An open batch may be written again, and its attempts may disagree in the end. So an open batch counts like a
hole: a difference that an event in or behind it proves is *held* until the batch is closed.

If it is unknown which events prove a difference, all events do.

Source: DiffStream (OOPSLA 2020), section 4.2: a difference is known at the earliest event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from twinstream.core.events import OFFSET, PARTITION, Event, Place, Side

Starts = Mapping[int, int]
"""By partition, the first offset of the input that was not checked, or that may be written again."""
Proof = Sequence[Place]
"""The places of the events that prove a difference."""
MicroBatchId = tuple[Side, str, int]
"""A batch: its side, query and number."""
Needs = frozenset[MicroBatchId]
"""The open batches whose attempts must agree before a difference counts."""
NOTHING: Needs = frozenset()


def place_of(side: Side, event: Event) -> Place:
    """The place of an event of a side."""
    return side, event[PARTITION], event[OFFSET]


def _behind(starts: Starts, place: Place) -> bool:
    _, partition, offset = place
    start = starts.get(partition)
    return start is not None and offset >= start


class UncheckedFrom:
    """The places by side from which on there are holes; `all_over` if a place is unknown."""

    def __init__(self) -> None:
        self.all_over = False
        self.starts: tuple[dict[int, int], dict[int, int]] = ({}, {})

    def note(self, side: Side | None, starts: Starts) -> None:
        """Note a hole that begins at `starts`; without a side or starts it may be anywhere."""
        if side is None or not starts:
            self.all_over = True
            return
        known = self.starts[side]
        for partition, offset in starts.items():
            known[partition] = min(known.get(partition, offset), offset)

    def spares(self, proof: Proof) -> bool:
        """Whether no event of a proof lies behind a hole."""
        return not self.all_over and not any(_behind(self.starts[place[0]], place) for place in proof)

    def spares_at_an_end(self, side: Side, event: Event) -> bool:
        """Whether the end of the other side proves that an event of a side has no partner."""
        return not self.starts[side.other] and self.spares([place_of(side, event)])

    def state(self) -> list[Any]:
        """The state as plain data."""
        return [self.all_over, *(list(known.items()) for known in self.starts)]

    def restore(self, state: Sequence[Any]) -> None:
        """Take over the `state`."""
        self.all_over, *starts = state
        for known, pairs in zip(self.starts, starts, strict=True):
            known.update(pairs)


def needs_of(proof: Proof | None, batches: Iterable[tuple[MicroBatchId, Starts]]) -> Needs:
    """The open batches that a difference waits for: all of them if its proof is unknown."""
    return frozenset(
        batch
        for batch, starts in batches
        if proof is None or any(place[0] == batch[0] and _behind(starts, place) for place in proof)
    )
