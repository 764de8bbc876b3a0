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


def status_event(comparison: str, body: Rendered) -> BoardEvent:
    """The present status of a comparison."""
    return BoardEvent("status", comparison, body.content.decode())


def gate_event(answer: GateAnswer) -> BoardEvent:
    """The present answer of its gate."""
    return BoardEvent("gate", answer.comparison, answer.model_dump_json())


def verdict_event(status: ComparisonStatus, previous: Verdict) -> BoardEvent:
    """A change of the verdict."""
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
    """A change of verdict, gate or health."""
    named = NamedPhase(comparison=comparison, **dict(phase))
    return BoardEvent("phase", comparison, named.model_dump_json(), phase.since.isoformat())


def divergence_event(report: DivergenceReport) -> BoardEvent:
    """A new divergence, or an update of one."""
    return BoardEvent("divergence", report.comparison, report.model_dump_json(), report.id)


def withdrawn_event(withdrawn: Withdrawn) -> BoardEvent:
    """The withdrawal of a provisional divergence."""
    return BoardEvent("withdrawn", withdrawn.comparison, withdrawn.model_dump_json(), withdrawn.id)


def reset_event(reset: Reset) -> BoardEvent:
    """A reset of a comparison; divergences sent before are withdrawn."""
    return BoardEvent("reset", reset.comparison, reset.model_dump_json())
