"""Shards: the parts of a comparison that several matchers compare.

A comparison can be divided where events that are equal or dependent belong to one part. Then a shard is the
comparison of its part alone, and whatever is sound for a comparison is sound for a shard. There are two ways:

- by partition (`Shard`), if the file asserts that its topics are co-partitioned: a shard reads partitions;
- by key (`KeyShard`): `shard_of` tells the shard of an event. Somebody has to read all partitions, and to
  deal the events out.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, NamedTuple

from twinstream.core.order import stable


class Shard(NamedTuple):
    """One part of a comparison: its number, counted from 0, and the number of parts."""

    number: int = 0
    of: int = 1

    @property
    def by_partition(self) -> bool:
        """Whether the number of a partition tells its shard."""
        return True

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


class KeyShard(Shard):
    """One part of a comparison that is divided by key: it has a share of the events of all partitions."""

    __slots__ = ()

    @property
    def by_partition(self) -> bool:
        """Whether the number of a partition tells its shard."""
        return False

    def has(self, partition: int) -> bool:  # noqa: ARG002 - all of them
        """Whether events of a partition may belong to this shard."""
        return True


WHOLE = Shard()


def shard_of(key: Any, shards: int) -> int:
    """The number of the shard that events with a key belong to, the same in every process.

    >>> shard_of("taxi 7", 8) == shard_of("taxi 7", 8)
    True
    """
    return int.from_bytes(blake2b(stable(key), digest_size=8).digest()) % shards
