"""``/``, ``/docs``, ``/login``, ``/logout``, ``/v1/me``: the page, and how a person gives it a token.

The token itself is the cookie: nothing is stored here, so every replica knows it, a restart ends no session,
and withdrawing a token ends its sessions. The cookie expires with the browser session.

All files are from this host, so that they work without other hosts. The viewer of the OpenAPI description
comes from an installed package that ships it. The chart library is in the wheel; a checkout uses the package
from which the wheel takes it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from pydantic import Field
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from twinstream.access import Keys, Role
from twinstream.api.routes.access import COOKIE, secure
from twinstream.api.routes.problems import PROBLEM, TOO_LARGE, problem
from twinstream.status.common import Frozen

STATIC = Path(__file__).parents[1] / "static"
CHARTS = STATIC / "uplot"


def package_files(package: str, folder: str) -> Path:
    """The folder of data files of an installed package, found without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"the package {package!r}, which ships files of the page, is not installed")
    return Path(spec.origin).parent / folder


def install_pages(app: FastAPI) -> None:
    """Serve the page, its files and the documentation."""
    if not CHARTS.is_dir():
        app.mount("/static/uplot", StaticFiles(directory=package_files("uplot", "static")))
    app.mount("/static/swagger", StaticFiles(directory=package_files("fastapi_offline", "static")))
    app.mount("/static", StaticFiles(directory=STATIC))

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(STATIC / "docs.html")

    @app.get("/favicon.ico", include_in_schema=False)
    async def favicon() -> FileResponse:
        return FileResponse(STATIC / "icon.svg", media_type="image/svg+xml")


class Login(Frozen):
    """The data of the form."""

    token: str = Field(min_length=1, max_length=1000)


class Me(Frozen):
    """The sender of the request; `tokens` is false if none are needed."""

    name: str
    role: Role
    tokens: bool


REFUSED: dict[int | str, dict[str, Any]] = {
    401: {"description": "The token is not valid.", **PROBLEM},
    **TOO_LARGE,
}


def sessions_router(keys: Keys | None) -> APIRouter:
    """The routes of a session; `keys` None: there are no tokens."""
    router = APIRouter(tags=["sessions"])

    @router.get("/login", include_in_schema=False)
    async def login_page() -> Response:
        return RedirectResponse("./", 303) if keys is None else FileResponse(STATIC / "login.html")

    @router.post("/login", summary="Keep a token in a cookie", status_code=204, responses=REFUSED)
    async def login(sent: Login, request: Request) -> Response:
        token = sent.token.strip()
        if keys is not None and keys.holder(token) is None:
            return problem(401, "This token is not valid.", headers={"WWW-Authenticate": "Bearer"})
        response = Response(status_code=204)
        if keys is not None:
            response.set_cookie(COOKIE, token, **_attributes(request))
        return response

    @router.post("/logout", summary="Forget it", status_code=204)
    async def logout(request: Request) -> Response:
        response = Response(status_code=204)
        response.delete_cookie(COOKIE, **_attributes(request))
        return response

    @router.get("/v1/me", summary="Whose token it is, and its role")
    async def get_me(request: Request) -> Me:
        return Me(name=request.state.who, role=request.state.role, tokens=keys is not None)

    return router


def _attributes(request: Request) -> dict[str, Any]:
    path = request.scope.get("root_path", "") or "/"
    return {"path": path, "httponly": True, "samesite": "strict", "secure": secure(request)}
