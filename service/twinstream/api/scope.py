"""What a release tool asks the gate about: an answer about something else is no answer to it.

A scope only ever takes permission away. Where it is not met, ``pass`` becomes ``undecided``; where the gate
speaks of another candidate or another comparison file, so does ``fail``, which is about something else. A
proven difference needs no least evidence.
"""

from __future__ import annotations

from pydantic import ConfigDict, Field

from twinstream.api.gate import GateAnswer
from twinstream.status import Frozen


class GateScope(Frozen):
    """What is asked about; a misspelled parameter is refused rather than not applied."""

    model_config = ConfigDict(extra="forbid")

    min_matched: int = Field(0, ge=0, description="A pass needs at least so many matched pairs.")
    candidate: str = Field("", max_length=200, description="The version of the candidate that it must be of.")
    spec_digest: str = Field("", max_length=200, description="The comparison file that it must be of.")


class ScopedAnswer(GateAnswer):
    """The gate's answer with the scope that was asked for; empty or 0 where none was."""

    scope_min_matched: int
    scope_candidate: str
    scope_spec_digest: str


def scoped(answer: GateAnswer, scope: GateScope) -> ScopedAnswer:
    """The answer about this scope."""
    echoed = {f"scope_{name}": value for name, value in scope.model_dump().items()}
    reason = _foreign(answer, scope) or _too_little(answer, scope)
    changed = {} if reason is None else _undecided(answer, reason)
    return ScopedAnswer(**{**answer.model_dump(), **changed, **echoed})


def _foreign(answer: GateAnswer, scope: GateScope) -> str | None:
    if scope.candidate and scope.candidate != answer.candidate_version:
        compared = answer.candidate_version or "one whose version its file does not name"
        return f"It was asked about the candidate {scope.candidate}, and compares {compared}."
    if scope.spec_digest and scope.spec_digest != answer.spec_digest:
        return f"It was asked about the file {scope.spec_digest}, and follows {answer.spec_digest}."
    return None


def _too_little(answer: GateAnswer, scope: GateScope) -> str | None:
    if not answer.passed or answer.matched >= scope.min_matched:
        return None
    return f"No difference so far, but {answer.matched} pairs match of {scope.min_matched} asked for."


def _undecided(answer: GateAnswer, reason: str) -> dict[str, object]:
    """An answer that was undecided anyhow keeps its own reason, behind this one."""
    told = f"{reason} {answer.reason}" if answer.undecided else reason
    return {"answer": "undecided", "pass": False, "fail": False, "undecided": True, "reason": told}
