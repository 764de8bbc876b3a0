"""Several workers on the shards of one comparison."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson

from loadtest.memory import ManualClock, MemoryPublisher, MemoryShelf, MemorySource, MemoryStorage
from tests.support.workers import SPEC, ask, board_of
from twinstream.api.state.board import Board
from twinstream.api.state.entry import View
from twinstream.core.arrivals.sharding import Shard
from twinstream.core.events import Side
from twinstream.errors import Replaced
from twinstream.intake.falls import Caution, FallenStretch, Trail
from twinstream.matcher.reset_commit import TAKE_SECONDS
from twinstream.matcher.schedule import RETRY_STORE_SECONDS
from twinstream.matcher.worker import Ports, Worker
from twinstream.processes.shards import ShardStore
from twinstream.spec.load import loads
from twinstream.status.comparison import ComparisonStatus, ResetRequest, ShardStatus

BEATS = 6
"""So often each of them says how it stands."""
DIVIDED = SPEC + "co_partitioned: true\n"


@dataclass
class Team:
    """Workers on the shards of one comparison, over topics of some partitions each."""

    shards: int = 2
    spec: str = DIVIDED
    source: MemorySource = field(default_factory=lambda: MemorySource(partitions=4))
    shelf: MemoryShelf = field(default_factory=MemoryShelf)
    clock: ManualClock = field(default_factory=ManualClock)
    publishers: dict[int, MemoryPublisher] = field(default_factory=dict)
    sources: dict[int, MemorySource] = field(default_factory=dict)
    groups: dict[Shard, MemorySource] = field(default_factory=dict)
    left_out: tuple[FallenStretch, ...] = ()
    starts: int = 0
    tokens: dict[int, str] = field(default_factory=dict)
    host: str = "one"

    def worker(self, number: int, token: str | None = None) -> Worker:
        """A new worker for a shard; with a token, that of a process in which one has ended."""
        self.starts += 1
        spec, shard = loads(self.spec), Shard(number, self.shards)
        self.tokens[number] = token or f"{self.host}-{self.starts}"
        shelf = self.shelf.owned_by(self.tokens[number])
        store, relay = ShardStore(shelf, shard), shelf.relay(shard)
        self.publishers[number] = MemoryPublisher()
        self.sources[number] = source = self.source.reader(self.groups.get(shard))
        self.groups[shard] = source
        publisher, secret = self.publishers[number], store.mask_secret
        ports = Ports(source, store, relay, publisher, self.clock, secret, shards=store)
        return Worker(spec, ports, shard, Caution(Trail(), self.left_out))

    @property
    def first(self) -> MemoryStorage:
        """What the store of the first shard holds."""
        return self.shelf.storage(Shard(0, self.shards))

    def ask(self, request: ResetRequest) -> None:
        """Leave a request for the owner of the first shard, who looks for it once a second."""
        self.clock.advance(TAKE_SECONDS)
        ask(self.first, request)

    def started(self) -> list[Worker]:
        """All workers, at work."""
        workers = [self.worker(number) for number in range(self.shards)]
        for number, worker in enumerate(workers):
            try:
                assert worker.start(), self.said(0).status.reason
            except Replaced:
                workers[number] = self.worker(number, self.tokens[number])
                assert workers[number].start(), "it has begun anew with the others"
        return workers

    def said(self, number: int) -> ShardStatus:
        """What a shard said last."""
        published = self.publishers[number].published
        return next(one for one in reversed(published) if isinstance(one, ShardStatus))

    def status(self) -> ComparisonStatus:
        """The status of the first shard as it was published last."""
        said = (getattr(one, "status", one) for one in reversed(self.publishers[0].published))
        return next(one for one in said if isinstance(one, ComparisonStatus))

    def write(self, side: Side, partition: int, *events: tuple[object, int], at_ms: int = 0) -> None:
        for key, number in events:
            self.source.append(side, partition, orjson.dumps({"k": key, "n": number}), at_ms)

    def view(self, workers: list[Worker], steps: int = 6) -> View:
        """What is shown of the comparison when all have read on."""
        board = self.board()
        for worker in workers:
            for _ in range(steps):
                worker.step()
        for _ in range(BEATS):
            self.clock.advance(RETRY_STORE_SECONDS)
            for worker in workers:
                worker.step()
        for number in range(self.shards):
            for publication in self.publishers[number].published:
                board.accept(publication, number)
        return board.view("test")

    def board(self) -> Board:
        """A board that expects the comparison, and has heard nothing."""
        return board_of(loads(self.spec), self.clock, self.shards)


def write_all(team: Team, count: int = 40) -> None:
    """Equal events on both sides, in partitions by key."""
    for number in range(count):
        for side in Side:
            team.write(side, number % 4, (number % 8, number))
