"""Events as plain columns, as a snapshot has them, and back.

What is kept of an event is its raw record: its form is read from that again. So the stored state does not
depend on how a form is represented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple, cast

from twinstream.core.events import OFFSET, PARTITION, Event, Form, PartitionOffset

Row = tuple[Any, ...]
"""What is kept of an event: its record, partition, offset, timestamp and mark."""
COLUMNS = ("records", "partitions", "offsets", "timestamps_ms", "marks")
_PLAIN = (1, 2, 3, 5)
"""Where the columns behind that of the records stand in an event."""


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


def event_columns(events: Iterable[Event]) -> dict[str, list[Any]]:
    """The columns of some events."""
    rows = list(events)
    forms = map(itemgetter(0), rows)
    columns = (list(map(itemgetter(3), forms)), *(list(map(itemgetter(place), rows)) for place in _PLAIN))
    return dict(zip(COLUMNS, columns, strict=True))


class EventReader(NamedTuple):
    """Makes events of columns again.

    `form_of` reads the form of a record, `read_at` stands for the time at which the events were read.
    """

    form_of: Callable[[bytes], Form]
    read_at: float

    def events(self, columns: Mapping[str, list[Any]]) -> Iterable[Event]:
        """The events of some columns, each time new ones."""
        records, *plain, marks = (columns[name] for name in COLUMNS)
        rows = zip(map(self.form_of, records), *plain, repeat(self.read_at), marks, strict=False)
        return cast("Iterable[Event]", rows)


def places_of(events: Iterable[Event]) -> list[list[int]]:
    """Where events stand in their side: partition and offset."""
    return [[event[PARTITION], event[OFFSET]] for event in events]


def by_place(events: Iterable[Event]) -> dict[PartitionOffset, Event]:
    """Events of one side by where they stand."""
    return {(event[PARTITION], event[OFFSET]): event for event in events}


def pairs_of(offsets: Mapping[int, int]) -> list[list[int]]:
    """Offsets by partition, as plain data."""
    return [[partition, offset] for partition, offset in offsets.items()]
