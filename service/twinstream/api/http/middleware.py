"""Wraps the application: isolates the page, answers HEAD, limits bodies, serves below a base path.

Each class is a plain ASGI middleware, so that streams pass unbuffered.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""No other host, no inline script, no frame around the page."""
LIMIT_BYTES = 64 * 1024
"""Many times the longest reset: a start with the offsets of a thousand partitions."""


class HttpMiddleware(ABC):
    """Handles HTTP requests, and passes everything else to the application unchanged."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        handle = self.answer if scope["type"] == "http" else self._app
        await handle(scope, receive, send)

    @abstractmethod
    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request, or pass it to the application."""


class SecurityHeaders(HttpMiddleware):
    """Adds the headers to every answer.

    Every cached answer must be revalidated: a verdict out of a cache is an old verdict.
    """

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Cache-Control", "no-cache")
                headers.update(SECURITY_HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class HeadAsGet(HttpMiddleware):
    """Answers HEAD as GET would be answered, without the body, and ends a stream before it begins."""

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] != "HEAD":
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


class BodyLimit(HttpMiddleware):
    """Refuses a body above the limit while it is read, so that never more than the limit is held.

    All valid bodies are small, and some routes need no token.
    """

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
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


class BasePath(HttpMiddleware):
    """Serves behind a proxy that gives the service one part of its paths: `/twinstream/v1/…`.

    Some proxies strip the prefix before they pass a request on, others do not. Either way the application
    gets the whole path, with the prefix as `root_path`; probes on the pod itself need no prefix.
    """

    def __init__(self, app: ASGIApp, base_path: str) -> None:
        super().__init__(app)
        self._base = base_path

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on; the bare prefix is redirected to the page, whose links are relative."""
        base, path = self._base, scope["path"]
        if base and path == base:
            await RedirectResponse(f"{base}/", 308)(scope, receive, send)
            return
        if base:
            whole = path if path.startswith(f"{base}/") else base + path
            scope.update(path=whole, root_path=base)  # in place: an outer counter looks for its route in it
        await self._app(scope, receive, send)
