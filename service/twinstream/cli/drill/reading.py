"""Reads the records that a drill copies: the last ones of both topics of the live comparison."""

from __future__ import annotations

from contextlib import closing

from twinstream.adapters.clocks import SystemClock
from twinstream.adapters.kafka.source import KafkaSource, whole_record
from twinstream.core.events import Side
from twinstream.drill.copies import CopiedStretch, stretch_of
from twinstream.errors import SettingsError, SourceError
from twinstream.offline.range_reader import OffsetBounds, Recorded
from twinstream.settings import Settings
from twinstream.spec.drills import DrillRecord
from twinstream.spec.file.model import Spec


def read_stretch(spec: Spec, settings: Settings, records: int) -> tuple[CopiedStretch, tuple[int, int]]:
    """The last records of both topics as a stretch, and the number of partitions of each topic.

    Raises SettingsError if there is nothing to copy or no client can have these settings, and SourceError.
    """
    names = {side: spec.version_of(side).topic for side in Side}
    try:
        source = KafkaSource(settings.brokers, f"{spec.name}.drill", names, settings.kafka, whole_record)
    except SourceError as error:  # No broker was asked yet.
        raise SettingsError(str(error)) from None
    with closing(source):
        topics = source.topics()
        ranges = {
            side: {p: OffsetBounds(max(0, end - records // len(topic.ends))) for p, end in topic.ends.items()}
            for side, topic in topics.items()
        }
        recorded = Recorded(source, names, ranges, records, SystemClock())
        found = [
            [DrillRecord.enclosed(line.record or b"", line.offset) for line in recorded.lines(side)]
            for side in Side
        ]
    return stretch_of(spec, *found), (len(topics[Side.LEFT].first), len(topics[Side.RIGHT].first))
