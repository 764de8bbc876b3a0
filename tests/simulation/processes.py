"""Processes: a matcher that stops wherever the scheduler says, and the service that starts it again.

A matcher is the shipped `Worker` on a greenlet of its own. It gives control back between its rounds, and
wherever it is paused inside a call into a port. Every such call goes through `Process.call`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from greenlet import greenlet

from tests.simulation.inputs import START_MS
from tests.simulation.scheduler import Scheduler, Weather
from twinstream.api.board import Board
from twinstream.api.expectation import Expectation
from twinstream.errors import Fenced, SourceError, StoreError, TwinstreamError
from twinstream.ports import Clock, Publisher, Source, Store
from twinstream.runtime.supervisor import BACKOFF_LIMIT_SECONDS, BACKOFF_SECONDS
from twinstream.runtime.worker import Worker
from twinstream.spec.load import digest
from twinstream.spec.model import Spec
from twinstream.status import ComparisonStatus, Publication, Version

if TYPE_CHECKING:
    from tests.simulation.world import World

LONGEST_PAUSE = 45.0
LATEST_ARRIVAL = 20.0
Make = Callable[[Spec, Any, Any, Any, Any], Worker]
"""Makes the worker under test, of the arguments of `Worker`."""


class Crash(BaseException):
    """The process is killed."""


class SimulatedClock:
    """The port `Clock`: one monotonic time, and a time of day that somebody may set."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.set_by = 0.0

    def now(self) -> datetime:
        """The time of day."""
        return datetime.fromtimestamp(START_MS / 1000 + self._scheduler.now + self.set_by, UTC)

    def monotonic(self) -> float:
        """Simulated seconds."""
        return self._scheduler.now


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

    def __init__(self, world: World, service: Service, token: str, make: Make) -> None:
        self._world, self._scheduler, self.service, self.token = world, world.scheduler, service, token
        self._source = world.source()
        self._store = world.server.client(token)
        self.worker: Worker | None = None
        self._make = make
        self._greenlet = greenlet(self._live)
        self.wakes_at = 0.0
        self.paused = False
        self.told_to_stop = False
        self.over: str | None = None
        self.said: ComparisonStatus | None = None
        self.losses_before = world.oracle.losses

    @property
    def owns(self) -> bool:
        """Whether it says that it is the owner."""
        return self.said is not None and not self.said.health.standby

    def resume(self) -> None:
        """Let it go on."""
        self.paused = False
        self._greenlet.switch()

    def kill(self) -> None:
        """End it wherever it stands."""
        if self._greenlet:
            self._greenlet.throw(Crash)
        self.over = self.over or "killed"

    def _live(self) -> None:
        # Each process's own view, so that a type checker still holds the ports against the worker's needs.
        source: Source = Watched(self, "source", self._source)
        store: Store = Watched(self, "store", self._store)
        publisher: Publisher = Watched(self, "publisher", self)
        clock: Clock = self._world.clock
        try:
            self.worker = self._make(self._world.given.spec, source, store, publisher, clock)
            self.worker.run(self._stopping)
            self.over = "stopped"
        except Crash:
            self.over = "killed"
        except Fenced as error:
            self.over = f"fenced: {error}"
        except TwinstreamError as error:
            self._world.oracle.violated(f"{self.token} gave up: {type(error).__name__}: {error}")
        self._scheduler.note(f"{self.token} is over: {self.over}")

    def _stopping(self, seconds: float) -> bool:
        self.wakes_at = self._scheduler.now + seconds
        self._yield()
        return self.told_to_stop

    def _yield(self) -> None:
        self._greenlet.parent.switch()

    def publish(self, publication: Publication) -> None:
        """The port `Publisher`: what arrives is heard by the oracle and by the service."""
        if isinstance(publication, ComparisonStatus):
            self.said = publication
        self._world.oracle.published(self, publication)
        self.service.board.accept(publication)

    # -- what happens to a call ----------------------------------------------------------------------------

    def call(self, port: str, method: str, call: Callable[..., Any], *args: Any) -> Any:
        """A call into a port, and what the weather makes of it."""
        weather = self._world.weather
        fates = _fates(weather, port, method)
        fate = _drawn(self._scheduler, fates)
        if fate is not None:
            self._scheduler.note(f"{self.token}: {port}.{method}: {fate}")
        if fate is None:
            return call(*args)
        return self._disturbed(fate, port, call, args)

    def _disturbed(self, fate: str, port: str, call: Callable[..., Any], args: Any) -> Any:
        match fate:
            case "crash before":
                raise Crash
            case "pause before":
                self._pause()
            case "slow":
                self._scheduler.now += self._scheduler.seconds(0.01, 3.0)
            case "call lost":
                raise self._no_answer(port)
            case "arrives late":
                self._world.later(self._scheduler.seconds(0.5, LATEST_ARRIVAL), self.token, call, args)
                raise self._no_answer(port)
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
                raise self._no_answer(port)

    def _no_answer(self, port: str) -> TwinstreamError:
        self._scheduler.now += 2.0
        return StoreError("no answer came") if port == "store" else SourceError("no answer came")

    def _pause(self) -> None:
        self.wakes_at = self._scheduler.now + self._scheduler.seconds(0.5, LONGEST_PAUSE)
        self.paused = True
        self._yield()


_SHARES = {"save": 3.0, "poll": 0.25, "seen": 0.25, "ends": 0.25, "trouble": 0.25}
"""A save is disturbed more often than other calls, and calls that are many less."""


def _fates(weather: Weather, port: str, method: str) -> dict[str, float]:
    """What may become of a call, each with its chance; the rest goes through."""
    fates = {
        "crash before": weather.crash_in_call / 2,
        "crash after": weather.crash_in_call / 2,
        "pause before": weather.pause_in_call / 2,
        "pause after": weather.pause_in_call / 2,
        "slow": weather.slow,
    }
    if method == "close":
        return {}
    if port == "store" or method == "topics":
        fates |= {"call lost": weather.call_lost, "answer lost": weather.answer_lost}
    if port == "store" and method != "load":
        late = weather.arrives_late / 2
        fates |= {"arrives late": late, "arrives again": late, "repeated": weather.repeated}
    share = _SHARES.get(method, 1.0)
    return {name: chance * share for name, chance in fates.items()}


def _drawn(scheduler: Scheduler, fates: dict[str, float]) -> str | None:
    if not any(fates.values()):
        return None
    left = scheduler.random.random()
    for fate, chance in fates.items():
        left -= chance
        if left < 0:
            return fate
    return None


class Service:
    """An instance of the service on a host of its own: a board, and a matcher that is started again."""

    def __init__(self, world: World, name: str, make: Make) -> None:
        self._world, self._name, self._make = world, name, make
        self.board = self._new_board()
        self.process: Process | None = None
        self._starts_at = 0.0
        self._backoff = BACKOFF_SECONDS
        self._lives = 0
        self.on = True

    def _new_board(self) -> Board:
        spec, clock = self._world.given.spec, self._world.clock
        sides = Version(topic=spec.reference.topic), Version(topic=spec.candidate.topic)
        board = Board(monotonic=clock.monotonic, now=clock.now)
        board.expect(
            Expectation(
                name=spec.name,
                spec_digest=digest(spec),
                order=spec.order_text,
                reference=sides[0],
                candidate=sides[1],
            )
        )
        return board

    @property
    def can_start(self) -> bool:
        """Whether it is time to start the matcher again."""
        return self.on and self.process is None and self._world.scheduler.now >= self._starts_at

    def start(self) -> None:
        """Start a matcher with a token of its own."""
        self._lives += 1
        self.process = Process(self._world, self, f"{self._name}{self._lives}", self._make)
        self._world.scheduler.note(f"{self.process.token} is started")

    def look(self) -> None:
        """Notice that the matcher is gone: say so, hand its lease back, and wait before the next."""
        process = self.process
        if process is None or process.over is None:
            return
        self.process = None
        if process.over == "stopped":
            self.on, self.board = False, self._new_board()
            return
        self.board.lost(self._world.given.spec.name, "its matcher process is gone; it is started again")
        self._starts_at = self._world.scheduler.now + self._backoff
        self._backoff = min(self._backoff * 2, BACKOFF_LIMIT_SECONDS)
        self._hand_back(process.token)

    def _hand_back(self, token: str) -> None:
        if self._world.scheduler.chance(0.3):
            return
        try:
            self._world.server.client(token).release()
        except StoreError:
            self._world.scheduler.note(f"the lease of {token} cannot be handed back")

    def lose_host(self) -> None:
        """The host is gone with all that ran on it; another one starts with nothing."""
        if self.process is not None:
            self.process.kill()
            self.process = None
        self.board = self._new_board()
        self._starts_at = self._world.scheduler.now + self._world.scheduler.seconds(0.0, 20.0)
        self._backoff = BACKOFF_SECONDS
