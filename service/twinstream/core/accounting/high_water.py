"""How many there were at most, of what comes and goes: it tells when memory is worth giving back."""

from __future__ import annotations

WORTH_IT = 100_000
"""The count above which memory is given back once an eighth is left."""


class HighWater:
    """The largest count since most of many have left.

    While the rest leaves too, each fall to an eighth counts; once the count rises again, only one from many.

    >>> water = HighWater()
    >>> [water.has_fallen(count) for count in (90_000, 0, 200_000, 25_000, 24_999, 4_000, 3_000, 9_000, 0)]
    [False, False, False, False, True, False, True, False, False]
    """

    __slots__ = ("_falls", "_most")

    def __init__(self) -> None:
        self._most, self._falls = 0, False

    def has_fallen(self, count: int) -> bool:
        """Note a count, and return whether most have left."""
        if count > self._most:
            self._most, self._falls = count, False
        if count >= self._most // 8 or not (self._falls or self._most > WORTH_IT):
            return False
        self._most, self._falls = count, True
        return True
