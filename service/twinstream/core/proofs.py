"""What a difference hangs on: it counts where all that proves it was checked.

Step 2 of matching proves a difference in a sequence by two events: the first of each side that has no partner
there. Nothing that comes behind them can weaken it. So what was not checked from some place on puts in doubt
what an event at or behind that place proves, and nothing before it, whichever was read first. This holds of
each partition by itself, since dependent events of a side stand in one.

The end of a side proves a difference by an event of the other side, and by all that the side has: so it is in
doubt where anything of that side was not checked, or something before the event.

A batch that is open may be written again, and its attempts may not agree in the end. So it is such a place,
too: what an event in or behind it proves is *held* until it is closed.

Where it is not known which events prove a difference, everything does.

Source: DiffStream (OOPSLA 2020), section 4.2: a difference is known at the earliest event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from twinstream.core.events import OFFSET, PARTITION, Event, Place, Side

Starts = Mapping[int, int]
"""By partition the first offset of what was not checked, or may be written again."""
Proof = Sequence[Place]
"""Where the events stand that prove a difference."""
MicroBatchId = tuple[Side, str, int]
"""A batch: its side, query and number."""
Needs = frozenset[MicroBatchId]
"""The open batches whose attempts have to agree for a difference to count."""
NOTHING: Needs = frozenset()


def place_of(side: Side, event: Event) -> Place:
    """Where an event of a side stands."""
    return side, event[PARTITION], event[OFFSET]


def _behind(starts: Starts, place: Place) -> bool:
    _, partition, offset = place
    start = starts.get(partition)
    return start is not None and offset >= start


class UncheckedFrom:
    """From which place on something was not checked, by side; `all_over` where the place is not known."""

    def __init__(self) -> None:
        self.all_over = False
        self.starts: tuple[dict[int, int], dict[int, int]] = ({}, {})

    def note(self, side: Side | None, starts: Starts) -> None:
        """Note that something was not checked; without a side or starts it may be anything."""
        if side is None or not starts:
            self.all_over = True
            return
        known = self.starts[side]
        for partition, offset in starts.items():
            known[partition] = min(known.get(partition, offset), offset)

    def spares(self, proof: Proof) -> bool:
        """Whether nothing that proves a difference lies behind it."""
        return not self.all_over and not any(_behind(self.starts[place[0]], place) for place in proof)

    def spares_at_an_end(self, side: Side, event: Event) -> bool:
        """Whether it is certain that an event of a side has no partner, since the other side has ended."""
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
    """The open batches that a difference waits for: all where it is not known what proves it."""
    return frozenset(
        batch
        for batch, starts in batches
        if proof is None or any(place[0] == batch[0] and _behind(starts, place) for place in proof)
    )
