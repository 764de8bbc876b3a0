"""Events as plain columns, as a snapshot has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Row = tuple[Any, ...]
"""What is kept of an event: its record, partition, offset, timestamp and mark."""
COLUMNS = ("records", "partitions", "offsets", "timestamps_ms", "marks")


def columns_of(rows: Iterable[Row], names: Sequence[str] = COLUMNS) -> dict[str, list[Any]]:
    """The columns of some rows.

    >>> columns_of([(b"a", 0, 7, 1000, None)])["offsets"], columns_of([])["offsets"]
    ([7], [])
    """
    columns = list(map(list, zip(*rows, strict=True))) or [[] for _ in names]
    return dict(zip(names, columns, strict=True))


def rows_of(columns: Mapping[str, Any], names: Sequence[str] = COLUMNS) -> Iterator[Row]:
    """The rows of some columns, which may have others, too."""
    return zip(*(columns[name] for name in names), strict=True)
