"""What a matcher publishes about rules on trial: their status, and the difference that they make."""

# ruff: noqa: RUF012 - pydantic gives each instance a default of its own

from __future__ import annotations

from datetime import datetime
from typing import Literal

from twinstream.parts import Accounts, DivergenceCounts, DivergenceKind, Frozen, Sides, Verdict

ContrastOutcome = Literal["reported", "explained", "hidden", "open", "unknown"]
CONTRAST_OUTCOMES: tuple[ContrastOutcome, ...] = ("reported", "explained", "hidden", "open", "unknown")


class ContrastExample(Frozen):
    """A divergence that one of two comparisons reports; `rule` has explained it in the other."""

    id: str
    kind: DivergenceKind
    text: str
    rule: str | None = None


class Contrast(Frozen):
    """What a trial makes of the divergences of the comparison, and the comparison of those of the trial.

    Each divergence of a closed scope that is kept counts once: `reported` by both, `explained` by a known
    difference of the other, `hidden` by it (it has paired or left out all of its events), `open` as long as
    it has not settled them, or `unknown`, where it has not compared everything or keeps too little.
    `hidden_by_kind`, `hidden_by_rule` and the examples in `hidden` are of those that the trial hides or
    explains, `new_by_kind` and `new` of those that it alone reports.
    """

    of_live: dict[ContrastOutcome, int]
    hidden_by_kind: dict[DivergenceKind, int]
    hidden_by_rule: dict[str, int]
    hidden: list[ContrastExample]
    of_trial: dict[ContrastOutcome, int]
    new_by_kind: dict[DivergenceKind, int]
    new: list[ContrastExample]


class TrialStatus(Frozen):
    """A changed comparison file on trial: what its rules make of the records that the comparison reads.

    It has no say in the gate. `state` is waiting where it has no sound beginning, ended where it was in the
    way of the comparison; `reason` says why, or gives the reason of the verdict. Counts are those since
    `since`, as the comparison's; what has ended keeps its last ones. `changes` are the keys in which both
    files differ, `time_share` is its part of the matcher's time.
    """

    state: Literal["running", "waiting", "ended"]
    reason: str
    since: datetime | None = None
    spec_digest: str
    order: str
    changes: list[str]
    verdict: Verdict | None = None
    events: Sides[int] = Sides[int](reference=0, candidate=0)
    matched: int = 0
    unmatched: Sides[int] = Sides[int](reference=0, candidate=0)
    accounts: Sides[Accounts] = Sides[Accounts](reference=Accounts(), candidate=Accounts())
    divergences: DivergenceCounts = DivergenceCounts()
    explained_by_rule: dict[str, int] = {}
    suspicions: int = 0
    hole_count: int = 0
    contrast: Contrast | None = None
    time_share: float = 0.0
