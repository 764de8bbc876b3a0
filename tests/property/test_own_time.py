"""Whatever becomes of the clocks: what passes is not older than it may be, by the true time."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from tests.support import workers
from tests.support.hosts import START, Hosts
from twinstream.core.events import Side

SPEC = workers.SPEC + "overdue: {after: 1h}\ngate: {max_staleness: 30s}\n"
STALENESS = 30
SAID_AGO = 2
"""What a gate says was so when its matcher beat last, and of the look before that."""
MOVES = ("pair", "pair", "one", "partner", "jump", "wait", "wait", "long", "sleep", "restart")


class World:
    """One host, which has a store; of the two clocks one is right, unless records tell the time all along."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.hosts, self.number = chance, Hosts(), 0
        self.wrong = chance.choice(("host", "store", "both"))
        self.store_skew = 0.0 if self.wrong == "host" else self.drawn()
        self.hosts.storage.clock = lambda: START + self.hosts.passed + self.store_skew
        self.skew = 0.0 if self.wrong == "store" else self.drawn()
        self.host = self.hosts.add(SPEC, skew=self.skew)
        self.waiting: list[tuple[int, float]] = []
        self.pair()

    def drawn(self) -> float:
        """By how much a clock is wrong."""
        return self.chance.choice((-1e5, -900.0, -200.0, -25.0, 0.0, 25.0, 900.0)) + self.chance.random()

    def write(self, side: Side, number: int) -> None:
        self.hosts.write(side, number, int((START + self.hosts.passed) * 1000))

    def pair(self) -> None:
        """An event of both; each has a key of its own, so that it waits for nobody."""
        self.number += 1
        for side in Side:
            self.write(side, self.number * 3)

    def one(self) -> None:
        """An event of one side, of a key that waits alone."""
        if not self.waiting:
            self.number += 1
            self.waiting.append((self.number * 3 + 1, self.hosts.passed))
            self.write(Side.LEFT, self.number * 3 + 1)

    def partner(self) -> None:
        if self.waiting:
            number, _ = self.waiting.pop()
            self.write(Side.RIGHT, number)

    def jump(self) -> None:
        if self.wrong == "store":
            self.store_skew = self.drawn()
        else:
            self.set_host(self.drawn())

    def set_host(self, skew: float) -> None:
        self.host.clock.set(skew - self.skew)
        self.skew = skew

    def wait(self) -> None:
        self.pass_time(1)

    def long(self) -> None:
        self.pass_time(self.chance.randrange(2, 20))

    def sleep(self) -> None:
        """What is written meanwhile is read late, and then tells less of what time it is."""
        if self.wrong != "both":
            self.one()
            self.hosts.advance(self.chance.randrange(20))

    def restart(self) -> None:
        """The process ends, and another one on this host goes on."""
        self.host.worker.stop()
        self.host.renew(self.hosts)
        self.pass_time(2)

    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            if self.wrong == "both":
                self.pair()
            self.hosts.turns(self.host, seconds=1)


@given(st.integers(0, 2**32))
def test_a_pass_is_not_older_than_it_may_be_and_comes_when_the_clocks_are_right(seed: int) -> None:
    world = World(random.Random(seed))
    for _ in range(20):
        getattr(world, world.chance.choice(MOVES))()
        view = world.host.view()
        assert view.status.verdict in ("PENDING", "EQUIVALENT")
        if view.gate.answer == "pass":
            since = min((at for _, at in world.waiting), default=world.hosts.passed)
            assert world.hosts.passed - since < STALENESS + SAID_AGO, view.gate.reason
    world.store_skew = 0.0
    world.set_host(0.0)
    world.partner()
    world.pair()
    world.pass_time(12)
    assert world.host.gate == "pass"
