"""`once`: no second row of a key within a horizon of Kafka's time.

In append mode a row is written once, when it is settled. A second one of its key is a violation if the row of
the key that was read last before it is at most `horizon` older or newer, by Kafka's timestamps.

**What is remembered.** A key can be forgotten once no row that comes can be within the horizon of it: when
every partition has come that far. Producers stamp records, so times may go back a little within a partition;
therefore a key is kept for twice the horizon. A partition that is idle holds keys back until their number
reaches the limit. Of all that was forgotten the newest time is remembered: a row of an unknown key that is
not later than that by more than the horizon may be a second one, and is a doubt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinstream.core.checks.memory import Memory
from twinstream.core.checks.property import Finding, Property, Row

_TIME = 0


class Once(Property):
    """The fact of a row is the digest of its key. `keys` bounds what is remembered."""

    def __init__(self, horizon_ms: int, keys: int) -> None:
        self._horizon_ms, self._keys = horizon_ms, keys
        self._memory = Memory(keys)
        self._newest_ms: dict[int, int] = {}
        self._partitions = 0
        self._forgotten_ms: int | None = None

    def expect_rows(self, partitions: int) -> None:
        """Set the number of partitions."""
        self._partitions = partitions

    def take(self, row: Row) -> Finding | None:
        """Judge a row by the last one of its key, and remember it."""
        known = self._memory.get(row.fact)
        at_ms, place = row.timestamp_ms, (row.partition, row.offset)
        finding = None
        if known is not None and abs(at_ms - known[_TIME]) <= self._horizon_ms:
            text = f"is a second one of its key, after that at offset {known[2]} of partition {known[1]}"
            finding = Finding(*place, text)
        elif known is None and self._may_be_forgotten(at_ms):
            text = f"may be a second one of its key: `keys` ({self._keys}) or the horizon is too small"
            finding = Finding(*place, text, doubt=True)
        self._note_forgotten(self._memory.put(row.fact, (at_ms, *place)))
        self._advance(row.partition, at_ms)
        return finding

    def _may_be_forgotten(self, at_ms: int) -> bool:
        return self._forgotten_ms is not None and at_ms <= self._forgotten_ms + self._horizon_ms

    def _note_forgotten(self, value: tuple[Any, ...] | None) -> None:
        if value is not None and (self._forgotten_ms is None or value[_TIME] > self._forgotten_ms):
            self._forgotten_ms = value[_TIME]

    def _advance(self, partition: int, at_ms: int) -> None:
        newest = self._newest_ms
        if at_ms <= newest.get(partition, at_ms - 1):
            return
        newest[partition] = at_ms
        if len(newest) >= self._partitions:
            too_old = min(newest.values()) - 2 * self._horizon_ms
            for value in self._memory.forget_while(lambda value: value[_TIME] < too_old):
                self._note_forgotten(value)

    def state(self, *, whole: bool) -> dict[str, Any]:
        """The state as plain data."""
        newest = [list(item) for item in self._newest_ms.items()]
        own = {"newest_ms": newest, "forgotten_ms": self._forgotten_ms}
        return {**own, "memory": self._memory.state(whole=whole)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a whole state."""
        self._newest_ms, self._forgotten_ms = dict(state["newest_ms"]), state["forgotten_ms"]
        self._memory.restore(state["memory"])
