"""The timeline of a comparison: its verdict, gate and health over time, as the service has seen them.

A phase lasts until the next one begins. The process that serves the API keeps them in memory, so they begin
with its start; Prometheus has older data.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import Literal

import structlog

from twinstream.api.gate.gate import GateAnswer, GateWord
from twinstream.status.common import Frozen, Verdict
from twinstream.status.comparison import ComparisonStatus

KEPT = 500
"""So many changes are already a bad day; each takes a hundred bytes and a sentence."""

HealthWord = Literal["ok", "degraded", "not_live"]


class Phase(Frozen):
    """A period in which verdict, gate and health stayed the same; `reason` is the gate's at that time."""

    since: datetime
    verdict: Verdict
    gate: GateWord
    health: HealthWord
    reason: str


_log = structlog.get_logger()


def log_phase(comparison: str, phase: Phase) -> None:
    """Write a phase to the log, so that the events of a night can be read there, too."""
    said = {"verdict": phase.verdict, "gate": phase.gate, "health": phase.health, "reason": phase.reason}
    if phase.verdict == "DIVERGED":
        _log.error("phase", comparison=comparison, **said)
    elif phase.verdict == "INCONCLUSIVE" or phase.health != "ok":
        _log.warning("phase", comparison=comparison, **said)
    else:
        _log.info("phase", comparison=comparison, **said)


class Timeline:
    """The latest phases of one comparison, oldest first."""

    def __init__(self, kept: int = KEPT) -> None:
        self._phases: deque[Phase] = deque(maxlen=kept)

    def note(self, status: ComparisonStatus, gate: GateAnswer, now: datetime) -> Phase | None:
        """Record the present state; returns the new phase, or None while the last one goes on."""
        health: HealthWord = "not_live" if gate.stale else status.health.status
        last = self._phases[-1] if self._phases else None
        stands = (status.verdict, gate.answer, health)
        if last is not None and (last.verdict, last.gate, last.health) == stands:
            return None
        phase = Phase(since=now, verdict=status.verdict, gate=gate.answer, health=health, reason=gate.reason)
        self._phases.append(phase)
        return phase

    def items(self) -> list[Phase]:
        """All that are remembered, oldest first."""
        return list(self._phases)
