"""`ascending`: the rows of a key come in the order of a field.

The order is that of the offsets of one partition. Rows of a key in two partitions have no order in Kafka, so
the first one in another partition is a doubt. Without a key the field ascends within each partition.

Where rows replace each other and the key is theirs, a deletion ends the row of a key: the next one begins
anew. Where a batch is a whole table, a key without a row in it was deleted there. Batches are numbered
without gaps, so it was deleted if its last row is not of the batch before.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from twinstream.core.checks.memory import Memory
from twinstream.core.checks.property import Finding, Property, Row

Ordered = int | Decimal | str
"""A value that is ordered: a number, or a text by its characters."""


class Ascending(Property):
    """The fact of a row is the digest of its key, None without one, and the value of the field.

    A deletion has None in place of the value.

    `keys`: the latest so many keys are remembered; what came before of another is unknown, and no violation.
    """

    def __init__(self, field: str, keys: int) -> None:
        self._field = field
        self._memory = Memory(keys)

    def take(self, row: Row) -> Finding | None:
        """Judge a row by the last one of its key, and remember it."""
        digest, value = row.fact
        key = row.partition.to_bytes(4) if digest is None else digest
        known = self._memory.get(key)
        self._memory.put(key, (*_plain(value), row.partition, row.offset, *self._batch(row)))
        if known is None:
            return None
        text, is_text, partition, offset, *batch = known
        place = f"offset {offset} of partition {partition}"
        if partition != row.partition:
            apart = f"and that at {place} are of one key in two partitions, between which there is no order"
            return Finding(row.partition, row.offset, apart, doubt=True)
        if text is None or value is None or self._is_gone(row, *batch):
            return None
        before: Ordered = text if is_text else Decimal(text)
        if isinstance(value, str) is not isinstance(before, str):
            mixed = f"and that at {place} have a text and a number in `{self._field}`"
            return Finding(row.partition, row.offset, mixed, doubt=True)
        if value < before:
            return Finding(row.partition, row.offset, f"has a smaller `{self._field}` than that at {place}")
        return None

    def _batch(self, row: Row) -> tuple[int, ...]:  # noqa: ARG002
        """What is remembered of the batch of a row."""
        return ()

    def _is_gone(self, row: Row, *batch: int) -> bool:  # noqa: ARG002
        """Whether the key was deleted between a row of this batch and this one, and no row says so."""
        return False

    def state(self, *, whole: bool) -> dict[str, Any]:
        """The state as plain data."""
        return {"memory": self._memory.state(whole=whole)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a whole state."""
        self._memory.restore(state["memory"])


class AscendingInTables(Ascending):
    """The same where each batch is a whole table; the mark of a row is the number of its batch."""

    def _batch(self, row: Row) -> tuple[int, ...]:
        return (row.mark,)

    def _is_gone(self, row: Row, *batch: int) -> bool:
        return bool(row.mark > batch[0] + 1)


def _plain(value: Ordered | None) -> tuple[str | None, bool]:
    """A value as a text, and whether it is one: a number may be longer than 64 bits."""
    return None if value is None else str(value), isinstance(value, str)
