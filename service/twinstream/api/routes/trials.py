"""``/v1/comparisons/{name}/trial``: the effect of changed rules that are tried beside a comparison.

The trial is a comparison of its own, with all routes of one except the gate.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from twinstream.api.http.rendered import of_model
from twinstream.api.routes.comparisons import comparison_router
from twinstream.api.state.board import Board
from twinstream.api.state.contrast import ComparisonFacts, one_sided
from twinstream.api.state.divergences import DivergenceLog
from twinstream.api.state.entry import View
from twinstream.status.trials import Contrast, OneSided

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
        ComparisonFacts(view.status, view.is_fresh, list(log.identities()))
        for view, log in zip((live, trial), logs, strict=True)
    )
    return Contrast(
        name=trial.name,
        trial_of=live.name,
        fresh=trial.is_fresh,
        verdict=trial.status.verdict,
        reason=trial.status.reason if trial.is_fresh else trial.freshness.reason,
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
