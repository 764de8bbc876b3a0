"""Polls all other inputs of a run at every beat: the metadata of its topics, and the control records."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from twinstream.checkpoints.writer import CheckpointWriter
from twinstream.core.accounts import Hole
from twinstream.explain.holes import told
from twinstream.matcher.comparison_run import ComparisonRun
from twinstream.matcher.settlement import Settlement
from twinstream.ports import Source
from twinstream.spec.file.model import Spec

log = structlog.get_logger()


class SideInputs:
    """The other inputs of one run. Each poll returns whether it changed state that is to be saved."""

    def __init__(
        self, spec: Spec, run: ComparisonRun, source: Source, settlement: Settlement, writer: CheckpointWriter
    ) -> None:
        self._spec, self._run, self._source = spec, run, source
        self._settlement, self._writer = settlement, writer

    def look_at_topics(self) -> bool:
        """Note the changes of the topics themselves, and the input vouched for, as of the last look."""
        changes = self._run.topic_monitor.take(self._run.intake.positions)
        self.log(changes)
        for change in changes:
            self._read_added(change)
        self._settlement.vouch()
        return bool(changes)

    def log(self, changes: Iterable[Hole]) -> None:
        """Log changes of the topics."""
        for change in changes:
            log.warning("a topic has changed", comparison=self._spec.name, reason=told(change, self._spec))

    def _read_added(self, change: Hole) -> None:
        """Also read a partition that was added: the other side may have the partners of its events."""
        side, partition, offset = change.side, change.partition, change.offset
        positions = self._run.intake.positions
        if side is None or partition is None or offset is None or partition in positions[side]:
            return
        if not self._run.reads(partition):
            return
        self._source.extend(side, partition, offset)
        positions[side][partition] = offset

    def hear_versions(self) -> bool:
        """Take the new control records of both versions."""
        heard = False
        while said := self._source.said():
            self._run.control.take(said)
            heard = True
        return heard
