"""Shards: which partitions of a comparison each of several matchers compares.

A comparison is divided where its file asserts that its topics are co-partitioned: events that are equal or
dependent stand in partitions of one number. Then a shard is the comparison of its partitions alone, and
whatever is sound for a comparison is sound for a shard.
"""

from __future__ import annotations

from typing import NamedTuple


class Shard(NamedTuple):
    """One part of a comparison, counted from 0, and of how many."""

    number: int = 0
    of: int = 1

    @property
    def whole(self) -> bool:
        """Whether it is all of the comparison."""
        return self.of == 1

    def has(self, partition: int) -> bool:
        """Whether a partition is this shard's.

        >>> [partition for partition in range(5) if Shard(1, 2).has(partition)]
        [1, 3]
        """
        return partition % self.of == self.number

    def __str__(self) -> str:
        return f"shard {self.number} of {self.of}"


WHOLE = Shard()
