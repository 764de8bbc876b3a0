"""Converts events to the plain columns of a snapshot, and back.

An event is stored as its raw record, and its form is read from the record again. So the stored state does
not depend on the representation of forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple, cast

from twinstream.core.events import OFFSET, PARTITION, READ_AT, Event, Form, PartitionOffset, in_kafka
from twinstream.errors import CheckpointError

Row = tuple[Any, ...]
"""An event as it is stored: record, partition, offset, timestamp and mark."""
COLUMNS = ("records", "partitions", "offsets", "timestamps_ms", "marks")
START_OVER = "remove the comparison's keys to start over"
"""The remedy for a state that cannot be taken over."""
_PLAIN = (1, 2, 3, 5)
"""The indices in an event of the columns behind the records."""
READ_TIMES = "read_at"
"""One more column, where it is kept when events were read: on a clock that the next process has, too."""


def columns_of(rows: Iterable[Row], names: Sequence[str] = COLUMNS) -> dict[str, list[Any]]:
    """The columns of some rows.

    >>> columns_of([(b"a", 0, 7, 1000, None)])["offsets"], columns_of([])["offsets"]
    ([7], [])
    """
    columns = list(map(list, zip(*rows, strict=True))) or [[] for _ in names]
    return dict(zip(names, columns, strict=True))


def rows_of(columns: Mapping[str, Any], names: Sequence[str] = COLUMNS) -> Iterator[Row]:
    """The rows of some columns; other columns are ignored."""
    return zip(*(columns[name] for name in names), strict=True)


def event_columns(events: Iterable[Event], *, timed: bool = False) -> dict[str, list[Any]]:
    """The columns of some events; `timed`: also when they were read."""
    rows = list(events)
    forms = map(itemgetter(0), rows)
    columns = (list(map(itemgetter(3), forms)), *(list(map(itemgetter(place), rows)) for place in _PLAIN))
    times = {READ_TIMES: list(map(itemgetter(READ_AT), rows))} if timed else {}
    return dict(zip(COLUMNS, columns, strict=True)) | times


class EventReader(NamedTuple):
    """Makes events from columns.

    `form_of` reads the form of a record. Events get `read_at` as the time at which they were read, but where
    the columns have that time and it is of this clock (`timed`).
    """

    form_of: Callable[[bytes], Form]
    read_at: float
    timed: bool = False

    def events(self, columns: Mapping[str, list[Any]]) -> Iterable[Event]:
        """The events of some columns, new objects at each call."""
        records, *plain, marks = (columns[name] for name in COLUMNS)
        anew = repeat(self.read_at)
        times = columns.get(READ_TIMES, anew) if self.timed else anew
        rows = zip(map(self.form_of, records), *plain, times, marks, strict=False)
        return cast("Iterable[Event]", rows)


class HeldByPlace(dict[PartitionOffset, Event]):
    """The held events of one side of a state, by place. A place without one raises CheckpointError."""

    def __missing__(self, place: PartitionOffset) -> Event:
        partition, offset = place
        raise CheckpointError(
            f"the stored state lacks the event at offset {in_kafka(offset)} of partition {partition}: "
            f"{START_OVER}"
        )


def by_place(events: Iterable[Event]) -> HeldByPlace:
    """Events of one side by place. Raises CheckpointError if two have one place."""
    held = HeldByPlace()
    for event in events:
        place = event[PARTITION], event[OFFSET]
        if place in held:
            raise CheckpointError(
                f"the stored state holds two events at offset {in_kafka(place[1])} of partition {place[0]}: "
                f"{START_OVER}"
            )
        held[place] = event
    return held


def pairs_of(offsets: Mapping[int, int]) -> list[list[int]]:
    """Offsets by partition, as plain data."""
    return [[partition, offset] for partition, offset in offsets.items()]
