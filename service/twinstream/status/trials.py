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
    """How one comparison treats the divergences of another one of the same topics.

    `count`, `by_kind` and `examples` are about those that it does not report although it has compared and
    settled all of their events; `shared` are reported by both. `open` are those with unsettled events.
    `unknown` are those without an answer, and `why` gives the reasons in sentences.
    """

    count: int
    by_kind: dict[DivergenceKind, int]
    examples: list[ContrastExample]
    shared: int
    open: int
    unknown: int
    why: list[str]


class Contrast(Frozen):
    """A trial beside its comparison, in short: its state, the changes in its file, and their effect.

    `hidden` is about the divergences of the comparison, `alone` about those of the trial. The results of a
    trial that is not `fresh` are from the past.
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
