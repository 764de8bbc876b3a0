"""Tells whether a comparison's last status can be trusted: the difference between "green" and "was green".

A status describes the moment at which its matcher wrote it. The matcher may have died since, or hang, or be
paused, and nothing in the status would show it. So every repeated status comes with its freshness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from twinstream.explain.reason import of_shards
from twinstream.status.comparison import ComparisonStatus

FreshnessState = Literal["awaited", "fresh", "stale", "unheard", "lost"]
_BY_TRUST: tuple[FreshnessState, ...] = ("fresh", "stale", "awaited", "unheard", "lost")


@dataclass(frozen=True, slots=True)
class Freshness:
    """Whether a status is from a living matcher.

    ``awaited``: none has come yet · ``fresh``: it can be trusted · ``stale``: its matcher has fallen silent ·
    ``unheard``: it runs elsewhere, and is not heard · ``lost``: its matcher is known to be gone. `since` is
    when it was last heard, `reason` a sentence that is empty when all is well.
    """

    state: FreshnessState
    since: datetime | None
    age_seconds: float
    reason: str

    @property
    def fresh(self) -> bool:
        """Whether it can be trusted."""
        return self.state == "fresh"


def utc_text(moment: datetime) -> str:
    """A moment as RFC 3339 in UTC to the second, as in flat answers."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def said(moment: datetime) -> str:
    """The moment as a person would write it, for sentences."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def sentence(text: str) -> str:
    """`text` with a capital and a full stop, if its author left them out."""
    text = text.strip() or "No reason is given"
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def awaited(since: datetime, age_seconds: float) -> Freshness:
    """Freshness without any status since `since`."""
    reason = f"No status yet: the matcher has published nothing since {said(since)}."
    return Freshness("awaited", None, age_seconds, reason)


def lost(since: datetime | None, age_seconds: float, why: str) -> Freshness:
    """Freshness if the matcher is gone; `why` is a sentence that says so and how that is known."""
    last = f"Last heard at {said(since)}." if since else "It has published no status."
    return Freshness("lost", since, age_seconds, f"{sentence(why)} {last}")


def unheard(since: datetime | None, age_seconds: float, why: str) -> Freshness:
    """Freshness if no matcher elsewhere is heard; `why` is a sentence that says so."""
    last = f" Last heard at {said(since)}." if since else ""
    return Freshness("unheard", since, age_seconds, f"{sentence(why)}{last}")


def heard(since: datetime, age_seconds: float, stale_after_seconds: float) -> Freshness:
    """Freshness of a status that was written `age_seconds` ago, at `since`."""
    if age_seconds <= stale_after_seconds:
        return Freshness("fresh", since, age_seconds, "")
    reason = f"The status is stale: the matcher has been silent since {said(since)}."
    return Freshness("stale", since, age_seconds, reason)


def of_all(shards: Sequence[Freshness]) -> Freshness:
    """The freshness of the merged status of several shards: that of the worst."""
    if len(shards) == 1:
        return shards[0]
    heard_of = [shard.since for shard in shards if shard.since is not None]
    silent = {number: [shard.reason] for number, shard in enumerate(shards) if not shard.fresh}
    reasons = map(sentence, of_shards(silent, len(shards)))
    return Freshness(
        max((shard.state for shard in shards), key=_BY_TRUST.index),
        min(heard_of) if len(heard_of) == len(shards) else None,
        max(shard.age_seconds for shard in shards),
        " ".join(reasons),
    )


def with_freshness(status: ComparisonStatus, freshness: Freshness) -> ComparisonStatus:
    """The status as it may be shown: with degraded health unless it is fresh."""
    if freshness.fresh:
        return status
    degraded = with_reason(status, freshness.reason)
    return degraded.model_copy(update={"health": degraded.health.model_copy(update={"standby": False})})


def with_reason(status: ComparisonStatus, reason: str) -> ComparisonStatus:
    """The status with degraded health and one more reason, before the others."""
    update = {"status": "degraded", "reasons": [sentence(reason), *status.health.reasons]}
    return status.model_copy(update={"health": status.health.model_copy(update=update)})
