"""Remembers a value for each of the latest keys, within a declared number of keys.

A key is a digest. A state is whole, or has only the keys that were put in since the last one, in the order in
which they were put; `merged` makes a whole one of a whole one and the others after it. So a checkpoint costs
what has changed, not what is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Value = tuple[Any, ...]
"""Plain data: numbers and texts."""


class Memory:
    """The values of the latest keys, the key that was put last at the end.

    >>> memory = Memory(2)
    >>> [memory.put(key, (number,)) for number, key in enumerate([b"a", b"b", b"a", b"c"])]
    [None, None, None, (1,)]
    >>> memory.get(b"a"), memory.get(b"b")
    ((2,), None)
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: dict[bytes, Value] = {}
        self._changed: dict[bytes, None] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: bytes) -> Value | None:
        """The value of a key, None if it is not remembered."""
        return self._values.get(key)

    def put(self, key: bytes, value: Value) -> Value | None:
        """Remember the value of a key; returns that of the key which is forgotten for it. O(1)."""
        self._values.pop(key, None)
        self._values[key] = value
        self._changed.pop(key, None)
        self._changed[key] = None
        return self._forget(next(iter(self._values))) if len(self._values) > self._limit else None

    def forget_while(self, old: Callable[[Value], bool]) -> Iterator[Value]:
        """Forget the oldest keys as long as their values are `old`; gives these. O(1) for each."""
        while self._values:
            key = next(iter(self._values))
            if not old(self._values[key]):
                return
            yield self._forget(key)

    def _forget(self, key: bytes) -> Value:
        self._changed.pop(key, None)
        return self._values.pop(key)

    def state(self, *, whole: bool) -> dict[str, Any]:
        """The keys and values as columns: all of them, or those put in since the last state."""
        keys = list(self._values if whole else self._changed)
        self._changed.clear()
        columns = zip(*(self._values[key] for key in keys), strict=True)
        return {"whole": whole, "keys": keys, "columns": list(map(list, columns)), "kept": len(self._values)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a whole state."""
        self._values = dict(zip(state["keys"], zip(*state["columns"], strict=True), strict=False))
        self._changed.clear()


def merged(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The states of one memory, the first of them whole, as one whole state. Complexity: O(n) in all."""
    rows: dict[bytes, Value] = {}
    for state in states:
        if state["whole"]:
            rows.clear()
        for key, *value in zip(state["keys"], *state["columns"], strict=False):
            rows.pop(key, None)
            rows[key] = tuple(value)
    kept = states[-1]["kept"]
    latest = list(rows.items())[len(rows) - kept :]  # The oldest were forgotten since.
    columns = zip(*(value for _, value in latest), strict=True)
    return {
        "whole": True,
        "keys": [key for key, _ in latest],
        "columns": list(map(list, columns)),
        "kept": kept,
    }
