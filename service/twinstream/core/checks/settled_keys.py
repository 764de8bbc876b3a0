"""`final_after_settled` where barriers settle: no other value for a key that a barrier has settled.

A barrier settles the latest row of each key before it in its partition. Each row of the key behind it is
compared with that one, and may only say the same. The next barrier settles what then is the latest row, so a
change is found once for each row, and not again behind the next barrier.

A deletion is a value, too: the key is not there. A key that was deleted before any barrier was never settled.
A key stands in one partition, whose barriers settle it. In another partition no order tells which of them lie
before a row, so the first row there is a doubt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from twinstream.core.checks.memory import Memory
from twinstream.core.checks.property import BARRIER, Finding, Property, Row

GONE = b""
"""The value of a key that is deleted: no digest is empty."""
_NEVER = (None, -1)


class SettledKeys(Property):
    """The fact of a row is the digest of its key and that of its value, `BARRIER` that of a barrier.

    `keys`: the latest so many keys are remembered; what was settled of another is unknown, and no violation.
    """

    def __init__(self, keys: int) -> None:
        self._memory = Memory(keys)
        self._barriers: Counter[int] = Counter()

    def take(self, row: Row) -> Finding | None:
        """Count a barrier, or judge a row by what was settled of its key."""
        if row.fact is BARRIER:
            self._barriers[row.partition] += 1
            return None
        key, value = row.fact
        known, passed = self._memory.get(key), self._barriers[row.partition]
        settled: tuple[bytes | None, int] = _NEVER
        if known is not None and known[0] == row.partition:
            settled = _settled(known, passed)
        self._memory.put(key, (row.partition, passed, value, row.offset, *settled))
        if known is not None and known[0] != row.partition:
            text = f"and that at offset {known[3]} of partition {known[0]} are of one key in two partitions"
            return Finding(row.partition, row.offset, f"{text}, between which there is no order", doubt=True)
        if settled[0] is None or settled[0] == value:
            return None
        return Finding(row.partition, row.offset, _text(value, settled[1]))

    def state(self, *, whole: bool) -> dict[str, Any]:
        """The state as plain data."""
        barriers = [list(item) for item in self._barriers.items()]
        return {"barriers": barriers, "memory": self._memory.state(whole=whole)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a whole state."""
        self._barriers = Counter(dict(state["barriers"]))
        self._memory.restore(state["memory"])


def _settled(known: tuple[Any, ...], passed: int) -> tuple[bytes | None, int]:
    """The value of a key that the last barrier has settled, and the offset of its row."""
    _, then, latest, offset, settled, settled_at = known
    if passed > then and (latest != GONE or settled is not None):
        return latest, offset
    return settled, settled_at


def _text(value: bytes, settled_at: int) -> str:
    what = "deletes a key" if value == GONE else "has another value for a key"
    return f"{what} that a barrier has settled, with the row at offset {settled_at} of its partition"
