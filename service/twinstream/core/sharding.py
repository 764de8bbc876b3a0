"""Shards: which of several matchers an event of a comparison belongs to.

Events that may be dependent, and events that may be equal, must come to one matcher. There are two ways:

- *By partition*: a matcher reads the partitions whose number it has, modulo the number of matchers. Equal
  events must then stand in partitions of one number, which is checked on each match.
- *By key*: each matcher reads everything, and keeps the events whose class of dependent events hashes to it,
  or, for events that depend on nothing, whose canonical form does. Both are equal for equal events.

Rules of this file: a hash is the same in every process and version (never Python's `hash`), since checkpoints
rely on it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from zlib import crc32

from twinstream.core.events import Canonical, Form, Side
from twinstream.core.orders import Lanes, Order, ordered_class

Way = Literal["partition", "key"]
"""How the events of a comparison are divided."""
Offsets = Mapping[Side, Mapping[int, int]]
"""By side and partition, an offset."""
KeyOf = Callable[[Form], bytes]
"""The bytes that an event is dealt by: equal for events that may be equal or dependent."""


_SPREAD = 0x9E3779B1
"""Knuth's multiplier: the low bits of a CRC alone are a sum of single bits of the key."""


LANES_KNOWN = 100_000
"""Lanes of which it is remembered whose they are."""


class Undealt(Exception):  # noqa: N818 - it is an answer, caught where it is asked for
    """A state that cannot be dealt to other shards; the text says why."""


class Shard(NamedTuple):
    """One part of a comparison, counted from 0, and of how many."""

    number: int = 0
    of: int = 1

    @property
    def whole(self) -> bool:
        """Whether it is all of the comparison."""
        return self.of == 1

    def has(self, partition: int) -> bool:
        """Whether a partition is this shard's; so is what counts once and has no key.

        >>> [partition for partition in range(5) if Shard(1, 2).has(partition)]
        [1, 3]
        """
        return partition % self.of == self.number

    def __str__(self) -> str:
        return f"shard {self.number} of {self.of}"


WHOLE = Shard()


def key_of(order: Order, canonical: Canonical, common: Callable[[bytes], bytes] | None = None) -> KeyOf:
    """What deals the events of an order by key.

    `common` reads from a record the values that all dependent events have in common; where it is not given,
    the class of dependent events tells.
    """
    if isinstance(order, Lanes):
        return lambda form: stable(form[0])

    def key(form: Form) -> bytes:
        kept_together = ordered_class(order, form[0])
        if kept_together is None:
            return canonical(form[1])
        return stable(kept_together) if common is None else common(form[3])

    return key


class Dealer:
    """Deals events by key.

    >>> forms = [Form(lane, b"", "event", b"") for lane in ("a", "b", 3, 4)]
    >>> key = key_of(Lanes(), bytes)
    >>> Dealer(Shard(0, 2), key).places(forms), Dealer(Shard(1, 2), key).places(forms)
    ([2, 3], [0, 1])
    """

    def __init__(self, shard: Shard, key_of: KeyOf) -> None:
        self.key_of = key_of
        self._shard = shard
        self._own: dict[Any, bool] = {}

    def number(self, form: Form) -> int:
        """The shard that an event belongs to."""
        return (crc32(self.key_of(form)) * _SPREAD >> 16 & 0xFFFF) % self._shard.of

    def places(self, forms: Sequence[Form]) -> list[int]:
        """The places of the events that belong to the own shard.

        Complexity: about 0.1 µs for an event whose lane is a text or a number that came lately, 0.5 µs else.
        """
        known, number, own = self._own, self.number, self._shard.number
        if len(known) > LANES_KNOWN:
            known.clear()
        places = []
        for place, form in enumerate(forms):
            lane = form[0]
            if type(lane) is str or type(lane) is int:
                mine = known.get(lane)
                if mine is None:
                    mine = known[lane] = number(form) == own
            else:
                mine = number(form) == own
            if mine:
                places.append(place)
        return places


class Taken:
    """What was taken by shards of an earlier division, which had not all come equally far.

    They were divided by key. `reached` are by shard the next offsets that it had to read, `number` tells the
    shard of an event.
    """

    def __init__(self, reached: Sequence[Offsets], number: Callable[[Form], int]) -> None:
        self.reached, self._number = reached, number
        self._furthest = {
            (side, partition): max(one[side].get(partition, 0) for one in reached)
            for side in Side
            for partition in {partition for one in reached for partition in one[side]}
        }

    def over(self, positions: Offsets) -> bool:
        """Whether everything that any of them had taken was read again."""
        return all(
            positions[side].get(partition, furthest) >= furthest
            for (side, partition), furthest in self._furthest.items()
        )

    def left(
        self,
        side: Side,
        partition: int,
        offsets: Sequence[int],
        forms: Sequence[Form],
        refused: Container[int],
    ) -> list[int] | None:
        """The places of those records that were not taken; None where none was. Complexity: O(n)."""
        if offsets[0] >= self._furthest.get((side, partition), 0):
            return None
        reached = [one[side].get(partition, 0) for one in self.reached]
        of_no_event = reached[partition % len(reached)]  # That is counted by the shard of its partition.
        return [
            place
            for place, offset in enumerate(offsets)
            if offset >= (of_no_event if place in refused else reached[self._number(forms[place])])
        ]


def stable(key: Any) -> bytes:
    """A key, made of texts, whole numbers, bytes, None and tuples, as bytes; equal keys have equal ones.

    >>> stable("taxi"), stable(7), stable((1, "a"))
    (b'taxi', b'7', b'1 a')
    """
    match key:
        case str():
            return key.encode("utf-8", "surrogatepass")
        case bytes():
            return key
        case tuple():
            return b" ".join(map(stable, key))
        case int() | None:
            return b"%a" % key
    raise TypeError(f"{key!r} is no key")
