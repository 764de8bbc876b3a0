"""Computes the gate's answer: a pure function of status, freshness and the age of the verified prefix.

It fails closed. ``pass`` needs all of: a fresh status, the verdict EQUIVALENT, good health, and
``verified_through`` younger than ``max_staleness``, and no check of a single side that stands against it
(see `explain.checks`). ``fail`` needs a fresh DIVERGED, or a check that the candidate violates. Everything
else, including everything unknown, is ``undecided``, and so is every answer about a trial.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from twinstream.api.gate.freshness import Freshness, said, sentence, utc_text
from twinstream.explain.checks import judged, violations
from twinstream.explain.reason import all_explained
from twinstream.status.common import Frozen, Verdict
from twinstream.status.comparison import ComparisonStatus

GateWord = Literal["pass", "fail", "undecided"]


class GateAnswer(Frozen):
    """Flat scalars, never null or NaN: release tools pick one by path and compare it."""

    model_config = ConfigDict(serialize_by_alias=True)

    comparison: str
    answer: GateWord
    passed: bool = Field(alias="pass")
    failed: bool = Field(alias="fail")
    undecided: bool
    verdict: Verdict
    healthy: bool
    reason: str
    to_decide: str = Field(
        description="What would decide an undecided answer: a sentence a line; else empty."
    )
    since: str = Field(description="Since when the verdict holds.")
    verified_through: str = Field(description="Kafka time up to which all is settled; empty when none.")
    max_staleness_seconds: float
    matched: int
    unmatched_reference: int
    unmatched_candidate: int
    divergences: int
    suspicions: int
    holes: int
    violations: int = Field(description="Records that violate a check of a single side, of both sides.")
    stale: bool
    updated_at: str = Field(description="When the matcher last published; empty when it never has.")
    reference_version: str
    candidate_version: str
    spec_digest: str


def no_gate(name: str, trial_of: str) -> str:
    """The refusal for the gate of a trial, which has none."""
    return f"{name} is a trial and has no gate: ask the gate of {trial_of}."


def gate(status: ComparisonStatus, freshness: Freshness, verified_age: float | None) -> GateAnswer:
    """Answer for one comparison; `verified_age` is the present age of its ``verified_through``, in seconds.

    No wall clock is involved: the matcher gave the age, and it has been counted on since.
    """
    answer, reason = _decide(status, freshness, verified_age)
    return GateAnswer(
        **{"pass": answer == "pass", "fail": answer == "fail"},
        comparison=status.name,
        answer=answer,
        undecided=answer == "undecided",
        verdict=status.verdict,
        healthy=freshness.fresh and status.health.status == "ok",
        reason=reason,
        to_decide="",
        since=utc_text(status.since),
        verified_through=utc_text(status.verified_through) if status.verified_through else "",
        max_staleness_seconds=status.max_staleness_seconds,
        matched=status.matched,
        unmatched_reference=status.unmatched.reference,
        unmatched_candidate=status.unmatched.candidate,
        divergences=status.divergences.total,
        suspicions=status.suspicions,
        holes=status.hole_count,
        violations=violations(status.checks),
        stale=not freshness.fresh,
        updated_at=utc_text(status.updated_at) if freshness.since else "",
        reference_version=status.reference.version or "",
        candidate_version=status.candidate.version or "",
        spec_digest=status.spec_digest,
    )


def so_far(status: ComparisonStatus) -> str:
    """How a reason to wait begins, where the verdict is EQUIVALENT."""
    return f"No{' unexplained' * any(status.explained_by_rule.values())} difference so far"


def _decide(
    status: ComparisonStatus, freshness: Freshness, verified_age: float | None
) -> tuple[GateWord, str]:
    if status.trial_of is not None:
        return "undecided", no_gate(status.name, status.trial_of)
    if freshness.since is None:
        return "undecided", sentence(freshness.reason)
    if not freshness.fresh:
        return "undecided", sentence(f"{freshness.reason} Last known verdict: {status.verdict}")
    if status.verdict == "DIVERGED":
        return "fail", sentence(status.reason)
    checked = judged(status.checks)
    if checked is not None and checked.answer == "fail":
        return "fail", sentence(f"{checked.reason[:1].upper()}{checked.reason[1:]}")
    if status.verdict != "EQUIVALENT":
        return "undecided", sentence(status.reason)
    if status.health.status != "ok":
        why = " ".join(sentence(reason) for reason in status.health.reasons) or "No reason is given."
        return "undecided", f"{so_far(status)}, but health is degraded: {why}"
    if checked is not None:
        return "undecided", sentence(f"{so_far(status)}, but {checked.reason}")
    return _judge_staleness(status, verified_age)


def _judge_staleness(status: ComparisonStatus, age: float | None) -> tuple[GateWord, str]:
    through, limit = status.verified_through, status.max_staleness_seconds
    if through is None or age is None:
        return "undecided", f"{so_far(status)}, but it is not known up to when all events are settled."
    when = said(through)
    if age < -limit:
        return "undecided", f"Events are verified through {when}, which is in the future: clocks disagree."
    seconds = max(0, round(age))
    if age >= limit:
        return "undecided", (
            f"{so_far(status)}, but events are verified only through {when}, {seconds:,} s ago; "
            f"a pass needs less than {limit:,.6g} s."
        )
    explained = sum(status.explained_by_rule.values())
    known = f", {all_explained(explained)}" if explained else ""
    return (
        "pass",
        f"Equivalent: {status.matched:,} events matched{known}; verified through {when}, {seconds:,} s ago.",
    )
