"""What a release tool asks the gate about: an answer about something else is no answer to it.

A scope only ever takes permission away. Where it is not met, ``pass`` becomes ``undecided``; where the gate
speaks of another candidate or another comparison file, so does ``fail``, which is about something else. A
proven difference needs no least evidence, and it stands until a reset, whenever it was found.

`since` asks for a pass that rests on what was put out from a moment on: all the evidence that the comparison
file asks for, and `min_matched` pairs, must be of events that both are of then or later, and nothing may be
open from before.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, ConfigDict, Field

from twinstream.api.freshness import said
from twinstream.api.gate import GateAnswer
from twinstream.core.stretches import united
from twinstream.settings import time_of
from twinstream.spec.evidence import Wanted, lacking
from twinstream.status import ComparisonStatus, Coverage, Frozen


def _moment(text: str) -> datetime | None:
    """The moment that is asked about; None for an empty text. Raises ValueError."""
    moment = time_of(text)
    if text and moment is None:
        raise ValueError(f"{text!r} is no time with its zone; write it like 2026-03-01T14:02:00Z")
    try:
        return None if moment is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} lies outside of the calendar") from None


def _since(text: str) -> str:
    _moment(text)
    return text


class GateScope(Frozen):
    """What is asked about; a misspelled parameter is refused rather than not applied."""

    model_config = ConfigDict(extra="forbid")

    min_matched: int = Field(0, ge=0, description="A pass needs at least so many matched pairs.")
    candidate: str = Field("", max_length=200, description="The version of the candidate that it must be of.")
    spec_digest: str = Field("", max_length=200, description="The comparison file that it must be of.")
    since: Annotated[str, AfterValidator(_since)] = Field(
        "",
        max_length=40,
        description="A pass must rest on what was put out from then on, as 2026-03-01T14:02:00Z.",
    )


class ScopedAnswer(GateAnswer):
    """The gate's answer with the scope that was asked for; empty or 0 where none was.

    `matched_in_scope` and `seconds_in_scope` are the evidence from `scope_since` on, else all of it.
    """

    scope_min_matched: int
    scope_candidate: str
    scope_spec_digest: str
    scope_since: str
    matched_in_scope: int
    seconds_in_scope: float


class Evidence(NamedTuple):
    """What was compared in a scope: pairs, Kafka time, and pairs by kind."""

    matched: int
    seconds: float
    by_kind: dict[str, int]


def evidence(coverage: Coverage, since: datetime | None) -> Evidence:
    """At most what was compared of events from a moment on; all of it where none is given."""
    if since is None:
        return Evidence(coverage.matched, coverage.seconds, coverage.matched_by_kind)
    pairs = united([coverage.matched_since.model_dump()]).since(since.timestamp())
    after = 0.0 if coverage.until is None else max(0.0, (coverage.until - since).total_seconds())
    return Evidence(pairs.total(), min(after, coverage.seconds), dict(pairs))


def scoped(answer: GateAnswer, scope: GateScope, status: ComparisonStatus) -> ScopedAnswer:
    """The answer about this scope; `status` is what it was given for."""
    since = _moment(scope.since)
    found = evidence(status.coverage, since)
    reason, step = _foreign(answer, scope), "Ask about what is compared, or have the comparison follow it."
    if reason is None and answer.passed:
        reason, step = _too_little(scope, found, status, since), "Both sides have to go on, and to match."
    changed = {} if reason is None else _undecided(answer, reason, step)
    return ScopedAnswer(
        **{**answer.model_dump(), **changed},
        **{f"scope_{name}": value for name, value in scope.model_dump().items()},
        matched_in_scope=found.matched,
        seconds_in_scope=found.seconds,
    )


def _foreign(answer: GateAnswer, scope: GateScope) -> str | None:
    if scope.candidate and scope.candidate != answer.candidate_version:
        compared = answer.candidate_version or "one whose version its file does not name"
        return f"It was asked about the candidate {scope.candidate}, and compares {compared}."
    if scope.spec_digest and scope.spec_digest != answer.spec_digest:
        return f"It was asked about the file {scope.spec_digest}, and follows {answer.spec_digest}."
    return None


def _too_little(
    scope: GateScope, found: Evidence, status: ComparisonStatus, since: datetime | None
) -> str | None:
    """Why a pass does not rest on enough of what is asked about."""
    if since is None:
        if status.matched >= scope.min_matched:
            return None
        return f"No difference so far, but {status.matched} pairs match of {scope.min_matched} asked for."
    through = status.verified_through
    if through is None or through < since:
        until = "nothing" if through is None else f"only what is before {said(through)}"
        return f"No difference so far, but {until} is verified, and it was asked about since {said(since)}."
    coverage = status.coverage
    least = max(1, scope.min_matched, coverage.matched_required)
    needed = Wanted(least, coverage.seconds_required, tuple(coverage.kinds_required))
    if lacks := lacking(needed, *found):
        return f"No difference so far, but not enough compared since {said(since)}: {'; '.join(lacks)}."
    return None


def _undecided(answer: GateAnswer, reason: str, step: str) -> dict[str, object]:
    """An answer that was undecided anyhow keeps its own reason and what would decide it, behind these."""
    told = {
        "reason": f"{reason} {answer.reason}" if answer.undecided else reason,
        "to_decide": f"{step}\n{answer.to_decide}".strip(),
    }
    return {"answer": "undecided", "pass": False, "fail": False, "undecided": True, **told}
