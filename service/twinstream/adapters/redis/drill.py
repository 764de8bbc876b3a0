"""Finds and removes the keys that a drill leaves in Redis, by their names.

twinstream:{NAME}:drill    exists while the drill of the comparison NAME runs; it expires
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Any

from twinstream.adapters.redis.connection import RedisConnection
from twinstream.spec.drills import INFIX, is_of_a_drill

SCANNED = 1000


class DrillKeys:
    """The keys of drills in one Redis. Every method but `close` raises StoreError."""

    def __init__(self, url: str) -> None:
        self._connection = RedisConnection(url)

    @property
    def _client(self) -> Any:
        return self._connection.client

    def begin(self, comparison: str, seconds: int) -> None:
        """Record that a drill runs, for at most so long."""
        self._connection.run(lambda: self._client.set(_running(comparison), "1", ex=seconds))

    def runs(self, comparison: str) -> bool:
        """Whether a drill runs."""
        return bool(self._connection.run(lambda: self._client.exists(_running(comparison))))

    def found(self) -> list[str]:
        """The comparisons of drills that have keys. Complexity: O(n) in all keys of Redis."""
        names = {
            key.partition("{")[2].partition("}")[0].partition(".")[0] for key in self._keys(f"*{INFIX}*")
        }
        return sorted(filter(is_of_a_drill, names))

    def remove(self, comparison: str) -> None:
        """Remove all keys of a drill's comparison and its shards. Complexity: as `found`."""
        for key in [*self._keys(comparison), *self._keys(f"{comparison}.*")]:
            self._connection.run(lambda key=key: self._client.unlink(key))

    def _keys(self, tag: str) -> Iterator[str]:
        """The keys with such a hash tag, on all known nodes."""
        self._connection.learn()
        pattern = f"twinstream:{{{tag}}}:*"
        for key in self._connection.run(lambda: list(self._client.scan_iter(pattern, SCANNED))):
            name = key.decode()
            if fnmatch.fnmatchcase(name, pattern):
                yield name

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def _running(comparison: str) -> str:
    return f"twinstream:{{{comparison}}}:drill"
