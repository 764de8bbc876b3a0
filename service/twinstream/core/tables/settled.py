"""What the tables of both sides held when their keys were settled last, as digests.

A row that says what the table holds already changes nothing, and neither does the deletion of a key that the
table never had. Whether that is so is told by the settled table, which a comparison does not keep. Digests
are enough: one of the key, and one of the value of each side, 16 bytes each. Of more than `SETTLED_LIMIT`
keys those settled longest ago are forgotten. From then on nothing is known of a key that is not there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence, Set
from hashlib import blake2b
from typing import Any, Final

from twinstream.core.events import Side

SETTLED_LIMIT = 500_000
"""Keys whose settled values are remembered: about 250 bytes each."""

Value = bytes | None
"""The digest of a value; None where the table has no row."""
UNKNOWN: Final = b""
"""The value of a side of which nobody knows what its table held."""
Values = tuple[Value, Value]
"""The values of a key by side."""
ABSENT: Final[Values] = (None, None)


class Settled:
    """The settled values by key. `forgotten`: some keys are not remembered any more.

    >>> table = Settled(limit=1)
    >>> table.put(b"k", (b"1", b"1")), table.get(b"k"), table.get(b"other")
    (None, (b'1', b'1'), (None, None))
    >>> table.put(b"other", (b"2", None)), table.get(b"k")
    (None, None)
    """

    def __init__(self, limit: int = SETTLED_LIMIT) -> None:
        self._limit = limit
        self._values: OrderedDict[bytes, Values] = OrderedDict()
        self._changed: dict[bytes, Values] = {}
        self.forgotten = False

    def get(self, key: bytes) -> Values | None:
        """The settled values of a key; None if nobody knows them any more."""
        return self._values.get(key, None if self.forgotten else ABSENT)

    def put(self, key: bytes, values: Values) -> None:
        """Note the values of a key that is settled now. Complexity: O(1)."""
        self._values.pop(key, None)
        self._changed.pop(key, None)
        self._changed[key] = values
        if values != ABSENT:
            self._values[key] = values
        if len(self._values) > self._limit:
            self._values.popitem(last=False)
            self.forgotten = True

    def forget(self, but: Set[bytes]) -> None:
        """Note that no table holds a key, but these. Complexity: O(n) in all keys."""
        for key in self._values.keys() - but:
            self.put(key, ABSENT)

    def has_equal(self, but: Set[bytes]) -> bool:
        """Whether both tables hold a key with the same value, except these. Complexity: O(n) in all keys."""
        return any(left == right for left, right in map(self._values.__getitem__, self._values.keys() - but))

    def put_side(self, key: bytes, side: Side, value: Value) -> Value:
        """Note the value of a key on one side; returns the one before. Complexity: O(1)."""
        known = self.get(key) or (UNKNOWN, UNKNOWN)
        self.put(key, (value, known[1]) if side is Side.LEFT else (known[0], value))
        return known[side]

    def state(self, *, whole: bool) -> dict[str, Any]:
        """The state as plain data; unless `whole`, only the values that have changed since the last one."""
        changed, self._changed = self._changed, {}
        items = self._values.items() if whole else changed.items()
        values = {key: list(both) for key, both in items}
        return {"values": values, "forgotten": self.forgotten, "whole": whole}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a `whole` state, or a merged one."""
        self.forgotten = state["forgotten"]
        for key, (left, right) in state["values"].items():
            if (left, right) != ABSENT:
                self._values[key] = left, right
        while len(self._values) > self._limit:
            self._values.popitem(last=False)


def merged(states: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A whole state and the changes after it as one state; a later value replaces an earlier one."""
    values: dict[bytes, Values] = {}
    for state in states:
        if state["whole"]:
            values.clear()
        for key, both in state["values"].items():
            values.pop(key, None)
            values[key] = both
    return {**states[-1], "values": values, "whole": True}


def digest(content: bytes) -> bytes:
    """The digest of a key, or of a canonical form: no two are expected to share one."""
    return blake2b(content, digest_size=16).digest()
