"""``/v1/events``: every change as a server-sent event, after the current state."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse

from twinstream.api.http.schemas import EventQuery
from twinstream.api.routes.problems import UNKNOWN
from twinstream.api.state.board import Board
from twinstream.api.stream.mailbox import Mailbox

HEARTBEAT_SECONDS = 5
"""A client that receives nothing for two intervals knows that its state is old."""

RECONNECT_MILLISECONDS = 1000


def events_router(board: Board) -> APIRouter:
    """The event stream."""
    router = APIRouter(prefix="/v1", tags=["events"])

    @router.get(
        "/events",
        summary="Server-sent events: status, gate, sample, phase, verdict, divergence, withdrawn, reset, "
        "heartbeat",
        response_class=EventSourceResponse,
        responses=UNKNOWN,
    )
    async def stream_events(query: Annotated[EventQuery, Query()], request: Request) -> EventSourceResponse:
        mailbox = board.subscribe(query.comparison)
        return EventSourceResponse(
            _drain(board, mailbox, request.state.still),
            ping=HEARTBEAT_SECONDS,
            ping_message_factory=_heartbeat,
        )

    return router


async def _drain(
    board: Board, mailbox: Mailbox, allowed: Callable[[], bool]
) -> AsyncIterator[ServerSentEvent | bytes]:
    """Each event, until the board is closed or the token of the stream's request is withdrawn."""
    try:
        yield ServerSentEvent(event="heartbeat", data="{}", retry=RECONNECT_MILLISECONDS)
        while (event := await mailbox.take()) is not None and allowed():
            yield event.encoded
    finally:
        board.unsubscribe(mailbox)


def _heartbeat() -> ServerSentEvent:
    """A real event, not a comment: browsers do not pass comments to scripts."""
    return ServerSentEvent(event="heartbeat", data="{}")
