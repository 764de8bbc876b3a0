"""An expected comparison: the contents of its spec, before its matcher has published."""

# ruff: noqa: RUF012 - pydantic gives each instance a default of its own

from __future__ import annotations

from datetime import datetime

from twinstream.api.state.timings import empty_histogram
from twinstream.explain.receipts.exclusions import Exclusion
from twinstream.spec.load import ComparisonFile
from twinstream.status.common import Accounts, DivergenceCounts, Frozen, Sides
from twinstream.status.comparison import (
    CheckpointInfo,
    CheckStatus,
    ComparisonStatus,
    Coverage,
    Health,
    Version,
)


class Expectation(Frozen):
    """The part of a spec that a status repeats, and the number of matchers that share the work.

    `kinds_required` are the kinds that must each have a match, `exclusions` what the spec leaves out.
    `ceilings` are those of known differences, by id, which are counts if several matchers share the work. A
    trial names the comparison beside which it runs, and the keys of the file that it `changes`. Without a
    `file` neither text nor drafts can be shown.
    """

    name: str
    spec_digest: str
    order: str
    reference: Version
    candidate: Version
    kinds: tuple[str, ...] = ()
    matched_required: int = 1
    seconds_required: float = 0.0
    max_staleness_seconds: float = 300.0
    kinds_required: tuple[str, ...] = ()
    undecodable_budget: int = 0
    ceilings: dict[str, int] = {}
    exclusions: tuple[Exclusion, ...] = ()
    checks: tuple[CheckStatus, ...] = ()
    shards: int = 1
    trial_of: str | None = None
    changes: tuple[str, ...] = ()
    file: ComparisonFile | None = None


def placeholder(expected: Expectation, now: datetime) -> ComparisonStatus:
    """The status of a comparison that has not published, which says that nothing is known."""
    return ComparisonStatus(
        name=expected.name,
        spec_digest=expected.spec_digest,
        order=expected.order,
        reference=expected.reference,
        candidate=expected.candidate,
        verdict="PENDING",
        reason="No status yet: the matcher of this comparison has not published one.",
        since=now,
        health=Health(status="degraded", reasons=[]),
        events=Sides[int](reference=0, candidate=0),
        matched=0,
        unmatched=Sides[int](reference=0, candidate=0),
        max_unmatched=0,
        accounts=Sides[Accounts](reference=Accounts(), candidate=Accounts()),
        divergences=DivergenceCounts(),
        explained_by_rule=dict.fromkeys(expected.ceilings, 0),
        checks=list(expected.checks),
        suspicions=0,
        holes=[],
        undecodable=[],
        coverage=_no_coverage(expected),
        verified_up_to=Sides[dict[str, int]](reference={}, candidate={}),
        verified_through=None,
        progress=Sides(reference=[], candidate=[]),
        match_latency=empty_histogram(),
        processing=empty_histogram(),
        checkpoint=CheckpointInfo(),
        max_staleness_seconds=expected.max_staleness_seconds,
        trial_of=expected.trial_of,
        started_at=now,
        updated_at=now,
    )


def _no_coverage(expected: Expectation) -> Coverage:
    return Coverage(
        matched=0,
        matched_required=expected.matched_required,
        seconds=0.0,
        seconds_required=expected.seconds_required,
        matched_by_kind=dict.fromkeys(expected.kinds, 0),
        missing=["The matcher has not started to compare."],
    )
