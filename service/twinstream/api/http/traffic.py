"""Counts requests by the template of their route, so that a requested path never becomes a label.

A request counts when its answer begins, so an event stream, which stays open, counts at once. A request that
matches no route, whatever its path, counts as ``other``; so does a method that HTTP does not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

from fastapi import FastAPI
from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from twinstream.api.http.middleware import HttpMiddleware

OTHER = "other"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
STATIC = "/static"
"""All files of the page share one label: how often each is fetched is of no interest."""
DURATION_EDGES_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""From an answer out of memory to one that no release tool waits for."""


class HttpMeter:
    """Counts answers, always on the thread of the event loop."""

    def __init__(self, registry: CollectorRegistry) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._requests = Counter(
            "twinstream_http_requests",
            "HTTP requests answered, or whose answer has begun.",
            ("route", "method", "code"),
            registry=registry,
        )
        self._duration = Histogram(
            "twinstream_http_request_duration_seconds",
            "From an HTTP request to the beginning of its answer.",
            ("route", "method"),
            buckets=DURATION_EDGES_SECONDS,
            registry=registry,
        )

    def expect(self, route: str, method: str, code: int) -> None:
        """Start a series at 0 for a possible answer."""
        self._requests.labels(route, method, str(code))
        self._duration.labels(route, method)

    def answered(self, route: str, method: str, code: int, seconds: float) -> None:
        """Count a request that was answered, or whose answer has begun, after so many seconds."""
        self._requests.labels(route, method, str(code)).inc()
        self._duration.labels(route, method).observe(seconds)


class Counted(HttpMiddleware):
    """Reports each answer to `traffic`; as the outermost it also sees refusals."""

    def __init__(self, app: ASGIApp, traffic: HttpMeter) -> None:
        super().__init__(app)
        self._traffic = traffic

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        began, told = monotonic(), False

        def tell(code: int) -> None:
            nonlocal told
            if not told:
                told = True
                self._traffic.answered(_route(scope), _method(scope), code, monotonic() - began)

        async def send_and_tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                tell(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, send_and_tell)
        except Exception:
            tell(500)  # an outer handler makes the answer from the exception
            raise


def announce(app: FastAPI, traffic: HttpMeter) -> None:
    """Start a series at 0 for each answer that the routes of a complete application declare, and a 500."""
    for route, method, code in _declared(app):
        traffic.expect(route, method, code)
    traffic.expect(OTHER, "GET", 404)


def _declared(app: FastAPI) -> Iterator[tuple[str, str, int]]:
    pages = [route.path for route in app.routes if isinstance(route, APIRoute)]
    for path in (*pages, STATIC, app.openapi_url or STATIC):
        yield from ((path, "GET", code) for code in (200, 500))
    for path, operations in app.openapi()["paths"].items():
        for method, operation in operations.items():
            codes = {int(code) for code in operation["responses"] if code.isdecimal()}
            yield from ((path, method.upper(), code) for code in sorted(codes | {500}))


def _route(scope: Scope) -> str:
    path = getattr(scope.get("route"), "path", None)
    if path is not None:
        return str(path)
    if scope.get("endpoint") is None:
        return OTHER
    openapi_url = scope["app"].openapi_url
    below = scope["path"].removeprefix(scope.get("root_path", ""))
    return str(openapi_url) if below == openapi_url else STATIC


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in METHODS else OTHER
