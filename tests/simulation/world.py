"""The world of one run: broker, store, time, services, and all that happens to them, from one seed."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import redis
import structlog

from tests.simulation import anew
from tests.simulation.broker import Broker, SimulatedSource
from tests.simulation.inputs import draw_input
from tests.simulation.line import Carry, SimulatedShelf
from tests.simulation.oracle import Oracle, waits
from tests.simulation.plant import NO_BUG, Plant
from tests.simulation.processes import Make, Process
from tests.simulation.scheduler import CALM, Scheduler, SimulatedClock
from tests.simulation.server import Server
from tests.simulation.services import Service
from twinstream.core.arrivals.sharding import Shard
from twinstream.core.events import Side
from twinstream.errors import StoreError
from twinstream.matcher.worker import Worker
from twinstream.observing import ANSWER_SECONDS
from twinstream.ports import StatusRelay
from twinstream.processes.shards import ShardStore

SETTLED_WITHIN_SECONDS = 150.0
STEADY_ROUNDS = 2
JUMPS = (-7200.0, -60.0, -1.0, 1.0, 60.0, 7200.0)


class World:
    """One run."""

    def __init__(self, seed: int, *, log: bool = False, plant: Plant = NO_BUG) -> None:
        self.make: Make = Worker if plant.worker is None else partial(plant.worker, [])
        self._kind = plant.store
        self.scheduler = Scheduler(seed, log=log)
        self.given = draw_input(self.scheduler)
        self.weather = replace(self.scheduler.weather(), **plant.storm)
        if self.given.spec.start.at in ("event_time", "barrier", "input"):
            # What is gone of the beginning makes such a start later, and no hole; and of an event time it
            # is told by the first event that is left, which is no sign where earlier events come late.
            self.weather = replace(self.weather, retention=0.0)
        self._whole = not self.weather.retention
        self.scheduler.note(f"weather {self.weather}")
        self.store_clock = SimulatedClock(self.scheduler, "the store")
        self.broker = Broker(self.scheduler, self.given)
        self.oracle = Oracle(self)
        self.server = Server(self.scheduler, self.oracle, self.store_clock, plant.alter)
        instances = self.scheduler.one_of((1, 2, 2))
        self.services = [Service(self, name, self.given.shards) for name in "AB"[:instances]]
        self._running = self.services
        self._later: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = count()
        self._created_anew = self.scheduler.aside("created anew", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2))
        if any(self.given.said) or self.given.spec.start.at != "earliest":
            self._created_anew = 0.0  # What is said of a topic would be taken as said of the new one.
        self._again = self.scheduler.apart("written again")
        self._resets = self.scheduler.aside("resets", (0.0, 0.0, 0.4, 1.5))
        self._sources: list[SimulatedSource] = []

    # -- what processes ask of it --------------------------------------------------------------------------

    def source(self, shard: Shard) -> SimulatedSource:
        """A new consumer of both topics."""
        source = SimulatedSource(self.scheduler, self.broker, shard, fickle=self.weather is not CALM)
        self._sources.append(source)
        return source

    def shelf(self, token: str, carry: Carry) -> SimulatedShelf:
        """The stores of the comparison for an owner; `carry` takes what is sent to the server."""
        return SimulatedShelf(carry, self.given.spec.name, token, lambda: self.scheduler.now, self._kind)

    def store(self, shard: Shard, token: str, carry: Carry) -> ShardStore:
        """The store of a matcher."""
        return ShardStore(self.shelf(token, carry), shard)

    def at(self, seconds: float, happens: Callable[[], object]) -> None:
        """Let something happen after a time."""
        heapq.heappush(self._later, (self.scheduler.now + seconds, next(self._numbers), happens))

    def later(self, seconds: float, token: str, call: Callable[..., Any], args: Sequence[Any]) -> None:
        """Let a call arrive at the store after a time, when nobody waits for its answer any more."""

        def arrive() -> None:
            self.scheduler.note(f"a late call of {token} arrives")
            try:
                call(*args)
            except redis.RedisError as error:
                self.scheduler.note(f"  it is lost: {error}")

        self.at(seconds, arrive)

    # -- the run -------------------------------------------------------------------------------------------

    def run(self) -> None:
        """All of it. Raises Violation."""
        with structlog.testing.capture_logs():
            try:
                self.oracle.eras.calm(self.given)
                for _ in range(self.scheduler.number(20, 200)):
                    self._act()
                self._settle()
            finally:
                for process in self._processes():
                    process.kill()

    def _act(self) -> None:
        scheduler, weather = self.scheduler, self.weather
        options = {
            self._step: 10.0,
            self._pass_time: 2.0,
            self._produce: 3.0,
            self._ask: 1.0,
            self._start: 2.0,
            self._crash: weather.crash * 5,
            self._lose_host: weather.host_lost * 3,
            self._stop: weather.stop * 3,
            partial(self._away, "store", self.server): weather.store_away * 3,
            self._store_falls_back: weather.store_falls_back * 3,
            self.server.empty: weather.store_emptied * 2,
            partial(self._away, "broker", self.broker): weather.broker_away * 3,
            self._retain: weather.retention * 2,
            self._jump: weather.wall_jump * 5,
            self._create_anew: self._created_anew,
            self._reset: self._resets,
        }
        scheduler.weighted(options)()
        scheduler.now += scheduler.one_of((0.0, 0.001, 0.02, 0.2))
        self._arrive()
        for service in self.services:
            service.look()

    def _arrive(self) -> None:
        while self._later and self._later[0][0] <= self.scheduler.now:
            heapq.heappop(self._later)[2]()

    def _processes(self) -> Iterator[Process]:
        return (process for service in self.services for process in service.processes)

    def _step(self) -> None:
        ready = [process for process in self._processes() if process.wakes_at <= self.scheduler.now]
        if ready:
            process = self.scheduler.one_of(ready)
            for _ in range(self.scheduler.number(1, 3)):
                if process.over is None and process.wakes_at <= self.scheduler.now:
                    process.resume()

    def _pass_time(self) -> None:
        self.scheduler.now += self.scheduler.weighted({0.3: 3.0, 1.0: 4.0, 3.0: 1.0, 12.0: 0.3})

    def _produce(self) -> None:
        side = self.scheduler.one_of(tuple(Side))
        self.broker.produce(side, self.scheduler.one_of((1, 5, 20)))

    def _ask(self) -> None:
        self.oracle.asked(self.scheduler.one_of(self.services))

    def _start(self) -> None:
        for service in self.services:
            service.start()

    def _reset(self) -> None:
        """Somebody asks the owner to begin the comparison anew, if the store is there."""
        if not any(self._processes()):
            return
        topics = anew.Topics(self.broker.written, stay=not self._created_anew, whole=self._whole)
        request = self.oracle.eras.ask(anew.start(self.scheduler, self.given, topics))
        shelf = self.shelf("somebody", lambda *command: self.server.execute("somebody", *command))
        relay, text = shelf.relay(Shard(0, self.given.shards)), request.model_dump_json().encode()
        with suppress(StoreError):
            asked = relay.ask(text)
            if asked.request == text:
                self._look_for_outcome(relay, asked.ticket, self.scheduler.now + ANSWER_SECONDS)

    def _look_for_outcome(self, relay: StatusRelay, ticket: str, until: float) -> None:
        """What somebody does who has asked for a reset."""
        waits, over = self.server.away, self.scheduler.now >= until
        with suppress(StoreError):
            waits = waits or not (relay.withdraw(ticket) if over else relay.answered(ticket))
        if waits and not over:
            self.at(1.0, partial(self._look_for_outcome, relay, ticket, until))

    # -- what goes wrong -----------------------------------------------------------------------------------

    def _crash(self) -> None:
        processes = list(self._processes())
        if processes:
            process = self.scheduler.one_of(processes)
            self.scheduler.note(f"{process.token} is killed")
            process.kill()

    def _crash_all(self) -> None:
        self.scheduler.note("all processes are killed")
        for process in tuple(self._processes()):
            process.kill()

    def _lose_host(self) -> None:
        service = self.scheduler.one_of(self.services)
        self.scheduler.note("a host is lost")
        service.lose_host()

    def _stop(self) -> None:
        service = self.scheduler.one_of(self.services)
        self.scheduler.note("a service is told to stop")
        service.stop()
        self.at(self.scheduler.seconds(0.0, 30.0), lambda: self._turn_on(service))

    def _turn_on(self, service: Service) -> None:
        service.on = service in self._running

    def _away(self, name: str, what: Server | Broker) -> None:
        self.scheduler.note(f"the {name} is away")
        what.away = True
        self.at(self.scheduler.seconds(0.5, 30.0), partial(self._back, name, what))

    def _back(self, name: str, what: Server | Broker) -> None:
        self.scheduler.note(f"the {name} is back")
        what.away = False

    def _store_falls_back(self) -> None:
        self.server.fall_back(self.scheduler.number(1, 30))

    def _retain(self) -> None:
        side = self.scheduler.one_of(tuple(Side))
        partition = self.scheduler.number(0, self.given.partitions[side] - 1)
        first = self.scheduler.number(0, self.broker.end(side, partition))
        self.scheduler.note(f"{side.name} partition {partition} loses what stands below {first}")
        self.broker.retain(side, partition, first)

    def _create_anew(self) -> None:
        side, further = self.scheduler.one_of(tuple(Side)), self.scheduler.number(1, 5)
        written = self.broker.written[side]
        left = self._again.choice((0, self._again.randint(0, written), written))
        self.scheduler.note(
            f"the topic of {side.name} is created anew, offsets are {further} further, and {left} of "
            f"{written} records are there"
        )
        self.oracle.topic_was_known = self.oracle.losses if self.server.has_begun() else None
        self.broker.create_anew(side, further, left)
        if left < written:  # Offsets come again, and the next start finds in its state what had them before.
            for seconds in (5.0, 20.0, 60.0):
                self.at(seconds * self._again.random(), self._crash_all)

    def _jump(self) -> None:
        """Of any host; but that of the store is not set back.

        Its leases would last longer, and who has seen that their owners are gone (`presence`) is
        not simulated.
        """
        clock = self.scheduler.one_of((self.store_clock, *(service.clock for service in self.services)))
        ahead = clock is self.store_clock
        seconds = self.scheduler.one_of((1.0, 60.0, 7200.0) if ahead else JUMPS)
        self.scheduler.note(f"the time of day of {clock.whose} jumps by {seconds} s")
        clock.set_by += seconds

    # -- the end -------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Nothing goes wrong any more: what was said in the end must be what the faults allow."""
        self.scheduler.note("nothing goes wrong any more")
        self.weather = CALM
        self.server.away = self.broker.away = False
        for service in self.services:
            service.clock.set_by = self.store_clock.set_by
        for source in self._sources:
            source.fickle = False
        for side in Side:
            self.broker.produce(side, len(self.given.rows[side]))
        for process in self._processes():
            process.wakes_at = 0.0
        self._agree()
        if self._resets and self.scheduler.chance(0.5):
            self.at(self.scheduler.seconds(5.0, 40.0), self._reset)
        self._wait()

    def _agree(self) -> None:
        """Of several shards one service has all in the end."""
        self._running = self.services[: 1 if self.given.shards > 1 else None]
        for service in self.services:
            if service not in self._running:
                service.stop()

    def _wait(self) -> None:
        steady, until = 0, self.scheduler.now + SETTLED_WITHIN_SECONDS
        while steady < STEADY_ROUNDS or self._later:
            self._round()
            why = self._why_not()
            steady = 0 if why else steady + 1
            if why and self.scheduler.now > until:
                self.oracle.violated(f"not settled after {SETTLED_WITHIN_SECONDS:g} s: {why}")

    def _why_not(self) -> str | None:
        shards = self.given.shards
        owners = [service for service in self._running for process in service.processes if process.owns]
        if len(owners) != shards:
            return f"{len(owners)} processes own a part of the comparison, which has {shards}"
        if self.server.is_asked():
            return "a reset was asked for"
        return self.oracle.unsettled(owners[0]) or self._disagreed(owners[0])

    def _disagreed(self, owner: Service) -> str | None:
        """Who stands by says something else."""
        said = owner.board.views()[0]
        for service in self._running if not waits(said.status) else ():
            view = service.board.views()[0]
            if view.in_crash_loop or said.in_crash_loop:
                continue
            if (view.gate.answer, view.status.verdict) != (said.gate.answer, said.status.verdict):
                answers = f"one that stands by says {view.gate.answer}, the owner {said.gate.answer}"
                return f"{answers}: {view.gate.reason}"
        return None

    def _round(self) -> None:
        for service in self._running:
            service.on = True
        self._start()
        for process in list(self._processes()):
            if process.over is None and process.wakes_at <= self.scheduler.now:
                process.resume()
        self.scheduler.now += 1.0
        self._arrive()
        for service in self.services:
            service.look()
