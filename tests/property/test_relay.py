"""Whatever becomes of commands, leases, store and clocks: a standby passes only what was true just now."""

from __future__ import annotations

import random
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.support.statuses import NAME, START, expectation, status
from twinstream.adapters.memory import ManualClock, MemoryPublisher, MemoryStorage, MemoryStore
from twinstream.api.state.board import STALE_AFTER_SECONDS, Board
from twinstream.processes.standby import Standby
from twinstream.status.comparison import Relayed

OWNERS = 3
DIGEST = expectation().spec_digest
MOVES = {
    "beat": 30,
    "poll": 30,
    "pass time": 30,
    "deliver": 6,
    "turn": 6,
    "take": 4,
    "end": 2,
    "fall back": 3,
}
"""How often each of them happens, of as many as all together."""


class _Delayed:
    """The store of an owner, whose commands may take as long as the world likes."""

    def __init__(self, world: World, store: MemoryStore) -> None:
        self._world, self._store = world, store
        self.at_once = True

    def asked(self) -> bytes:
        return self._store.asked()

    def tell(self, bulletin: bytes) -> None:
        self._world.sent.append((self._store, bulletin))
        if self.at_once:
            self._store.tell(bulletin)

    def ask(self, question: str) -> bytes | None:
        return self._store.ask(question)

    def glance(self) -> object:
        return self._store.glance()


class World:
    """Some owners that come and go, one standby with its board, and a truth that turns."""

    def __init__(self, skew: float) -> None:
        self.now, self.true = 0.0, True
        self.storage = MemoryStorage()
        self.past = [(None, None)]
        self.sent: list[tuple[MemoryStore, bytes]] = []
        self.said_true_at = -1e9
        self.stores = [MemoryStore(self.storage, f"owner-{number}") for number in range(OWNERS)]
        self.lines = [_Delayed(self, store) for store in self.stores]
        self.owners = [Standby(DIGEST, line, MemoryPublisher(), ManualClock()) for line in self.lines]
        self.clock = ManualClock(START.timestamp() + skew)
        self.publisher = MemoryPublisher()
        self.standby = Standby(DIGEST, MemoryStore(self.storage, "standby"), self.publisher, self.clock)
        self.board = Board(monotonic=self.clock.monotonic, now=self.clock.now)
        self.board.expect(expectation())

    def make(self, chance: random.Random) -> None:
        """One move."""
        (name,) = chance.choices([*MOVES], [*MOVES.values()])
        match name:
            case "beat":
                self.beat(chance.randrange(OWNERS), at_once=chance.random() < 0.8)
            case "take":
                self.take(chance.randrange(OWNERS))
            case "deliver" | "fall back":
                getattr(self, name.replace(" ", "_"))(int(chance.expovariate(0.3)))
            case "pass time":
                self.pass_time(chance.choice([0.3, 1.0, 1.0, 4.0, 7.0]))
            case _:
                getattr(self, name)()

    def beat(self, number: int, at_once: bool) -> None:
        asked = self.owners[number].asked()
        at = START + timedelta(seconds=self.now)
        said = status(verdict="EQUIVALENT" if self.true else "INCONCLUSIVE", at=at, reason=f"owner-{number}")
        if self.true:
            self.said_true_at = self.now
        self.lines[number].at_once = at_once
        if asked:
            self.owners[number].tell(asked, said, {})
        self.past.append((self.storage.lease, self.storage.bulletin))

    def deliver(self, index: int) -> None:
        if self.sent:
            store, bulletin = self.sent[-1 - index % len(self.sent)]
            store.tell(bulletin)

    def poll(self) -> None:
        shown = self.standby.pass_on()
        for publication, made_at in zip(self.publisher.published, self.publisher.made_at, strict=True):
            self.board.accept(publication, made_at=made_at)
            if isinstance(publication, Relayed):
                assert publication.said.status.reason == self.storage.lease == self.storage.owner
        self.publisher.published.clear()
        self.publisher.made_at.clear()
        if not shown:
            at = self.clock.now()
            self.board.accept(status(verdict="PENDING", at=at))

    def turn(self) -> None:
        self.true = not self.true

    def take(self, number: int) -> None:
        self.storage.lease = self.storage.owner = f"owner-{number}"

    def end(self) -> None:
        self.storage.lease = None

    def fall_back(self, index: int) -> None:
        lease, bulletin = self.past[-1 - index % len(self.past)]
        self.storage.lease = self.storage.owner = lease
        self.storage.bulletin = bulletin

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.clock.advance(seconds)


@given(st.integers(0, 2**32), st.floats(-1e5, 1e5))
def test_a_pass_of_a_standby_was_true_a_moment_ago(seed: int, skew: float) -> None:
    chance, world = random.Random(seed), World(skew)
    world.take(0)
    for _ in range(100):
        world.make(chance)
        if world.board.view(NAME).answer == "pass":
            assert world.now - world.said_true_at <= STALE_AFTER_SECONDS + 1e-6


@given(st.floats(-1e5, 1e5), st.integers(0, OWNERS - 1))
def test_a_standby_of_a_living_owner_passes(skew: float, number: int) -> None:
    world = World(skew)
    world.take(number)
    for _ in range(3):
        world.beat(number, at_once=True)
        world.poll()
        world.pass_time(1.0)
    assert world.board.view(NAME).answer == "pass"
