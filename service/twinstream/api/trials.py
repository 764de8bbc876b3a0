"""``/v1/comparisons/{name}/trial``: changed rules that are tried beside a comparison, and what they find.

None of it is in the gate, in alerts or among the divergences of the comparison.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from twinstream.api.board import Board
from twinstream.api.divergences import DivergenceLog
from twinstream.api.listings import DivergenceQuery, paged
from twinstream.api.problems import UNKNOWN
from twinstream.api.rendered import of_model
from twinstream.api.schemas import Listing
from twinstream.status import DivergenceReport
from twinstream.trials import TrialStatus


def trials_router(board: Board) -> APIRouter:
    """The routes of rules on trial."""
    router = APIRouter(prefix="/v1/comparisons", tags=["trials"])

    @router.get(
        "/{name}/trial",
        summary="Its rules on trial, and what they would change",
        response_model=TrialStatus,
        responses=UNKNOWN,
    )
    async def get_trial(name: str, request: Request) -> Response:
        return of_model(_trial_of(board, name)).answer(request)

    @router.get(
        "/{name}/trial/divergences",
        summary="What the rules on trial find, newest first",
        response_model=Listing[DivergenceReport],
        responses=UNKNOWN,
    )
    async def list_trial_divergences(
        name: str, query: Annotated[DivergenceQuery, Query()], request: Request
    ) -> Response:
        return of_model(paged(_divergences_of(board, name), query)).answer(request)

    @router.get(
        "/{name}/trial/divergences/{identifier}", summary="One divergence of the trial", responses=UNKNOWN
    )
    async def get_trial_divergence(name: str, identifier: str) -> DivergenceReport:
        report = _divergences_of(board, name).get(identifier)
        if report is None:
            raise HTTPException(404, f"The trial of comparison {name!r} keeps no divergence {identifier!r}.")
        return report

    return router


def _divergences_of(board: Board, name: str) -> DivergenceLog:
    _trial_of(board, name)
    return board.trial_divergences(name)


def _trial_of(board: Board, name: str) -> TrialStatus:
    trial = board.view(name).status.trial
    if trial is None:
        raise HTTPException(404, f"No rules are on trial beside comparison {name!r}: `serve --trial FILE`.")
    return trial
