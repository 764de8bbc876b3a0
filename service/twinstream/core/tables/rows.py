"""The pending rows of one side: the latest row of each key that is not settled.

A row replaces the pending row of its key, which is *superseded*: settled and counted, and compared with
nothing. A key is open since its first row that is not settled. Up to there a side is verified: so a key that
changes all the time holds back the moment up to which everything was compared, although it holds one row.

Where it matters which batch wrote a row, rows wait in front of the others until that is known, and nothing
replaces them before. They come behind all others of their partition.

A key is in one partition, since Kafka orders only there. A key that turns up in two of them is *spread*, and
nobody knows which of its rows is the latest.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from twinstream.core.events import (
    FORM,
    OFFSET,
    PARTITION,
    RECORD,
    TIMESTAMP_MS,
    Event,
    PartitionOffset,
    place_in_side,
)

KEPT_PLACES = 3
"""The places of replaced rows that are kept for an explanation: the last ones."""

WAITS: Final = -3
"""What stands for the stage of a row that waits, in the state."""


class Row:
    """The latest row of a key: its `event`, and what is known of those that it has replaced.

    `since` and `since_ms` are offset and time of the first row that is not settled, `replaced` is the number
    of rows before this one, `last` are the places of the last of these. `stage` belongs to who settles it.
    `first_end_ms` is the first end that this row and those before it have named, as far as that has not
    passed; where no watermark settles rows, it is None.
    """

    __slots__ = ("event", "first_end_ms", "last", "replaced", "since", "since_ms", "stage")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.since: int = event[OFFSET]
        self.since_ms: int = event[TIMESTAMP_MS]
        self.replaced = 0
        self.last: list[PartitionOffset] = []
        self.stage: Any = None
        self.first_end_ms: int | None = None

    def replace(self, event: Event) -> Event:
        """Put a later row in the place of this one, and return the one replaced."""
        old, self.event, self.stage = self.event, event, None
        self.replaced += 1
        self.last = [*self.last, (old[PARTITION], old[OFFSET])][-KEPT_PLACES:]
        return old

    def handed_on(self, timestamp_ms: int | None = None) -> Event:
        """The event that goes to matching: its mark names the rows that it has replaced.

        A later `timestamp_ms` is that of the record that has settled it.
        """
        event = self.event
        moment_ms = event[TIMESTAMP_MS] if timestamp_ms is None else max(timestamp_ms, event[TIMESTAMP_MS])
        if not self.replaced and moment_ms == event[TIMESTAMP_MS]:
            return event
        mark = [self.replaced, *map(list, self.last)] if self.replaced else None
        # A plain tuple, as all events in a comparison are: named ones cost too much there.
        return (*event[:TIMESTAMP_MS], moment_ms, event[4], mark)  # type: ignore[return-value]


class PendingRows:
    """The pending rows of one side, by key. `key_of` maps a record to its key.

    >>> from twinstream.core.events import Form
    >>> rows = PendingRows(lambda record: record[:1])
    >>> one, two = (Event(Form("", b"", "", b"k1"), 0, at, 0, 0.0) for at in range(2))
    >>> rows.put("k", one), rows.put("k", two) is one, len(rows), rows.first_open()
    (None, True, 1, {0: 0})
    """

    def __init__(self, key_of: Callable[[bytes], Hashable]) -> None:
        self._key_of = key_of
        self._rows: dict[Hashable, Row] = {}
        self._open: dict[int, OrderedDict[Hashable, Row]] = {}
        self._waiting: dict[int, deque[Event]] = {}
        self.spread: list[Event] = []
        """Rows of keys in two partitions; the caller takes them."""

    def wait(self, event: Event) -> None:
        """Let a row wait until its batch is known."""
        self._waiting.setdefault(event[PARTITION], deque()).append(event)

    def waiting(self, partition: int) -> int:
        """How many rows of a partition wait."""
        return len(self._waiting.get(partition, ()))

    def take_first(self, partition: int) -> Event:
        """Take the first waiting row of a partition."""
        return self._waiting[partition].popleft()

    def take_below(self, ends: Mapping[int, int]) -> Iterator[Event]:
        """Take the waiting rows below the ends of a batch, by partition. Complexity: O(1) each."""
        for partition, events in self._waiting.items():
            end = ends.get(partition, 0)
            while events and events[0][OFFSET] < end:
                yield events.popleft()

    def take_rest(self) -> Iterator[Event]:
        """Take all waiting rows."""
        for events in self._waiting.values():
            while events:
                yield events.popleft()

    def put(self, key: Hashable, event: Event) -> Event | None:
        """Take a row; returns the one that it replaces. Complexity: O(1)."""
        row = self._rows.get(key)
        if row is None:
            self._add(key, Row(event))
            return None
        if event[PARTITION] != row.event[PARTITION]:
            self.spread.append(event)
            self._open[row.event[PARTITION]].pop(key, None)
            self._open.setdefault(event[PARTITION], OrderedDict())[key] = row
            row.since = event[OFFSET]
        return row.replace(event)

    def _add(self, key: Hashable, row: Row) -> None:
        self._rows[key] = row
        self._open.setdefault(row.event[PARTITION], OrderedDict())[key] = row

    def key(self, event: Event) -> Hashable:
        """The key of an event."""
        return self._key_of(event[FORM][RECORD])

    def get(self, key: Hashable) -> Row | None:
        """The pending row of a key."""
        return self._rows.get(key)

    def pop(self, key: Hashable) -> Row:
        """Remove the pending row of a key."""
        row = self._rows.pop(key)
        del self._open[row.event[PARTITION]][key]
        return row

    def in_order(self) -> list[Hashable]:
        """The keys of all pending rows, by the place of the row."""
        return sorted(self._rows, key=lambda key: place_in_side(self._rows[key].event))

    def first_open(self) -> dict[int, int]:
        """By partition, the offset of the first row that is not settled. Complexity: O(p) in partitions."""
        first = {partition: events[0][OFFSET] for partition, events in self._waiting.items() if events}
        return first | {row.event[PARTITION]: row.since for row in self._oldest()}

    def oldest_ms(self) -> int | None:
        """The time of the first row that is not settled."""
        times = [row.since_ms for row in self._oldest()]
        times += [events[0][TIMESTAMP_MS] for events in self._waiting.values() if events]
        return min(times, default=None)

    def _oldest(self) -> Iterator[Row]:
        """The row of each partition whose key has been open for longest."""
        return (next(iter(rows.values())) for rows in self._open.values() if rows)

    def __len__(self) -> int:
        return len(self._rows) + sum(map(len, self._waiting.values()))

    def __iter__(self) -> Iterator[Event]:
        yield from (row.event for row in self._rows.values())
        yield from chain.from_iterable(self._waiting.values())

    def state(self, stage_of: Callable[[Row], int]) -> dict[str, list[Any]]:
        """The rows as columns, those of each partition in the order in which their keys are open.

        Complexity: about 1 µs a row.
        """
        rows = [row for of in self._open.values() for row in of.values()]
        stages = list(map(stage_of, rows))
        waiting = list(map(Row, chain.from_iterable(self._waiting.values())))
        rows += waiting
        return {
            "partitions": [row.event[PARTITION] for row in rows],
            "offsets": [row.event[OFFSET] for row in rows],
            "since": [row.since for row in rows],
            "since_ms": [row.since_ms for row in rows],
            "replaced": [row.replaced for row in rows],
            "last": [list(map(list, row.last)) for row in rows],
            "stages": stages + [WAITS] * len(waiting),
            "first_ends_ms": [row.first_end_ms for row in rows],
        }

    def restore(
        self, state: Mapping[str, list[Any]], held: Mapping[PartitionOffset, Event]
    ) -> list[tuple[Hashable, Row, int]]:
        """Take over the `state`; returns each row with its key and stage, but for those that wait.

        The state of an earlier version has no first ends.
        """
        names = ("partitions", "offsets", "since", "since_ms", "replaced", "last", "stages")
        columns = [state[name] for name in names]
        first_ends_ms = state.get("first_ends_ms", [None] * len(columns[0]))
        found = []
        for first_end_ms, partition, offset, *known, last, stage in zip(first_ends_ms, *columns, strict=True):
            if stage == WAITS:
                self.wait(held[partition, offset])
                continue
            row = Row(held[partition, offset])
            row.since, row.since_ms, row.replaced = known
            row.last = list(map(tuple, last))
            row.first_end_ms = first_end_ms
            key = self.key(row.event)
            self._add(key, row)
            found.append((key, row, stage))
        return found
