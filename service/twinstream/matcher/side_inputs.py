"""What a course hears besides the records of its topics: what Kafka and the versions say.

Each is asked for at every beat.
"""

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
    """What one course hears. Each question says whether the answer changed anything that is to be saved."""

    def __init__(
        self, spec: Spec, course: ComparisonRun, source: Source, surveys: Settlement, keeper: CheckpointWriter
    ) -> None:
        self._spec, self._course, self._source = spec, course, source
        self._surveys, self._keeper = surveys, keeper

    def look_at_topics(self) -> bool:
        """Note what happened to the topics themselves, and what is vouched for, as of the last look."""
        changes = self._course.looks.take(self._course.intake.positions)
        self.log(changes)
        for change in changes:
            self._read_added(change)
        self._surveys.vouch()
        return bool(changes)

    def log(self, changes: Iterable[Hole]) -> None:
        """Log what happened to the topics."""
        for change in changes:
            log.warning("a topic has changed", comparison=self._spec.name, reason=told(change, self._spec))

    def _read_added(self, change: Hole) -> None:
        """Read a partition that was added, too: the other side may have the partners of what it holds."""
        side, partition, offset = change.side, change.partition, change.offset
        positions = self._course.intake.positions
        if side is None or partition is None or offset is None or partition in positions[side]:
            return
        if not self._course.reads(partition):
            return
        self._source.extend(side, partition, offset)
        positions[side][partition] = offset

    def hear_versions(self) -> bool:
        """Hear what the versions say of themselves."""
        heard = False
        while said := self._source.said():
            self._course.control.take(said)
            heard = True
        return heard
