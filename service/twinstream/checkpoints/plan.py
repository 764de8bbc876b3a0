"""Plans which saves are bases and which are deltas, and when a sweep replaces the base.

A base holds everything, a delta what changed since the checkpoint before it. Who restores reads the base and
all deltas behind it; so they must not become too many, nor too large. A new base would stop the matcher for a
second or two where a million events wait. Instead a *sweep* begins: each delta has, beside the changes, some
more of the events that were held when it began. With the delta that has the last of them, all bodies from
before the sweep go out of the checkpoint.

A base is written at the start, and after a save of which it is not known whether it took effect.
"""

from __future__ import annotations

from typing import NamedTuple

MOST_DELTAS = 60
SWEPT_EVENTS = 10_000
"""Changes and events of a sweep that one delta has of each side: about 20 ms of work for both."""


class SavePlan(NamedTuple):
    """How the next save is made: as a delta on `after` (None: as a base), in a sweep, as the first of it."""

    after: int | None
    sweeping: bool = False
    first: bool = False


class SavePlanner:
    """The bodies of the checkpoint in effect, as far as it is known which is.

    >>> planner = SavePlanner()
    >>> planner.begin()
    SavePlan(after=None, sweeping=False, first=False)
    >>> planner.saved(1, 1000)
    >>> planner.begin().after
    1
    >>> planner.begin().after  # the save before was never heard of again: what it held may be missing
    """

    def __init__(self, most_deltas: int = MOST_DELTAS) -> None:
        self._most_deltas = most_deltas
        self._last: int | None = None
        self._after: int | None = None
        self._sizes: list[int] = []
        self._base_bytes = self._base_bodies = 0
        self._before_sweep: int | None = None
        self._swept = False

    def begin(self) -> SavePlan:
        """How the next save is made; the one after it is a base until `saved` tells that it took effect."""
        self._after, self._last = self._last, None
        if self._after is None:
            return self.begin_base()
        return SavePlan(self._after, self._before_sweep is not None, self._before_sweep == len(self._sizes))

    def begin_base(self) -> SavePlan:
        """The next save is a base."""
        self._after = self._last = self._before_sweep = None
        return SavePlan(None)

    def dropping(self, *, swept: bool) -> int:
        """How many bodies go out with the save that was begun; `swept`: it has the last of a sweep."""
        return (self._before_sweep or 0) if swept else 0

    def saved(self, sequence: int, size: int, dropped: int = 0) -> None:
        """The save that was begun took effect under this number, with so many bytes."""
        self._last = sequence
        if self._after is None:
            self._sizes = []
        self._sizes.append(size)
        if dropped:
            del self._sizes[:dropped]
            self._before_sweep = None
        if dropped or self._after is None:
            self._base_bytes, self._base_bodies = sum(self._sizes), len(self._sizes)

    def grown(self) -> bool:
        """Whether a sweep is due: what came since the last one is as large as all else, or in many parts."""
        if self._before_sweep is not None:
            return False
        more = len(self._sizes) - self._base_bodies
        return more >= self._most_deltas or sum(self._sizes) > 2 * self._base_bytes

    def begin_sweep(self) -> None:
        """A sweep begins behind the last save."""
        self._before_sweep = len(self._sizes)
