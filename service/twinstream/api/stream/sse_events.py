"""The server-sent events: their names and their data.

``status`` carries the body of ``GET /v1/comparisons/{name}``, ``gate`` that of its gate, ``divergence`` one
divergence, ``sample`` one item of its history; ``verdict`` is sent when the verdict changes, ``withdrawn``
when a provisional divergence is replaced, ``reset`` when a comparison was begun anew, ``phase`` (an item of
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


def status_event(comparison: str, body: Rendered) -> BoardEvent:
    """What a comparison looks like now: the body of its status."""
    return BoardEvent("status", comparison, body.content.decode())


def gate_event(answer: GateAnswer) -> BoardEvent:
    """What its gate answers now."""
    return BoardEvent("gate", answer.comparison, answer.model_dump_json())


def verdict_event(status: ComparisonStatus, previous: Verdict) -> BoardEvent:
    """The verdict was another one before."""
    change = VerdictChange(
        comparison=status.name,
        verdict=status.verdict,
        previous=previous,
        since=status.since,
        reason=status.reason,
    )
    return BoardEvent("verdict", status.name, change.model_dump_json())


def sample_event(comparison: str, sample: Sample) -> BoardEvent:
    """One more point for its chart."""
    named = NamedSample(comparison=comparison, **dict(sample))
    return BoardEvent("sample", comparison, named.model_dump_json())


def phase_event(comparison: str, phase: Phase) -> BoardEvent:
    """Verdict, gate or health are others than before."""
    named = NamedPhase(comparison=comparison, **dict(phase))
    return BoardEvent("phase", comparison, named.model_dump_json(), phase.since.isoformat())


def divergence_event(report: DivergenceReport) -> BoardEvent:
    """A divergence is new, or more is known of it."""
    return BoardEvent("divergence", report.comparison, report.model_dump_json(), report.id)


def withdrawn_event(withdrawn: Withdrawn) -> BoardEvent:
    """A provisional divergence no longer stands."""
    return BoardEvent("withdrawn", withdrawn.comparison, withdrawn.model_dump_json(), withdrawn.id)


def reset_event(reset: Reset) -> BoardEvent:
    """A comparison was begun anew; what was sent of its divergences before is withdrawn."""
    return BoardEvent("reset", reset.comparison, reset.model_dump_json())
