"""All that was compared: what a group of differences is measured against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from twinstream.status.common import SideName, Sides
from twinstream.status.comparison import Coverage, PartitionProgress
from twinstream.status.timestamps import moment_of


class Whole(NamedTuple):
    """All that was compared.

    `partitions` has by side the first offset of each partition, and the one behind the last. `keys` is the
    number of keys seen, None where there are none, and `more_keys` says that there may be more. Times are
    Kafka's. `constants` are the fields that had one value wherever they were looked at.
    """

    partitions: Mapping[SideName, Mapping[int, tuple[int, int]]]
    keys: int | None = None
    more_keys: bool = False
    first_at: datetime | None = None
    last_at: datetime | None = None
    constants: frozenset[str] = frozenset()


def whole_of(
    progress: Sides[list[PartitionProgress]], coverage: Coverage, first_at: datetime | None
) -> Whole:
    """What a running comparison has compared; `first_at` is the time of its first record."""
    sides: dict[SideName, Sequence[PartitionProgress]] = {
        "reference": progress.reference,
        "candidate": progress.candidate,
    }
    newest = [one.newest_event_at for side in sides.values() for one in side if one.newest_event_at]
    known = {
        side: {one.partition: (one.begin, one.position) for one in partitions if one.begin is not None}
        for side, partitions in sides.items()
    }
    last_at = max(newest, default=None)
    return Whole(known, coverage.keys, not all_keys_seen(coverage), first_at, last_at, _constants(coverage))


def all_keys_seen(coverage: Coverage) -> bool:
    """Whether the keys of a coverage are all that came: every event was sampled."""
    return not coverage.more_keys and sum(kind.sampled for kind in coverage.kinds.values()) >= coverage.events


def _constants(coverage: Coverage) -> frozenset[str]:
    kinds = coverage.kinds.values()
    varied = {field for kind in kinds for field in kind.varied}
    return frozenset(field for kind in kinds for field in kind.constant if field not in varied)


class Extent:
    """The extent of recorded outputs, fed with the place of each record."""

    def __init__(self) -> None:
        self._partitions: dict[SideName, dict[int, tuple[int, int]]] = {"reference": {}, "candidate": {}}
        self._first_ms = self._last_ms = 0

    def note(self, side: SideName, partition: int, offset: int, time_ms: int) -> None:
        """Note a record. Its time is unknown unless it is positive."""
        partitions = self._partitions[side]
        first, end = partitions.get(partition, (offset, 0))
        partitions[partition] = min(first, offset), max(end, offset + 1)
        if time_ms > 0:
            self._first_ms = min(self._first_ms or time_ms, time_ms)
            self._last_ms = max(self._last_ms, time_ms)

    def whole(self, coverage: Coverage) -> Whole:
        """All that was noted; `coverage` has its keys."""
        first_at, last_at = (moment_of(ms) if ms else None for ms in (self._first_ms, self._last_ms))
        more_keys = not all_keys_seen(coverage)
        constants = _constants(coverage)
        return Whole(self._partitions, coverage.keys, more_keys, first_at, last_at, constants)
