"""The parts of statuses, divergences and trials, in the shape that matcher, API and page share."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")

Verdict = Literal["PENDING", "EQUIVALENT", "DIVERGED", "INCONCLUSIVE"]
SideName = Literal["reference", "candidate"]
DivergenceKind = Literal["missing", "extra", "changed", "reordered", "duplicate"]
DIVERGENCE_KINDS: tuple[DivergenceKind, ...] = ("missing", "extra", "changed", "reordered", "duplicate")


class Frozen(BaseModel):
    """A value: refuses unknown members and assignment."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Sides(Frozen, Generic[T]):
    """One value for each side."""

    reference: T
    candidate: T


class Accounts(Frozen):
    """Where every consumed event of a side went; the other members add up to ``consumed``."""

    consumed: int = 0
    matched: int = 0
    ignored: int = 0
    before_start: int = 0
    replayed: int = 0
    superseded: int = 0
    undecodable: int = 0
    explained: int = 0
    divergent: int = 0
    unmatched: int = 0


class DivergenceCounts(Frozen):
    """Divergences found; `total` is the sum of `by_kind`."""

    total: int = 0
    by_kind: dict[DivergenceKind, int] = Field(default_factory=lambda: dict.fromkeys(DIVERGENCE_KINDS, 0))

    def beyond(self, others: DivergenceCounts) -> DivergenceCounts:
        """Of each kind, how many more there are than of others."""
        more = {kind: max(0, count - others.by_kind.get(kind, 0)) for kind, count in self.by_kind.items()}
        return DivergenceCounts(total=sum(more.values()), by_kind=more)
