"""Starts matcher processes, listens to them, restarts them when they fall, and stops them together.

Each matcher is a process with one pipe. It sends publications, and a `Failure` before it gives up; the end of
the pipe means that it is gone. The supervisor lives on the event loop of the API process and never blocks it.

A matcher that falls repeatedly is restarted at growing intervals, up to `BACKOFF_LIMIT_SECONDS`; one that
falls over the same batch is restarted soon, until the batch is left out (see `falls`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, MutableSequence
from multiprocessing.connection import Connection
from typing import NamedTuple, Protocol
from uuid import uuid4

import structlog

from twinstream.core.arrivals.sharding import WHOLE, Shard
from twinstream.intake.falls import TRAIL_LENGTH, FallenStretch, Falls, Trail
from twinstream.processes.child import spawn, start_child
from twinstream.processes.pipe import STOP_WORD, Failure, Inbox, Message
from twinstream.status.comparison import Publication, Reset

BACKOFF_SECONDS = 0.5
BACKOFF_LIMIT_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""After running for so long a matcher has recovered: the next restart is quick again."""
STOP_SECONDS = 15.0

log = structlog.get_logger()


class StartArgs(NamedTuple):
    """The arguments of a matcher process.

    They are the token with which it owns the comparison, the memory of its trail, the offsets that it leaves
    out, and its shard.
    """

    token: str
    trail: MutableSequence[int]
    left_out: tuple[FallenStretch, ...] = ()
    shard: Shard = WHOLE


RunMatcher = Callable[[Connection, StartArgs], None]
"""The body of a matcher process: it gets its end of the pipe and its arguments."""


class Listener(Protocol):
    """Receives what matchers publish: in the service, the board of the API."""

    def accept(self, publication: Publication, shard: int, made_at: float) -> None:
        """Accept a publication of a matcher; `made_at` is when it was true, on the monotonic clock."""

    def lost(self, name: str, reason: str, shard: int) -> None:
        """Mark a matcher as gone that was not told to stop."""


class MatcherProcess:
    """The matcher of one comparison or shard, over all its restarts.

    `release(token)` releases the lease of a fallen matcher; it may block, and is called on a thread.
    """

    def __init__(
        self,
        name: str,
        body: RunMatcher,
        listener: Listener,
        release: Callable[[str], None],
        shard: Shard = WHOLE,
    ) -> None:
        self._name, self._body, self._listener, self._release = name, body, listener, release
        self._shard = shard
        self._log = log.bind(comparison=name, **({} if shard.whole else {"shard": shard.number}))
        self._backoff = BACKOFF_SECONDS
        self._stopping = False
        self._failure: str | None = None
        self._over = asyncio.Event()
        self._restart: asyncio.Task[None] | None = None
        self._falls = Falls()

    def start(self) -> None:
        """Start the process. Call it on the thread of the event loop: the process ends with that thread."""
        self._token = uuid4().hex
        self._failure = None
        self._pipe, theirs = spawn.Pipe()
        self._inbox = Inbox(self._pipe)
        memory = spawn.RawArray("q", TRAIL_LENGTH)
        self._trail = Trail(memory)
        brief = StartArgs(self._token, memory, self._falls.left_out, self._shard)
        name = f"twinstream-{self._name}" + ("" if self._shard.whole else f"-{self._shard.number}")
        self._process = start_child(self._body, (theirs, brief), name)
        theirs.close()
        self._over.clear()
        self._started = time.monotonic()
        asyncio.get_running_loop().add_reader(self._pipe.fileno(), self._readable)

    def _readable(self) -> None:
        try:
            self._inbox.receive()
        except (EOFError, OSError):
            self._fallen()
            return
        for message, made_at in self._inbox.whole():
            self._hear(message, made_at)

    def _hear(self, message: Message, made_at: float) -> None:
        if isinstance(message, Failure):
            self._failure = message.reason
            return
        if isinstance(message, Reset):
            self._falls = Falls()  # It may read everything again, and the cause of the falls may be fixed.
        self._listener.accept(message, self._shard.number, made_at)

    def _fallen(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pipe.fileno())
        self._pipe.close()
        self._over.set()
        if self._stopping:
            return
        steady = time.monotonic() - self._started > STEADY_SECONDS
        if self._falls.fell_over(self._trail.stretch()) or steady:
            self._backoff = BACKOFF_SECONDS
        reason = self._failure or "its matcher process ended unexpectedly"
        self._log.error("matcher lost", reason=reason, restart_in_seconds=self._backoff)
        self._listener.lost(self._name, f"{reason}; it is started again", self._shard.number)
        self._restart = asyncio.create_task(self._start_again())

    async def _start_again(self) -> None:
        """Start the process as soon as the system has the resources."""
        await self._reap()
        while True:
            await asyncio.sleep(self._backoff)
            self._backoff = min(self._backoff * 2, BACKOFF_LIMIT_SECONDS)
            try:
                return self.start()
            except OSError as error:
                reason = f"its matcher process cannot be started: {error.strerror or error}"
                self._log.error("matcher not started", reason=reason, restart_in_seconds=self._backoff)
                self._listener.lost(self._name, f"{reason}; it is tried again", self._shard.number)

    async def _reap(self) -> None:
        """Wait for the process to end, and release its lease."""
        await asyncio.to_thread(self._process.join, STOP_SECONDS)
        if self._process.is_alive():
            self._process.kill()
        await asyncio.to_thread(self._release, self._token)

    async def stop(self) -> None:
        """Ask the process to checkpoint and end; kill it when it does not within `STOP_SECONDS`."""
        self._stopping = True
        if self._restart is not None:
            self._restart.cancel()
        if self._over.is_set():
            return
        try:
            self._pipe.send_bytes(STOP_WORD)
            await asyncio.wait_for(self._over.wait(), STOP_SECONDS)
        except (OSError, TimeoutError):
            self._log.error("matcher killed", reason="it did not stop in time")
            self._process.kill()
        await self._reap()
