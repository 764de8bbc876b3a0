"""Plans which saves are bases and which are deltas, and when a sweep replaces the base.

A base holds everything, a delta the changes since the checkpoint before it. A restart reads the base and all
deltas after it, so they must not become too many or too large. With a million unmatched events, writing a new
base would stop the matcher for a second or two. Instead a *sweep* begins: besides the changes, each delta
holds some of the events that were there when the sweep began. The delta with the last of them removes all
bodies from before the sweep from the checkpoint.

A base is written at the start, and after a save if it is unknown whether that took effect.
"""

from __future__ import annotations

from typing import NamedTuple

MOST_DELTAS = 60
SWEPT_EVENTS = 10_000
"""The most changes and swept events of each side in one delta: about 20 ms of work for both."""


class SavePlan(NamedTuple):
    """The next save: a delta on `after` (None: a base); whether in a sweep, and whether as its first."""

    after: int | None
    sweeping: bool = False
    first: bool = False


class SavePlanner:
    """The bodies of the checkpoint in effect, as far as it is known which one that is.

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

    def begin(self) -> SavePlan:
        """Plan the next save; the one after it is a base unless `saved` reports that this one took effect."""
        self._after, self._last = self._last, None
        if self._after is None:
            return self.begin_base()
        return SavePlan(self._after, self._before_sweep is not None, self._before_sweep == len(self._sizes))

    def begin_base(self) -> SavePlan:
        """Make the next save a base."""
        self._after = self._last = self._before_sweep = None
        return SavePlan(None)

    def dropping(self, *, swept: bool) -> int:
        """The number of bodies that the present save removes; `swept`: it has the last events of a sweep."""
        return (self._before_sweep or 0) if swept else 0

    def saved(self, sequence: int, size: int, dropped: int = 0) -> None:
        """Record that the present save took effect, with this sequence number and size in bytes."""
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
        """Whether a sweep is due: the bodies since the last one are as large as the others, or many."""
        if self._before_sweep is not None:
            return False
        more = len(self._sizes) - self._base_bodies
        return more >= self._most_deltas or sum(self._sizes) > 2 * self._base_bytes

    def begin_sweep(self) -> None:
        """Begin a sweep after the last save."""
        self._before_sweep = len(self._sizes)
