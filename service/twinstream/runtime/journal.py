"""Which checkpoints are bases and which deltas.

A base holds everything, a delta what changed since the checkpoint before it. Who restores reads the base and
all deltas behind it, so a new base is due when they have grown together as large as it, or too many.
"""

from __future__ import annotations

MOST_DELTAS = 60


class Journal:
    """What was saved since the last base, as far as it is known to have taken effect.

    >>> journal = Journal()
    >>> journal.begin()
    >>> journal.saved(1, 1000)
    >>> journal.begin()
    1
    >>> journal.begin()  # the save before was never heard of again: what it held may be missing
    """

    def __init__(self, most_deltas: int = MOST_DELTAS) -> None:
        self._most_deltas = most_deltas
        self._last: int | None = None
        self._after: int | None = None
        self._base_bytes = self._delta_bytes = self._deltas = 0

    def begin(self) -> int | None:
        """The sequence that the next save builds on as a delta; None where it has to be a base.

        Until `saved` is told that it took effect, the one after it has to be a base.
        """
        self._after, self._last = (self._last if self._has_room() else None), None
        return self._after

    def begin_base(self) -> None:
        """The next save is a base."""
        self._after = self._last = None

    def saved(self, sequence: int, size: int) -> None:
        """The save that was begun took effect under this number, with so many bytes."""
        self._last = sequence
        if self._after is None:
            self._base_bytes, self._delta_bytes, self._deltas = size, 0, 0
        else:
            self._delta_bytes += size
            self._deltas += 1

    def _has_room(self) -> bool:
        return self._deltas < self._most_deltas and self._delta_bytes <= self._base_bytes
