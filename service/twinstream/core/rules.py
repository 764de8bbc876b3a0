"""The comparison file, compiled: the relation, the known differences, the clock and the limits."""

from __future__ import annotations

from dataclasses import dataclass

from twinstream.core.checks.property import Declared
from twinstream.core.clocks.event_time import EventTime
from twinstream.core.clocks.input import Input
from twinstream.core.diagnosis.known_differences import KnownDifference
from twinstream.core.relation import Relation
from twinstream.core.tables.declared import Fold


@dataclass(frozen=True)
class Rules(Relation):
    """The rules of one comparison: its relation, and all else that the file declares.

    `passing` is the clock that measures the progress of each side, None for Kafka's timestamps; `proves` says
    whether the clock proves anything. Limits are in events, except `unmatched_bytes`. `replay_horizon` is in
    batches; without it every copy is an event. `hears`: the versions report which batches they have finished.
    `co_partitioned`: the file asserts that equal events are in partitions of the same number.
    `duplicate_horizon` is given where a known difference names `duplicate`: how many offsets of its partition
    a copy may lie behind an equal event (see `repeats`). `checks` are about the rows of single sides.
    `fold` is given where rows replace earlier rows of their key (see `tables`). `equal_by_record`: equal
    records are equal events, whatever side they are of, and most partners have equal ones.
    """

    known: tuple[KnownDifference, ...] = ()
    halt: bool = False
    proves: bool = False
    overdue_after_ms: int = 60_000
    passing: EventTime | Input | None = None
    unmatched_limit: int = 5_000_000
    unmatched_bytes: int = 2 << 30
    scope_limit: int = 10_000
    recent_matches: int = 100_000
    duplicate_horizon: int | None = None
    replay_horizon: int | None = None
    hears: bool = False
    co_partitioned: bool = False
    checks: tuple[Declared, ...] = ()
    fold: Fold | None = None
    equal_by_record: bool = False
