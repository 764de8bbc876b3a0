"""The effect of changed rules on trial, compared with the reports of the live comparison."""

from __future__ import annotations

from twinstream.status.common import DivergenceKind, Frozen, Verdict


class ContrastExample(Frozen):
    """A divergence that only one of two comparisons reports; `rule` has explained it in the other."""

    id: str
    kind: DivergenceKind
    text: str
    rule: str | None = None


class OneSided(Frozen):
    """What another comparison of the same topics makes of the divergences that one has found.

    `count`, `by_kind` and `examples` are of those that the other does not report though it has compared and
    settled all of their events; `shared` are reported by both. `open` may still be: something of them is not
    settled. Of `unknown` nothing can be told, and `why` says in sentences what is in the way.
    """

    count: int
    by_kind: dict[DivergenceKind, int]
    examples: list[ContrastExample]
    shared: int
    open: int
    unknown: int
    why: list[str]


class Contrast(Frozen):
    """A trial beside its comparison, in short: how it stands, what its file changes, and what that does.

    `hidden` are of the divergences of the comparison, `alone` of those of the trial. What a trial that is not
    `fresh` has said is from before.
    """

    name: str
    trial_of: str
    fresh: bool
    verdict: Verdict
    reason: str
    changes: list[str]
    matched: int
    divergences: int
    hidden: OneSided
    alone: OneSided
