"""Limits the size of request bodies: all valid ones are small, and some routes need no token."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LIMIT_BYTES = 64 * 1024
"""Many times the longest reset: a start with the offsets of a thousand partitions."""


class BodyLimit:
    """Refuses a body above the limit while it is read, so that never more than the limit is held."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Reading a body that is too long raises HTTPException 413."""
        read = 0

        async def receive_within_limit() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > LIMIT_BYTES:
                raise HTTPException(
                    413, f"The body is larger than {LIMIT_BYTES} bytes, which nothing here needs."
                )
            return message

        await self._app(scope, receive_within_limit, send)
