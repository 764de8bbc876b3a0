"""``POST /v1/comparisons/{name}/reset``: resets a comparison.

The API process changes nothing itself: it asks the matcher that owns the comparison, and returns the outcome.
Only JSON is accepted, which no page of another host can send without a preflight request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import APIRouter, Depends, Header, Request
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from twinstream.access import LOCAL
from twinstream.api.routes.comparisons import comparison_router
from twinstream.api.routes.problems import PROBLEM, TOO_LARGE, problem
from twinstream.api.state.board import Board
from twinstream.spec.file.start import Start
from twinstream.status.common import Frozen, Sides
from twinstream.status.comparison import (
    ComparisonStatus,
    Ended,
    Reset,
    ResetRefused,
    ResetRequest,
)

Resetter = Callable[[str, ResetRequest], Awaitable[Reset | ResetRefused]]
"""Resets a comparison, and returns the outcome."""

RESPONSES: dict[int | str, dict[str, Any]] = {
    409: {
        "description": "It was not reset, and nothing has changed; `detail` says what to do.",
        **PROBLEM,
    },
    **TOO_LARGE,
    415: {"description": "The body is not JSON.", **PROBLEM},
    422: {"description": "The body is not as it must be; `errors` names the members.", **PROBLEM},
    503: {
        "description": "It is not known whether it was reset: see `resets` in the status.",
        **PROBLEM,
    },
}


class ResetOrder(Frozen):
    """A request to reset a comparison: why, where to, and by whom (else the header `X-Twinstream-By`)."""

    reason: str = Field(min_length=1, max_length=1000, pattern=r"\S", description="Why; it is recorded.")
    start: Start | Literal["now", "earliest", "barrier", "input"] | None = Field(
        None,
        description="As `start` in the comparison file, which is the default; or `now`: where both sides "
        "have been read to, at a moment at which no event waits for a partner.",
    )
    by: str | None = Field(
        None, min_length=1, max_length=200, pattern=r"\S", description="Who; it is recorded."
    )


async def nobody(_name: str, request: ResetRequest) -> ResetRefused:
    """The answer if no matcher can be asked."""
    return ResetRefused(id=request.id, reason="this process has no matchers: ask the one that has")


def resets_router(board: Board, reset: Resetter) -> APIRouter:
    """The route that resets a comparison."""
    router = comparison_router()

    def check_first(name: str, request: Request) -> None:
        """Raise the errors that do not depend on the body."""
        board.view(name)
        _check_type(request)

    @router.post(
        "/reset",
        summary="Begin it anew",
        response_model=Reset,
        responses=RESPONSES,
        dependencies=[Depends(check_first)],
    )
    async def post_reset(
        name: str,
        order: ResetOrder,
        request: Request,
        x_twinstream_by: Annotated[str | None, Header(max_length=200)] = None,
        idempotency_key: Annotated[
            str | None,
            Header(
                pattern="^[A-Za-z0-9_-]{8,64}$",
                description="Sent again with the same key, it resets once; the `id` of the record.",
            ),
        ] = None,
    ) -> Response:
        shown = board.view(name).status
        answer = await reset(name, _asked(order, x_twinstream_by, request, idempotency_key, shown))
        if isinstance(answer, Reset):
            return Response(answer.model_dump_json(), media_type="application/json")
        if answer.open:
            unsure = f"It is not known whether {name!r} was reset: {answer.reason}."
            return problem(503, f"{unsure} `resets` in its status will tell.", comparison=name)
        return problem(
            409, f"{name!r} was not reset, and nothing has changed: {answer.reason}.", comparison=name
        )

    return router


def _check_type(request: Request) -> None:
    given = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if given != "application/json":
        was = f" (it was {given})" if given else ""
        raise HTTPException(415, f"Send Content-Type: application/json{was}.")


def _who(holder: str, named: str | None) -> str | None:
    """The author of a reset: with tokens always the holder, whatever the body or header says."""
    if holder == LOCAL.name:
        return named
    return holder if named in (None, holder) else f"{holder} for {named}"


def _as_sent(header: str | None) -> str | None:
    """The text of a header, whose bytes the server takes for Latin-1, where they are UTF-8."""
    try:
        return header and header.encode("latin-1").decode()
    except UnicodeDecodeError:
        return header


def _stands(status: ComparisonStatus) -> Ended:
    """The state of a comparison, as all of its matchers together show it."""
    positions = {
        side: {str(one.partition): one.position for one in partitions} for side, partitions in status.progress
    }
    return Ended(
        verdict=status.verdict,
        since=status.since,
        started_at=status.started_at,
        matched=status.matched,
        divergences=status.divergences.total,
        positions=Sides[dict[str, int]](**positions),
    )


def _asked(
    order: ResetOrder, named: str | None, request: Request, key: str | None, shown: ComparisonStatus
) -> ResetRequest:
    by = _who(request.state.who, _as_sent(named) or order.by)
    if by is None:
        raise HTTPException(422, "`by` is missing: the author of a reset is recorded.")
    start: Any = order.start
    if isinstance(start, Start):
        start = start.as_written()
    elif start not in (None, "now"):
        start = {"at": start}
    address = "" if request.client is None else request.client.host
    told: dict[str, Any] = {"by": by, "reason": order.reason, "address": address, "start": start}
    return ResetRequest(id=key or uuid4().hex, before=_stands(shown), **told)
