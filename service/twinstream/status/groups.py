"""The shape of a group of differences, as matcher, API and page share it."""

# ruff: noqa: RUF012 - pydantic gives each instance a default of its own

from __future__ import annotations

from datetime import datetime
from typing import Literal

from twinstream.status.common import DivergenceKind, Frozen, SideName

PatternName = Literal[
    "later", "shift", "sign", "factor", "rounded", "case", "cut", "null", "absent", "constant"
]


class Pattern(Frozen):
    """How the values of a field changed in `count` differences of a group.

    `side` is the side whose value is the rounded, cut, null, absent or constant one. `by` is the shift, the
    seconds, the factor, the digits or the constant; None where the pattern has none, or it may not be shown.
    """

    field: str
    pattern: PatternName
    side: SideName | None = None
    by: int | float | str | None = None
    count: int
    text: str


class PartitionShare(Frozen):
    """The differences of a group in one partition, and their first and last offset."""

    partition: int
    count: int
    first: int
    last: int


class Member(Frozen):
    """A member that all events of a group have with the same value, as text."""

    field: str
    value: str


class KeyShare(Frozen):
    """The differences of a group that are of one key."""

    key: str
    count: int


class Group(Frozen):
    """Differences of one kind that differ in the same fields; the counts of all groups are all differences.

    The group `others` is of those for which there was no group left. `fields` is None where it is unknown
    which differ; `more_fields` are not named. Times are Kafka's. Partitions and offsets are those of `side`.
    `common` are the shown members with one value in all. `keys` counts the distinct keys, None where none is
    known; with `more_keys` there may be more. `examples` are ids. `text` is a sentence on all of it, `cause`
    the likely cause if there is evidence. `id` names the group: the same after a restart, in every process.
    """

    id: str = ""
    kind: DivergenceKind | Literal["others"]
    fields: list[str] | None = None
    more_fields: int = 0
    count: int
    first_at: datetime | None = None
    last_at: datetime | None = None
    side: SideName | None = None
    partitions: list[PartitionShare] = []
    more_partitions: int = 0
    kinds: dict[str, int] = {}
    common: list[Member] = []
    keys: int | None = None
    more_keys: bool = False
    top_keys: list[KeyShare] = []
    examples: list[str] = []
    patterns: list[Pattern] = []
    text: str = ""
    cause: str | None = None
