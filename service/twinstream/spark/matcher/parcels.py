"""Deals the records of both topics out to the shards of a comparison, in parcels.

Spark moves rows, and each costs it microseconds. So the task that reads a partition packs the records of each
shard into a few rows, *parcels*, which keep the order of the partition. Besides, each shard gets one empty
parcel from each partition that was read: it says how far the partition is read, and where it ends. So every
shard knows the progress of all partitions, as a matcher that reads them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema

from twinstream.core.events import Side
from twinstream.ports import Batch, Gap, Item, Passed
from twinstream.spark.matcher.rehearsal import runs_again, shared_trail, survivable
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.addresses import Addresses
from twinstream.spec.decode.deletions import row_or_deletion
from twinstream.spec.decode.formats.envelope import envelope
from twinstream.spec.decode.headers import Headers
from twinstream.spec.file.model import Spec

UNKNOWN = -1
"""The ends in parcels that are not the last one of their partition."""

_PLAIN = ("value", "offset", "timestamp_ms")


class Parcel(NamedTuple):
    """Some records of one partition for one shard.

    `first` is its first offset, `position` the one behind it, `end` that of the partition when it was read.
    Up to `marked` only marks of transactions lie behind that. Two kinds have no `records`: the last one of a
    partition is empty, and one that is not empty is left out.
    """

    shard: int
    side: int
    partition: int
    first: int
    position: int
    end: int
    marked: int
    newest_ms: int
    records: bytes | None

    @property
    def is_last(self) -> bool:
        """Whether it tells only how far its partition is read."""
        return self.first == self.position

    def items(self) -> Iterator[Item]:
        """What the parcel holds, as a source reads it."""
        side = Side(self.side)
        if self.is_last:
            yield Passed(side, self.partition, self.position, self.newest_ms)
        elif self.records is None:
            yield Gap(side, self.partition, self.first, self.position, left_out=True)
        else:
            rows = _opened(self.records)
            records, offsets, times_ms = (rows.column(name).to_pylist() for name in _PLAIN)
            yield Batch(side, self.partition, records, offsets, times_ms, _headers(rows), _keys(rows))


_TYPES = {int: pa.int64(), bytes | None: pa.binary()}
_ARROW = pa.schema([(name, _TYPES[kind]) for name, kind in get_type_hints(Parcel).items()])
SCHEMA = from_arrow_schema(_ARROW)
"""The columns of a parcel for Spark."""


class Dealer:
    """Packs the rows of Spark's Kafka source; `ends` tells where a topic's partition, read so far, ends."""

    def __init__(self, spec: Spec, codec: Codec, shards: int, ends: Any) -> None:
        self._spec, self._codec, self._ends = spec, codec, ends
        self._shards = range(shards)
        self._addresses = Addresses(codec, shards)

    def parcels(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The parcels of the rows of one task, in the order of each partition, and the empty ones last."""
        reached: dict[tuple[int, int], tuple[int, int]] = {}
        for batch in batches:
            for side, partition, rows in _by_partition(batch):
                reached[side, partition] = _reached(rows)
                for part in self._survivable(Side(side), partition, rows):
                    gap = isinstance(part, Gap)
                    yield _arrow(self._gaps(part) if gap else self._packed(Side(side), partition, part))
        for (side, partition), (position, newest_ms) in reached.items():
            end, marked = self._ends(self._spec.version_of(Side(side)).topic, partition, position)
            yield _arrow(
                Parcel(number, side, partition, position, position, end, marked, newest_ms, None)
                for number in self._shards
            )

    def _survivable(self, side: Side, partition: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch | Gap]:
        """The rows, without those over which this task falls when it looks for their keys."""
        if len(self._shards) == 1 or not runs_again():
            yield rows
            return
        trail = shared_trail()

        def take(side: Side, items: Sequence[Item]) -> None:
            for item in items:
                if isinstance(item, Batch):
                    trail.enter(item)
                    self._addresses.of(item.records, side)
                    trail.leave()

        records, _ = self._records(partition, rows)
        offsets = rows.column("offset").to_pylist()
        read = Batch(side, partition, records, offsets, offsets)
        names = {of: self._spec.version_of(of).topic for of in Side}
        ((_, left),) = survivable([(side, (read,))], take, trail, names, dict.fromkeys(Side, ""))
        for part in left:
            if isinstance(part, Batch):
                yield rows.slice(bisect_left(offsets, part.offsets[0]), len(part.offsets))
            elif isinstance(part, Gap):
                yield part

    def _gaps(self, gap: Gap) -> Iterator[Parcel]:
        """What was left out, for all shards: nobody knows whose it is."""
        for number in self._shards:
            yield Parcel(
                number, gap.side, gap.partition, gap.wanted, gap.available, UNKNOWN, UNKNOWN, 0, None
            )

    def _packed(self, side: Side, partition: int, rows: pa.RecordBatch) -> Iterator[Parcel]:
        """The rows of one partition, a parcel for each shard that has some. One sort deals them all out."""
        records, rows = self._records(partition, rows)
        numbers = np.asarray(self._addresses.of(records, side))
        order = np.argsort(numbers, kind="stable")
        dealt, numbers = rows.take(pa.array(order)), numbers[order]
        starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1), len(numbers)]
        position, newest_ms = _reached(rows)
        for start, end in pairwise(starts):
            own = dealt.slice(start, end - start)
            first = own.column("offset")[0].as_py()
            yield Parcel(
                *(int(numbers[start]), side, partition, first, position, UNKNOWN, UNKNOWN, newest_ms),
                _packed(own),
            )

    def _records(self, partition: int, rows: pa.RecordBatch) -> tuple[list[bytes | None], pa.RecordBatch]:
        """What is compared of each row, and the rows that have it as their value."""
        values, keys = rows.column("value").to_pylist(), _keys(rows) or ()
        if self._spec.folding is not None:
            values = [row_or_deletion(value, key) for value, key in zip(values, keys, strict=True)]
        elif self._spec.whole:
            times_ms = rows.column("timestamp_ms").to_pylist()
            columns = zip(values, keys, _headers(rows) or (), times_ms, strict=True)
            values = [envelope(value, key, marks, at, partition) for value, key, marks, at in columns]
        else:
            return values, rows
        place = rows.schema.get_field_index("value")
        return values, rows.set_column(place, "value", pa.array(values, pa.binary()))


def _by_partition(batch: pa.RecordBatch) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Side, partition and rows for each partition in a batch; Spark reads one partition in a task."""
    sides, partitions = (batch.column(name).to_numpy() for name in ("side", "partition"))
    rows = batch.drop_columns(["side", "partition"])
    places = sides.astype(np.int64) << 32 | partitions
    for place in np.unique(places).tolist():
        own = places == place
        yield place >> 32, place & 0xFFFFFFFF, rows if own.all() else rows.filter(pa.array(own))


def _reached(rows: pa.RecordBatch) -> tuple[int, int]:
    """The offset behind some rows of a partition, and the largest of their times."""
    return rows.column("offset")[-1].as_py() + 1, pc.max(rows.column("timestamp_ms")).as_py()


def _packed(rows: pa.RecordBatch) -> bytes:
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, rows.schema) as stream:
        stream.write_batch(rows)
    packed: bytes = buffer.getvalue().to_pybytes()
    return packed


def _opened(packed: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(packed) as stream:
        return stream.read_next_batch()


def _headers(rows: pa.RecordBatch) -> list[Headers] | None:
    """The headers of each record; None if the comparison reads none."""
    if "headers" not in rows.schema.names:
        return None
    found = rows.column("headers").to_pylist()
    return [[(one["key"], one["value"]) for one in headers or ()] for headers in found]


def _keys(rows: pa.RecordBatch) -> list[bytes | None] | None:
    """The key of each record; None if the comparison reads none."""
    return rows.column("key").to_pylist() if "key" in rows.schema.names else None


def _arrow(parcels: Iterable[Parcel]) -> pa.RecordBatch:
    columns = list(zip(*parcels, strict=True))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)
