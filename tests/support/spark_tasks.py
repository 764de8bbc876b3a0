"""A Spark job without Spark: the dealer and the processor of a job, and its state in memory.

A batch takes effect as a whole or not at all, as Spark has it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson
import pandas as pd
import pyarrow as pa

from loadtest.memory import MemorySource
from tests.support.saying import VERSIONS
from twinstream.adapters.kafka.results import DIVERGENCES
from twinstream.api.state.merging import merged
from twinstream.bootstrap import expectation
from twinstream.core.events import Side
from twinstream.errors import SourceError
from twinstream.ports import Batch, Positions
from twinstream.processes.standby import Bulletin
from twinstream.spark.matcher import processor
from twinstream.spark.matcher.parcels import Dealer
from twinstream.spark.matcher.processor import Job, ShardProcessor
from twinstream.spark.matcher.source import Follower
from twinstream.spec.codec.codec import Codec
from twinstream.spec.load import ComparisonFile, loads
from twinstream.status.comparison import ComparisonStatus

RESULTS = "results"
AT_INPUT = VERSIONS + (
    "control: said\norder: unordered\nshow: [n]\nevidence: {matched: 1, seconds: 0}\nstart: {at: input}\n"
    "overdue: {clock: input}\n"
)
LONG = 20_000
"""Bytes of a value from which on the state in memory refuses it."""


class MemoryLookout:
    """What a process asks beside Spark, of topics in memory."""

    def __init__(self, source: MemorySource) -> None:
        self._source = reader = source.reader()
        self.topics, self.begins_ms = reader.topics, reader.begins_ms
        self.control, self.recall = reader.control, reader.recall
        self.seen, self.look = reader.seen, reader.look
        reader.assign({side: {} for side in Side})  # from when on it looks

    def ended(self, side: Side, positions: Mapping[int, int]) -> dict[int, int]:
        ends = self._source.ends()[side]
        return {p: ends[p] for p, offset in positions.items() if offset >= ends[p]}

    def follower(self) -> Follower:
        return self._source.reader()


class _Value:
    def __init__(self) -> None:
        self._value: Any = None

    def get(self) -> Any:
        return self._value

    def update(self, value: Any) -> None:
        self._value = value

    def clear(self) -> None:
        self._value = None


class _Map:
    """Refuses what Spark may take in part only."""

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802 - Spark's
        assert len(value[0]) < LONG, "Spark takes long values in part, now and then"
        self._values[key] = value

    def removeKey(self, key: Any) -> None:  # noqa: N802 - Spark's
        self._values.pop(key, None)

    def iterator(self) -> Iterator[Any]:
        return iter(list(self._values.items()))

    def clear(self) -> None:
        self._values.clear()


class Handle:
    """The state of one shard, as a stateful processor gets it. It has no timers."""

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}

    def getValueState(self, name: str, _schema: str) -> Any:  # noqa: N802 - Spark's
        return self.variables.setdefault(name, _Value())

    def getMapState(self, name: str, _key: str, _value: str) -> Any:  # noqa: N802 - Spark's
        return self.variables.setdefault(name, _Map())

    def listTimers(self) -> list[int]:  # noqa: N802 - Spark's
        return []

    def registerTimer(self, _at: int) -> None:  # noqa: N802 - Spark's
        pass


class Times(NamedTuple):
    """The time of a batch."""

    now_ms: int

    def getCurrentProcessingTimeInMs(self) -> int:  # noqa: N802 - Spark's
        return self.now_ms


@dataclass
class Tasks:
    """A job on topics in memory; `reads` are its offsets, which move with each batch that takes effect."""

    text: str
    job: Job
    source: MemorySource
    reads: MemorySource = field(init=False)
    handles: list[Handle] = field(init=False)
    said: dict[int, Bulletin] = field(default_factory=dict)
    reports: dict[str, Any] = field(default_factory=dict)
    now_ms: int = 0

    @classmethod
    def of(cls, text: str, source: MemorySource, run: str, shards: int, **more: Any) -> Tasks:
        job = Job(loads(text), "", {}, {}, RESULTS, shards, run, source.topics(), b"a secret", **more)
        return cls(text, job, source)

    def __post_init__(self) -> None:
        self.handles = [Handle() for _ in range(self.job.shards)]
        self.reads = self.source.reader()
        at: Positions = {side: topic.first for side, topic in self.job.topics.items()}
        self.reads.assign(at if self.job.found is None else self.job.found.opened.positions)

    def batch(self, polls: tuple[int, int]) -> None:
        """One batch of so many polls of each side. Raises SourceError, and then nothing has happened."""
        before, state = copy.deepcopy(self.reads._next), copy.deepcopy(self.handles)
        parcels = self._dealt(polls)
        try:
            for number in range(self.job.shards):
                self._take(number, parcels[parcels["shard"] == number] if len(parcels) else None)
        except SourceError:
            self.reads._next, self.handles = before, state
            raise

    def lose_processes(self) -> None:
        """End all processes that run Python: the next batch begins from the state."""
        processor._alive.clear()

    def status(self) -> ComparisonStatus:
        """What all shards say together."""
        said: Any = {number: bulletin.said for number, bulletin in self.said.items()}
        if self.job.shards == 1:
            alone: ComparisonStatus = said[0].status
            return alone
        file = ComparisonFile(self.job.spec, self.text)
        return merged(expectation(file, self.job.shards), said, datetime.now(UTC))

    def _dealt(self, polls: tuple[int, int]) -> pd.DataFrame:
        names = {self.job.names[side]: side for side in Side}
        dealer = Dealer(
            self.job.spec,
            Codec(self.job.spec),
            self.job.shards,
            lambda topic, partition, _: (self.source.ends()[names[topic]][partition],) * 2,
        )
        found = [
            parcel.to_pandas()
            for side, count in zip(Side, polls, strict=True)
            for _ in range(count)
            for parcel in dealer.parcels(map(self._rows, self._polled(side)))
        ]
        return pd.concat(found) if found else pd.DataFrame()

    def _polled(self, side: Side) -> Iterable[Batch]:
        return [item for item in self.reads.poll(side, 0) if isinstance(item, Batch)]

    def _rows(self, batch: Batch) -> pa.RecordBatch:
        """A batch as Spark's Kafka source has it."""
        count = len(batch.records)
        headers = [[{"key": key, "value": value} for key, value in of] for of in batch.headers or ()]
        columns = {
            "side": [int(batch.side)] * count,
            "partition": [batch.partition] * count,
            "offset": list(batch.offsets),
            "timestamp_ms": list(batch.timestamps_ms),
            "value": list(batch.records),
        }
        if self.job.spec.reads_marks:
            columns["headers"] = headers
        return pa.RecordBatch.from_pydict(columns)

    def _take(self, number: int, parcels: pd.DataFrame | None) -> None:
        one = ShardProcessor(self.job, lambda _: MemoryLookout(self.source))
        one.init(self.handles[number])  # type: ignore[arg-type]
        if parcels is None:
            found = one.handleExpiredTimer((number,), Times(self.now_ms), None)
        else:
            found = one.handleInputRows((number,), iter([parcels]), Times(self.now_ms))
        for frame in found:
            for topic, key, value in frame.itertuples(index=False, name=None):
                said = orjson.loads(value)
                if topic == RESULTS + DIVERGENCES:
                    self.reports[key.decode().rpartition("/")[2]] = said["report"]
                else:
                    self.said[number] = Bulletin.model_validate(said["bulletin"])
