"""Compares the reports of two comparisons of the same topics: the differences that other rules make.

A divergence is identified by its events, and these by their offsets in Kafka, which are the same for both
comparisons. For each divergence of one comparison, the other either reports a divergence of one of its
events, or has not settled all of its events yet, or has compared and settled them all and reports none. Only
in the last case it *hides* the divergence. A comparison hides nothing while it is not heard, has not compared
everything, or has found more than is kept of it, and hides nothing before the offsets at which it began.

Nor is anything hidden of a comparison with holes. Its topics may have been created anew since, and the
offsets of a topic are no places in another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from twinstream.api.state.divergences import AnyDivergence
from twinstream.status.comparison import ComparisonStatus, PartitionProgress
from twinstream.status.trials import ContrastExample, OneSided

EXAMPLES = 5

ReportedAt = tuple[str, int, int]
"""Side, partition and offset of an event."""
TrialOutcome = Literal["hidden", "shared", "open", "unknown"]


class ComparisonFacts(NamedTuple):
    """The facts of one comparison: its status, whether that is fresh, and its findings as far as kept.

    Those that a known difference explains do not count.
    """

    status: ComparisonStatus
    fresh: bool
    found: Sequence[AnyDivergence]


def one_sided(one: ComparisonFacts, other: ComparisonFacts) -> OneSided:
    """How `other` treats the divergences of `one`; the examples have no texts. Complexity: O(n)."""
    counted, lost = _counted(one), _lost(one)
    book = _Book(other)
    told = [(found, book.outcome(found)) for found in counted]
    unsure = sum(outcome == "hidden" for _, outcome in told) if one.status.hole_count else 0
    outcomes = [(found, "unknown" if unsure and outcome == "hidden" else outcome) for found, outcome in told]
    hidden = [found for found, outcome in outcomes if outcome == "hidden"]
    numbers = Counter(outcome for _, outcome in outcomes)
    return OneSided(
        count=len(hidden),
        by_kind=dict(Counter(found.kind for found in hidden)),
        examples=[
            ContrastExample(id=found.id, kind=found.kind, text="", rule=book.rule_of(found))
            for found in _chosen(hidden)
        ],
        shared=numbers["shared"],
        open=numbers["open"],
        unknown=numbers["unknown"] + lost,
        why=list(_why(one, other, book.doubts, numbers["unknown"] - unsure, unsure, lost)),
    )


def _counted(one: ComparisonFacts) -> list[AnyDivergence]:
    return [found for found in one.found if found.explained is None]


def _lost(one: ComparisonFacts) -> int:
    """How many divergences of a comparison are only counted, not kept."""
    return max(0, one.status.divergences.total - len(_counted(one)))


def _why(
    one: ComparisonFacts, other: ComparisonFacts, doubts: Sequence[str], unknown: int, unsure: int, lost: int
) -> Iterator[str]:
    """Why outcomes are unknown: the doubts about the other comparison, or else the positions concerned.

    `unsure` are those that would be hidden, but for the holes of the comparison that reports them.
    """
    if unknown and doubts:
        yield from doubts
    elif unknown:
        yield f"{unknown:,} lie before {other.status.name} began, or where that is not known"
    if unsure:
        yield f"{one.status.name} has holes: its topic may be another one"
    if lost:
        yield f"{lost:,} of {one.status.name} are counted, and not kept here"


def _chosen(hidden: Sequence[AnyDivergence]) -> list[AnyDivergence]:
    """The first of each kind, and then more in their order."""
    first = {found.kind: found for found in reversed(hidden)}
    shown = {found.id for found in first.values()}
    return [*first.values(), *(found for found in hidden if found.id not in shown)][:EXAMPLES]


class _Book:
    """The settled offsets of one comparison, and the events that it reports."""

    def __init__(self, told: ComparisonFacts) -> None:
        self.doubts = list(_doubts(told))
        self._reported = {place for found in _counted(told) for place in _places(found)}
        self._rules = {
            place: found.explained
            for found in told.found
            if found.explained is not None
            for place in _places(found)
        }
        self._progress = {
            (side, progress.partition): progress
            for side, partitions in told.status.progress
            for progress in partitions
        }

    def outcome(self, found: AnyDivergence) -> TrialOutcome:
        """The outcome here for a divergence of the other comparison."""
        places = _places(found)
        if any(place in self._reported for place in places):
            return "shared"
        if self.doubts:
            return "unknown"
        reached = [self._reach(place) for place in places]
        if "unknown" in reached or not reached:
            return "unknown"
        return "open" if "open" in reached or found.provisional else "hidden"

    def rule_of(self, found: AnyDivergence) -> str | None:
        """The known difference that explains one of its events here, as far as that is kept."""
        return next((self._rules[place] for place in _places(found) if place in self._rules), None)

    def _reach(self, place: ReportedAt) -> TrialOutcome:
        """Whether an event is compared and settled here."""
        side, partition, offset = place
        progress = self._progress.get((side, partition), _UNREAD)
        if progress.begin is None or offset < progress.begin:
            return "unknown"
        return "hidden" if progress.settled is not None and offset < progress.settled else "open"


_UNREAD = PartitionProgress(partition=0, position=0, end=None, lag=None, newest_event_at=None)


def _doubts(told: ComparisonFacts) -> Iterator[str]:
    """Why a comparison cannot be said to hide anything, as parts of a sentence."""
    name, status = told.status.name, told.status
    if not told.fresh:
        yield f"{name} is not heard now"
    if status.waiting_for is not None:
        yield f"{name} waits: {status.waiting_for}"
    if status.hole_count:
        yield f"{name} has not compared everything ({status.hole_count:,} holes in its status)"
    if lost := _lost(told):
        yield f"{name} has found {lost:,} more than is kept here"


def _places(found: AnyDivergence) -> list[ReportedAt]:
    """The positions of its events."""
    return [(side, place.partition, place.offset) for side, place in found.positions if place is not None]
