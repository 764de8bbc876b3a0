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
from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

from twinstream.core.accounting.halves import Half, weight
from twinstream.core.events import Letter, Side

UNPAIRED_LIMIT = 1000
"""Leftovers remembered on each side: enough for events that move, bounded in a flood."""
UNPAIRED_BYTES = 16 * 2**20
"""The same in bytes: 16 KB for each of them, so it limits only large records."""


_Key = tuple[int, Hashable]
"""The index of a key in `Lookups`, and the key."""


class Lookups(NamedTuple):
    """The keys of a leftover: its letter, and its identity where one is declared."""

    letter: Letter
    identity: Hashable = None

    def given(self) -> Iterator[_Key]:
        """Those of the keys that are given."""
        return (key for key in enumerate(self) if key[1] is not None)


class _Kept(NamedTuple):
    keys: Lookups
    leftover: Half


class Unpaired:
    """The latest leftovers of both sides, oldest first.

    On each side neither their number nor their bytes, measured by `weight`, exceed the limits.
    Complexity: O(1), except that equal leftovers out of reach are skipped one by one.
    """

    def __init__(self, limit: int = UNPAIRED_LIMIT, limit_bytes: int = UNPAIRED_BYTES) -> None:
        self._limit, self._limit_bytes = limit, limit_bytes
        self._bytes = [0, 0]
        self._kept: tuple[dict[int, _Kept], dict[int, _Kept]] = ({}, {})
        self._serials: tuple[dict[_Key, deque[int]], dict[_Key, deque[int]]] = ({}, {})
        self._serial = 0
        self._changed = False

    def note(self, side: Side, keys: Lookups, leftover: Half) -> None:
        """Remember a leftover of a side."""
        self._changed = True
        serial = self._serial = self._serial + 1
        kept = self._kept[side]
        kept[serial] = _Kept(keys, leftover)
        for key in keys.given():
            self._serials[side].setdefault(key, deque()).append(serial)
        self._bytes[side] += weight(leftover)
        while len(kept) > self._limit or (kept and self._bytes[side] > self._limit_bytes):
            self._take(side, next(iter(kept)))

    def claim_equal(self, side: Side, keys: Lookups, fits: Callable[[Half], bool]) -> Half | None:
        """Take the oldest leftover of a side that is equal and fits; None without one."""
        return self._claim(side, (0, keys.letter), fits)

    def claim_named(self, side: Side, keys: Lookups, fits: Callable[[Half], bool]) -> Half | None:
        """Take the oldest leftover of a side that has this identity and fits; None without one."""
        return self._claim(side, (1, keys.identity), fits)

    def _claim(self, side: Side, key: _Key, fits: Callable[[Half], bool]) -> Half | None:
        kept, serials = self._kept[side], self._serials[side].get(key, ())
        serial = next((serial for serial in serials if fits(kept[serial].leftover)), None)
        return None if serial is None else self._take(side, serial)

    def _take(self, side: Side, serial: int) -> Half:
        self._changed = True
        keys, leftover = self._kept[side].pop(serial)
        self._bytes[side] -= weight(leftover)
        for key in keys.given():
            serials = self._serials[side][key]
            serials.remove(serial)
            if not serials:
                del self._serials[side][key]
        return leftover

    def take(self, side: Side, done: Callable[[Half], bool]) -> list[Half]:
        """Take the leftovers of a side that are done, oldest first."""
        serials = [serial for serial, kept in self._kept[side].items() if done(kept.leftover)]
        return [self._take(side, serial) for serial in serials]

    def amend(self, known: Callable[[Half], Half]) -> None:
        """Replace each leftover by its updated value, `known` of it. Complexity: O(limit)."""
        for kept in self._kept:
            for serial, (keys, leftover) in kept.items():
                kept[serial] = _Kept(keys, known(leftover))
        self._changed = True

    def take_changed(self) -> bool:
        """Whether a leftover was noted, taken or amended since the last call."""
        changed, self._changed = self._changed, False
        return changed

    def all(self, side: Side) -> Iterator[Half]:
        """The leftovers of a side, oldest first."""
        return (kept.leftover for kept in self._kept[side].values())

    def __len__(self) -> int:
        return len(self._kept[0]) + len(self._kept[1])
