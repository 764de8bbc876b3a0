"""``/v1/comparisons``: what is known of each comparison, and its gate."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from twinstream.api.board import Board
from twinstream.api.gate import GateAnswer
from twinstream.api.problems import MEDIA_TYPE, problem
from twinstream.api.samples import Sample, total_lag
from twinstream.api.schemas import DivergenceQuery, Listing, Progress, SideProgress
from twinstream.status import ComparisonStatus, DivergenceReport, PartitionProgress, Sides, Version

RETRY_SECONDS = 5
"""How soon an undecided gate is worth asking again."""

PROBLEM: dict[str, Any] = {"content": {MEDIA_TYPE: {}}}
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"description": "There is no such comparison.", **PROBLEM}}
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

    @router.get("", summary="All comparisons")
    async def list_comparisons() -> Listing[ComparisonStatus]:
        return Listing[ComparisonStatus](items=[view.status for view in board.views()])

    @router.get(
        "/{name}", summary="One comparison at a glance", response_model=ComparisonStatus, responses=UNKNOWN
    )
    async def get_comparison(name: str, request: Request) -> Response:
        return tagged(request, board.view(name).status)

    @router.get("/{name}/divergences", summary="Its divergences, newest first", responses=UNKNOWN)
    async def list_divergences(
        name: str, query: Annotated[DivergenceQuery, Query()]
    ) -> Listing[DivergenceReport]:
        page = board.divergences(name).page(query.limit, query.cursor, query.kind)
        cursor = None if page.next is None else str(page.next)
        return Listing[DivergenceReport](items=page.items, next=cursor)

    @router.get("/{name}/divergences/{identifier}", summary="One divergence", responses=UNKNOWN)
    async def get_divergence(name: str, identifier: str) -> DivergenceReport:
        report = board.divergences(name).get(identifier)
        if report is None:
            raise HTTPException(404, f"Comparison {name!r} keeps no divergence {identifier!r}.")
        return report

    @router.get("/{name}/progress", summary="How far each side is read and verified", responses=UNKNOWN)
    async def get_progress(name: str) -> Progress:
        return progress(board.view(name).status)

    @router.get("/{name}/history", summary="The last fifteen minutes, for a chart", responses=UNKNOWN)
    async def get_history(name: str) -> Listing[Sample]:
        return Listing[Sample](items=board.samples(name))

    @router.get("/{name}/gate", summary="pass, fail or undecided, always with status 200", responses=UNKNOWN)
    async def get_gate(name: str) -> GateAnswer:
        return board.view(name).gate

    @router.get(
        "/{name}/gate/strict",
        summary="The same as a status code: 200, 409 or 425",
        response_model=GateAnswer,
        responses=STRICT,
    )
    async def get_strict_gate(name: str) -> Response:
        return strict(board.view(name).gate)

    return router


def tagged(request: Request, body: BaseModel) -> Response:
    """The body with an ETag, or 304 if the client has it already."""
    content = body.model_dump_json().encode()
    etag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
    known = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    if etag in known or "*" in known:
        return Response(status_code=304, headers={"ETag": etag})
    return Response(content, media_type="application/json", headers={"ETag": etag})


def strict(answer: GateAnswer) -> Response:
    """The gate as a status code, for tools that look at nothing else."""
    if answer.passed:
        return Response(answer.model_dump_json(), media_type="application/json")
    status, headers = (409, {}) if answer.failed else (425, {"Retry-After": str(RETRY_SECONDS)})
    return problem(status, answer.reason, headers=headers, **answer.model_dump())


def progress(status: ComparisonStatus) -> Progress:
    """The part of a status that says how far it has come, with the lags added up."""
    return Progress(
        comparison=status.name,
        sides=Sides[SideProgress](
            reference=_side(status.reference, status.progress.reference),
            candidate=_side(status.candidate, status.progress.candidate),
        ),
        verified_up_to=status.verified_up_to,
        verified_through=status.verified_through,
        updated_at=status.updated_at,
    )


def _side(version: Version, partitions: list[PartitionProgress]) -> SideProgress:
    return SideProgress(topic=version.topic, lag=total_lag(partitions), partitions=partitions)
