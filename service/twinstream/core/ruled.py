"""Rules: the index for an order that names exactly the pairs that are dependent.

Each rule has two roles, and splits the events of a role by the key that both must share. The unmatched
events of one role and key of a side are a *bucket*; the event's `Roles` say in which buckets it is, and which
buckets of either side *oppose* it, that is, hold the events that depend on it. So for an event x of side i,
with j the other side, and y the oldest unmatched event of j that equals x:

1. y is minimal  ⇔  in no bucket of j that opposes it is there an event older than y;
2. an event of j depends on x  ⇔  a bucket of j that opposes x is not empty.

A rule about times looks at a range of a bucket only: for whether there is an event in it, and for the oldest
one (see `times`); any other bucket is a queue with deletion (see `buckets`).

Events are numbered as they come, so that "older" is a comparison of two numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, cast

from twinstream.core.buckets import Bucket
from twinstream.core.events import Event, Side
from twinstream.core.index import UNANSWERED, Hooks, Index
from twinstream.core.orders import Roles, Ruled, Time
from twinstream.core.scopes import Scope
from twinstream.core.times import Times


class Entry(NamedTuple):
    """A waiting event: when it came among all of this index, and its roles."""

    number: int
    event: Event
    roles: Roles
    since_ms: int


Held = Entry | deque[Entry]
"""The waiting events of one canonical form: one alone, or several, oldest first."""


class RuledIndex(Index):
    """The unmatched events of both sides, by canonical form and by role and key of each rule."""

    __slots__ = ("_aside", "_buckets", "_count", "_depth", "_forms", "_hooks", "_order", "_size")

    def __init__(self, order: Ruled, hooks: Hooks, depth: int) -> None:
        self._order, self._hooks, self._depth = order, hooks, depth
        self._forms: tuple[dict[bytes, Held], dict[bytes, Held]] = ({}, {})
        self._buckets: tuple[dict[Hashable, Any], dict[Hashable, Any]] = ({}, {})
        self._size = [0, 0]
        self._count = 0
        self._aside: Scope | None = None

    # -- matching ------------------------------------------------------------------------------------------

    def take(self, side: Side, event: Event, route: Any) -> Event | None:
        partner = self.answer(side, event, route)
        if partner is UNANSWERED:
            self._wait(side, event, route, event[3])
            return None
        return partner

    def answer(self, side: Side, event: Event, route: Any) -> Event | None:
        """The steps 1 and 2. Complexity: O(r) in the rules that apply, O(r ∛n) for rules about times."""
        if self._aside is not None:
            self._aside.add(side, event)
            return None
        buckets = self._buckets[side.other]
        oldest = None
        for key, low, high in route[1]:
            bucket = buckets.get(key)
            if bucket is not None:
                number = bucket.number if type(bucket) is Bucket else _first(bucket, low, high)
                if number is not None and (oldest is None or number < oldest):
                    oldest = number
        held = self._forms[side.other].get(self._hooks.canonical(event[0][1]))
        if held is not None:
            entry = self._equal(held, event)
            if entry is not None and (oldest is None or entry.number <= oldest):
                self._remove(side.other, entry)
                return entry.event
        if oldest is None:
            return UNANSWERED
        self._set_aside(side, event)
        return None

    def _equal(self, held: Held, event: Event) -> Entry | None:
        """The oldest waiting event that equals this one; their canonical forms are equal."""
        equal = self._hooks.equal
        for entry in (held,) if type(held) is Entry else cast("deque[Entry]", held):
            if entry.event[0][1] == event[0][1] or equal(entry.event, event):
                return entry
        return None

    def _wait(self, side: Side, event: Event, roles: Roles, since_ms: int) -> None:
        self._count = number = self._count + 1
        self._size[side] += 1
        entry = Entry(number, event, roles, since_ms)
        forms, buckets = self._forms[side], self._buckets[side]
        letter = self._hooks.canonical(event[0][1])
        held = forms.setdefault(letter, entry)
        if held is not entry:
            if type(held) is Entry:
                forms[letter] = deque((held, entry))
            else:
                cast("deque[Entry]", held).append(entry)
        for key, time in roles[0]:
            bucket: Any = buckets.get(key)
            if bucket is None:
                bucket = buckets[key] = Bucket() if time is None else Times()
            if time is None:
                bucket.add(number, event)
            else:
                bucket.add(time, number, event)

    def _remove(self, side: Side, entry: Entry) -> None:
        forms, buckets = self._forms[side], self._buckets[side]
        letter = self._hooks.canonical(entry.event[0][1])
        held = forms[letter]
        if held is entry:
            del forms[letter]
        else:
            queue = cast("deque[Entry]", held)
            queue.remove(entry)
            if not queue:
                del forms[letter]
        self._size[side] -= 1
        for key, time in entry.roles[0]:
            bucket = buckets[key]
            if time is None:
                bucket.discard(entry.number)
            else:
                bucket.discard(time, entry.number)
            if not bucket:
                del buckets[key]

    # -- after a difference --------------------------------------------------------------------------------

    def _set_aside(self, side: Side, event: Event) -> None:
        self._aside = self._hooks.open(self, self._order, self._depth)
        for owner in Side:
            for waiting, _ in self.unmatched(owner):
                self._aside.add(owner, waiting)
        self._aside.add(side, event)
        self._clear()

    def _clear(self) -> None:
        self._forms, self._buckets, self._size = ({}, {}), ({}, {}), [0, 0]

    def adopt(self, scope: Scope, route: Any) -> None:
        scope.owner = self
        self._aside = scope

    def resume(self, scope: Scope, tails: tuple[Sequence[Event], Sequence[Event]]) -> list[Event]:
        self._aside = None
        return [
            partner
            for side in Side
            for event in tails[side]
            if (partner := self.take(side, event, scope.route(event))) is not None
        ]

    def scopes(self) -> Iterator[Scope]:
        return iter(() if self._aside is None else (self._aside,))

    # -- reading and restoring -----------------------------------------------------------------------------

    def empty(self, side: Side) -> bool:
        return not self._size[side]

    def unmatched(self, side: Side) -> Iterator[tuple[Event, int]]:
        for entry in self._entries(side):
            yield entry.event, entry.since_ms

    def _entries(self, side: Side) -> list[Entry]:
        entries: list[Entry] = []
        for held in self._forms[side].values():
            entries.extend((held,) if type(held) is Entry else cast("deque[Entry]", held))
        return sorted(entries, key=attrgetter("number"))

    def restore(self, side: Side, event: Event, route: Any, since_ms: int) -> None:
        self._wait(side, event, route, since_ms)

    def remove(self, side: Side, events: Sequence[Event]) -> None:
        gone = set(map(id, events))
        for entry in self._entries(side):
            if id(entry.event) in gone:
                self._remove(side, entry)


def _first(times: Times[Event], low: Time | None, high: Time | None) -> int | None:
    found = times.oldest(low, high)
    return None if found is None else found[0]
