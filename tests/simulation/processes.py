"""Processes: a matcher that stops wherever the scheduler says.

A matcher is the shipped `Worker` on a greenlet of its own. It gives control back between its rounds, and
wherever it is paused inside a call into a port, or a command to the store. All of these go through
`Process.call`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import redis
from greenlet import greenlet

from tests.simulation import fates
from tests.simulation.streams import POISON
from tests.support.workers import OUTCOME
from twinstream.core.arrivals.sharding import Shard
from twinstream.errors import Fenced, SourceError, TwinstreamError
from twinstream.intake.falls import Caution
from twinstream.matcher.shard_resets import UNSURE
from twinstream.matcher.worker import Ports, Worker
from twinstream.ports import CheckpointStore, Clock, Publisher, Source, StatusRelay
from twinstream.spec.file.model import Spec
from twinstream.status.comparison import (
    ComparisonStatus,
    Publication,
    Reset,
    ResetRefused,
    ShardStatus,
)

if TYPE_CHECKING:
    from tests.simulation.services import Matcher
    from tests.simulation.world import World

LONGEST_PAUSE = 45.0
LATEST_ARRIVAL = 20.0
NO_ANSWER_SECONDS = 2.0
Make = Callable[[Spec, Ports, Shard, Caution], Worker]
"""Makes the worker under test, of the arguments of `Worker`."""


def mask_secret() -> bytes:
    """The same for all of a run, as the store has it: no draw of its own decides anything."""
    return b"simulated" * 4


class Crash(BaseException):
    """The process is killed."""


class Watched:
    """A port of a process: each call of any method of it goes through `Process.call`."""

    def __init__(self, process: Process, name: str, port: Any) -> None:
        self._process, self._name, self._port = process, name, port

    def __getattr__(self, method: str) -> Any:
        call = partial(self._process.call, self._name, method, getattr(self._port, method))
        setattr(self, method, call)
        return call


class Process:
    """One life of a matcher. `resume` lets it go on until it gives control back."""

    def __init__(self, world: World, matcher: Matcher, token: str, shard: Shard, caution: Caution) -> None:
        self._world, self._scheduler, self.matcher = world, world.scheduler, matcher
        self.token, self.shard, self._caution = token, shard, caution
        self._greenlet = greenlet(self._live)
        self.wakes_at = 0.0
        self.told_to_stop = False
        self.over: str | None = None
        self.said: ComparisonStatus | None = None
        self.losses_before = world.oracle.losses
        self._unsure = False
        self._deaf = 0
        self._store_set_by: float | None = None

    @property
    def owns(self) -> bool:
        """Whether it says that it is the owner."""
        return self.said is not None and not self.said.health.standby

    def resume(self) -> None:
        """Let it go on."""
        self._greenlet.switch()

    def kill(self) -> None:
        """End it wherever it stands."""
        if self._greenlet:
            self._greenlet.throw(Crash)
        self.over = self.over or "killed"

    def _live(self) -> None:
        try:
            while self._worker().run(self._stopping):
                self._scheduler.note(f"{self.token} begins anew")
                self._caution = self._caution._replace(left_out=())
            self.over = "stopped"
        except Crash:
            self.over = "killed"
        except Fenced as error:
            self.over = f"fenced: {error}"
        except TwinstreamError as error:
            if not self._unsure and UNSURE not in str(error):
                self._world.oracle.violated(f"{self.token} gave up: {type(error).__name__}: {error}")
            self.over = f"unsure whether it was reset: {error}"
        self._scheduler.note(f"{self.token} is over: {self.over}")

    def _worker(self) -> Worker:
        # Each process's own view, so that a type checker still holds the ports against the worker's needs.
        held = self._world.store(self.shard, self.token, self._carry)
        source: Source = Watched(self, "source", self._world.source(self.shard))
        store: CheckpointStore = Watched(self, "store", held)
        shelf = self._world.shelf(self.token, self._carry)
        relay: StatusRelay = Watched(self, "relay", shelf.relay(self.shard))
        publisher: Publisher = Watched(self, "publisher", self)
        clock: Clock = self.matcher.service.clock
        ports = Ports(source, store, relay, publisher, clock, mask_secret, shards=held)
        worker = self._world.make(self._world.given.spec, ports, self.shard, self._caution)
        if self._world.given.poisoned:
            worker._codec.forms = partial(_without_poison, worker._codec.forms)  # type: ignore[method-assign]
        return worker

    def _stopping(self, seconds: float) -> bool:
        self.wakes_at = self._scheduler.now + seconds
        self._yield()
        return self.told_to_stop

    def _yield(self) -> None:
        self._greenlet.parent.switch()

    def publish(self, publication: Publication, made_at: float | None = None) -> None:
        """The port `Publisher`: what arrives is heard by the oracle and by the service."""
        if isinstance(publication, ComparisonStatus | ShardStatus):
            status = publication.status if isinstance(publication, ShardStatus) else publication
            self.said = status
        if isinstance(publication, Reset):
            self.matcher.begun_anew()
        self._world.oracle.published(self, publication)
        self.matcher.service.accept(publication, self.shard, made_at)

    # -- what happens to a call ----------------------------------------------------------------------------

    def _carry(self, *command: bytes) -> Any:
        """A command to the store, and its answer."""
        server = self._world.server
        return self.call("redis", server.name(command), partial(server.execute, self.token), *command)

    def call(self, port: str, method: str, call: Callable[..., Any], *args: Any) -> Any:
        """A call into a port, and what the weather makes of it."""
        if port == "redis" and self._deaf:
            self._deaf -= 1
            raise self._no_answer(port)
        fate = fates.drawn(self._scheduler, self._world.weather, port, method)
        if fate is not None:
            self._scheduler.note(f"{self.token}: {port} {method}: {fate}")
            if port == "redis" and not self.shard.whole:  # It may not have seen what another shard has saved.
                self._world.oracle.eras.loaded(self.token, 0)
            return self._disturbed(fate, port, call, args)
        resets = self._world.oracle.eras.stored
        if port == "relay" and method == "answer":
            self._answer(OUTCOME.validate_json(args[1]))
        result = call(*args)
        if port == "store" and method == "load":
            self._world.oracle.loaded(self, min(resets, self._world.oracle.eras.stored))
        if port == "relay" and method == "time" and result is not None:
            self._store_set_by = self._world.store_clock.set_by
        if port == "relay" and method == "take" and result is not None:
            self._scheduler.now += 0.001  # Two comparisons are told apart by the time at which they begin.
        return result

    def _answer(self, outcome: Reset | ResetRefused) -> None:
        """It tells who asked for a reset what came of it."""
        if isinstance(outcome, ResetRefused):
            self._unsure = self._unsure or outcome.open
            self._world.oracle.refused(self, outcome)

    @property
    def apart(self) -> float | None:
        """By how much its clock and the store's differ, as far as it can know; None before it has asked."""
        return None if self._store_set_by is None else self.matcher.service.clock.set_by - self._store_set_by

    def _disturbed(self, fate: str, port: str, call: Callable[..., Any], args: Any) -> Any:
        match fate:
            case "crash before":
                raise Crash
            case "pause before":
                self._pause()
            case "slow":
                self._scheduler.now += self._scheduler.seconds(0.01, 3.0)
            case "call lost":
                raise self._no_answer(port, line=True)
            case "arrives late":
                self._world.later(self._scheduler.seconds(0.5, LATEST_ARRIVAL), self.token, call, args)
                raise self._no_answer(port, line=True)
        result = call(*args)
        self._afterwards(fate, port, call, args)
        return result

    def _afterwards(self, fate: str, port: str, call: Callable[..., Any], args: Any) -> None:
        match fate:
            case "arrives again":
                self._world.later(self._scheduler.seconds(0.0, LATEST_ARRIVAL), self.token, call, args)
            case "repeated":
                call(*args)
            case "crash after":
                raise Crash
            case "pause after":
                self._pause()
            case "answer lost":
                raise self._no_answer(port, line=True)

    def _no_answer(self, port: str, *, line: bool = False) -> Exception:
        """The error of a call that nobody answers. `line`: the client, which tries again, may fail again."""
        self._scheduler.now += NO_ANSWER_SECONDS
        if line and port == "redis":
            self._deaf = self._scheduler.number(0, 2)
        return redis.TimeoutError("no answer came") if port == "redis" else SourceError("no answer came")

    def _pause(self) -> None:
        self.wakes_at = self._scheduler.now + self._scheduler.seconds(0.5, LONGEST_PAUSE)
        self._yield()


def _without_poison(forms: Callable[..., Any], records: Sequence[bytes | None], *more: Any) -> Any:
    """What reads records, but falls over poison."""
    if POISON in records:
        raise Crash
    return forms(records, *more)
