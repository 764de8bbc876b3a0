"""Whether two sequences may have met again, told from each event as it comes and without comparing them.

Two pieces of a sequence have met when a run of equal events follows their last difference, up to the end of
one of them (see `scopes`). Then the newest events of that one stand in a row in the other, too. That is what
is looked for: each piece has the hashes of all its rows of that length, rolled on from event to event.

So it is told at once and for little that pieces are worth comparing; it is no proof that they have met.

Source: Karp and Rabin, "Efficient randomized pattern-matching algorithms" (1987).
"""

from __future__ import annotations

from collections import deque

from twinstream.core.events import Side

_MODULUS = (1 << 61) - 1
_BASE = 0x1B8735939DEAD9F1 % _MODULUS


class Rows:
    """All rows of `length` letters of one sequence, by their hashes; `newest` is that of its end."""

    def __init__(self, length: int) -> None:
        self.newest: int | None = None
        self.all: set[int] = set()
        self._letters: deque[int] = deque()
        self._length, self._leaving = length, pow(_BASE, length, _MODULUS)
        self._hash = 0

    def add(self, letter: bytes) -> None:
        """Take the next letter."""
        code = hash(letter)
        self._letters.append(code)
        self._hash = (self._hash * _BASE + code) % _MODULUS
        if len(self._letters) > self._length:
            self._hash = (self._hash - self._letters.popleft() * self._leaving) % _MODULUS
        if len(self._letters) == self._length:
            self.newest = self._hash
            self.all.add(self._hash)


class Meeting:
    """The rows of both sides.

    >>> meeting = Meeting(2)
    >>> for side, word in ((Side.LEFT, b"xabc"), (Side.RIGHT, b"ab")):
    ...     for letter in word:
    ...         meeting.add(side, bytes([letter]))
    >>> meeting.likely
    True
    >>> meeting.add(Side.RIGHT, b"y")
    >>> meeting.likely
    False
    """

    def __init__(self, length: int) -> None:
        self._rows = (Rows(length), Rows(length))

    def add(self, side: Side, letter: bytes) -> None:
        """Take the next letter of a side. Complexity: O(1)."""
        self._rows[side].add(letter)

    @property
    def likely(self) -> bool:
        """Whether the newest row of one side stands in the other: else the two have not met."""
        left, right = self._rows
        return left.newest in right.all or right.newest in left.all
