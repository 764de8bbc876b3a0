"""``/v1/comparisons``: the status of each comparison, its gate, and the effect of rules on trial beside it.

A trial is a comparison of its own, with all routes of one except the gate.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from twinstream.api.gate.gate import GateAnswer, no_gate
from twinstream.api.gate.samples import Sample, total_lag
from twinstream.api.http.rendered import listed, of_model
from twinstream.api.http.schemas import Listing, Progress, SideProgress
from twinstream.api.routes.problems import PROBLEM, UNKNOWN, problem
from twinstream.api.routes.scope import GateScope, ScopedAnswer, scoped
from twinstream.api.state.board import Board, utc_now
from twinstream.api.state.contrast import ComparisonFacts, one_sided
from twinstream.api.state.divergences import DivergenceLog
from twinstream.api.state.entry import View
from twinstream.api.stream.timeline import Phase
from twinstream.explain.receipts.receipt import Gate, Receipt, receipt_of_status
from twinstream.status.common import Sides
from twinstream.status.comparison import ComparisonStatus, PartitionProgress, Version
from twinstream.status.trials import Contrast, OneSided

RETRY_SECONDS = 5
"""After this time an undecided gate is worth asking again."""

STRICT: dict[int | str, dict[str, Any]] = {
    409: {"description": "The answer is `fail`; its members are in the problem.", **PROBLEM},
    425: {"description": "The answer is `undecided`, likewise.", **PROBLEM},
}
ROLLBACK: dict[int | str, dict[str, Any]] = {
    409: {"description": "The answer is not `fail`; its members are in the problem.", **PROBLEM},
}


def comparison_router(tag: str = "comparisons") -> APIRouter:
    """A router for the routes of one comparison."""
    return APIRouter(prefix="/v1/comparisons/{name}", tags=[tag], responses=UNKNOWN)


def comparisons_router(board: Board, version: str) -> APIRouter:
    """The routes under ``/v1/comparisons``; `version` is that of the service."""
    router, one = APIRouter(), comparison_router()

    @router.get(
        "/v1/comparisons",
        tags=["comparisons"],
        summary="All comparisons",
        response_model=Listing[ComparisonStatus],
    )
    async def list_comparisons(request: Request) -> Response:
        return listed(board.bodies()).answer(request)

    @one.get("", summary="One comparison at a glance", response_model=ComparisonStatus)
    async def get_comparison(name: str, request: Request) -> Response:
        return board.body(name).answer(request)

    @one.get("/progress", summary="How far each side is read and verified", response_model=Progress)
    async def get_progress(name: str, request: Request) -> Response:
        return of_model(progress_of(board.view(name).status)).answer(request)

    @one.get("/history", summary="The last fifteen minutes, for a chart", response_model=Listing[Sample])
    async def get_history(name: str, request: Request) -> Response:
        return of_model(Listing[Sample](items=board.samples(name))).answer(request)

    @one.get(
        "/timeline",
        summary="How verdict, gate and health stood since the service started",
        response_model=Listing[Phase],
    )
    async def get_timeline(name: str, request: Request) -> Response:
        return of_model(Listing[Phase](items=board.timeline(name))).answer(request)

    @one.get(
        "/receipt",
        summary="The verdict with all that it rests on and leaves out, for a change ticket",
        response_model=Receipt,
    )
    async def get_receipt(name: str, request: Request) -> Response:
        view = board.view(name)
        gated = view.status.trial_of is None
        said = Gate(answer=view.gate.answer, reason=view.gate.reason) if gated else None
        receipt = receipt_of_status(view.status, said, view.exclusions, utc_now(), f"twinstream {version}")
        return of_model(receipt).answer(request)

    gate_routes(one, board)
    router.include_router(one)
    return router


def progress_of(status: ComparisonStatus) -> Progress:
    """The progress in a status, with the lags added up."""

    def side(version: Version, partitions: list[PartitionProgress]) -> SideProgress:
        return SideProgress(topic=version.topic, lag=total_lag(partitions), partitions=partitions)

    return Progress(
        comparison=status.name,
        sides=Sides[SideProgress](
            reference=side(status.reference, status.progress.reference),
            candidate=side(status.candidate, status.progress.candidate),
        ),
        verified_up_to=status.verified_up_to,
        verified_through=status.verified_through,
        updated_at=status.updated_at,
    )


def gate_routes(router: APIRouter, board: Board) -> None:
    """The gate in its forms; POST is for tools that can only send, and its body is not read."""

    def asked(name: str, scope: GateScope) -> ScopedAnswer:
        view = board.view(name)
        if view.status.trial_of is not None:
            raise HTTPException(404, no_gate(name, view.status.trial_of))
        return scoped(view.gate, scope, view.status, board.pace(name))

    @router.get(
        "/gate", summary="pass, fail or undecided, always with status 200", response_model=ScopedAnswer
    )
    async def get_gate(name: str, request: Request, scope: Annotated[GateScope, Query()]) -> Response:
        return of_model(asked(name, scope)).answer(request)

    async def in_strict(name: str, scope: Annotated[GateScope, Query()]) -> Response:
        return strict(asked(name, scope))

    async def in_rollback(name: str, scope: Annotated[GateScope, Query()]) -> Response:
        return rollback(asked(name, scope))

    for method in ("GET", "POST"):
        router.add_api_route(
            "/gate/strict",
            in_strict,
            methods=[method],
            summary="The same as a status code: 200, 409 or 425",
            response_model=ScopedAnswer,
            responses=STRICT,
        )
        router.add_api_route(
            "/gate/rollback",
            in_rollback,
            methods=[method],
            summary="200 for fail alone, else 409: whether to roll back",
            response_model=ScopedAnswer,
            responses=ROLLBACK,
        )


def rollback(answer: GateAnswer) -> Response:
    """Success means: roll back. So only a proven difference gives success."""
    if answer.failed:
        return Response(answer.model_dump_json(), media_type="application/json")
    return problem(409, answer.reason, **answer.model_dump())


def strict(answer: GateAnswer) -> Response:
    """The gate as a status code, for tools that read nothing else."""
    if answer.passed:
        return Response(answer.model_dump_json(), media_type="application/json")
    status, headers = (409, {}) if answer.failed else (425, {"Retry-After": str(RETRY_SECONDS)})
    return problem(status, answer.reason, headers=headers, **answer.model_dump())


TEXT_SHOWN = 500
"""Characters of an example's text; the report has the whole text."""


def trials_router(board: Board) -> APIRouter:
    """The route of rules on trial."""
    router = comparison_router("trials")

    @router.get(
        "/trial",
        summary="What the rules on trial beside it would hide, and what they alone find",
        response_model=Contrast,
    )
    async def get_trial(name: str, request: Request) -> Response:
        live = board.view(name)
        trial = next((view for view in board.views() if view.status.trial_of == name), None)
        if trial is None:
            raise HTTPException(
                404, f"No rules are on trial beside comparison {name!r}: `serve --trial FILE`."
            )
        return of_model(_contrast(board, live, trial)).answer(request)

    return router


def _contrast(board: Board, live: View, trial: View) -> Contrast:
    logs = board.divergences(live.name), board.divergences(trial.name)
    first, second = (
        ComparisonFacts(view.status, view.freshness.fresh, list(log.identities()))
        for view, log in zip((live, trial), logs, strict=True)
    )
    return Contrast(
        name=trial.name,
        trial_of=live.name,
        fresh=trial.freshness.fresh,
        verdict=trial.status.verdict,
        reason=trial.status.reason if trial.freshness.fresh else trial.freshness.reason,
        changes=list(trial.changes),
        matched=trial.status.matched,
        divergences=trial.status.divergences.total,
        hidden=_with_texts(one_sided(first, second), logs[0]),
        alone=_with_texts(one_sided(second, first), logs[1]),
    )


def _with_texts(found: OneSided, log: DivergenceLog) -> OneSided:
    """The examples with their texts; of those gone from the list only the kind is known."""
    examples = [
        one.model_copy(update={"text": "" if report is None else _short(report.text)})
        for one in found.examples
        for report in (log.get(one.id),)
    ]
    return found.model_copy(update={"examples": examples})


def _short(text: str) -> str:
    return text if len(text) <= TEXT_SHOWN else f"{text[:TEXT_SHOWN]}…"
