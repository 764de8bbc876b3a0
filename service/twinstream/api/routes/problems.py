"""Turns errors into RFC 9457 problem documents, whatever raised them, and describes them in OpenAPI.

Errors of parameters are explained in our own words. No parameter may be repeated.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope, Send

from twinstream.api.http.middleware import LIMIT_BYTES, SECURITY_HEADERS, HttpMiddleware
from twinstream.api.state.board import UnknownComparisonError

METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
MEDIA_TYPE = "application/problem+json"

PROBLEM: dict[str, Any] = {"content": {MEDIA_TYPE: {}}}
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"description": "There is no such comparison.", **PROBLEM}}
TOO_LARGE: dict[int | str, dict[str, Any]] = {
    413: {"description": f"The body is larger than {LIMIT_BYTES} bytes.", **PROBLEM}
}

WHAT_TO_DO = {
    404: "No route {path!r}; {root}/docs lists all routes.",
    405: "{path!r} does not allow {method}; the Allow header lists its methods.",
}
NO_API = "No route {path!r}: this process runs only matchers (--role matcher) and has no API."

REPEATABLE = {"scope", "field"}
"""Parameters that are all applied at once."""
ZONED = "must be a time with a zone, like 2026-03-01T14:02:00Z"
_WORDS = {
    "extra_forbidden": "is unknown",
    "missing": "is missing",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "json_invalid": "is not JSON: {error}",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "string_unicode": "must not have half a character, as \\ud800 is",
    "too_short": "must name {min_length} or more",
    "string_too_short": "must have {min_length} characters or more",
    "string_too_long": "must have {max_length} characters or fewer",
    "literal_error": "must be {expected}",
    "datetime_parsing": ZONED,
    "datetime_from_date_parsing": ZONED,
    "timezone_aware": ZONED,
}
_PATTERNS = {
    "scope": "must be FIELD=VALUE",
    "cursor": "must be the `next` of the page before",
    "reason": "must not be blank",
    "by": "must not be blank",
    "idempotency-key": "must be 8 to 64 letters, digits, `-` or `_`",
}
PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "RFC 9457. `detail` is a sentence for a person; `errors` names parameters that are wrong.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"parameter": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
    "additionalProperties": True,
}
UNREADABLE = {"loc": ("body",), "type": "value_error", "msg": "must be UTF-8, and not nested so deep"}
"""What is said of a body in which the parser does not even find a fault."""
MISUNDERSTOOD = "The request is not valid; `errors` names the parameters."


class Unanswered(HttpMiddleware):
    """Answers a request that the server gives up when it stops, like one whose body has not come by then."""

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        begun = False

        async def send_and_note(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except asyncio.CancelledError:
            if not begun:
                await problem(503, "This process stops: ask again.")(scope, receive, send)


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
    """Make `app` answer every error with a problem document, and describe it so."""
    app.add_exception_handler(UnknownComparisonError, _unknown_comparison)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected)
    _describe_problems(app)


def _unknown_comparison(_request: Request, error: Exception) -> Response:
    assert isinstance(error, UnknownComparisonError)
    told = str(error)
    return problem(404, f"{told[0].upper()}{told[1:]}.", comparison=error.name)


def _invalid_request(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [{"parameter": _named(item["loc"]), "detail": _told(item)} for item in _meant(error.errors())]
    text = "; ".join(f"{item['parameter']}: {item['detail']}" for item in errors)
    return problem(422, f"The request is not valid: {text}.", errors=errors)


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
    if isinstance(error.__cause__, (UnicodeDecodeError, RecursionError)):
        return _invalid_request(request, RequestValidationError([UNREADABLE]))
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


# -- parameters --------------------------------------------------------------------------------------------


async def said_once(request: Request) -> None:
    """Refuse a parameter that is given several times: it would be a guess which one is meant.

    Raises RequestValidationError.
    """
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if count > 1 and name not in REPEATABLE:
            told = f"stands {count} times; give it once"
            raise RequestValidationError([{"loc": ("query", name), "msg": told, "type": "value_error"}])


def _told(error: dict[str, Any]) -> str:
    """The error of a parameter or a member, as the rest of a sentence."""
    kind, place = error["type"], error["loc"]
    if kind == "string_pattern_mismatch":
        return next((_PATTERNS[part] for part in place if part in _PATTERNS), str(error["msg"]))
    if kind == "string_too_short" and error["ctx"]["min_length"] == 1:
        return "must not be empty"
    if kind in _WORDS:
        return _WORDS[kind].format(**error.get("ctx", {}))
    return str(error["msg"]).removeprefix("Value error, ")


def _meant(errors: Sequence[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The errors, without those of the other form, if a member may be a word or an object."""
    unlike = [error for error in errors if _another_form(error)]
    return errors if len(unlike) == len(errors) else [error for error in errors if error not in unlike]


def _another_form(error: dict[str, Any]) -> bool:
    """Whether an error comes from trying a form that the value was not meant to have."""
    form = "[" in str(error["loc"][-1]) and error["loc"][-1] != "[key]"
    return form and (error["type"] == "literal_error") is isinstance(error["input"], dict)


# -- in the OpenAPI description ----------------------------------------------------------------------------


def _describe_problems(app: FastAPI) -> None:
    """Change the description of `app` so that its errors are problem documents, as in the answers."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        document = plain()
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas["Problem"] = PROBLEM_SCHEMA
        for operations in document["paths"].values():
            for operation in operations.values():
                _describe(operation["responses"])
        return document

    app.openapi = described  # type: ignore[method-assign]


def _describe(responses: dict[str, Any]) -> None:
    for code, response in responses.items():
        if code.startswith(("4", "5")):
            response["content"] = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
            if response["description"] == "Validation Error":
                response["description"] = MISUNDERSTOOD
