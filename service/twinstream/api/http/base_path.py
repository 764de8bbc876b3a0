"""Serves behind a proxy that gives the service one part of its paths: `/twinstream/v1/…`.

Some proxies strip the prefix before they pass a request on, others do not. Either way the application gets
the whole path, with the prefix as `root_path`; probes on the pod itself need no prefix.
"""

from __future__ import annotations

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class BasePath:
    """Puts each request under the base path, unless it is there already."""

    def __init__(self, app: ASGIApp, base_path: str) -> None:
        self._app, self._base = app, base_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on; the bare prefix is redirected to the page, whose links are relative."""
        base = self._base
        if not base or scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if path == base:
            await RedirectResponse(f"{base}/", 308)(scope, receive, send)
            return
        whole = path if path.startswith(f"{base}/") else base + path
        scope.update(path=whole, root_path=base)  # in place: an outer counter looks for its route in it
        await self._app(scope, receive, send)
