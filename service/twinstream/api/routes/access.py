"""Checks who sends a request and whether they may, before any handler; only paths named here are open.

A token comes as `Authorization: Bearer TOKEN`; as the password of `Basic`, from tools that only accept an
address with a user and a password; or, from the page, as a cookie that no script can read and that is sent
only with requests of this host's own pages. Handlers find the holder's name in ``request.state.who``.

Rules of this file: a path is closed unless it is in `OPEN`; a method that is not in `LOOKING` needs the role
`operate` unless its path is in `ASKING`. Without tokens the service is for its own host, and answers only to
that host's names: otherwise a page of another host could point its own name here and read the answers.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from twinstream.access import LOCAL, Holder, Keys, Role
from twinstream.api.http.middleware import HttpMiddleware
from twinstream.api.routes.problems import problem
from twinstream.settings import is_own_name

COOKIE = "twinstream_token"

OPEN = re.compile(r"/healthz|/readyz|/login|/logout|/favicon\.ico|/static/.*")
"""Paths that reveal nothing of a comparison except that all are ready, or that are the same everywhere."""
PAGES = ("/", "/docs")
"""Paths at which a person without a token is sent to give one."""
LOOKING = frozenset({"GET", "HEAD"})
ASKING = re.compile(r"/v1/comparisons/[^/]+/gate/(strict|rollback)")
"""Read-only queries that some tools can send only by POST."""
_FROM_BROWSER = ("origin", "sec-fetch-site", "cookie")


class AccessControl(HttpMiddleware):
    """Refuses requests that their sender may not make; `keys` None: there are no tokens."""

    def __init__(self, app: ASGIApp, keys: Keys | None) -> None:
        super().__init__(app)
        self._keys = keys

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it to the application."""
        refused = self._local(scope) if self._keys is None else self._known(scope, self._keys)
        await (refused or _foreign(scope) or self._app)(scope, receive, send)

    def _local(self, scope: Scope) -> Response | None:
        host = Headers(scope=scope).get("host", "")
        if not is_own_name(_hostname(host)) and not OPEN.fullmatch(route(scope)):
            return problem(
                421,
                "Without tokens this service answers only to names of its own host (localhost, 127.0.0.1): "
                "ask it there, or start it with --token-file.",
            )
        _tell(scope, LOCAL, lambda: True)
        return None

    def _known(self, scope: Scope, keys: Keys) -> Response | None:
        path, method = route(scope), scope["method"]
        tokens = given(Headers(scope=scope))
        token = next(filter(keys.holder, tokens), tokens[0])
        holder = keys.holder(token)
        if holder is not None:
            _tell(scope, holder, lambda: keys.holder(token) == holder)
        if OPEN.fullmatch(path):
            return None
        needed: Role = "read" if method in LOOKING or ASKING.fullmatch(path) else "operate"
        if holder is None:
            return _unknown(scope, token)
        return None if holder.may(needed) else _forbidden(holder, method, path)


def given(headers: Headers) -> tuple[str, ...]:
    """The token of a request, empty if it has none; two where `Basic` may be the login at a proxy."""
    cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
    scheme, _, rest = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return (rest.strip(),)
    if scheme.lower() == "basic":
        return _password(rest.strip()), cookie
    return (cookie,)


def route(scope: Scope) -> str:
    """The path below the base path."""
    return str(scope["path"]).removeprefix(scope.get("root_path", "")) or "/"


def secure(connection: HTTPConnection) -> bool:
    """Whether the request came by TLS, here or at a proxy that is trusted to report it."""
    return connection.url.scheme == "https"


def _password(encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _tell(scope: Scope, holder: Holder, still: Callable[[], bool]) -> None:
    """Pass the holder to the handlers; `still` tells later whether the token is still valid."""
    scope.setdefault("state", {}).update(who=holder.name, role=holder.role, still=still)


def _unknown(scope: Scope, token: str) -> Response:
    if route(scope) in PAGES and scope["method"] in LOOKING:
        base = scope.get("root_path", "")  # Without one a proxy may have taken off a prefix unknown here.
        return RedirectResponse(f"{base}/login" if base else "login", 303)
    if token:
        challenge, detail = ', error="invalid_token"', "The token is not valid: it may have been withdrawn."
    else:
        challenge, detail = "", "A token is needed: send it as `Authorization: Bearer TOKEN`."
    return problem(401, detail, headers={"WWW-Authenticate": f'Bearer realm="twinstream"{challenge}'})


def _forbidden(holder: Holder, method: str, path: str) -> Response:
    challenge = 'Bearer realm="twinstream", error="insufficient_scope", scope="operate"'
    detail = f"{method} {path} needs the role operate, and {holder.name} has the role {holder.role}."
    return problem(403, detail, headers={"WWW-Authenticate": challenge})


def _foreign(scope: Scope) -> Response | None:
    """Refuse requests that a page of another host makes a browser send, with the cookie."""
    headers = Headers(scope=scope)
    if scope["method"] in LOOKING or not any(name in headers for name in _FROM_BROWSER):
        return None
    if not _same_origin(headers):
        return problem(403, "Pages of other hosts may not make changes here.")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return problem(415, "From a browser, send Content-Type: application/json.")
    return None


def _same_origin(headers: Headers) -> bool:
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("origin")
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:
        return False


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
