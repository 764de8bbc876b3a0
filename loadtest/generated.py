"""A worker on topics that are made up as they are read, with its checkpoints in a real Redis.

So the loop of the matcher can be watched for as long as one likes, without a broker beside it: all that it
lacks is the reading. What a topic holds comes from an iterator of batches; one that yields None has nothing
just now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loadtest.memory import MemorySource
from twinstream.adapters.clocks import SystemClock
from twinstream.adapters.redis.shelf import RedisShelf
from twinstream.core.arrivals.sharding import WHOLE
from twinstream.core.events import Side
from twinstream.logs import configure_logging
from twinstream.matcher.memory import collect_rarely
from twinstream.matcher.worker import Ports, Worker
from twinstream.ports import Batch, BeginsMs, Gap, Positions, Topic
from twinstream.spec.load import loads
from twinstream.status.comparison import Publication

PARTITIONS = 4
START_MS = 1_700_000_000_000
NO_DISK = {"appendonly": "no", "slowlog-log-slower-than": "1000", "slowlog-max-len": "1024"}
"""Redis without a disk, which takes down what keeps it busy for a millisecond or longer."""

Stream = Iterator[Batch | None]


class GeneratedSource(MemorySource):
    """Both topics, read from iterators; `delivered` counts the records, `over` tells that no more come."""

    def __init__(self, streams: Mapping[Side, Stream]) -> None:
        super().__init__(PARTITIONS)
        self._streams = dict(streams)
        self._ends = {side: dict.fromkeys(range(PARTITIONS), 0) for side in Side}
        self.delivered = 0
        self._over: set[Side] = set()

    @property
    def over(self) -> bool:
        """Whether both iterators have come to their end."""
        return len(self._over) == len(Side)

    def topics(self) -> Mapping[Side, Topic]:
        """Two topics of the same time."""
        first = dict.fromkeys(range(PARTITIONS), 0)
        return {side: Topic("1", first, dict(self._ends[side]), "delete") for side in Side}

    def begins_ms(self) -> BeginsMs:
        """One time."""
        return {side: dict.fromkeys(range(PARTITIONS), START_MS) for side in Side}

    def poll(self, side: Side, timeout: float) -> list[Batch | Gap]:  # noqa: ARG002 - it never waits
        """The next batch of a side."""
        try:
            batch = next(self._streams[side])
        except StopIteration:
            self._over.add(side)
            return []
        if batch is None:
            return []
        self._ends[side][batch.partition] = batch.offsets[-1] + 1
        self.delivered += len(batch.records)
        return [batch]

    def ends(self) -> Positions:
        """The ends of what was delivered."""
        return self._ends


class PacedClock(SystemClock):
    """A clock on which time passes `pace` times as fast, for all that waits; the time of day is right."""

    def __init__(self, pace: float) -> None:
        self._pace = pace

    def monotonic(self) -> float:
        """Seconds of this clock."""
        return super().monotonic() * self._pace


class Written:
    """Writes what is published as for the pipe, and drops it."""

    def publish(self, publication: Publication, made_at: float | None = None) -> None:  # noqa: ARG002
        """Write one publication."""
        publication.model_dump_json()


def started_worker(
    text: str, streams: Mapping[Side, Stream], url: str, pace: float = 1.0
) -> tuple[Worker, GeneratedSource]:
    """A worker that owns its comparison, on a Redis and a clock of that pace; and what it reads."""
    collect_rarely()  # as in a matcher process
    configure_logging()
    spec, source = loads(text), GeneratedSource(streams)
    shelf = RedisShelf(url, spec.name, "generated")
    ports = Ports(source, shelf.store(WHOLE), shelf.relay(WHOLE), Written(), PacedClock(pace))
    worker = Worker(spec, ports)
    assert worker.start(), "the comparison starts on an empty store"
    return worker, source


def redis_figures(client: Any) -> dict[str, float]:
    """What Redis says of itself: the memory that it uses, and how long a command kept it busy at most."""
    slow = [entry["duration"] / 1000 for entry in client.slowlog_get(1024)]
    return {
        "used_memory": client.info("memory")["used_memory"],
        "busy_ms_at_most": max(slow, default=0.0),
    }
