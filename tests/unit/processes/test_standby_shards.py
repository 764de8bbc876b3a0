"""Two hosts share the shards of a comparison: each shows the whole of it."""

from __future__ import annotations

import pytest

from loadtest.memory import ManualClock, MemoryPublisher, MemoryShelf, MemorySource
from tests.support.hosts import START
from tests.support.team import DIVIDED
from tests.support.workers import board_of
from twinstream.api.routes.operations import obstacles_to_serving
from twinstream.core.arrivals.sharding import Shard
from twinstream.core.events import Side
from twinstream.matcher.worker import Ports, Worker
from twinstream.processes.shards import ShardStore
from twinstream.processes.standby import RELAYED
from twinstream.spec.load import loads

SHARDS = 2


class SharedHost:
    """An instance with a worker for each shard, its board, and a wall clock of its own."""

    def __init__(self, name: str, shelf: MemoryShelf, source: MemorySource, skew: float = 0.0) -> None:
        self.clock = ManualClock(START + skew)
        self.board = board_of(loads(DIVIDED), self.clock, SHARDS)
        self.publishers = [MemoryPublisher() for _ in range(SHARDS)]
        self.workers = [self._worker(f"{name}-{number}", number, shelf, source) for number in range(SHARDS)]
        self.owned: set[int] = set()

    def _worker(self, token: str, number: int, shelf: MemoryShelf, source: MemorySource) -> Worker:
        spec, shard = loads(DIVIDED), Shard(number, SHARDS)
        own = shelf.owned_by(token)
        store, publisher = ShardStore(own, shard), self.publishers[number]
        ports = Ports(source.reader(), store, own.relay(shard), publisher, self.clock, store.mask_secret)
        return Worker(spec, ports, shard)

    def turn(self, numbers: range = range(SHARDS)) -> None:
        """What some of its matchers do in a second."""
        for number in numbers:
            worker, publisher = self.workers[number], self.publishers[number]
            if number not in self.owned and worker.start():
                self.owned.add(number)
            elif number in self.owned:
                worker.step()
                worker.beat()
            for publication, made_at in zip(publisher.published, publisher.made_at, strict=True):
                self.board.accept(publication, number, made_at)
            publisher.published.clear()
            publisher.made_at.clear()


@pytest.mark.parametrize("skew", [-3600.0, 0.0, 3600.0])
def test_each_of_two_hosts_that_own_one_of_two_shards_shows_the_whole(skew: float) -> None:
    shelf, source = MemoryShelf(), MemorySource(partitions=4)
    for number in range(64):
        for side in Side:
            source.append(side, number % 4, b'{"k": %d, "n": %d}' % (number % 8, number), int(START * 1000))
    hosts = [SharedHost("one", shelf, source), SharedHost("two", shelf, source, skew)]
    for number, host in enumerate(hosts):  # The node that holds the keys of a shard is as wrong as its owner.
        shelf.storage(Shard(number, SHARDS)).clock = lambda host=host: host.clock.now().timestamp()
    for second in range(8):
        for number, host in enumerate(hosts):
            host.turn(range(number, number + 1) if second == 0 else range(SHARDS))
            host.clock.advance(1.0)
    assert [host.owned for host in hosts] == [{0}, {1}]
    views = [host.board.view("test") for host in hosts]
    assert [view.gate.answer for view in views] == ["pass", "pass"]
    assert [view.status.matched for view in views] == [64, 64]
    assert views[0].status.accounts == views[1].status.accounts
    assert obstacles_to_serving(views[0]) == [f"test: shard 1 of 2: {RELAYED}"]
    for _ in range(6):
        hosts[0].turn()
        hosts[0].clock.advance(1.0)
    view = hosts[0].board.view("test")
    assert (view.gate.answer, view.freshness.reason.startswith("Shard 1 of 2: The status is stale")) == (
        "undecided",
        True,
    )
