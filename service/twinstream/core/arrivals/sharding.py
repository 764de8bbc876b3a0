"""Shards: the partitions of a comparison that each of several matchers compares.

A comparison can be divided if its file asserts that its topics are co-partitioned: events that are equal or
dependent are in partitions of the same number. Then a shard is the comparison of its partitions alone, and
whatever is sound for a comparison is sound for a shard.
"""

from __future__ import annotations

from typing import NamedTuple


class Shard(NamedTuple):
    """One part of a comparison: its number, counted from 0, and the number of parts."""

    number: int = 0
    of: int = 1

    @property
    def whole(self) -> bool:
        """Whether it is the whole comparison."""
        return self.of == 1

    def has(self, partition: int) -> bool:
        """Whether a partition belongs to this shard.

        >>> [partition for partition in range(5) if Shard(1, 2).has(partition)]
        [1, 3]
        """
        return partition % self.of == self.number

    def __str__(self) -> str:
        return f"shard {self.number} of {self.of}"


WHOLE = Shard()
