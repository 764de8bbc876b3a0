"""Events that were settled without a partner, kept in case their other half turns up elsewhere.

An event that moved further than a scope reaches is settled as missing in one place, and is surplus in
another. Both are one difference: an event that changed places, or that also changed its content. So a
leftover of one side is remembered for a while, and a later leftover of the other side that is equal to it, or
has its identity, completes it.

Content limits how far an event may have moved, too: `REACH` offsets of its partition behind the place where
the scope of its first half closed. A leftover that may be a known difference is *in dispute* until it is
certain that no other half comes, since its kind decides which rule covers it; so its other half may not have
been written much later, either (`Reach`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from twinstream.core.events import OFFSET, PARTITION, TIMESTAMP_MS, Event, Letter, Side

REACH = 10_000
"""Offsets of its partition that an event may have moved beyond a scope to count as reordered."""
UNPAIRED_LIMIT = 1000
"""Leftovers remembered on each side: enough for events that move, bounded in a flood."""
UNPAIRED_BYTES = 16 * 2**20
"""The same in bytes: 16 KB for each of them, so it limits only large records."""


class Reach(NamedTuple):
    """The limits within which the other half of a leftover may come.

    `offsets` are by side and partition those up to which its scope was compared, `until_ms` is the latest
    time at which the other half may have been written.
    """

    offsets: tuple[Mapping[int, int], Mapping[int, int]]
    until_ms: float

    def includes(self, side: Side, event: Event) -> bool:
        """Whether an event of a side may be the other half."""
        end = self.offsets[side].get(event[PARTITION])
        return (end is None or event[OFFSET] <= end + REACH) and event[TIMESTAMP_MS] <= self.until_ms


class Lookups(NamedTuple):
    """The keys of a leftover: its letter, and its identity where one is declared."""

    letter: Letter
    identity: Hashable = None


S = TypeVar("S")


class _Kept(NamedTuple, Generic[S]):
    keys: Lookups
    leftover: S


class Unpaired(Generic[S]):
    """The latest leftovers of both sides, oldest first.

    On each side neither their number nor their bytes, measured by `weigh`, exceed the limits.
    Complexity: O(1), except that equal leftovers out of reach are skipped one by one.
    """

    def __init__(
        self, weigh: Callable[[S], int], limit: int = UNPAIRED_LIMIT, limit_bytes: int = UNPAIRED_BYTES
    ) -> None:
        self._weigh, self._limit, self._limit_bytes = weigh, limit, limit_bytes
        self._bytes = [0, 0]
        self._kept: tuple[dict[int, _Kept[S]], dict[int, _Kept[S]]] = ({}, {})
        self._by_letter: tuple[dict[Hashable, deque[int]], dict[Hashable, deque[int]]] = ({}, {})
        self._by_identity: tuple[dict[Hashable, deque[int]], dict[Hashable, deque[int]]] = ({}, {})
        self._serial = 0
        self._changed = False

    def note(self, side: Side, keys: Lookups, leftover: S) -> None:
        """Remember a leftover of a side."""
        self._changed = True
        serial = self._serial = self._serial + 1
        kept = self._kept[side]
        kept[serial] = _Kept(keys, leftover)
        self._by_letter[side].setdefault(keys.letter, deque()).append(serial)
        if keys.identity is not None:
            self._by_identity[side].setdefault(keys.identity, deque()).append(serial)
        self._bytes[side] += self._weigh(leftover)
        while len(kept) > self._limit or (kept and self._bytes[side] > self._limit_bytes):
            self._take(side, next(iter(kept)))

    def claim_equal(self, side: Side, keys: Lookups, fits: Callable[[S], bool]) -> S | None:
        """Take the oldest leftover of a side that is equal and fits; None without one."""
        return self._claim(side, self._by_letter[side].get(keys.letter, ()), fits)

    def claim_named(self, side: Side, keys: Lookups, fits: Callable[[S], bool]) -> S | None:
        """Take the oldest leftover of a side that has this identity and fits; None without one."""
        if keys.identity is None:
            return None
        return self._claim(side, self._by_identity[side].get(keys.identity, ()), fits)

    def _claim(self, side: Side, serials: Iterable[int], fits: Callable[[S], bool]) -> S | None:
        kept = self._kept[side]
        serial = next((serial for serial in serials if fits(kept[serial].leftover)), None)
        return None if serial is None else self._take(side, serial)

    def _take(self, side: Side, serial: int) -> S:
        self._changed = True
        keys, leftover = self._kept[side].pop(serial)
        self._bytes[side] -= self._weigh(leftover)
        _forget(self._by_letter[side], keys.letter, serial)
        if keys.identity is not None:
            _forget(self._by_identity[side], keys.identity, serial)
        return leftover

    def take(self, side: Side, done: Callable[[S], bool]) -> list[S]:
        """Take the leftovers of a side that are done, oldest first."""
        serials = [serial for serial, kept in self._kept[side].items() if done(kept.leftover)]
        return [self._take(side, serial) for serial in serials]

    def amend(self, known: Callable[[S], S]) -> None:
        """Replace each leftover by its updated value, `known` of it. Complexity: O(limit)."""
        for kept in self._kept:
            for serial, (keys, leftover) in kept.items():
                kept[serial] = _Kept(keys, known(leftover))
        self._changed = True

    def take_changed(self) -> bool:
        """Whether a leftover was noted, taken or amended since the last call."""
        changed, self._changed = self._changed, False
        return changed

    def all(self, side: Side) -> Iterator[S]:
        """The leftovers of a side, oldest first."""
        return (kept.leftover for kept in self._kept[side].values())

    def __len__(self) -> int:
        return len(self._kept[0]) + len(self._kept[1])


def _forget(serials_of: dict[Hashable, deque[int]], key: Hashable, serial: int) -> None:
    serials = serials_of[key]
    serials.remove(serial)
    if not serials:
        del serials_of[key]
