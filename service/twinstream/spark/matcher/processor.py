"""The stateful operator: one worker a shard, fed with the parcels of a batch.

The live worker of a shard stays in the Python worker between batches. It goes on only from the save that the
query has committed (`state`); else it is restored. While a batch is handled it is nowhere: a task that fails
half-way leaves no worker that has taken half of a batch.

Spark calls once more for each shard when its timer is due. So overdue events are found, and the status is
told, while nothing comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from twinstream.adapters.clocks import SystemClock
from twinstream.adapters.kafka.watch import LOOK_SECONDS, TopicsAdmin, TopicWatch
from twinstream.core.arrivals.sharding import KeyShard
from twinstream.core.events import Side
from twinstream.intake.falls import Caution, Trail
from twinstream.matcher.worker import Ports, Worker
from twinstream.ports import Topic
from twinstream.spark.matcher.parcels import UNKNOWN, Parcel
from twinstream.spark.matcher.python_worker import spare
from twinstream.spark.matcher.rehearsal import Step, runs_again, shared_trail, survivable
from twinstream.spark.matcher.results import rows_of
from twinstream.spark.matcher.source import FedSource
from twinstream.spark.matcher.state import LastBulletin, StateStore, Variables
from twinstream.spec.file.model import Spec
from twinstream.spec.load import digest
from twinstream.status.comparison import Publication

BEAT_MS = 1_000
OUTPUT = "topic STRING, key BINARY, value BINARY"


class Job(NamedTuple):
    """What the driver tells the tasks. `topics` are both as they were when it began."""

    spec: Spec
    brokers: str
    kafka: Mapping[str, Any]
    results: str
    shards: int
    run: str
    topics: Mapping[Side, Topic]
    mask_secret: bytes

    @property
    def names(self) -> dict[Side, str]:
        """The topics of both sides."""
        return {side: self.spec.version_of(side).topic for side in Side}


class _Live(NamedTuple):
    """A worker with the ports that it was made with."""

    worker: Worker
    source: FedSource
    store: StateStore
    relay: LastBulletin
    trail: Trail


_alive: dict[tuple[str, str, int], _Live] = {}
"""The live workers of this process, by run, comparison file and shard: what a Python worker has that outlives
a task."""
_watches: dict[tuple[str, str], tuple[TopicsAdmin, TopicWatch]] = {}


class _Nobody:
    """A publisher that nobody listens to: what a job tells stands in its bulletins and saved divergences."""

    def publish(self, publication: Publication, made_at: float | None = None) -> None:
        """Drop it."""


class ShardProcessor(StatefulProcessor):
    """Feeds the worker of each shard, and returns the records for the results topics."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state of a shard."""
        self._handle, self._variables = handle, Variables.of(handle)

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,
    ) -> Iterator[pd.DataFrame]:
        """Take the parcels of a batch."""
        parcels = [Parcel(*row) for frame in rows for row in frame.itertuples(index=False, name=None)]
        yield self._handled(int(key[0]), parcels, timerValues)

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: Any,
        expiredTimerInfo: Any,
    ) -> Iterator[pd.DataFrame]:
        """Survey a shard for which nothing has come."""
        yield self._handled(int(key[0]), (), timerValues)

    def _handled(self, shard: int, parcels: Sequence[Parcel], timers: Any) -> pd.DataFrame:
        name = (self._job.run, digest(self._job.spec), shard)
        live = _alive.pop(name, None)
        if live is None or live.store.token != self._variables.token():
            live = self._restored(shard)
        live.store.bind(self._variables)
        steps = list(_in_step(parcels))
        if runs_again():
            steps = survivable(steps, live.worker.feed, live.trail, self._job.names, _ids(live.source))
        for side, items in steps:
            live.worker.feed(side, items)
        for parcel in parcels:
            if parcel.end != UNKNOWN:
                live.source.reached(Side(parcel.side), parcel.partition, parcel.end)
        live.worker.settle()
        _alive[name] = live
        spare()
        self._set_timer(timers)
        return self._told(shard, live)

    def _restored(self, shard: int) -> _Live:
        """The worker of a shard as the state has it, or a new one."""
        job, clock, store = self._job, SystemClock(), StateStore(self._job.shards)
        self._variables.check(digest(job.spec), job.shards)
        store.bind(self._variables)
        admin, watch = self._watch()
        topics = job.topics if self._variables.token() is None else admin.both()
        source, relay, trail = FedSource(topics, watch), LastBulletin(clock.now), shared_trail()
        ports = Ports(source, store, relay, _Nobody(), clock, lambda: job.mask_secret)
        part, where = KeyShard(shard, job.shards), f"Spark job {job.run}"
        worker = Worker(job.spec, ports, part, Caution(trail), where)
        worker.start()
        return _Live(worker, source, store, relay, trail)

    def _watch(self) -> tuple[TopicsAdmin, TopicWatch]:
        """The looks at the topics, which all shards of this process share."""
        job = self._job
        name = (job.run, digest(job.spec))
        if name not in _watches:
            admin = TopicsAdmin(job.names, job.brokers, job.kafka)
            watch = TopicWatch(admin.look, admin.is_as, LOOK_SECONDS)
            watch.start()
            _watches[name] = (admin, watch)
        return _watches[name]

    def _set_timer(self, timers: Any) -> None:
        for old in list(self._handle.listTimers()):
            self._handle.deleteTimer(old)
        self._handle.registerTimer(timers.getCurrentProcessingTimeInMs() + BEAT_MS)

    def _told(self, shard: int, live: _Live) -> pd.DataFrame:
        assert live.relay.bulletin is not None, "it has settled"
        part = KeyShard(shard, self._job.shards)
        saved = live.store.take_saved()
        rows = rows_of(self._job.results, self._job.run, part, live.relay.bulletin, live.store.head, saved)
        return pd.DataFrame(rows, columns=["topic", "key", "value"])

    def close(self) -> None:
        """Nothing to close: live workers stay."""


def _ids(source: FedSource) -> dict[Side, str]:
    return {side: topic.id for side, topic in source.topics().items()}


def _in_step(parcels: Sequence[Parcel]) -> Iterator[Step]:
    """The items of parcels by side, partition and offset; the sides take turns."""
    queues = []
    for side in Side:
        own = sorted(
            (one for one in parcels if one.side == side),
            key=lambda one: (one.is_last, one.first, one.partition),
        )
        queues.append([(side, list(one.items())) for one in own])
    for place in range(max(map(len, queues), default=0)):
        for queue in queues:
            if place < len(queue):
                yield queue[place]
