"""Services: on a host of its own each, with a board, and matchers that are started again.

A service is what `processes.supervisor` and `bootstrap` make of a comparison, on simulated time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import redis

from tests.simulation.processes import Process
from tests.simulation.scheduler import SimulatedClock
from tests.support.workers import board_of
from twinstream.core.arrivals.sharding import Shard
from twinstream.errors import StoreError
from twinstream.intake.falls import Caution, Falls, Trail
from twinstream.processes.supervisor import BACKOFF_LIMIT_SECONDS, BACKOFF_SECONDS
from twinstream.status.comparison import Publication

if TYPE_CHECKING:
    from tests.simulation.world import World


class Matcher:
    """One matcher over all its lives."""

    def __init__(self, world: World, service: Service, shard: Shard) -> None:
        self._world, self.service, self._shard = world, service, shard
        self.process: Process | None = None
        self.starts_at = 0.0
        self._backoff = BACKOFF_SECONDS
        self._falls = Falls()
        self._trail = Trail()

    def start(self) -> None:
        """Start a process with a token of its own."""
        self._trail = Trail()
        caution = Caution(self._trail, self._falls.left_out)
        token = self.service.next_token(self._shard)
        self._world.scheduler.note(f"{token} is started as {self._shard}")
        self.process = Process(self._world, self, token, self._shard, caution)

    def look(self) -> None:
        """Notice that the process is gone: say so, hand its lease back, and wait before the next."""
        process = self.process
        if process is None or process.over is None:
            return
        self.process = None
        if process.over == "stopped":
            return
        if self._falls.fell_over(self._trail.stretch()):
            self._backoff = BACKOFF_SECONDS
        self._world.oracle.left_out.update(self._falls.left_out)
        self.service.lost(self._shard)
        self.starts_at = self._world.scheduler.now + self._backoff
        self._backoff = min(self._backoff * 2, BACKOFF_LIMIT_SECONDS)
        self._hand_back(process.token)

    def begun_anew(self) -> None:
        """The comparison was reset: no fall counts any more."""
        self._falls = Falls()

    def _hand_back(self, token: str) -> None:
        world = self._world
        if world.scheduler.chance(0.3):
            return
        shelf = world.shelf(token, lambda *command: world.server.execute(token, *command))
        try:
            shelf.store(self._shard).release()
        except (StoreError, redis.RedisError):
            world.scheduler.note(f"the lease of {token} cannot be handed back")


class Service:
    """An instance of the service, with a matcher for each shard."""

    def __init__(self, world: World, name: str, shards: int) -> None:
        self._world, self._name = world, name
        self.clock = SimulatedClock(world.scheduler, f"service {name}")
        self._lives = 0
        self.shards = shards
        self.on, self._stopping = True, False
        self._begin()

    def _begin(self) -> None:
        """Have nothing: no board that knows anything, no matcher that runs."""
        self._stopping = False
        self.board = board_of(self._world.given.spec, self.clock, self.shards)
        shards = [Shard(number, self.shards) for number in range(self.shards)]
        self.matchers = [Matcher(self._world, self, shard) for shard in shards]

    @property
    def processes(self) -> Iterator[Process]:
        """Those that are there."""
        return (matcher.process for matcher in self.matchers if matcher.process is not None)

    def next_token(self, shard: Shard) -> str:
        """A name for a new life of a matcher."""
        self._lives += 1
        return f"{self._name}{self._lives}" + ("" if shard.whole else f".{shard.number}/{shard.of}")

    def start(self) -> None:
        """Start the matchers for which it is time."""
        if not self.on or self._stopping:
            return
        for matcher in self.matchers:
            if matcher.process is None and self._world.scheduler.now >= matcher.starts_at:
                matcher.start()

    def stop(self) -> None:
        """Tell all matchers to stop."""
        self.on, self._stopping = False, True
        for process in self.processes:
            process.told_to_stop = True

    def look(self) -> None:
        """Notice matchers that are gone; once all have stopped, begin anew with what is wanted."""
        for matcher in self.matchers:
            matcher.look()
        if self._stopping and not any(self.processes):
            self._begin()

    def accept(self, publication: Publication, shard: Shard, made_at: float | None) -> None:
        """A matcher says something."""
        self.board.accept(publication, shard.number, made_at)
        self._world.oracle.heard(self)

    def lost(self, shard: Shard) -> None:
        """A matcher is gone."""
        reason = "its matcher process is gone; it is started again"
        self.board.lost(self._world.given.spec.name, reason, shard.number)

    def lose_host(self) -> None:
        """The host is gone with all that ran on it; another one starts with nothing."""
        for process in self.processes:
            process.kill()
        self._begin()
        starts_at = self._world.scheduler.now + self._world.scheduler.seconds(0.0, 20.0)
        for matcher in self.matchers:
            matcher.starts_at = starts_at
