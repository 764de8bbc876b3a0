"""Bodies of answers that exist only on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

from pydantic import ConfigDict, Field

from twinstream.status.common import Frozen, Sides
from twinstream.status.comparison import PartitionProgress, UnmatchedEvent

T = TypeVar("T")


class Listing(Frozen, Generic[T]):
    """A list: some items, and the cursor with which the next are asked for."""

    items: list[T]
    next: str | None = None


class SideProgress(Frozen):
    """How far one side is read; `lag` is in records over all partitions, None while unknown."""

    topic: str
    lag: int | None
    partitions: list[PartitionProgress]


class Progress(Frozen):
    """How far a comparison has come."""

    comparison: str
    sides: Sides[SideProgress]
    verified_up_to: Sides[dict[str, int]]
    verified_through: datetime | None
    updated_at: datetime


class Unmatched(UnmatchedEvent):
    """An event without a partner so far; its age is in Kafka time, to the newest event of the other side."""

    age_seconds: float | None


class Readiness(Frozen):
    """Whether every comparison is live, and the reasons if not."""

    ready: bool
    reasons: list[str]


class Liveness(Frozen):
    """The process answers."""

    status: str = "ok"
    version: str


class EventQuery(Frozen):
    """The filter of the event stream."""

    model_config = ConfigDict(extra="forbid")

    comparison: str | None = Field(None, description="Only events of this comparison.")
