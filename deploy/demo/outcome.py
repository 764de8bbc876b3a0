"""One result of several comparisons: the worst of their answers, as an exit code and as one object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deploy.demo.service import Look

EXIT_CODES = {"pass": 0, "fail": 1, "undecided": 3}
UNREACHABLE = 4

_ANSWERS_FROM_WORST = ("fail", "undecided", "pass")
_VERDICTS_FROM_WORST = ("DIVERGED", "INCONCLUSIVE", "PENDING", "EQUIVALENT")

_FROM_STATUS = (
    "name",
    "health",
    "events",
    "matched",
    "unmatched",
    "divergences",
    "suspicions",
    "holes",
    "accounts",
    "verified_up_to",
    "verified_through",
)
_FROM_GATE = ("answer", "verdict", "reason")


def worst(looks: Sequence[Look]) -> tuple[str, str]:
    """The worst answer and the worst verdict; with no comparison to judge, nothing is decided."""
    answers = {str(look.gate["answer"]) for look in looks} or {"undecided"}
    verdicts = {str(look.gate["verdict"]) for look in looks} or {"PENDING"}
    answer = next((one for one in _ANSWERS_FROM_WORST if one in answers), "undecided")
    verdict = next((one for one in _VERDICTS_FROM_WORST if one in verdicts), "INCONCLUSIVE")
    return answer, verdict


def result(looks: Sequence[Look], *, reachable: bool, error: str | None = None) -> dict[str, Any]:
    """The object that a bounded run prints.

    Args:
        looks: the last answers; the newest there were if the service no longer answers.
        reachable: whether the service answered at the end.
        error: what broke the run, if something did; then and where the service does not answer, the run
            itself
            has failed, and passes nothing.
    """
    answer, verdict = worst(looks)
    broken = error is not None or not reachable
    if broken and answer == "pass":
        answer = "undecided"
    return {
        "answer": answer,
        "verdict": verdict,
        "exit_code": UNREACHABLE if broken else EXIT_CODES[answer],
        **({} if error is None else {"error": error}),
        "comparisons": {look.name: _comparison(look) for look in looks},
    }


def _comparison(look: Look) -> dict[str, Any]:
    gate = {key: look.gate[key] for key in _FROM_GATE}
    return {**gate, **{key: look.status.get(key) for key in _FROM_STATUS}}
