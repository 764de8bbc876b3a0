"""Whatever becomes of commands, leases, store and clocks: a standby passes only what was true just now."""

from __future__ import annotations

import random
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from loadtest.memory import ManualClock, MemoryPublisher, MemoryRelay, MemoryStorage, MemoryStore
from tests.support.statuses import NAME, START, expectation, status
from twinstream.api.state.board import STALE_AFTER_SECONDS, Board
from twinstream.processes.standby import FURTHEST_APART_SECONDS, Bulletin, OwnersWord, standing_by
from twinstream.status.comparison import ShardStatus

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
    "set": 3,
}
"""How often each of them happens, of as many as all together."""


class World:
    """Some owners that come and go, one standby with its board, and a truth that turns.

    The commands of owners may come `late`; only if none does, the clock of the store may be set back.
    """

    def __init__(self, skew: float, *, late: bool = True) -> None:
        self.now, self.set_by, self.true, self.late = 0.0, 0.0, True, late
        self.storage = MemoryStorage()
        self.storage.clock = lambda: START.timestamp() + self.now + self.set_by
        self.past = [(None, None)]
        self.sent: list[tuple[MemoryRelay, bytes]] = []
        self.said_true_at = -1e9
        self.owners = [MemoryRelay(self.storage, f"owner-{number}") for number in range(OWNERS)]
        self.clock = ManualClock(START.timestamp() + skew)
        self.publisher = MemoryPublisher()
        store, relay = MemoryStore(self.storage, "standby"), MemoryRelay(self.storage, "standby")
        self.word = OwnersWord(DIGEST, relay, store, self.publisher, self.clock, standing_by)
        self.board = Board(monotonic=self.clock.monotonic, now=self.clock.now)
        self.board.expect(expectation())

    def make(self, chance: random.Random) -> None:
        """One move."""
        (name,) = chance.choices([*MOVES], [*MOVES.values()])
        match name:
            case "beat":
                self.beat(chance.randrange(OWNERS), at_once=not self.late or chance.random() < 0.8)
            case "take":
                self.take(chance.randrange(OWNERS))
            case "deliver" | "fall back":
                getattr(self, name.replace(" ", "_"))(int(chance.expovariate(0.3)))
            case "pass time":
                self.pass_time(
                    chance.choice([0.3, 1.0, 1.0, 4.0, 7.0] if self.late else [0.3, 1.0, 1.0, 1.0, 20.0])
                )
            case "set":
                self.set_by += chance.choice([1.0, 60.0] if self.late else [-60.0, -20.0, -4.0, 4.0, 60.0])
            case _:
                getattr(self, name)()

    def beat(self, number: int, at_once: bool) -> None:
        owner, at = self.owners[number], START + timedelta(seconds=self.now)
        stamp = owner.time()
        said = status(verdict="EQUIVALENT" if self.true else "INCONCLUSIVE", at=at, reason=f"owner-{number}")
        if self.true:
            self.said_true_at = self.now
        count = len(self.sent) + 1000 * number  # Numbers of two owners say nothing of each other.
        bulletin = Bulletin.of(said, (), (), stamp=stamp, number=count).model_dump_json().encode()
        self.sent.append((owner, bulletin))
        if at_once:
            owner.tell(bulletin)
        self.past.append((self.storage.lease, self.storage.bulletin))

    def deliver(self, index: int) -> None:
        if self.sent and self.late:
            owner, bulletin = self.sent[-1 - index % len(self.sent)]
            owner.tell(bulletin)

    def poll(self) -> None:
        shown = self.word.pass_on()
        for publication, made_at in zip(self.publisher.published, self.publisher.made_at, strict=True):
            self.board.accept(publication, made_at=made_at)
            if isinstance(publication, ShardStatus):
                assert publication.status.reason == self.storage.lease == self.storage.owner
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
        if world.board.view(NAME).gate.answer == "pass":
            assert world.now - world.said_true_at <= STALE_AFTER_SECONDS + 1e-6


@given(st.integers(0, 2**32), st.floats(-1e5, 1e5))
def test_a_clock_of_the_store_that_is_set_back_makes_nothing_young(seed: int, skew: float) -> None:
    chance, world = random.Random(seed), World(skew, late=False)
    world.take(0)
    for _ in range(100):
        world.make(chance)
        if world.board.view(NAME).gate.answer == "pass":
            oldest = STALE_AFTER_SECONDS + FURTHEST_APART_SECONDS
            assert world.now - world.said_true_at <= oldest + 1e-6


@given(st.floats(-1e5, 1e5), st.integers(0, OWNERS - 1))
def test_a_standby_of_a_living_owner_passes(skew: float, number: int) -> None:
    world = World(skew)
    world.take(number)
    for _ in range(3):
        world.beat(number, at_once=True)
        world.poll()
        world.pass_time(1.0)
    assert world.board.view(NAME).gate.answer == "pass"
