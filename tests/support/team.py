"""Several workers on the shards of one comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from tests.support.workers import SPEC
from twinstream.adapters.memory import ManualClock, MemoryPublisher, MemoryShelf, MemorySource
from twinstream.api.board import Board
from twinstream.api.entry import View
from twinstream.api.expectation import Expectation
from twinstream.core.events import Side
from twinstream.core.sharding import Shard
from twinstream.runtime.falls import Caution, Stretch, Trail
from twinstream.runtime.redealing import Redealing
from twinstream.runtime.saves import RETRY_STORE_SECONDS
from twinstream.runtime.shards import ShardStore
from twinstream.runtime.worker import Worker
from twinstream.spec.evidence import wanted
from twinstream.spec.load import digest, loads
from twinstream.spec.sharding import Part
from twinstream.status import ShardStatus, Version

BEATS = 6
"""So often shards by partition have heard and answered each other."""


@dataclass
class Team:
    """Workers on the shards of one comparison, over topics of some partitions each."""

    shards: int = 2
    by: Literal["auto", "partition", "key"] = "auto"
    spec: str = SPEC
    source: MemorySource = field(default_factory=lambda: MemorySource(partitions=4))
    shelf: MemoryShelf = field(default_factory=MemoryShelf)
    clock: ManualClock = field(default_factory=ManualClock)
    publishers: dict[int, MemoryPublisher] = field(default_factory=dict)
    left_out: tuple[Stretch, ...] = ()
    starts: int = 0
    host: str = "one"

    def worker(self, number: int, token: str | None = None, secret: bytes | None = None) -> Worker:
        """A new worker for a shard; with a token, that of a process in which one has ended.

        Without a secret of its own it has that of the store.
        """
        self.starts += 1
        spec, shard = loads(self.spec), Shard(number, self.shards)
        shelf = self.shelf.owned_by(token or f"{self.host}-{self.starts}")
        store = ShardStore(shelf, spec.name, shard, Redealing(spec, self.by).deal)
        self.publishers[number] = MemoryPublisher()
        source = self.source.reader()
        part = Part(shard, self.by)
        return Worker(
            spec,
            source,
            store,
            self.publishers[number],
            self.clock,
            Caution(Trail(), self.left_out),
            part=part,
            exchange=store.exchange,
            bulletins=store,
            stores=store,
            mask_secret=store.mask_secret if secret is None else lambda: secret,
        )

    def started(self) -> list[Worker]:
        """All workers, at work."""
        workers = [self.worker(number) for number in range(self.shards)]
        for worker in workers:
            assert worker.start(), self.said(0).status.reason
        return workers

    def said(self, number: int) -> ShardStatus:
        """What a shard said last."""
        published = self.publishers[number].published
        return next(one for one in reversed(published) if isinstance(one, ShardStatus))

    def write(self, side: Side, partition: int, *events: tuple[object, int], at_ms: int = 0) -> None:
        for key, number in events:
            self.source.append(side, partition, orjson.dumps({"k": key, "n": number}), at_ms)

    def view(self, workers: list[Worker], steps: int = 6) -> View:
        """What is shown of the comparison when all have read on."""
        board = Board(monotonic=self.clock.monotonic, now=self.clock.now)
        board.expect(self.expectation())
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

    def expectation(self) -> Expectation:
        spec = loads(self.spec)
        topics = Version(topic="test.reference"), Version(topic="test.candidate")
        own: dict[str, Any] = {"matched_required": 1, "shards": self.shards}
        own |= {"undecodable_budget": spec.undecodable.budget, "kinds_required": wanted(spec).kinds}
        return Expectation(
            name=spec.name,
            spec_digest=digest(spec),
            order=spec.order_text,
            reference=topics[0],
            candidate=topics[1],
            **own,
        )


def write_all(team: Team, count: int = 40, *, shift: int = 0) -> None:
    """Equal events on both sides, in partitions by key; the candidate's are shifted."""
    for number in range(count):
        for side in Side:
            team.write(side, (number % 8 + shift * side) % 4, (number % 8, number))
