"""Wires a process without matchers: passes statuses of their owners from Redis to the board.

Each shard of each comparison has a thread, since Redis may block; the board is fed on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar
from uuid import uuid4

import structlog

from twinstream.adapters.clocks import SystemClock
from twinstream.adapters.redis.requests import RedisRequests
from twinstream.adapters.redis.shelf import RedisShelf, tag_of
from twinstream.api.state.board import Board
from twinstream.core.arrivals.sharding import Shard
from twinstream.errors import StoreError
from twinstream.processes.remote_status import UNHEARD, Heard, ShardView, Watcher
from twinstream.processes.reset_requests import ANSWER, UNDER_WAY
from twinstream.processes.supervisor import ANSWER_SECONDS
from twinstream.settings import Settings
from twinstream.spec.file.model import Spec
from twinstream.spec.load import digest
from twinstream.status.comparison import Reset, ResetRefused, ResetRequest

ASK_SECONDS = 1.0
LOOK_SECONDS = 0.25
AT_A_TIME = 200
"""Publications shown before requests get their turn; at first there may be 10,000."""
T = TypeVar("T")

log = structlog.get_logger()


class Observers:
    """Watches the comparisons, and passes resets to their owners. Use it on the board's event loop."""

    def __init__(self, settings: Settings, specs: list[Spec], board: Board) -> None:
        self._settings, self._board = settings, board
        self._watched = [
            (spec, Shard(number, settings.shards)) for spec in specs for number in range(settings.shards)
        ]
        # One more for each comparison, for its resets.
        self._threads = ThreadPoolExecutor(len(self._watched) + len(specs), "observer")
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

    async def _watch(self, spec: Spec, shard: Shard) -> None:
        view = ShardView(RedisShelf(self._settings.redis, spec.name, uuid4().hex), shard)
        watcher = Watcher(digest(spec), view, SystemClock())
        try:
            while True:
                try:
                    await self._show(spec.name, shard, await self._aside(watcher.listen))
                except Exception as error:
                    log.exception("listening failed", comparison=spec.name)
                    reason = f"listening to its matcher failed with {type(error).__name__}: {error}"
                    self._board.unheard(spec.name, reason, shard.number)
                await asyncio.sleep(ASK_SECONDS)
        finally:
            view.close()

    async def _show(self, name: str, shard: Shard, heard: Heard) -> None:
        if heard.silence is not None:
            self._board.unheard(name, heard.silence, shard.number)
        for number, (publication, made_at) in enumerate(heard.publications):
            if number % AT_A_TIME == AT_A_TIME - 1:
                await asyncio.sleep(0)
            self._board.accept(publication, shard.number, made_at)

    async def _aside(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    # -- resets --------------------------------------------------------------------------------------------

    async def reset(self, name: str, request: ResetRequest) -> Reset | ResetRefused:
        """Have the owner reset a comparison; returns the outcome, after at most `ANSWER_SECONDS`."""
        if not self._board.hears(name):
            return ResetRefused(id=request.id, reason=UNHEARD)
        first = Shard(0, self._settings.shards)
        requests = RedisRequests(self._settings.redis, tag_of(name, first))
        try:
            return await self._leave(name, request, requests)
        finally:
            requests.close()

    async def _leave(self, name: str, request: ResetRequest, requests: RedisRequests) -> Reset | ResetRefused:
        text = request.model_dump_json().encode()
        try:
            if not await self._aside(requests.put, text):
                return ResetRefused(id=request.id, reason=UNDER_WAY)
        except StoreError as error:
            return ResetRefused(id=request.id, reason=str(error), open=True)
        answer = await self._answer(name, request, requests)
        if isinstance(answer, Reset):
            self._board.accept(answer)
        return answer or await self._taken_back(request, requests, text)

    async def _answer(
        self, name: str, request: ResetRequest, requests: RedisRequests
    ) -> Reset | ResetRefused | None:
        """The owner's outcome; None if there is none yet."""
        until = asyncio.get_running_loop().time() + ANSWER_SECONDS
        while asyncio.get_running_loop().time() < until:
            with suppress(StoreError):
                if found := await self._aside(requests.answered, request.id):
                    return ANSWER.validate_json(found)
            await asyncio.sleep(LOOK_SECONDS)
        return next((one for one in self._board.view(name).status.resets if one.id == request.id), None)

    async def _taken_back(self, request: ResetRequest, requests: RedisRequests, text: bytes) -> ResetRefused:
        with suppress(StoreError):
            if await self._aside(requests.withdraw, text):
                reason = f"its matcher has not taken it up for {ANSWER_SECONDS:g} s"
                return ResetRefused(id=request.id, reason=reason)
        reason = f"its matcher has not answered for {ANSWER_SECONDS:g} s"
        return ResetRefused(id=request.id, reason=reason, open=True)
