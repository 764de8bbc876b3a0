"""The number of pairs by kind and time: the evidence for the events written from a moment on.

A release asks about the version that it has deployed, and earlier matches say nothing about it. So pairs are
counted by the time of the older of their events, in stretches of time: both events of a pair in a stretch are
from its beginning or later. `since` sums the stretches that begin at a moment or later, so it never
overstates. It omits the pairs of the stretch around the moment.

A stretch is one second long at first. When there are many they are joined, so that each is at most an eighth
as long as it is old; so they stay few for any length of time. The last pairs counted define the present: a
record with a time in the far future does not make all others old.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

LIMIT = 256
"""Above this, stretches are joined: then 60 are left of an hour, 85 of a day, 130 of a year."""
SHARE = 8

TimelineRow = tuple[int, Mapping[str, int]]
"""The beginning of a stretch in Unix seconds, and the pairs in it by kind."""


class MatchTimeline:
    """Pairs by kind and time.

    `at` is the time, in Unix seconds, from which the age of stretches is measured.

    >>> stretches = MatchTimeline()
    >>> stretches.note(60_500, {"ride": 2}), stretches.note(75_000, {"ride": 3, "day": 1})
    (None, None)
    >>> dict(stretches.since(60.0)), dict(stretches.since(60.5)), dict(stretches.since(75.1))
    ({'ride': 5, 'day': 1}, {'ride': 3, 'day': 1}, {})
    """

    def __init__(self, rows: Iterable[TimelineRow] = (), at: int = 0) -> None:
        self.at = self._last = at
        self._begins: list[int] = []
        self._pairs: list[Counter[str]] = []
        for begins, pairs in sorted(rows, key=lambda row: row[0]):
            self._add(begins, pairs)
        self._join()

    def note(self, oldest_ms: int, pairs: Mapping[str, int]) -> None:
        """Count pairs by kind; `oldest_ms` is the Unix time of the oldest of their events.

        Complexity: O(log n) in the stretches, amortised.
        """
        second = oldest_ms // 1000
        self.at, self._last = min(second, self._last), second
        self._add(second, pairs)
        if len(self._begins) > LIMIT:
            self._join()

    def _add(self, second: int, pairs: Mapping[str, int]) -> None:
        place = bisect_right(self._begins, second)
        if place and self._begins[place - 1] == second:
            self._pairs[place - 1].update(pairs)
        else:
            self._begins.insert(place, second)
            self._pairs.insert(place, Counter(pairs))

    def _join(self) -> None:
        """Join each stretch to the one before it unless the result is too long for its age."""
        rows, self._begins, self._pairs = self._rows(), [], []
        for second, pairs in rows:
            if self._begins and (second - self._begins[-1]) * SHARE < self.at - second:
                self._pairs[-1].update(pairs)
            else:
                self._begins.append(second)
                self._pairs.append(pairs)
        if len(self._begins) > LIMIT:  # Stretches in the future have no age: join them two by two.
            two_and_two = zip_longest(self._pairs[::2], self._pairs[1::2], fillvalue=Counter[str]())
            self._pairs = [one + other for one, other in two_and_two]
            self._begins = self._begins[::2]

    def _rows(self) -> list[tuple[int, Counter[str]]]:
        return list(zip(self._begins, self._pairs, strict=True))

    def since(self, moment: float) -> Counter[str]:
        """The pairs by kind with both events from this Unix time or later; never more than there are."""
        return sum((pairs for begins, pairs in self._rows() if begins >= moment), Counter())

    def first_since(self, moment: float) -> int | None:
        """When the first of these pairs came, at the latest; None if there are none."""
        return min((begins for begins, _ in self._rows() if begins >= moment), default=None)

    def state(self) -> dict[str, Any]:
        """The state as plain data: the beginnings in order, and for each kind the pairs of each stretch."""
        self._join()
        kinds = dict.fromkeys(kind for pairs in self._pairs for kind in pairs)
        matched = {kind: [pairs[kind] for pairs in self._pairs] for kind in kinds}
        return {"at": self.at, "begins": list(self._begins), "matched": matched}


def united(states: Iterable[Mapping[str, Any]]) -> MatchTimeline:
    """The sum of several states."""
    given = list(states)
    rows = (
        (begins, {kind: counts[place] for kind, counts in state["matched"].items()})
        for state in given
        for place, begins in enumerate(state["begins"])
    )
    return MatchTimeline(rows, max((state["at"] for state in given), default=0))
