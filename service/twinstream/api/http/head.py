"""Answers HEAD wherever GET is allowed: the same answer without its body."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadAsGet:
    """Answers HEAD as GET would be answered, and ends a stream before it begins."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        answered = False

        async def send_head(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                scope["method"] = "HEAD"  # outer middleware must see HEAD
                await send(message)
                await send({"type": "http.response.body"})
                answered = True

        async def receive_until_answered() -> Message:
            return {"type": "http.disconnect"} if answered else await receive()

        scope["method"] = "GET"
        await self._app(scope, receive_until_answered, send_head)
