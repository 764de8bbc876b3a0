"""The contents that matched lately: what tells a surplus copy from an event that was never seen.

Noting a match must cost next to nothing, asking is rare. So noted contents are only queued, and brought into
canonical form when somebody asks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain, islice
from typing import TypeVar
from zlib import crc32

from twinstream.core.events import Canonical

SNAPSHOT_LIMIT = 10_000
"""Matches remembered over a restart: a copy comes soon after its original; a checkpoint stays small."""
BYTES = 128 << 20
"""About so much may be kept; of large records fewer are remembered."""
SAMPLED = 50
"""Contents of which the size is looked at."""
T = TypeVar("T")


class RecentMatches:
    """The last `limit` matched contents; 0 remembers nothing.

    What is restored from a snapshot is known by a 32-bit checksum of its bytes: there, one surplus event in
    400,000 may be called a duplicate by chance. It changes the name of a difference, never a verdict.
    """

    def __init__(self, limit: int, canonical: Canonical) -> None:
        self._limit = limit
        self._canonical = canonical
        self._noted: deque[bytes] = deque(maxlen=limit)
        self._known: deque[tuple[bytes, bytes]] = deque()
        self._copies: dict[bytes, int] = {}
        self._restored: frozenset[int] = frozenset()

    def note(self, contents: Iterable[bytes]) -> None:
        """Remember contents that were matched. Complexity: about 20 ns each."""
        self._noted.extend(contents)

    def trim(self) -> None:
        """Forget the oldest where all take up more than `BYTES`. Complexity: O(1), and for each forgotten.

        Sizes are those of a sample, so that it may be called often.
        """
        surplus = _sum(self._noted, len) + _sum(self._known, _size) - BYTES
        while surplus > 0 and self._known:
            surplus -= _size(self._known[0])
            self._forget()
        while surplus > 0:
            surplus -= len(self._noted.popleft())

    def has(self, content: bytes) -> bool:
        """Whether an equal content was matched lately.

        Complexity: O(1) amortised over the contents noted.
        """
        self._bring_up()
        return self._canonical(content) in self._copies or crc32(content) in self._restored

    def _bring_up(self) -> None:
        while self._noted:
            content = self._noted.popleft()
            canonical = self._canonical(content)
            self._known.append((content, canonical))
            self._copies[canonical] = self._copies.get(canonical, 0) + 1
        while len(self._known) > self._limit:
            self._forget()

    def _forget(self) -> None:
        _, oldest = self._known.popleft()
        self._copies[oldest] -= 1
        if not self._copies[oldest]:
            del self._copies[oldest]

    def snapshot(self) -> list[int]:
        """Checksums of the latest matches."""
        newest_first = chain(reversed(self._noted), (content for content, _ in reversed(self._known)))
        sums = list(map(crc32, islice(newest_first, SNAPSHOT_LIMIT)))
        return sums + list(islice(self._restored, SNAPSHOT_LIMIT - len(sums)))

    def restore(self, checksums: Iterable[int]) -> None:
        """Take over the state of `snapshot`."""
        self._restored = frozenset(checksums)


def _size(known: tuple[bytes, bytes]) -> int:
    return len(known[0]) + len(known[1])


def _sum(held: deque[T], size: Callable[[T], int]) -> int:
    """About how large some things are together."""
    sizes = [size(held[place]) for place in range(0, len(held), max(1, len(held) // SAMPLED))]
    return sum(sizes) * len(held) // max(1, len(sizes))
