"""Turns errors into RFC 9457 problem documents, whatever raised them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.staticfiles import StaticFiles

from twinstream.api.http.security import SECURITY_HEADERS
from twinstream.api.routes.parameters import meant, told
from twinstream.api.state.board import UnknownComparisonError

METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
MEDIA_TYPE = "application/problem+json"

PROBLEM: dict[str, Any] = {"content": {MEDIA_TYPE: {}}}
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"description": "There is no such comparison.", **PROBLEM}}

WHAT_TO_DO = {
    404: "There is nothing at {path!r}; {root}/docs lists what there is.",
    405: "{method} is not possible at {path!r}; the header Allow says what is.",
}
NO_API = "There is nothing at {path!r}: this process has matchers alone (--role matcher), and no API."


class ProblemResponse(JSONResponse):
    """JSON under the media type of problem documents."""

    media_type = MEDIA_TYPE


def problem(
    status: int, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any
) -> ProblemResponse:
    """A problem document; `detail` is a sentence for a person, `members` are for programs."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return ProblemResponse({**body, **members}, status_code=status, headers=dict(headers or {}))


def install(app: FastAPI) -> None:
    """Make `app` answer every error with a problem document."""
    app.add_exception_handler(UnknownComparisonError, _unknown_comparison)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected)


def _unknown_comparison(request: Request, error: Exception) -> Response:
    assert isinstance(error, UnknownComparisonError)
    detail = f"There is no comparison {error.name!r}; {_root(request)}/v1/comparisons lists those there are."
    return problem(404, detail, comparison=error.name)


def _invalid_request(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [{"parameter": _named(item["loc"]), "detail": told(item)} for item in meant(error.errors())]
    text = "; ".join(f"{item['parameter']}: {item['detail']}" for item in errors)
    return problem(422, f"The request cannot be understood: {text}.", errors=errors)


def _named(place: Sequence[int | str]) -> str:
    """The parameter or member that an error is about, without names that only the models have."""
    if place[0] == "body" and len(place) > 1 and isinstance(place[1], int):
        return f"body at character {place[1]}"
    if place[0] == "query" and len(place) > 1:
        return str(place[1])
    parts = [str(part) for part in place[1:] if not re.search(r"[(\[]", str(part))]
    return ".".join(parts) or str(place[0])


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = str(error.detail)
    if detail == HTTPStatus(error.status_code).phrase and error.status_code in WHAT_TO_DO:
        told = {"method": request.method, "path": request.url.path, "root": _root(request)}
        bare = error.status_code == 404 and request.app.openapi_url is None
        detail = (NO_API if bare else WHAT_TO_DO[error.status_code]).format(**told)
    headers = {"Allow": _allowed(request)} if error.status_code == 405 else error.headers
    return problem(error.status_code, detail, headers=headers)


def _allowed(request: Request) -> str:
    """The methods that some route has for the path; files under a mount can only be read."""
    found = {"GET"} if isinstance(request.scope.get("endpoint"), StaticFiles) else set()
    for method in METHODS if not found else ():
        asked = {**request.scope, "method": method}
        if any(route.matches(asked)[0] is Match.FULL for route in request.app.routes):
            found.add(method)
    return ", ".join(sorted(found | {"HEAD"} if "GET" in found else found))


def _root(request: Request) -> str:
    """The base path, if a proxy gives the service one."""
    scope = request.scope
    return str(scope.get("app_root_path", scope.get("root_path", "")))


def _unexpected(_request: Request, _error: Exception) -> Response:
    """Answer an unexpected error; its text stays in the log, since it may hold values that the spec masks."""
    detail = "The service failed to answer this request; its log says why."
    return problem(500, detail, headers=SECURITY_HEADERS)
