"""`key_partition`: a row lies in the partition that its Kafka key names, and all rows of a value in one.

The partition of a key is that of Java's producer, and so of Spark's: `murmur2` of its bytes, made positive,
modulo the number of partitions. Only with it do all rows of a key stay in one partition, whoever writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from twinstream.core.checks.memory import Memory
from twinstream.core.checks.property import Finding, Property, Row

_WORD = 0xFFFFFFFF
_M, _SEED = 0x5BD1E995, 0x9747B28C
_POSITIVE = 0x7FFFFFFF
HASHES_KEPT = 1 << 14
"""Keys come again and again, and hashing one takes about 5 µs."""


@lru_cache(HASHES_KEPT)
def key_hash(key: bytes) -> int:
    """The hash of a key as Java's producer has it: `Utils.toPositive(Utils.murmur2(key))`.

    >>> key_hash(b"21"), key_hash(b"")
    (1173551340, 275646681)
    """
    rest = len(key) % 4
    h = _SEED ^ len(key)
    for start in range(0, len(key) - rest, 4):
        k = int.from_bytes(key[start : start + 4], "little") * _M & _WORD
        k = (k ^ k >> 24) * _M & _WORD
        h = (h * _M & _WORD) ^ k
    if rest:
        h = (h ^ int.from_bytes(key[-rest:], "little")) * _M & _WORD
    h = (h ^ h >> 13) * _M & _WORD
    return (h ^ h >> 15) & _POSITIVE


class KeyPartition(Property):
    """The fact of a row is the `key_hash` of its key, None without a key, and the digest of its fields.

    The digest is None if the check names no fields. `partitions`: how many the topic has, if nobody else
    says it. `keys`: of the latest so many values the partition is remembered.
    """

    def __init__(self, partitions: int | None, keys: int) -> None:
        self._partitions = partitions
        self._memory = Memory(keys)

    def expect(self, partitions: int) -> None:
        """Set the number of partitions."""
        self._partitions = partitions

    def take(self, row: Row) -> Finding | None:
        """Judge a row by its key, then by the last one of its value."""
        hashed, digest = row.fact
        known = None if digest is None else self._memory.get(digest)
        if digest is not None:
            self._memory.put(digest, (row.partition, row.offset))
        problem = self._misplaced(hashed, row.partition)
        if problem is None and known is not None and known[0] != row.partition:
            problem = f"has the value of that at offset {known[1]} of partition {known[0]}"
        return None if problem is None else Finding(row.partition, row.offset, problem)

    def _misplaced(self, hashed: int | None, partition: int) -> str | None:
        if hashed is None:
            return "has no key"
        if self._partitions is None or hashed % self._partitions == partition:
            return None
        return f"has a key of partition {hashed % self._partitions}"

    def unsettled(self) -> str | None:
        """Without the number of partitions no key names one."""
        if self._partitions is not None:
            return None
        return "the number of partitions is not known: say it as `partitions`"

    def state(self, *, whole: bool) -> dict[str, Any]:
        """The state as plain data."""
        return {"memory": self._memory.state(whole=whole)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a whole state."""
        self._memory.restore(state["memory"])
