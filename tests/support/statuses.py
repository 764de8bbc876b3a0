"""Statuses and divergences as a matcher would publish them, each with what a test cares about set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from loadtest.memory import ManualClock
from twinstream.api.state.board import Board
from twinstream.api.state.expectation import Expectation
from twinstream.status.common import Accounts, DivergenceCounts, Sides
from twinstream.status.comparison import (
    HISTOGRAM_EDGES_SECONDS,
    CheckpointInfo,
    ComparisonStatus,
    Coverage,
    DivergenceReport,
    Ended,
    Health,
    Histogram,
    PartitionProgress,
    Position,
    Reset,
    Stretches,
    UnmatchedEvent,
    Version,
    Witness,
)

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NAME = "ads-canary"
REFERENCE = Version(topic="ads.reference", version="1.8.2")
CANDIDATE = Version(topic="ads.candidate", version="1.9.0")


def now() -> datetime:
    return datetime.now(UTC)


def later(seconds: float) -> datetime:
    return now() + timedelta(seconds=seconds)


class Clocks(ManualClock):
    """Clocks that stand still from the start of these statuses on."""

    def __init__(self) -> None:
        super().__init__(START.timestamp())

    def board(self, expected: Expectation | None = None, **more: Any) -> Board:
        """A board that expects a comparison, and has heard nothing."""
        board = Board(monotonic=self.monotonic, now=self.now, **more)
        board.expect(expected or expectation())
        return board


def expectation(name: str = NAME, **changes: Any) -> Expectation:
    values: dict[str, Any] = {
        "name": name,
        "spec_digest": "5f0c9a",
        "order": "per_key: [ad_id]",
        "reference": REFERENCE,
        "candidate": CANDIDATE,
        "kinds": ("event",),
        "matched_required": 1000,
        "seconds_required": 300.0,
    }
    return Expectation(**{**values, **changes})


def histogram(*counts: int, sum_seconds: float = 0.0) -> Histogram:
    """The first buckets; the rest are empty."""
    edges = list(HISTOGRAM_EDGES_SECONDS)
    padded = [*counts, *[0] * (len(edges) + 1 - len(counts))]
    return Histogram(edges_seconds=edges, counts=padded, sum_seconds=sum_seconds)


def partition(
    number: int, position: int, lag: int | None = 0, at: datetime = START, first: int | None = 0
) -> PartitionProgress:
    """A partition that is read up to a position, of which all but the last few events are settled."""
    end = None if lag is None else position + lag
    return PartitionProgress(
        partition=number,
        first=first,
        begin=first,
        settled=max(0, position - 6),
        position=position,
        end=end,
        lag=lag,
        newest_event_at=at,
    )


def status(name: str = NAME, at: datetime = START, **changes: Any) -> ComparisonStatus:
    """A healthy comparison that matched 5000 pairs, EQUIVALENT; `changes` override members."""
    values: dict[str, Any] = {
        "name": name,
        "spec_digest": "5f0c9a",
        "order": "per_key: [ad_id]",
        "reference": REFERENCE,
        "candidate": CANDIDATE,
        "verdict": "EQUIVALENT",
        "reason": "5000 events of each side matched, and no difference was found.",
        "since": START - timedelta(minutes=4),
        "health": Health(status="ok"),
        "events": Sides[int](reference=5012, candidate=5004),
        "matched": 5000,
        "unmatched": Sides[int](reference=12, candidate=4),
        "max_unmatched": 230,
        "accounts": Sides[Accounts](
            reference=Accounts(consumed=5012, matched=5000, unmatched=12),
            candidate=Accounts(consumed=5004, matched=5000, unmatched=4),
        ),
        "divergences": DivergenceCounts(),
        "suspicions": 0,
        "holes": [],
        "undecodable": [],
        "coverage": coverage(at=at),
        "verified_up_to": Sides[dict[str, int]](reference={"0": 2500, "1": 2500}, candidate={"0": 5000}),
        "verified_through": at - timedelta(seconds=2),
        "progress": Sides[list[PartitionProgress]](
            reference=[partition(0, 2506, 3, at), partition(1, 2506, 4, at)],
            candidate=[partition(0, 5004, 1, at)],
        ),
        "match_latency": histogram(0, 120, 3800, 900, 160, 20, sum_seconds=52.5),
        "processing": histogram(9000, 1000, 16, sum_seconds=0.09),
        "checkpoint": CheckpointInfo(
            sequence=41, written_at=at - timedelta(seconds=1), duration_seconds=0.004, size_bytes=18_211
        ),
        "max_staleness_seconds": 300.0,
        "started_at": START - timedelta(minutes=5),
        "updated_at": at,
    }
    found = {**values, **changes}
    through = found["verified_through"]
    age = None if through is None else (at - through).total_seconds()
    return ComparisonStatus(**{"verified_age_seconds": age, **found})


def coverage(matched: int = 5000, missing: tuple[str, ...] = (), at: datetime = START) -> Coverage:
    """Evidence that came evenly over the 310 s before `at`: a tenth of it each 31 s."""
    seconds = [int(at.timestamp()) - 310 + 31 * tenth for tenth in range(10)]
    return Coverage(
        matched=matched,
        matched_required=1000,
        seconds=310.0 if matched else 0.0,
        seconds_required=300.0,
        matched_by_kind={"event": matched},
        missing=list(missing),
        until=at,
        matched_since=Stretches(at=seconds[-1], begins=seconds, matched={"event": [matched // 10] * 10}),
    )


def counts(**by_kind: int) -> DivergenceCounts:
    """Divergence counts by kind; the total is their sum."""
    every = DivergenceCounts().by_kind | by_kind
    return DivergenceCounts(total=sum(every.values()), by_kind=every)


def diverged(name: str = NAME, at: datetime = START, **changes: Any) -> ComparisonStatus:
    values: dict[str, Any] = {
        "verdict": "DIVERGED",
        "reason": "The candidate's event at ads.candidate 0:5003 has campaign_id 'c-8' where the "
        "reference has 'c-7' (ad_id 17).",
        "since": at,
        "divergences": counts(changed=1),
        "closed_divergences": counts(changed=1),
        "accounts": Sides[Accounts](
            reference=Accounts(consumed=5012, matched=5000, divergent=1, unmatched=11),
            candidate=Accounts(consumed=5004, matched=5000, divergent=1, unmatched=3),
        ),
    }
    return status(name, at, **{**values, **changes})


def reset(identifier: str = "r-1", at: datetime = START, **changes: Any) -> Reset:
    """A comparison that had diverged was begun anew."""
    values: dict[str, Any] = {
        "id": identifier,
        "comparison": NAME,
        "at": at,
        "by": "ann",
        "reason": "1.9.1 deployed",
        "address": "127.0.0.1",
        "start": {"at": "barrier"},
        "before": Ended(
            verdict="DIVERGED",
            since=at - timedelta(minutes=1),
            started_at=at - timedelta(minutes=9),
            matched=5000,
            divergences=3,
            positions=Sides[dict[str, int]](reference={"0": 2506, "1": 2506}, candidate={"0": 5004}),
        ),
    }
    return Reset(**{**values, **changes})


def unmatched(
    offset: int,
    *,
    side: Literal["reference", "candidate"] = "reference",
    seconds: float = 0.0,
    overdue: bool = False,
) -> UnmatchedEvent:
    """An event that waits in partition 0, from so many seconds after the start."""
    topic = REFERENCE.topic if side == "reference" else CANDIDATE.topic
    return UnmatchedEvent(
        side=side,
        position=Position(topic=topic, partition=0, offset=offset),
        at=START + timedelta(seconds=seconds),
        kind="event",
        scope={"ad_id": 17},
        overdue=overdue,
        value={"ad_id": 17, "campaign_id": "‹text, 3 characters, #3fa9c21e›"},
    )


def divergence(
    identifier: str = "d-1",
    *,
    name: str = NAME,
    kind: Literal["missing", "extra", "changed", "reordered", "duplicate"] = "changed",
    **changes: Any,
) -> DivergenceReport:
    reference = {"ad_id": 17, "campaign_id": "c-7", "event_time": 1772366400123}
    candidate = {"ad_id": 17, "campaign_id": "c-8", "event_time": 1772366400123}
    at_reference = Position(topic="ads.reference", partition=1, offset=2504)
    at_candidate = Position(topic="ads.candidate", partition=0, offset=5003)
    values: dict[str, Any] = {
        "id": identifier,
        "comparison": name,
        "kind": kind,
        "provisional": False,
        "scope": {"ad_id": 17},
        "reference": reference,
        "candidate": candidate,
        "positions": Sides[Position | None](reference=at_reference, candidate=at_candidate),
        "fields": {"campaign_id": Sides[Any](reference="c-7", candidate="c-8")},
        "witness": [
            Witness(side="reference", position=at_reference, value=reference),
            Witness(side="candidate", position=at_candidate, value=candidate),
        ],
        "text": "campaign_id is 'c-7' in the reference and 'c-8' in the candidate, for ad_id 17.",
        "first_seen": START,
    }
    return DivergenceReport(**{**values, **changes})
