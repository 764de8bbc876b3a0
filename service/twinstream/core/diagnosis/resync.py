"""Finds where two sequences meet again: behind the fewest differences that equal events follow.

Two pieces of a sequence begin with events that differ. They have met where `length` events in a row are equal
on both sides. Of all such places, the search takes one with the fewest differences before it, among these the
one where both sides have written most nearly as much, and among these the first. So the place is a function
of the two sequences, and is known as soon as enough of both has come: later events cannot move it.

A difference is an event without a partner. Where equality has a tolerance, two events that are alike but not
equal are one difference, not one of each side: that event has changed.

The search is the greedy one of Myers, resumed as events come: for d = 0, 1, 2 … it finds the furthest place
on each diagonal that d differences can reach. A diagonal is *decided* when its path ends at two unequal
events, at the end of a side, or with a run. There is no result for d differences before all their diagonals
are decided.

Source: Myers, "An O(ND) Difference Algorithm and Its Variations" (1986), section 2.
"""

from __future__ import annotations

from collections.abc import Callable

SameAt = Callable[[int, int], bool]
"""Whether the i-th event of the left equals the j-th of the right."""
Lengths = tuple[int, int]
"""The number of events of each side."""


class Resync:
    """The search for the place at which two sequences meet. `exhausted`: there is none within the budget.

    >>> left, right = "xabcde", "abcde"
    >>> meeting = Resync(3, 10, lambda i, j: left[i] == right[j])
    >>> meeting.look((4, 2), (False, False)) is None
    True
    >>> meeting.look((4, 3), (False, False))
    (4, 3)
    """

    def __init__(self, length: int, budget: int, same: SameAt, alike: SameAt | None = None) -> None:
        self._length, self._budget, self._same, self._alike = length, budget, same, alike
        self._differences = 0
        self._before: dict[int, int] = {}
        self._reached: dict[int, int] = {}
        self.exhausted = False

    def look(self, lengths: Lengths, ended: tuple[bool, bool]) -> Lengths | None:
        """The place where the sides have met; None while it is unknown, or where there is none.

        `lengths` are the events of each side so far; a side that has `ended` gets no more.

        Complexity: O((n + d) d) in all for n events and d differences, at most the budget.
        """
        while not self.exhausted:
            met = []
            for diagonal in range(-self._differences, self._differences + 1, 2 if self._alike is None else 1):
                if not self._follow(diagonal, lengths, ended):
                    return None
                x = self._reached[diagonal]
                if self._run(x, x - diagonal, lengths) >= self._length:
                    met.append((abs(diagonal), x, x - diagonal))
            if met:
                return min(met)[1:]
            self._before, self._reached = self._reached, {}
            self._differences += 1
            self.exhausted = self._differences > self._budget
        return None

    def _follow(self, diagonal: int, lengths: Lengths, ended: tuple[bool, bool]) -> bool:
        """Follow equal events on a diagonal, up to a run; returns whether the diagonal is decided."""
        x = self._reached[diagonal] if diagonal in self._reached else self._start(diagonal, lengths)
        y = x - diagonal
        run = self._run(x, y, lengths)
        while run < self._length and x < lengths[0] and y < lengths[1] and self._same(x, y):
            x, y, run = x + 1, y + 1, run + 1
        self._reached[diagonal] = x
        left_out, right_out = x >= lengths[0], y >= lengths[1]
        if run >= self._length or not (left_out or right_out):
            return True
        return (left_out and ended[0]) or (right_out and ended[1])

    def _start(self, diagonal: int, lengths: Lengths) -> int:
        """The furthest start: down from the diagonal above, right from the one below, or past a change."""
        if not self._differences:
            return 0
        start = max(self._before.get(diagonal + 1, -1), self._before.get(diagonal - 1, -2) + 1)
        x = self._before.get(diagonal)
        if x is None or self._alike is None or x >= lengths[0] or x - diagonal >= lengths[1]:
            return start
        return max(start, x + 1) if self._alike(x, x - diagonal) else start

    def _run(self, x: int, y: int, lengths: Lengths) -> int:
        """The number of events in a row before a place that are equal, up to `length`."""
        if x > lengths[0] or y > lengths[1]:
            return 0
        run = 0
        while run < min(x, y, self._length) and self._same(x - 1 - run, y - 1 - run):
            run += 1
        return run
