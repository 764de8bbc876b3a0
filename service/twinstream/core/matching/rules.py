"""Rules: the index for an order that names exactly the pairs that are dependent.

Each rule has two roles, and splits the events of a role by the key that both must share. The unmatched
events of one role and key of a side are a *bucket*. The event's `Roles` say in which buckets it is, and which
buckets of either side *oppose* it, that is, hold the events that depend on it. So for an event x of side i,
with j the other side, and y the oldest unmatched event of j that equals x, the questions of the `algorithm`
become:

1. y is minimal  ⇔  no bucket of j that opposes it has an event older than y;
2. an event of j depends on x  ⇔  a bucket of j that opposes x is not empty.

Events are numbered as they come, so "older" compares two numbers. A bucket must find its oldest event, and
remove any event: it is an `OrderedDict` by number, which does both in constant time, where a plain dict walks
over the entries deleted at its front. A few events are a list, which is smaller, and one event is its own
bucket. A rule about times needs the oldest event in a range of a bucket (see `times`).

After a difference the *group* of the event is set aside: the kinds that rules connect, and of these, where
all rules require the same fields to be equal, the events with the same values.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from twinstream.core.events import Event, Side
from twinstream.core.matching.index import UNANSWERED, Hooks, Index, Pairs, SetAside
from twinstream.core.matching.times import Times
from twinstream.core.order import Roles, Ruled

Waiter = tuple[int, Event, Roles, int, bytes]
"""An unmatched event: number, event, roles, time since which equal ones are unmatched, canonical form."""
BucketEntry = Any
"""The unmatched events of one canonical form: one `Waiter`, or a deque of several, oldest first."""

FEW = 16
"""The number of events up to which a list is the quicker bucket."""

NONE = 1 << 62
"""Stands for no number; larger than all numbers."""


class RuledIndex(Index):
    """The unmatched events of both sides, by canonical form and by role and key of each rule."""

    __slots__ = ("_aside", "_buckets", "_count", "_depth", "_forms", "_hooks", "_order", "_plain", "_size")

    def __init__(self, order: Ruled, hooks: Hooks, depth: int) -> None:
        self._order, self._hooks, self._depth = order, hooks, depth
        self._plain = hooks.canonical is bytes
        self._forms: tuple[dict[bytes, BucketEntry], dict[bytes, BucketEntry]] = ({}, {})
        self._buckets = _no_buckets(order.roles), _no_buckets(order.roles)
        self._size = [0, 0]
        self._count = 0
        self._aside: dict[Hashable, SetAside] = {}

    # -- matching ------------------------------------------------------------------------------------------

    def answer(self, side: Side, event: Event, route: Roles) -> Event | None:
        """Take steps 1 and 2. Complexity: O(r) in the rules that apply, O(r log n) for those about times."""
        if self._aside and (scope := self._aside.get(route.group)) is not None:
            scope.add(side, event)
            return None
        other = 1 - side
        if not self._size[other]:
            return UNANSWERED
        oldest = self._oldest_opposed(other, route)
        content = event[0][1]
        held = self._forms[other].get(content if self._plain else self._hooks.canonical(content))
        if held is not None:
            entry: Waiter | None = held if type(held) is tuple else held[0]
            if entry is not None and entry[1][0][1] != content:
                entry = self._equal(held, event)
            if entry is not None and entry[0] <= oldest:
                self._remove(other, entry)
                return entry[1]
        if oldest == NONE:
            return UNANSWERED
        self._set_aside(side, event, route.group)
        return None

    def _oldest_opposed(self, side: int, route: Roles) -> int:
        """The number of the oldest event of a side that depends on an event of these roles."""
        buckets, oldest = self._buckets[side], NONE
        keys = route[1]
        for place, (_, role, timed) in enumerate(route[0][2]):
            key = keys[place]
            bucket = buckets[role].get(key[0] if timed else key)
            if bucket is None:
                continue
            kind = type(bucket)
            if kind is tuple:
                number = bucket[0]
            elif kind is list:
                number = bucket[0][0]
            elif timed:
                found = bucket.oldest(key[2], key[3])
                number = NONE if found is None else found[0]
            else:
                number = next(iter(bucket))
            if number < oldest:
                oldest = number
        return oldest

    def _equal(self, held: BucketEntry, event: Event) -> Waiter | None:
        """The oldest unmatched event, among those of one canonical form, that equals an event."""
        equal = self._hooks.equal
        entries = (held,) if type(held) is tuple else held
        return next((entry for entry in entries if equal(entry[1], event)), None)

    def restore(self, side: Side, event: Event, route: Roles, since_ms: int) -> None:
        self._count = number = self._count + 1
        self._size[side] += 1
        letter = event[0][1] if self._plain else self._hooks.canonical(event[0][1])
        entry = (number, event, route, since_ms, letter)
        forms, buckets = self._forms[side], self._buckets[side]
        held = forms.setdefault(letter, entry)
        if held is not entry:
            if type(held) is tuple:
                forms[letter] = deque((held, entry))
            else:
                held.append(entry)
        keys = route[1]
        for place, (role, _, timed) in enumerate(route[0][2]):
            key = keys[place]
            if timed:
                times = buckets[role].get(key[0])
                if times is None:
                    times = buckets[role][key[0]] = Times()
                times.add(key[1], number, entry)
                continue
            bucket = buckets[role].setdefault(key, entry)
            if bucket is not entry:
                kind = type(bucket)
                if kind is OrderedDict:
                    bucket[number] = entry
                elif kind is tuple:
                    buckets[role][key] = [bucket, entry]
                else:
                    bucket.append(entry)
                    if len(bucket) > FEW:
                        buckets[role][key] = OrderedDict((one[0], one) for one in bucket)

    def _remove(self, side: int, entry: Waiter) -> None:
        number, _, roles, _, letter = entry
        forms, buckets = self._forms[side], self._buckets[side]
        held = forms[letter]
        if held is entry:
            del forms[letter]
        else:
            held.remove(entry)
            if not held:
                del forms[letter]
        self._size[side] -= 1
        keys = roles[1]
        for place, (role, _, timed) in enumerate(roles[0][2]):
            key = keys[place]
            if timed:
                if not buckets[role][key[0]].discard(key[1], number):
                    del buckets[role][key[0]]
                continue
            bucket = buckets[role][key]
            if bucket is entry:
                del buckets[role][key]
            else:
                if type(bucket) is OrderedDict:
                    del bucket[number]
                else:
                    bucket.remove(entry)
                if not bucket:
                    del buckets[role][key]

    # -- after a difference --------------------------------------------------------------------------------

    def _set_aside(self, side: Side, event: Event, group: Hashable) -> None:
        scope = self._hooks.open(self, self._order, self._depth)
        for owner in Side:
            for entry in self._of_group(owner, group):
                self._remove(owner, entry)
                scope.add(owner, entry[1])
        self._aside[group] = scope
        scope.add(side, event)

    def _of_group(self, side: Side, group: Hashable) -> list[Waiter]:
        """The unmatched events of a group, oldest first. Complexity: O(k log k) in their number.

        A key in a rule of another group may equal a key of this group, so the group is checked.
        """
        if type(group) is not tuple:
            return [entry for entry in self._entries(side) if entry[2].group == group]
        found = (buckets.get(group[1]) for buckets in self._buckets[side])
        members = (entry for bucket in found if bucket is not None for entry in _members(bucket))
        entries = {entry[0]: entry for entry in members if entry[2].group == group}
        return [entries[number] for number in sorted(entries)]

    def adopt(self, scope: SetAside, route: Roles) -> None:
        scope.owner = self
        self._aside[route.group] = scope

    def resume(self, scope: SetAside, tails: tuple[Sequence[Event], Sequence[Event]]) -> Pairs:
        group = next(group for group, other in self._aside.items() if other is scope)
        del self._aside[group]
        return self.feed_again(scope, tails)

    def scopes(self) -> Iterator[SetAside]:
        return iter(tuple(self._aside.values()))

    # -- reading and restoring -----------------------------------------------------------------------------

    def empty(self, side: Side) -> bool:
        return not self._size[side]

    def unmatched(self, side: Side) -> Iterator[tuple[Event, int]]:
        for entry in self._entries(side):
            yield entry[1], entry[3]

    def _entries(self, side: Side) -> list[Waiter]:
        entries: list[Waiter] = []
        for held in self._forms[side].values():
            entries.extend((held,) if type(held) is tuple else held)
        return sorted(entries, key=itemgetter(0))

    def remove(self, side: Side, events: Sequence[Event]) -> None:
        gone = set(map(id, events))
        for entry in self._entries(side):
            if id(entry[1]) in gone:
                self._remove(side, entry)


def _no_buckets(roles: int) -> tuple[dict[Hashable, Any], ...]:
    return tuple({} for _ in range(roles))


def _members(bucket: Any) -> Iterable[Waiter]:
    """All events of a bucket."""
    if type(bucket) is tuple:
        return (bucket,)
    if type(bucket) is OrderedDict:
        return tuple(bucket.values())
    return tuple(bucket) if type(bucket) is list else (row[-1] for row in bucket)
