"""The records of a topic, dealt out to shards in parcels."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from twinstream.core.events import Form, Side
from twinstream.ports import Batch, Gap, Item, Passed
from twinstream.spark.matcher import parcels
from twinstream.spark.matcher.parcels import Dealer, Parcel
from twinstream.spec.codec.codec import Codec, RefusedRecord
from twinstream.spec.decode.deletions import deletion
from twinstream.spec.load import loads

SPEC = """
version: 1
name: t
reference: {topic: a}
candidate: {topic: b}
order: {per_key: [k]}
"""


def dealt(dealer: Dealer, rows: Sequence[dict[str, Any]]) -> dict[int, list[Item]]:
    """What each shard gets of rows of the reference."""
    places = [
        {"side": 0, "partition": 0, "offset": offset, "timestamp_ms": 7, **row}
        for offset, row in enumerate(rows)
    ]
    found: dict[int, list[Item]] = {}
    for made in dealer.parcels([pa.RecordBatch.from_pylist(places)]):
        for parcel in (Parcel(**row) for row in made.to_pylist()):
            found.setdefault(parcel.shard, []).extend(parcel.items())
    return found


def test_a_row_that_is_deleted_is_named_by_its_key() -> None:
    spec = loads(SPEC + "emits: {upsert: {key: [k], settled_by: input}}")
    rows = [{"value": b'{"k": 1}', "key": b"1"}, {"value": None, "key": b"1"}]
    ((batch, _),) = dealt(Dealer(spec, Codec(spec), 1, lambda *_: (2, 2)), rows).values()
    assert isinstance(batch, Batch)
    assert batch.records == [b'{"k": 1}', deletion(b"1")]


class DeadlyCodec(Codec):
    """Its decoder has a fault that kills the process."""

    def forms(
        self, records: Sequence[bytes | None], side: Side, twins: Any = None
    ) -> tuple[list[Form], list[RefusedRecord]]:
        if any(b"poison" in (record or b"") for record in records):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forms(records, side, twins)


def test_a_record_that_kills_where_keys_are_read_is_a_gap_for_all_shards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parcels, "runs_again", lambda: True)
    spec = loads(SPEC)
    rows = [{"value": b'{"k": %d}' % n if n != 4 else b"poison"} for n in range(9)]
    of_shards = dealt(Dealer(spec, DeadlyCodec(spec), 3, lambda *_: (9, 9)), rows)
    gap, last = Gap(Side.LEFT, 0, 4, 5, left_out=True), Passed(Side.LEFT, 0, 9, 7)
    assert [gap in items and items[-1] == last for items in of_shards.values()] == [True] * 3
    kept = [
        one
        for items in of_shards.values()
        for item in items
        if isinstance(item, Batch)
        for one in item.offsets
    ]
    assert sorted(kept) == [0, 1, 2, 3, 5, 6, 7, 8]
