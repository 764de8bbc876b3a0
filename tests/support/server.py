"""The real HTTP server over a board that the test feeds: real sockets and event loop, in its own thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import uvicorn

from tests.support.statuses import NAME, expectation, reset
from tests.support.waiting import eventually
from twinstream.api.app import create_app
from twinstream.api.routes.operations import Metrics
from twinstream.api.state.board import Board
from twinstream.status.comparison import ComparisonStatus, Publication, Reset, ResetRefused, ResetRequest

T = TypeVar("T")
READER, OPERATOR = "reader-0123456789-0123456789", "operator-0123456789-0123456789"
TOKENS = f"read viewer {READER}\noperate anna {OPERATOR}\n"
"""What stands in a file of tokens."""


class Matcher:
    """Takes resets that are asked for, and answers as it is told."""

    def __init__(self) -> None:
        self.asked: list[ResetRequest] = []
        self.refuses: ResetRefused | None = None

    async def __call__(self, name: str, request: ResetRequest) -> Reset | ResetRefused:
        assert name == NAME
        self.asked.append(request)
        return self.refuses or reset(request.id, by=request.by, reason=request.reason)


def no_metrics() -> tuple[bytes, str]:
    return b"", "text/plain; version=0.0.4; charset=utf-8"


class Server(uvicorn.Server):
    """Ends when it is told, where uvicorn looks ten times a second whether it has been."""

    async def main_loop(self) -> None:
        """Serve until `over` is called, on the event loop."""
        self._over = asyncio.Event()
        self.over = self._over.set
        await self.on_tick(0)
        await self._over.wait()


class Served:
    """A running service; `call` runs something on its event loop, where the board lives."""

    def __init__(self, board: Board, metrics: Metrics, port: int = 0, **more: Any) -> None:
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.board = board
        self._loop = asyncio.new_event_loop()
        app = create_app(board, metrics, tick_seconds=0.05, **more)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="on", ws="none", timeout_graceful_shutdown=2
        )
        self._server = Server(config)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        eventually(lambda: hasattr(self._server, "over"), seconds=10, what="it listens", every_seconds=0.005)

    def stop(self) -> None:
        """End all connections and the server."""
        if self._thread.is_alive():
            self.call(self.board.close)
            self.call(self._server.over)
            self._thread.join(10)
        assert not self._thread.is_alive(), "the server did not stop"

    def call(self, function: Callable[[], T]) -> T:
        """Run `function` on the event loop and hand back its result."""

        async def run() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(5)

    def publish(self, *publications: Publication, made_at: float | None = None) -> None:
        """What a matcher would send, of a comparison that is expected then."""
        for publication in publications:
            if isinstance(publication, ComparisonStatus):
                self.call(partial(self.board.expect, expectation(publication.name)))
            self.call(partial(self.board.accept, publication, made_at=made_at))

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._server.serve(sockets=[self._listener]))


@contextmanager
def served(board: Board, metrics: Metrics = no_metrics, port: int = 0, **more: Any) -> Iterator[Served]:
    """A service on a free port of loopback (or on `port`) meanwhile; `more` as in `create_app`."""
    service = Served(board, metrics, port, **more)
    service.start()
    try:
        yield service
    finally:
        service.stop()
