"""Schedules the checkpoints of a run: when the next one is due, and whether there is anything to save.

Changes are saved about once a second, and a certain divergence at once: it is not published before it is
saved. A large state takes long to survey and to save, so it is saved less often.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twinstream.checkpoints.writer import CheckpointWriter
from twinstream.core.verdict import Verdict
from twinstream.matcher.comparison_run import ComparisonRun
from twinstream.ports import Clock, Source
from twinstream.reporting.verdict_status import Saved

SAVE_SECONDS = 1.0
RETRY_STORE_SECONDS = 2.0
"""The interval of attempts to reach a store that is away (`CheckpointWriter.may_try`)."""
SAVE_SHARE = 0.05
"""At most this share of the time goes into surveys and checkpoints: large states are saved less often."""
PUT_OFF_SECONDS = 60.0
"""The longest delay of a save: a save during which the process was paused does not show a large state."""


class SaveSchedule:
    """The saves of one run. `head` returns the state of the run without that of its comparison.

    `dirty`: the state has changed since the last save. `hold_divergence`: the last save has a certain
    divergence.
    """

    def __init__(
        self,
        run: ComparisonRun,
        source: Source,
        writer: CheckpointWriter,
        clock: Clock,
        head: Callable[[], dict[str, Any]],
    ) -> None:
        self._run, self._source, self._writer, self._clock = run, source, writer, clock
        self._head = head
        self._verdict: Verdict | None = None
        self._next = 0.0
        self.dirty = True
        self.hold_divergence = False

    def resume(self) -> None:
        """Note that the run has been restored: its current state is the saved one."""
        self.hold_divergence = self._run.comparison.proven.for_sure
        self._verdict = self._run.reporter.verdict

    def hasten(self) -> None:
        """Make the next save due now."""
        self._next = 0.0

    def newly_diverged(self) -> bool:
        """Whether there is a certain divergence that is not saved yet, and will be."""
        return self._run.begun() and self._run.comparison.proven.for_sure and not self.hold_divergence

    def due(self) -> bool:
        """Whether a save is due, or the store lost the last one; else prolong the lease. Raises Fenced."""
        if self._clock.monotonic() >= self._next:
            return True
        return not self._writer.trouble and (self.newly_diverged() or not self._writer.renewed())

    def save(self, survey: Callable[[], None]) -> None:
        """Call `survey`, and save the changes, if there are any. Raises Fenced."""
        started = self._clock.monotonic()
        survey()
        self._writer.waited_seconds = 0.0
        if self._writer.may_try():
            self._keep()
        ended = self._clock.monotonic()
        # The time for which a store hangs does not show a large state.
        spent = ended - started - self._writer.waited_seconds
        pause = RETRY_STORE_SECONDS if self._writer.trouble else SAVE_SECONDS
        began = ended if self._writer.trouble else started
        self._next = began + max(pause, min(spent / SAVE_SHARE, PUT_OFF_SECONDS))

    def _keep(self) -> None:
        """Save the changes, or prolong the lease."""
        if not self._run.begun():
            self._writer.renewed()
        elif self._anything() or self.newly_diverged() or not self._writer.renewed():
            self._checkpoint()

    def _anything(self) -> bool:
        """Whether anything has changed; the time since which a verdict holds is saved, too."""
        told = self._run.reporter.verdict is not self._verdict
        return self.dirty or told or self._writer.awaits_save(self._run.comparison)

    def _checkpoint(self) -> None:
        run, verdict = self._run, self._run.reporter.verdict
        written = self._writer.save(self._head(), run.comparison)
        if written is None:
            return
        self.dirty, self._verdict = False, verdict
        self.hold_divergence = run.comparison.proven.for_sure
        run.situation.saved = Saved.of(run.comparison)
        self.remember()
        run.situation.checkpoint = written

    def remember(self) -> None:
        """Write the marks of the checkpoint in the store to Kafka."""
        verdict = Verdict.DIVERGED if self.hold_divergence else self._run.reporter.verdict
        marks = self._run.marks(self._writer.sequence, verdict)
        if marks is not None:
            self._source.remember(marks)
