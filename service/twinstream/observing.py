"""Wires what the API process reads from Redis, and what it leaves there: statuses and resets.

Redis may block, so every call to it is made on a thread; the board is used on the event loop.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from uuid import uuid4

import structlog
from pydantic import TypeAdapter, ValidationError

from twinstream.adapters.clocks import SystemClock
from twinstream.adapters.kafka import results
from twinstream.adapters.kafka.results import NO_HAND, ResultsShelf, ResultsTopics
from twinstream.adapters.redis.shelf import RedisShelf
from twinstream.api.state.board import STALE_AFTER_SECONDS, Board
from twinstream.core.arrivals.sharding import Shard
from twinstream.errors import StoreError, place_of
from twinstream.matcher.worker import STANDBY
from twinstream.ports import Asked, ReadShelf, StatusRelay
from twinstream.processes.remote_status import UNHEARD, News, Watcher
from twinstream.processes.standby import Bulletin
from twinstream.settings import Settings
from twinstream.spec.file.model import Spec
from twinstream.spec.load import digest
from twinstream.status.comparison import Reset, ResetRefused, ResetRequest

LISTEN_SECONDS = 1.0
AT_A_TIME = 200
"""Publications shown before requests get their turn; at first there may be 10,000."""
MOST_THREADS = 64
LOOK_SECONDS = 0.25
ANSWER_SECONDS = 30.0
"""For a reset: a matcher may wait ten seconds until it is possible, and for a slow store."""
NOT_RUNNING = "its matcher does not run: try again when it does"
STOPPING = "this process stops"
UNDER_WAY = "another reset is under way: wait for it"

_OUTCOME: TypeAdapter[Reset | ResetRefused] = TypeAdapter(Reset | ResetRefused)

log = structlog.get_logger()


class Observers:
    """Watches the comparisons of a process without matchers. Use it on the board's event loop."""

    def __init__(self, settings: Settings, specs: list[Spec], board: Board) -> None:
        self._settings, self._board = settings, board
        self._watched = [
            (spec, Shard(number, settings.shards)) for spec in specs for number in range(settings.shards)
        ]
        self._threads = ThreadPoolExecutor(min(len(self._watched), MOST_THREADS), "observer")
        self._results = (
            None
            if settings.results is None
            else ResultsTopics(settings.brokers, settings.results, settings.kafka)
        )
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start to watch."""
        self._tasks = [asyncio.create_task(self._watch(spec, shard)) for spec, shard in self._watched]

    async def stop(self) -> None:
        """Stop, without waiting for pending calls."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _shelf(self, spec: Spec) -> ReadShelf:
        if self._results is not None:
            return ResultsShelf(self._results, spec.name)
        return RedisShelf(self._settings.redis, spec.name, uuid4().hex)

    async def _watch(self, spec: Spec, shard: Shard) -> None:
        shelf = self._shelf(spec)
        unheard = UNHEARD if self._results is None else results.UNHEARD
        watcher = Watcher(digest(spec), shelf, shard, SystemClock(), unheard)
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    news = await loop.run_in_executor(self._threads, watcher.listen)
                    await self._show(spec.name, shard, news)
                except Exception as error:
                    log.exception("listening failed", comparison=spec.name)
                    reason = f"listening to its matcher failed with {place_of(error)}"
                    self._board.unheard(spec.name, reason, shard.number)
                await asyncio.sleep(LISTEN_SECONDS)
        finally:
            watcher.close()

    async def _show(self, name: str, shard: Shard, news: News) -> None:
        if news.silence is not None:
            self._board.unheard(name, news.silence, shard.number)
        for number, (publication, made_at) in enumerate(news.publications):
            if number % AT_A_TIME == AT_A_TIME - 1:
                await asyncio.sleep(0)
            self._board.accept(publication, shard.number, made_at)


class Resets:
    """Passes resets to the owners of comparisons, in this process or another. Use it on the event loop."""

    def __init__(self, settings: Settings, board: Board) -> None:
        self._settings, self._board = settings, board
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Wait for no outcome any more: those who wait are told at once that it is not known."""
        self._stopping.set()

    async def reset(self, name: str, request: ResetRequest) -> Reset | ResetRefused:
        """Have the owner reset a comparison; returns the outcome, which takes at most `ANSWER_SECONDS`.

        A reset is told seconds later, when no process shows a status from before it any more. The request
        goes to shard 0, which resets all of them.
        """
        asking = asyncio.create_task(self._ask(name, request))
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((asking, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if asking.done():
            return asking.result()
        asking.cancel()
        return ResetRefused(id=request.id, reason=STOPPING, open=True)

    async def _ask(self, name: str, request: ResetRequest) -> Reset | ResetRefused:
        if self._settings.results is not None:
            return ResetRefused(id=request.id, reason=NO_HAND)
        shelf = RedisShelf(self._settings.redis, name, uuid4().hex)
        relay = shelf.relay(Shard(0, self._settings.shards))
        try:
            reason = await self._refusal(name, relay)
            if reason is not None:
                return ResetRefused(id=request.id, reason=reason)
            return await self._pass_on(name, request, relay)
        finally:
            relay.close()

    async def _refusal(self, name: str, relay: StatusRelay) -> str | None:
        """The reason why no owner can be asked from here."""
        state, stands_by = self._board.matcher_state(name)
        if state in ("lost", "unheard"):
            return NOT_RUNNING if state == "lost" else UNHEARD
        if not stands_by:
            return None
        owner = ""
        with suppress(StoreError, ValidationError):
            if heard := await asyncio.to_thread(relay.heard):
                owner = Bulletin.model_validate_json(heard.bulletin).owner
        return f"{STANDBY}: ask the owner, on {owner}" if owner else STANDBY

    async def _pass_on(self, name: str, request: ResetRequest, relay: StatusRelay) -> Reset | ResetRefused:
        try:
            asked = await asyncio.to_thread(relay.ask, request.model_dump_json().encode())
        except StoreError as error:
            return ResetRefused(id=request.id, reason=str(error), open=True)
        if not _is(request, asked):
            return ResetRefused(id=request.id, reason=UNDER_WAY)
        outcome = await self._outcome(name, request, asked.ticket, relay)
        if isinstance(outcome, Reset):
            self._board.accept(outcome)
            await self._outlast(relay)
        return outcome or await self._taken_back(request, asked.ticket, relay)

    async def _outlast(self, relay: StatusRelay) -> None:
        """Wait until other processes no longer show a status from before now, if any shows statuses."""
        with suppress(StoreError):
            if not await asyncio.to_thread(relay.listened_to):
                return
        await asyncio.sleep(STALE_AFTER_SECONDS)

    async def _outcome(
        self, name: str, request: ResetRequest, ticket: str, relay: StatusRelay
    ) -> Reset | ResetRefused | None:
        """The owner's answer, or the record in its status; None if there is none in time."""
        until = asyncio.get_running_loop().time() + ANSWER_SECONDS
        while asyncio.get_running_loop().time() < until:
            with suppress(StoreError):
                if found := await asyncio.to_thread(relay.answered, ticket):
                    return _OUTCOME.validate_json(found)
            await asyncio.sleep(LOOK_SECONDS)
        return next((one for one in self._board.view(name).status.resets if one.id == request.id), None)

    async def _taken_back(self, request: ResetRequest, ticket: str, relay: StatusRelay) -> ResetRefused:
        with suppress(StoreError):
            if await asyncio.to_thread(relay.withdraw, ticket):
                reason = f"its matcher has not taken it up for {ANSWER_SECONDS:g} s"
                refused = ResetRefused(id=request.id, reason=reason)
                # Who has asked for it again waits longer.
                await asyncio.to_thread(relay.answer, ticket, refused.model_dump_json().encode())
                return refused
        reason = f"its matcher has not answered for {ANSWER_SECONDS:g} s"
        return ResetRefused(id=request.id, reason=reason, open=True)


def _is(request: ResetRequest, asked: Asked) -> bool:
    """Whether what waits for the owner is this request, left by this attempt or an earlier one."""
    with suppress(ValidationError):
        return ResetRequest.model_validate_json(asked.request).id == request.id
    return False
