"""The stateful operator: one worker a shard, fed with the parcels of a batch.

An event may need a control record that has not come: `start: input` sorts it by what both versions have said.
The service keeps such a batch back. A job cannot, so a task waits `WAIT_SECONDS`, and then fails: Spark tries
the whole batch again, and no half of one is ever taken.

The live worker of a shard stays in the Python worker between batches. It goes on only from the save that the
query has committed (`state`); else it is restored. While a batch is handled it is nowhere: a task that fails
half-way leaves no worker that has taken half of a batch.

Spark gives a shard to any idle Python worker of an executor. These have one clock, so a restored worker goes
on with the times of the one before (`Settlement.state`): else time would never prove anything. And each ends
the copies of shards that others have taken since, or all would hold all shards.

A batch in which a worker finds that there is no safe start is left out whole, also what came before in it:
what was found in half of a batch is never saved. So the worker is restored at once, and tells what any other
one would.

Spark calls once more for each shard when its timer is due. So overdue events are found, and the status is
told, while nothing comes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from twinstream.adapters.clocks import SystemClock, shared_clock
from twinstream.core.arrivals.sharding import KeyShard
from twinstream.core.events import Side
from twinstream.errors import SourceError
from twinstream.intake.falls import Caution, Trail
from twinstream.matcher.worker import Ports, Worker
from twinstream.ports import Item, Topic
from twinstream.spark.matcher.location import read
from twinstream.spark.matcher.parcels import Parcel
from twinstream.spark.matcher.python_worker import spare
from twinstream.spark.matcher.rehearsal import Step, runs_again, shared_trail, survivable
from twinstream.spark.matcher.results import rows_of
from twinstream.spark.matcher.source import FedSource, KafkaLookout, Lookout
from twinstream.spark.matcher.state import LastBulletin, StateStore, Variables
from twinstream.spec.file.model import Spec
from twinstream.spec.load import digest
from twinstream.starting.input_start import Found, FoundOpening, Opening
from twinstream.status.comparison import Publication

BEAT_MS = 1_000
WAIT_SECONDS, TRY_SECONDS = 30.0, 0.1
"""How long a task waits for a control record, and how often it looks for it."""
LOOK_SECONDS = 0.25
"""How long it waits for a look at the topics, which takes milliseconds."""
OUTPUT = "topic STRING, key BINARY, value BINARY"


class Job(NamedTuple):
    """What the driver tells the tasks. `topics` are both as they were when it began.

    `kafka` are properties of librdkafka, `java` options of Spark's own reader and writer. `found` is the
    start at the input, if the comparison has one.
    """

    spec: Spec
    brokers: str
    kafka: Mapping[str, Any]
    java: Mapping[str, str]
    results: str
    shards: int
    run: str
    topics: Mapping[Side, Topic]
    mask_secret: bytes
    found: Found | None = None

    @property
    def names(self) -> dict[Side, str]:
        """The topics of both sides."""
        return {side: self.spec.version_of(side).topic for side in Side}


class _Live(NamedTuple):
    """A worker with the ports that it was made with, and the time of the batch that it has taken last."""

    taken_ms: int
    worker: Worker
    source: FedSource
    store: StateStore
    relay: LastBulletin
    trail: Trail


_alive: dict[tuple[str, str, int], _Live] = {}
"""The live workers of this process, by run, comparison file and shard: what a Python worker has that outlives
a task."""
_lookouts: dict[tuple[str, str], Lookout] = {}


def _end_left_behind(run: str, file: str, now_ms: int) -> None:
    """End the workers of a run whose timers an earlier batch has had another Python worker handle."""
    own = {name: live.taken_ms for name, live in _alive.items() if name[:2] == (run, file)}
    before = max((taken_ms for taken_ms in own.values() if taken_ms < now_ms), default=0)
    for name, taken_ms in own.items():
        if taken_ms + BEAT_MS < before:  # Spark lets a timer expire in the first batch behind its time.
            _alive.pop(name).source.close()


def lookout_of(job: Job) -> Lookout:
    """The lookout of this process for a job."""
    name = (job.run, digest(job.spec))
    if name not in _lookouts:
        _lookouts[name] = KafkaLookout(job.spec, job.brokers, job.kafka).watch()
    return _lookouts[name]


class _Nobody:
    """A publisher that nobody listens to: what a job tells stands in its bulletins and saved divergences."""

    def publish(self, publication: Publication, made_at: float | None = None) -> None:
        """Drop it."""


class ShardProcessor(StatefulProcessor):
    """Feeds the worker of each shard, and returns the records for the results topics."""

    def __init__(self, job: Job, lookout: Callable[[Job], Lookout] = lookout_of) -> None:
        self._job, self._lookout = job, lookout

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state of a shard."""
        self._handle, self._variables = handle, Variables.of(handle)

    def handleInitialState(self, key: Any, initialState: pd.DataFrame, timerValues: Any) -> None:
        """Begin a shard with what was moved to the checkpoint location."""
        (content,) = initialState["content"]
        self._variables.begin(read(bytes(content)))
        self._set_timer(timerValues)

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
        name, now_ms = (self._job.run, digest(self._job.spec), shard), timers.getCurrentProcessingTimeInMs()
        _end_left_behind(*name[:2], now_ms)
        live = self._current(_alive.pop(name, None)) or self._restored(shard)
        live.store.bind(self._variables)
        steps, patience = list(_in_step(parcels)), time.monotonic() + WAIT_SECONDS
        if runs_again():
            live.worker.hear()
            with live.source.beginnings_kept(self._job.spec):  # The copy has no connections.
                steps = survivable(steps, live.worker.feed, live.trail, self._job.names, _ids(live.source))
        for side, items in steps:
            feed(live.worker, side, items, patience)
        if parcels and live.store.refusal is None and (reason := live.worker.refusal) is not None:
            live.store.refuse(reason)
            live.source.close()
            live = self._restored(shard)
        last = [parcel for parcel in parcels if parcel.is_last]
        for parcel in last:
            live.source.reached(Side(parcel.side), parcel.partition, parcel.end, parcel.marked)
        live.source.find_marks({(Side(parcel.side), parcel.partition) for parcel in last})
        live.source.await_look(LOOK_SECONDS)
        live.worker.settle()
        if parcels:
            live.store.note_taken()
        _alive[name] = live._replace(taken_ms=now_ms)
        spare()
        self._set_timer(timers)
        return self._told(shard, live)

    def _current(self, live: _Live | None) -> _Live | None:
        """A live worker, if it is as the query has committed it; any other is ended."""
        if live is not None and live.store.token != self._variables.token():
            live.source.close()
            return None
        return live

    def _restored(self, shard: int) -> _Live:
        """The worker of a shard as the state has it, or a new one."""
        job, clock, store = self._job, SystemClock(), StateStore()
        store.bind(self._variables)
        lookout = self._lookout(job)
        topics = job.topics if self._variables.token() is None else lookout.topics()
        source, relay, trail = FedSource(topics, lookout), LastBulletin(clock.now), shared_trail()
        opening = Opening if job.found is None else partial(FoundOpening, job.found)
        more = (lambda: job.mask_secret), lookout.recall
        ports = Ports(
            *(source, store, relay, _Nobody(), clock, *more),
            opening=opening,
            clock_name=shared_clock(),
            keeps_times=True,
        )
        part, where = KeyShard(shard, job.shards), f"Spark job {job.run}"
        worker = Worker(job.spec, ports, part, Caution(trail), where)
        try:
            _start(worker)
        except SourceError:
            source.close()
            raise
        if store.refusal is not None:
            worker.refuse(store.refusal)
        return _Live(0, worker, source, store, relay, trail)

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


def _start(worker: Worker) -> None:
    """Start a worker, and wait for what that needs. Raises SourceError if it does not come.

    A worker that refuses its start has started: it takes nothing, and says why.
    """
    patience = time.monotonic() + WAIT_SECONDS
    while not worker.start() and worker.refusal is None:
        if time.monotonic() >= patience:
            raise SourceError(worker.waits_for)
        time.sleep(TRY_SECONDS)


def feed(worker: Worker, side: Side, items: Sequence[Item], patience: float) -> None:
    """Feed a worker, and wait for what the items need, until this moment of the monotonic clock.

    Raises SourceError if it does not come: then some items are taken, so the worker is of no use any more.
    """
    while True:
        worker.hear()
        try:
            worker.feed(side, items)
        except SourceError:
            if time.monotonic() >= patience:
                raise
            items = ()
            time.sleep(TRY_SECONDS)
        else:
            return


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
