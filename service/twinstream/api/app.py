"""Builds the HTTP application over a board."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

from fastapi import Depends, FastAPI
from starlette.middleware import Middleware

from twinstream.access import Keys
from twinstream.api.http.middleware import BasePath, BodyLimit, HeadAsGet, SecurityHeaders
from twinstream.api.http.traffic import Counted, HttpMeter, announce
from twinstream.api.routes.access import AccessControl
from twinstream.api.routes.comparisons import comparisons_router, trials_router
from twinstream.api.routes.declared import NO_LINKS, KafkaLinks, declared_router
from twinstream.api.routes.events import events_router
from twinstream.api.routes.listings import listings_router
from twinstream.api.routes.operations import (
    Metrics,
    Obstacles,
    obstacles_to_matching,
    obstacles_to_serving,
    operations_router,
)
from twinstream.api.routes.problems import Unanswered, said_once
from twinstream.api.routes.problems import install as install_problems
from twinstream.api.routes.resets import Resetter, nobody, resets_router
from twinstream.api.routes.sessions import install_pages, sessions_router
from twinstream.api.state.board import Board

TICK_SECONDS = 1.0

DESCRIPTION = """Whether two versions of a streaming pipeline, run side by side, do the same.

Times are UTC. A list is `{"items": […], "next": cursor or null}`. Errors are RFC 9457 problem documents."""


def create_app(
    board: Board,
    metrics: Metrics,
    *,
    keys: Keys | None = None,
    base_path: str = "",
    traffic: HttpMeter | None = None,
    reset: Resetter = nobody,
    obstacles: Obstacles = obstacles_to_serving,
    kafka: KafkaLinks = NO_LINKS,
    tick_seconds: float = TICK_SECONDS,
) -> FastAPI:
    """The application over `board`.

    Args:
        board: fed by the caller, from the thread of the event loop that serves the application.
        metrics: called for each scrape; returns the exposition and its content type.
        keys: the valid tokens; None: no token is needed, and only this host is answered.
        base_path: the part of a proxy's paths that belongs to this service, like `/twinstream`.
        traffic: told of each answered request; by default nobody is.
        reset: resets a comparison.
        obstacles: the reasons why the process is not ready.
        kafka: where readers find Kafka.
        tick_seconds: how often to look for silent matchers.

    A server calls ``board.close()`` before it stops: otherwise it waits for the open event streams.
    """
    version = package_version()
    counting = [Middleware(Counted, traffic=traffic)] if traffic is not None else []

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        ticking = asyncio.create_task(_tick(board, tick_seconds))
        yield
        ticking.cancel()
        with suppress(asyncio.CancelledError):
            await ticking
        board.close()

    app = FastAPI(
        title="Twinstream",
        description=DESCRIPTION,
        version=version,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
        middleware=[*counting, *_around(keys, base_path)],
        dependencies=[Depends(said_once)],
    )
    install_problems(app)
    app.include_router(comparisons_router(board, version))
    app.include_router(declared_router(board, version, kafka))
    app.include_router(listings_router(board))
    app.include_router(trials_router(board))
    app.include_router(resets_router(board, reset))
    app.include_router(events_router(board))
    app.include_router(operations_router(board, metrics, version, obstacles))
    app.include_router(sessions_router(keys))
    install_pages(app)
    if traffic is not None:
        announce(app, traffic)
    return app


def create_matcher_app(
    board: Board, metrics: Metrics, *, keys: Keys | None = None, base_path: str = ""
) -> FastAPI:
    """The application of a process with matchers but no API: liveness, readiness, and metrics.

    Arguments are as those of `create_app`.
    """
    app = FastAPI(
        title="Twinstream matcher", openapi_url=None, docs_url=None, middleware=_around(keys, base_path)
    )
    install_problems(app)
    app.include_router(operations_router(board, metrics, package_version(), obstacles_to_matching))
    return app


def _around(keys: Keys | None, base_path: str) -> list[Middleware]:
    """The middleware around each request."""
    return [
        Middleware(SecurityHeaders),
        Middleware(Unanswered),
        Middleware(HeadAsGet),
        Middleware(BodyLimit),
        Middleware(BasePath, base_path=base_path),
        Middleware(AccessControl, keys=keys),
    ]


def package_version() -> str:
    """The installed version; ``0+unknown`` from a bare source tree."""
    try:
        return installed_version("twinstream")
    except PackageNotFoundError:
        return "0+unknown"


async def _tick(board: Board, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        board.tick()
