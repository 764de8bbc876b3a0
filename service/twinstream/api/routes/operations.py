"""``/healthz``, ``/readyz``, ``/metrics``: endpoints for the platform around the service.

Readiness depends on the role of the process (`Obstacles`); a process that answers is alive.
"""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter
from starlette.responses import Response

from twinstream.api.http.schemas import Liveness, Readiness
from twinstream.api.routes.problems import problem
from twinstream.api.state.board import Board
from twinstream.api.state.entry import View

Metrics = Callable[[], tuple[bytes, str]]
"""The exposition and its content type."""
Obstacles = Callable[[View], list[str]]
"""Why a process is not ready because of one comparison, as sentences."""


def operations_router(board: Board, metrics: Metrics, version: str, obstacles: Obstacles) -> APIRouter:
    """The routes outside ``/v1``."""
    router = APIRouter(tags=["operations"])

    @router.get("/healthz", summary="The process lives")
    async def healthz() -> Liveness:
        return Liveness(version=version)

    @router.get(
        "/readyz",
        summary="Every comparison is live, and can reach what it needs",
        response_model=Readiness,
        responses={503: {"description": "Not ready; `reasons` names what cannot be reached."}},
    )
    async def readyz() -> Response:
        # A trial does not make a process unready.
        judged = (view for view in board.views() if view.status.trial_of is None)
        reasons = [reason for view in judged for reason in obstacles(view)]
        if reasons:
            # Not as a sentence with a capital: each begins with the name of a comparison.
            detail = " ".join(f"{reason.rstrip('.')}." for reason in reasons)
            return problem(503, detail, ready=False, reasons=reasons)
        return Response(Readiness(ready=True, reasons=[]).model_dump_json(), media_type="application/json")

    @router.get("/metrics", summary="Metrics in Prometheus' text format", response_class=Response)
    async def get_metrics() -> Response:
        content, media_type = metrics()
        return Response(content, headers={"Content-Type": media_type})

    return router


def obstacles_to_serving(view: View) -> list[str]:
    """For a process with all roles: it must own the comparison and reach what it needs, even if degraded."""
    if view.freshness.fresh and view.status.health.standby:
        return [f"{view.name}: {' '.join(view.status.health.reasons)}"]
    return obstacles_to_matching(view)


def obstacles_to_answering(_view: View) -> list[str]:
    """For a process without matchers: it can always answer, if only that nothing is known."""
    return []


def obstacles_to_matching(view: View) -> list[str]:
    """For a process with matchers only: it must own the comparison, or stand by to take it over."""
    if not view.freshness.fresh:
        return [f"{view.name}: {view.freshness.reason}"]
    health = view.status.health
    if health.standby:
        return []
    unreachable = " and ".join(service.capitalize() for service in health.unreachable)
    if not unreachable:
        return []
    return [f"{view.name}: {unreachable} cannot be used: {' '.join(health.reasons)}"]
