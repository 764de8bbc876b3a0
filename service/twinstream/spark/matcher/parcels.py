"""Deals the records of both topics out to the shards of a comparison, in parcels.

Spark moves rows, and each costs it microseconds. So the task that reads a partition packs the records of each
shard into a few rows, *parcels*, which keep the order of the partition. Besides, each shard gets one empty
parcel from each partition that was read: it says how far the partition is read, and where it ends. So every
shard knows the progress of all partitions, as a matcher that reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_type_hints

import msgpack
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from twinstream.core.events import Side
from twinstream.ports import Batch, Item, Passed
from twinstream.spark.matcher.addresses import Addresses
from twinstream.spec.codec.codec import Codec
from twinstream.spec.decode.formats.envelope import envelope
from twinstream.spec.file.model import Spec

UNKNOWN = -1
"""The end of a partition that Kafka did not tell."""


class Parcel(NamedTuple):
    """Some records of one partition for one shard. An empty one has no `records`.

    `first` is its first offset, `position` the one behind it, `end` that of the partition when it was read.
    """

    shard: int
    side: int
    partition: int
    first: int
    position: int
    end: int
    newest_ms: int
    records: bytes | None

    def items(self) -> Iterator[Item]:
        """What the parcel holds, as a source reads it."""
        side = Side(self.side)
        if self.records is None:
            yield Passed(side, self.partition, self.position, self.newest_ms)
        else:
            records, offsets, times_ms, headers, keys = msgpack.unpackb(self.records, use_list=True)
            yield Batch(side, self.partition, records, offsets, times_ms, headers, keys)


_TYPES = {int: pa.int64(), bytes | None: pa.binary()}
_ARROW = pa.schema([(name, _TYPES[kind]) for name, kind in get_type_hints(Parcel).items()])
SCHEMA = from_arrow_schema(_ARROW)
"""The columns of a parcel for Spark."""


class Dealer:
    """Packs the rows of Spark's Kafka source; `ends` tells the end of a partition of a topic."""

    def __init__(self, spec: Spec, codec: Codec, shards: int, ends: Any) -> None:
        self._spec, self._codec, self._ends = spec, codec, ends
        self._shards = range(shards)
        self._addresses = Addresses(codec, shards)
        self._sides = {spec.version_of(side).topic: side for side in Side}

    def parcels(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The parcels of the rows of one task, in the order of each partition, and the empty ones last."""
        reached: dict[tuple[str, int], tuple[int, int]] = {}
        for batch in batches:
            for (topic, partition), rows in _by_partition(batch):
                made = list(self._packed(topic, partition, rows))
                reached[topic, partition] = (made[0].position, made[0].newest_ms)
                yield _arrow(made)
        for (topic, partition), (position, newest_ms) in reached.items():
            end = self._ends(topic, partition)
            side = self._sides[topic]
            yield _arrow(
                Parcel(number, side, partition, position, position, end, newest_ms, None)
                for number in self._shards
            )

    def _packed(self, topic: str, partition: int, rows: Mapping[str, list[Any]]) -> Iterator[Parcel]:
        side, offsets, times_ms = self._sides[topic], rows["offset"], rows["timestamp_ms"]
        headers, keys = rows.get("headers"), rows.get("key")
        records = rows["value"]
        if self._spec.whole:
            columns = zip(records, keys or (), headers or (), times_ms, strict=True)
            records = [envelope(value, key, marks, at, partition) for value, key, marks, at in columns]
        position, newest_ms = offsets[-1] + 1, max(times_ms)
        places: dict[int, list[int]] = {}
        for place, number in enumerate(self._addresses.of(records, side)):
            places.setdefault(number, []).append(place)
        marks = headers if self._spec.reads_marks else None
        named = keys if self._spec.reads_keys else None
        for number, own in places.items():
            columns_of = [_only(column, own) for column in (records, offsets, times_ms, marks, named)]
            packed = msgpack.packb(columns_of)
            yield Parcel(number, side, partition, offsets[own[0]], position, UNKNOWN, newest_ms, packed)


def _only(column: Sequence[Any] | None, places: Sequence[int]) -> list[Any] | None:
    return None if column is None else [column[place] for place in places]


def _by_partition(batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, int], dict[str, list[Any]]]]:
    """The columns of a batch, for each partition in it; Spark reads one partition in a task."""
    columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    if "headers" in columns:
        columns["headers"] = [
            [(one["key"], one["value"]) for one in headers or ()] for headers in columns["headers"]
        ]
    topics, partitions = columns.pop("topic"), columns.pop("partition")
    places: dict[tuple[str, int], list[int]] = {}
    for place, name in enumerate(zip(topics, partitions, strict=True)):
        places.setdefault(name, []).append(place)
    if len(places) == 1:
        yield next(iter(places)), columns
        return
    for name, own in places.items():
        yield name, {key: [column[place] for place in own] for key, column in columns.items()}


def _arrow(parcels: Iterable[Parcel]) -> pa.RecordBatch:
    columns = list(zip(*parcels, strict=True))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)
