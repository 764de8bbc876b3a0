"""Several hosts that share a comparison: each with a worker, a board, and clocks that the test drives."""

from __future__ import annotations

from dataclasses import dataclass, field

from loadtest.memory import (
    ManualClock,
    MemoryPublisher,
    MemoryRelay,
    MemoryShelf,
    MemorySource,
    MemoryStorage,
    MemoryStore,
)
from tests.support.workers import SPEC, board_of
from twinstream.api.state.entry import View
from twinstream.core.arrivals.sharding import WHOLE
from twinstream.core.events import Side
from twinstream.matcher.worker import Ports, Worker
from twinstream.spec.load import loads

START = 1_700_000_000.0


class Host:
    """One instance of the service. `skew` is by how many seconds its wall clock is wrong."""

    def __init__(self, hosts: Hosts, spec: str, skew: float) -> None:
        self.clock = ManualClock(START + skew)
        self.clock.advance(hosts.passed)
        self.publisher = MemoryPublisher()
        self._where = f"host-{len(hosts.all)}"
        self.store = MemoryStore(hosts.storage, self._where)
        self._spec, self._shown = loads(spec), 0
        self.board = board_of(self._spec, self.clock)
        self.renew(hosts)

    def renew(self, hosts: Hosts) -> None:
        """A new worker in the same process."""
        relay = MemoryRelay(hosts.storage, self._where)
        ports = Ports(
            hosts.source.reader(), self.store, relay, self.publisher, self.clock, clock_name=self._where
        )
        self.worker = Worker(self._spec, ports, where=self._where)
        self.owns = False

    def turn(self) -> None:
        """What its matcher does in a second, and what its board hears of it."""
        if self.owns:
            self.worker.beat()
            for _ in range(3):
                self.worker.step()
            self.worker.beat()
        else:
            self.owns = self.worker.start()
        self.hear()

    def hear(self) -> None:
        """Let the board take what was published."""
        published, made_at = self.publisher.published, self.publisher.made_at
        for place in range(self._shown, len(published)):
            self.board.accept(published[place], made_at=made_at[place])
        self._shown = len(published)

    def view(self) -> View:
        """What it shows now."""
        return self.board.view("test")

    @property
    def gate(self) -> str:
        """What its gate answers now."""
        return self.view().gate.answer


@dataclass
class Hosts:
    """The hosts, the topics, the stores, and how much time has passed. `skew`: the store's clock is wrong."""

    source: MemorySource = field(default_factory=MemorySource)
    shelf: MemoryShelf = field(default_factory=MemoryShelf)
    all: list[Host] = field(default_factory=list)
    passed: float = 0.0
    skew: float = 0.0

    def __post_init__(self) -> None:
        self.storage.clock = lambda: START + self.passed + self.skew

    @property
    def storage(self) -> MemoryStorage:
        """What the store of the comparison holds."""
        return self.shelf.storage(WHOLE)

    def add(self, spec: str = SPEC, skew: float = 0.0) -> Host:
        """One more host."""
        self.all.append(Host(self, spec, skew))
        return self.all[-1]

    def advance(self, seconds: float) -> None:
        """Let time pass on all of them."""
        self.passed += seconds
        for host in self.all:
            host.clock.advance(seconds)

    def turns(self, *hosts: Host, seconds: int = 3) -> None:
        """Let these live for some seconds, and the others stand still."""
        for _ in range(seconds):
            for host in hosts:
                host.turn()
            self.advance(1.0)

    def write_both(self, count: int, at_ms: int = int(START * 1000)) -> None:
        """Equal events on both sides."""
        for number in range(count):
            for side in Side:
                self.write(side, number, at_ms)

    def write(self, side: Side, number: int, at_ms: int = int(START * 1000)) -> None:
        """An event on one side."""
        self.source.append(side, 0, b'{"k": %d, "n": %d}' % (number % 3, number), at_ms)
