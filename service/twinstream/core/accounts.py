"""The accounts of a side, which count each of its events once, and holes: the input that was not checked.

Every consumed event is in exactly one account:
consumed = matched + ignored + before start + replayed + superseded + undecodable + explained + divergent
+ unmatched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from twinstream.core.events import PartitionOffset, Side, in_kafka


@dataclass
class Account:
    """The counts of one side; `unmatched` is what is left of `consumed`."""

    consumed: int = 0
    ignored: int = 0
    before_start: int = 0
    replayed: int = 0
    undecodable: int = 0
    explained: int = 0
    divergent: int = 0
    superseded: int = 0
    """Rows that a later row of their key has replaced, where rows fold (see `tables`)."""

    def unmatched(self, matched: int) -> int:
        """The number of events that are not settled, given the number of pairs."""
        left_out = self.ignored + self.before_start + self.replayed + self.undecodable + self.superseded
        return self.consumed - (matched + left_out + self.explained + self.divergent)

    def state(self) -> dict[str, int]:
        """The counts as plain data; that of superseded rows only where there are any."""
        return {name: count for name, count in vars(self).items() if count or name != "superseded"}


PLACE = "{place}"


class Hole(NamedTuple):
    """A stretch of input that was not checked: the reason, and the place if it is known.

    `PLACE` in the reason stands for topic, partition and side; whoever shows the reason fills them in.
    """

    reason: str
    side: Side | None = None
    partition: int | None = None
    offset: int | None = None

    @classmethod
    def at(cls, place: PartitionOffset, side: Side, reason: str) -> Hole:
        """A hole that begins at the place of an event."""
        partition, offset = place
        return cls(reason, side, partition, in_kafka(offset))

    @classmethod
    def of(cls, row: Sequence[Any]) -> Hole:
        """A hole from its members, which are plain data."""
        reason, side, partition, offset = row
        return cls(reason, None if side is None else Side(side), partition, offset)
