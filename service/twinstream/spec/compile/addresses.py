"""Finds the shard of each record, from the key of its event.

A record that is no event, or is left out, has no key: all of them go to the first shard, which counts them.

In a bag equal events have nothing else in common than their form. If the file declares an identity, its value
is the key there: a `changed` divergence pairs two events of one identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twinstream.core.arrivals.sharding import shard_of
from twinstream.core.events import RECORD, ROUTE, Form, Side
from twinstream.core.order import Lanes, Order, ordered_class
from twinstream.spec.codec.codec import IGNORED, Codec

KNOWN_KEYS = 500_000
"""The keys whose shards are remembered: about 100 MB at most in each Python worker."""


class Addresses:
    """The shard of each event, by its key."""

    def __init__(self, codec: Codec, shards: int) -> None:
        self._codec, self._shards = codec, shards
        self._known: dict[Any, int] = {}

    def of(self, records: Sequence[bytes | None], side: Side) -> list[int]:
        """The number of the shard of each record of a side. Complexity: about 1 µs a record."""
        if self._shards == 1:
            return [0] * len(records)
        forms, _ = self._codec.forms(records, side)
        return self._of(forms)

    def of_stored(self, record: bytes) -> int:
        """The number of the shard of an event, by its record as a checkpoint holds it."""
        (number,) = self._of([self._codec.form_again(record)])
        return number

    def _of(self, forms: Sequence[Form]) -> list[int]:
        keys, known = self._keys(forms), self._known
        if new := set(keys).difference(known):
            if len(known) + len(new) > KNOWN_KEYS:
                known.clear()
                new = set(keys)
            known |= {key: 0 if key is None else shard_of(key, self._shards) for key in new}
        return [known[key] for key in keys]

    def _keys(self, forms: Sequence[Form]) -> list[Any]:
        order = self._codec.order
        if isinstance(order, Lanes) and all(forms):
            routes = [form[ROUTE] for form in forms]
            if bytes not in set(map(type, routes)):
                return routes
        return [self._key(order, form) for form in forms]

    def _key(self, order: Order, form: Form) -> Any:
        """What an event shares with all events that are equal to it, or may depend on it."""
        if form is IGNORED:
            return None
        route = form[ROUTE]
        key = ordered_class(order, route)
        if key is None and self._codec.identity is not None:
            named = self._codec.identity(form[RECORD])
            key = named if isinstance(named, bytes) else None  # One with none of the fields is alone.
        return route if key is None else key
