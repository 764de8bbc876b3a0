"""Finds where two sequences meet again: behind the fewest differences that equal events follow.

Two pieces of a sequence begin with events that differ. They have met where `length` events in a row are equal
on both sides. Of all such places, the search takes one with the fewest differences before it, of those one
where both sides have written most nearly as much, and of those the earliest. So the place is a function of
the two sequences, and is known as soon as enough of both has come: later events cannot move it.

A difference is an event without a partner. Where equality has a tolerance, two events that are alike but not
equal are one difference, not one of each side: that event has changed.

The search is the greedy one of Myers, resumed as events come: for d = 0, 1, 2 … it finds the furthest place
on each diagonal that d differences can reach. All places before it on the diagonal can be reached with no
more. So a run counts also where the path to the furthest place does not follow it, and each diagonal is
walked once. A diagonal is *decided* when its path ends at two unequal events, at the end of a side, or with a
run. There is no result for d differences before all their diagonals are decided.

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
        self._walked: dict[int, Lengths] = {}
        """By diagonal, how far it has been walked, and how many events in a row are equal before that."""
        self.exhausted = False

    def look(self, lengths: Lengths, ended: tuple[bool, bool]) -> Lengths | None:
        """The place where the sides have met; None while it is unknown, or where there is none.

        `lengths` are the events of each side so far; a side that has `ended` gets no more.

        Complexity: O((n + d) d) in all for n events and d differences, at most the budget.
        """
        if all(ended) and min(lengths) < self._length:
            self.exhausted = True  # No run fits into what there is.
        while not self.exhausted:
            met = []
            for diagonal in range(-self._differences, self._differences + 1, 2 if self._alike is None else 1):
                if not self._follow(diagonal, lengths, ended):
                    return None
                x, run = self._walked[diagonal]
                if run >= self._length:
                    met.append((abs(diagonal), 2 * x - diagonal, x))
            if met:
                _, both, x = min(met)
                return x, both - x
            self._before, self._reached = self._reached, {}
            self._differences += 1
            self.exhausted = self._differences > self._budget
        return None

    def _follow(self, diagonal: int, lengths: Lengths, ended: tuple[bool, bool]) -> bool:
        """Walk a diagonal to its start, then over equal events, up to a run; return if it is decided."""
        start = self._reached[diagonal] if diagonal in self._reached else self._start(diagonal, lengths)
        x, run = self._walked.get(diagonal, (max(0, diagonal), 0))
        end = min(lengths[0], lengths[1] + diagonal)
        while run < self._length and x < end and ((same := self._same(x, x - diagonal)) or x < start):
            x, run = x + 1, run + 1 if same else 0
        self._walked[diagonal] = x, run
        self._reached[diagonal] = max(x, start)
        if run >= self._length or x < end:
            return True
        return (x >= lengths[0] and ended[0]) or (x - diagonal >= lengths[1] and ended[1])

    def _start(self, diagonal: int, lengths: Lengths) -> int:
        """The furthest start: down from the diagonal above, right from the one below, or past a change."""
        if not self._differences:
            return 0
        start = max(self._before.get(diagonal + 1, -1), self._before.get(diagonal - 1, -2) + 1)
        x = self._before.get(diagonal, -1)
        has_both = 0 <= x < lengths[0] and x - diagonal < lengths[1]
        if self._alike is not None and has_both and self._alike(x, x - diagonal):
            x += 1
        return max(start, x)
