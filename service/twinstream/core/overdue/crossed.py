"""Crossed pairs: equal events that are a pair, but come from different records of the input.

Matching pairs equal events as they come. A batch may write its rows in any order, so an event may get the
partner that a copy of later input should have had. The copy that is left over must not be judged by its own
point then.

**Theory.** Let nothing be lost. If side j has passed the point of an event x of side i, we have read its
*twin* on j: an equal event with the same point. Let x be unmatched. Then its twin is matched, to some y₁ of
side i: otherwise the two would be a pair. If j has passed the point of y₁, the twin of y₁ is matched to some
y₂, and so on. No event occurs twice, so this ends at a pair (y, z) where j has passed the point of z, and not
that of y. Different x lead to different pairs. Such a pair *excuses* one event:

- No more copies of a letter are passed and unmatched than its pairs excuse. All beyond these are proven.
- A lost event is one more end, for one x. So never more copies are proven than are lost.
- No pair excuses any more once j has passed all points. So every lost event is proven in the end.

This is Hall's condition, with pairs as witnesses: it needs the points of crossed pairs only. Copies are
interchangeable, so it does not matter which of them is named.

**Rules of this file.**

- A letter is taken by its canonical form. With a tolerance that is coarser, and the argument still holds.
- A pair may excuse events of side i only while j has not passed the point of y, and if j may pass that of z
  before. On one axis that of z is smaller.
- An unknown point of z counts as passed; one of y is never passed.
- Pairs beyond `KEPT` of a side are not remembered, nor those of which the point of y is unknown, but only
  their largest points. Until j has passed these, events of i are suspected, and not proven.

Source: P. Hall, "On representatives of subsets" (1935); DiffStream (OOPSLA 2020), section 4.4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from twinstream.core.events import MARK, Event, Side, place_in_side
from twinstream.core.matching.bags import as_key
from twinstream.core.overdue.points import Point

KEPT = 100_000
"""Pairs remembered for each side, some 40 MB: those that one batch writes in another order."""


class Crossed(NamedTuple):
    """A pair of a letter, as one side sees it: the points of its own event, and of the partner."""

    letter: bytes
    own: Point
    partner: Point | None


class CrossedPairs:
    """The crossed pairs of one comparison, by the side whose events they may excuse.

    `form_of` tells the canonical form of an event, `point_of` its point.
    """

    def __init__(self, form_of: Callable[[Event], bytes], point_of: Callable[[Event], Point | None]) -> None:
        self._form_of, self._point_of = form_of, point_of
        self._pairs: tuple[list[Crossed], list[Crossed]] = ([], [])
        self._forgotten: tuple[dict[Hashable, int], ...] = ({}, {})
        self._reached: list[Mapping[Hashable, int]] = [{}, {}]

    def note(self, side: Side, events: Iterable[Event], partners: Iterable[Event]) -> None:
        """Note pairs of events of a side. Complexity: about 40 ns each, some µs for one that is crossed."""
        for event, partner in zip(events, partners, strict=False):
            if event[MARK] != partner[MARK]:
                self._cross(side, event, partner)

    def _cross(self, side: Side, event: Event, partner: Event) -> None:
        points = self._point_of(event), self._point_of(partner)
        for of, own, other in ((side, points[0], points[1]), (side.other, points[1], points[0])):
            if not _may_excuse(own, other) or _is_passed(own, self._reached[of]):
                continue
            if own is None or len(self._pairs[of]) >= KEPT:
                self._forget(of, own)
            else:
                self._pairs[of].append(Crossed(self._letter(event), own, other))

    def _forget(self, side: Side, own: Point | None) -> None:
        axis, place = own or (None, 0)
        self._forgotten[side][axis] = max(place, self._forgotten[side].get(axis, place))

    # -- reading -------------------------------------------------------------------------------------------

    def look(self, side: Side, reached: Mapping[Hashable, int]) -> None:
        """Note by axis the first point of a side that the other has not passed; drop what it has."""
        self._reached[side] = reached
        pairs, forgotten = self._pairs[side], self._forgotten[side]
        if pairs:
            pairs[:] = [pair for pair in pairs if not _is_passed(pair.own, reached)]
        for point in tuple(forgotten.items()):
            if _is_passed(point, reached):
                del forgotten[point[0]]

    def lacks(self, side: Side) -> bool:
        """Whether pairs were not remembered that might excuse an event of a side, as of the last look."""
        return bool(self._forgotten[side])

    def excused(self, side: Side, passed: Mapping[int, Event]) -> set[int]:
        """The object ids of the `passed` unmatched events of a side that pairs excuse, as of the last look.

        First those that come from the same record as the partner in such a pair.
        """
        pairs = self._excusing(side)
        events: dict[bytes, list[Event]] = defaultdict(list)
        for event in passed.values() if pairs else ():
            if (letter := self._letter(event)) in pairs:
                events[letter].append(event)
        found: set[int] = set()
        for letter, copies in events.items():
            twins = pairs[letter]
            copies.sort(key=lambda event: (self._point_of(event) not in twins, place_in_side(event)))
            found.update(map(id, copies[: len(twins)]))
        return found

    def is_free(self, side: Side) -> Callable[[Event], bool]:
        """A test for events of a side: whether no pair of their letter excuses any, as of the last look."""
        pairs, lacks = self._excusing(side), self.lacks(side)
        return lambda event: not lacks and not (pairs and self._letter(event) in pairs)

    def _excusing(self, side: Side) -> dict[bytes, list[Point | None]]:
        """By letter the points of the partners in the pairs that excuse events of a side."""
        found: dict[bytes, list[Point | None]] = {}
        for letter, _, partner in self._pairs[side]:
            if partner is None or _is_passed(partner, self._reached[side]):
                found.setdefault(letter, []).append(partner)
        return found

    def _letter(self, event: Event) -> bytes:
        return blake2b(self._form_of(event), digest_size=16).digest()

    # -- state ---------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The state as plain data."""
        pairs, forgotten = self._pairs, self._forgotten
        return {
            "pairs": [list(map(list, one)) for one in pairs],
            "forgotten": [list(one.items()) for one in forgotten],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the `state`."""
        for side in Side:
            self._pairs[side].extend(Crossed(*map(as_key, row)) for row in state["pairs"][side])
            self._forgotten[side].update(map(as_key, state["forgotten"][side]))


def _may_excuse(own: Point | None, partner: Point | None) -> bool:
    """Whether a side may pass the point of the partner before that of the own event of a pair."""
    if own is None or partner is None:
        return own != partner
    return own[0] != partner[0] or own[1] > partner[1]


def _is_passed(point: Point | None, reached: Mapping[Hashable, int]) -> bool:
    return point is not None and point[0] in reached and point[1] < reached[point[0]]
