"""``/v1/comparisons``: what is known of each comparison, and its gate."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from twinstream.api.board import Board
from twinstream.api.gate import GateAnswer
from twinstream.api.problems import PROBLEM, UNKNOWN, problem
from twinstream.api.rendered import listed, of_model
from twinstream.api.samples import Sample
from twinstream.api.schemas import Listing, Progress
from twinstream.status import ComparisonStatus

RETRY_SECONDS = 5
"""How soon an undecided gate is worth asking again."""

STRICT: dict[int | str, dict[str, Any]] = {
    **UNKNOWN,
    409: {
        "description": "The answer is `fail`; its members are in the problem.",
        **PROBLEM,
    },
    425: {"description": "The answer is `undecided`, likewise.", **PROBLEM},
}


def comparisons_router(board: Board) -> APIRouter:
    """The routes under ``/v1/comparisons``."""
    router = APIRouter(prefix="/v1/comparisons", tags=["comparisons"])

    @router.get("", summary="All comparisons", response_model=Listing[ComparisonStatus])
    async def list_comparisons(request: Request) -> Response:
        return listed(board.bodies()).answer(request)

    @router.get(
        "/{name}", summary="One comparison at a glance", response_model=ComparisonStatus, responses=UNKNOWN
    )
    async def get_comparison(name: str, request: Request) -> Response:
        return board.body(name).answer(request)

    @router.get(
        "/{name}/progress",
        summary="How far each side is read and verified",
        response_model=Progress,
        responses=UNKNOWN,
    )
    async def get_progress(name: str, request: Request) -> Response:
        return board.progress(name).answer(request)

    @router.get(
        "/{name}/history",
        summary="The last fifteen minutes, for a chart",
        response_model=Listing[Sample],
        responses=UNKNOWN,
    )
    async def get_history(name: str, request: Request) -> Response:
        return of_model(Listing[Sample](items=board.samples(name))).answer(request)

    @router.get(
        "/{name}/gate",
        summary="pass, fail or undecided, always with status 200",
        response_model=GateAnswer,
        responses=UNKNOWN,
    )
    async def get_gate(name: str, request: Request) -> Response:
        return of_model(board.view(name).gate).answer(request)

    @router.get(
        "/{name}/gate/strict",
        summary="The same as a status code: 200, 409 or 425",
        response_model=GateAnswer,
        responses=STRICT,
    )
    async def get_strict_gate(name: str) -> Response:
        return strict(board.view(name).gate)

    return router


def strict(answer: GateAnswer) -> Response:
    """The gate as a status code, for tools that look at nothing else."""
    if answer.passed:
        return Response(answer.model_dump_json(), media_type="application/json")
    status, headers = (409, {}) if answer.failed else (425, {"Retry-After": str(RETRY_SECONDS)})
    return problem(status, answer.reason, headers=headers, **answer.model_dump())
