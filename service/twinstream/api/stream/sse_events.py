"""The server-sent events, with their names and data.

``status`` carries the body of ``GET /v1/comparisons/{name}``, ``gate`` that of its gate, ``divergence`` one
divergence, ``sample`` one item of its history; ``verdict`` is sent when the verdict changes, ``withdrawn``
when a provisional divergence is replaced, ``reset`` when a comparison was reset, ``phase`` (an item of
its timeline) when verdict, gate or health change.
"""

from __future__ import annotations

from datetime import datetime

from twinstream.api.gate.gate import GateAnswer
from twinstream.api.gate.samples import Sample
from twinstream.api.http.rendered import Rendered
from twinstream.api.stream.mailbox import BoardEvent
from twinstream.api.stream.timeline import Phase
from twinstream.status.common import Frozen, Verdict
from twinstream.status.comparison import ComparisonStatus, DivergenceReport, Reset, Withdrawn


class VerdictChange(Frozen):
    """Data of the event ``verdict``."""

    comparison: str
    verdict: Verdict
    previous: Verdict
    since: datetime
    reason: str


class NamedSample(Sample):
    """Data of the event ``sample``."""

    comparison: str


class NamedPhase(Phase):
    """Data of the event ``phase``."""

    comparison: str


EventData = GateAnswer | VerdictChange | NamedSample | NamedPhase | DivergenceReport | Withdrawn | Reset


def event_of(name: str, data: EventData, subject: str = "") -> BoardEvent:
    """An event about the comparison that its data names."""
    return BoardEvent(name, data.comparison, data.model_dump_json(), subject)


def status_event(comparison: str, body: Rendered) -> BoardEvent:
    """The present status of a comparison."""
    return BoardEvent("status", comparison, body.content.decode())


def verdict_event(status: ComparisonStatus, previous: Verdict) -> BoardEvent:
    """A change of the verdict."""
    change = VerdictChange(
        comparison=status.name,
        verdict=status.verdict,
        previous=previous,
        since=status.since,
        reason=status.reason,
    )
    return event_of("verdict", change)


def sample_event(comparison: str, sample: Sample) -> BoardEvent:
    """One more point for its chart."""
    return event_of("sample", NamedSample(comparison=comparison, **dict(sample)))


def phase_event(comparison: str, phase: Phase) -> BoardEvent:
    """A change of verdict, gate or health."""
    return event_of("phase", NamedPhase(comparison=comparison, **dict(phase)), phase.since.isoformat())
