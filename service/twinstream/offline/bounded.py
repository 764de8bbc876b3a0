"""`check --brokers`: compares a stretch of two topics once, from reading it to the answer.

Both sides end with the stretch. The records read count only after the topics have been examined again: if one
was created again meanwhile, it is unknown what was read. And if the end was meant to be the topics' end, but
one of them has grown, its version has not stopped; then its end is not final, and events near it without a
partner are undecided (`range_edges`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

from twinstream.core.accounts import Hole
from twinstream.core.events import Side
from twinstream.explain.holes import of_gap
from twinstream.intake.topics import TopicBook
from twinstream.offline.check import Check
from twinstream.offline.offset_range import Edge, OffsetRange, Recorded, stretch_of
from twinstream.offline.range_edges import Edges
from twinstream.ports import Archive, Clock, Gap, Line
from twinstream.spec.file.model import Spec
from twinstream.spec.file.orders import Barrier, nodes

NO_LIMIT = 1 << 62

WatchLines = Callable[[Iterable[Line]], Iterator[Line]]
"""Shows how far the lines that pass through it are read."""


class BoundedCheck:
    """One comparison of a stretch of two topics, as they are at construction. `size` is in offsets.

    Raises SettingsError if the stretch cannot be compared, and SourceError if Kafka does not answer.
    """

    def __init__(
        self, spec: Spec, archive: Archive, begin: Edge, end: Edge, slack: timedelta, clock: Clock
    ) -> None:
        self._archive, self._topics = archive, TopicBook(spec)
        topics = archive.topics()
        self._topics.begin(topics)
        self._stretch: OffsetRange = stretch_of(spec, archive, begin, end, slack, clock.now())
        replays = spec.duplicates.policy == "replays"
        barriers = {
            kind
            for node in nodes(spec.order, spec.compared_kinds)
            if isinstance(node.order, Barrier)
            for kind in node.order.barrier
        }
        self._edges = Edges(self._stretch, spec.duplicates.horizon if replays else None, barriers)
        self._check = Check(spec, self._edges)
        names = {side: spec.version_of(side).topic for side in Side}
        self._recorded = Recorded(archive, names, self._stretch.ranges, NO_LIMIT, clock, self._note_lost)
        self.size = self._stretch.size
        for side, topic in topics.items():
            self._check.comparison.expect_partitions(side, topic.first)
            self._check.comparison.checks.expect(side, len(topic.first))
        for hole in self._stretch.holes:
            self._check.comparison.hole(hole)

    def run(
        self, watch: WatchLines, *, open_ended: bool, allow_empty: bool, evidence: bool
    ) -> dict[str, Any]:
        """Read and compare it; the lines go through `watch`. The options are those of `check`.

        Raises SourceError if Kafka stops answering.
        """
        for line in watch(self._recorded.in_step()):
            self._check.feed(line)
        self._look_again()
        return self._check.finish(open_ended=open_ended, allow_empty=allow_empty, evidence=evidence)

    def _look_again(self) -> None:
        topics = self._archive.topics()
        ends = {
            side: {number: part.read.stop for number, part in parts.items()}
            for side, parts in self._stretch.parts.items()
        }
        changes = self._topics.changes(topics, ends)
        if changes:
            self._check.comparison.disown()
        for hole in changes:
            self._check.comparison.hole(hole)
        self._edges.go_on = self._stretch.end == "latest" and any(
            topics[side].ends.get(number, 0) > end
            for side, of_side in ends.items()
            for number, end in of_side.items()
        )

    def _note_lost(self, gap: Gap) -> None:
        self._check.comparison.hole(
            Hole(of_gap(gap.wanted, gap.available), gap.side, gap.partition, gap.wanted)
        )
