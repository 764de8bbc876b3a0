"""Sums up ten thousand differences in a few groups, as they come.

A group has the differences of one kind that differ in the same fields. It counts them exactly, and what they
have in common: members, partitions, keys, kinds of event, patterns of values. The counts of all groups add up
to the number of differences. Beyond `GROUPS` groups the rest is counted in one, `others`.

Differences are numbered from 0 in the order of finding. One that is found again under its number, since its
other half came, moves from its first group to another. It leaves the range of times and offsets, and what
all have in common, as it was.

Complexity: O(1) a difference, nothing for a match. Measured where a turn of a plain loop takes 34 ns, with
members in common: 1.1 µs for one of one side, 2.0 to 2.8 µs for a changed field by its pattern (rounding to
decimals is the slowest); at 25 ns a turn that is 0.8 to 2.0 µs. The first 64 of a group take up to three
times as long, since no family is dropped yet. Reading the records of a difference takes more than all that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple

from twinstream.core.diagnosis.findings import Kind
from twinstream.grouping.common import CommonMembers
from twinstream.grouping.difference import Difference
from twinstream.grouping.patterns import FieldPatterns, Fit
from twinstream.grouping.wording import pattern_text
from twinstream.status.common import SideName
from twinstream.status.groups import Group, KeyShare, Member, PartitionShare, Pattern
from twinstream.status.timestamps import moment_of

GROUPS = 20
"""More groups than a person reads; each takes at most some tens of kilobytes."""
KEYS = 100
"""Distinct keys that are counted exactly. More are no concentration any more."""
PARTITIONS = 32
"""Partitions that are counted each: most topics have no more, and a status stays small."""
EXAMPLES, TOP_KEYS = 3, 3
"""Ids and keys of a group that are told."""


class GroupKey(NamedTuple):
    """What the differences of a group have in common; see `Changes`."""

    kind: Kind
    fields: tuple[str, ...] | None
    more: int

    @property
    def id(self) -> str:
        """A short name of the group, the same in every process: a digest of this key."""
        return blake2b(json.dumps(self).encode(), digest_size=8).hexdigest()


def _key_of(difference: Difference) -> GroupKey:
    changes = difference.changes
    return GroupKey(difference.kind, changes.fields, changes.more)


class _Counts:
    """The differences of one group."""

    __slots__ = (
        *("common", "count", "event_kinds", "examples", "first_ms", "keys", "last_ms", "more_keys"),
        *("more_partitions", "partitions", "patterns", "shown"),
    )

    def __init__(self, shown: Iterable[bool] = ()) -> None:
        self.count = self.more_partitions = 0
        self.first_ms = self.last_ms = 0
        self.common = CommonMembers()
        self.event_kinds: dict[str, int] = {}
        self.keys: dict[str, int] = {}
        self.more_keys = False
        self.partitions: dict[int, list[int]] = {}
        self.examples: list[str] = []
        self.shown = list(shown)
        self.patterns = [FieldPatterns(shown=shown) for shown in self.shown]

    def add(self, difference: Difference) -> None:  # noqa: C901, PLR0912 - each call would cost 0.1 µs
        """Count a difference."""
        _, changes, event_kind, key, partition, offset, time_ms, report_id, members = difference
        self.count += 1
        self.common.add(members)
        try:
            self.event_kinds[event_kind] += 1
        except KeyError:
            self.event_kinds[event_kind] = 1
        if time_ms > self.last_ms:
            self.last_ms = time_ms
            self.first_ms = self.first_ms or time_ms
        elif 0 < time_ms < self.first_ms:
            self.first_ms = time_ms
        share = self.partitions.get(partition)
        if share is None:
            self._add_partition(partition, offset)
        else:
            share[0] += 1
            if offset > share[2]:
                share[2] = offset
            elif offset < share[1]:
                share[1] = offset
        if key is None:
            self.more_keys = True
        elif key in self.keys:
            self.keys[key] += 1
        elif key:
            if len(self.keys) < KEYS:
                self.keys[key] = 1
            else:
                self.more_keys = True
        if len(self.examples) < EXAMPLES:
            self.examples.append(report_id())
        values = changes[2]
        if len(values) == 1:
            self.patterns[0].add(*values[0])
        elif values:
            for patterns, (one, other) in zip(self.patterns, values, strict=True):
                patterns.add(one, other)

    def _add_partition(self, partition: int, offset: int) -> None:
        if len(self.partitions) < PARTITIONS:
            self.partitions[partition] = [1, offset, offset]
        else:
            self.more_partitions += 1

    def remove(self, difference: Difference) -> None:
        """Take out a difference of one side; it has no changed fields."""
        self.count -= 1
        _lower(self.event_kinds, difference.event_kind)
        _lower(self.keys, difference.key or "")
        share = self.partitions.get(difference.partition)
        if share is None:
            self.more_partitions -= 1
        elif share[0] > 1:
            share[0] -= 1
        else:
            del self.partitions[difference.partition]
        if self.examples and (gone := difference.id()) in self.examples:
            self.examples.remove(gone)

    def state(self) -> list[Any]:
        """The counts as plain data, in the order of `__slots__` that `restore` reads."""
        return [
            *(self.count, self.first_ms, self.last_ms, self.more_keys, self.more_partitions),
            [[kind, count] for kind, count in self.event_kinds.items()],
            [[key, count] for key, count in self.keys.items()],
            [[partition, *share] for partition, share in self.partitions.items()],
            list(self.examples),
            list(self.shown),
            [patterns.state() for patterns in self.patterns],
            self.common.state(),
        ]

    def restore(self, state: list[Any]) -> None:
        """Take over a `state`."""
        self.count, self.first_ms, self.last_ms, self.more_keys, self.more_partitions, *parts = state
        event_kinds, keys, partitions, examples, shown, patterns, *common = parts
        self.common.restore(common[0] if common else [])
        self.event_kinds, self.keys = dict(map(tuple, event_kinds)), dict(map(tuple, keys))
        self.partitions = {partition: list(share) for partition, *share in partitions}
        self.examples, self.shown = list(examples), list(shown)
        self.patterns = [FieldPatterns(shown=shown) for shown in shown]
        for field, saved in zip(self.patterns, patterns, strict=True):
            field.restore(saved)


class Groups:
    """The groups of one comparison.

    `since` is the number of the first difference that is fed: those before it are known by their count only,
    as where the state of an older version is taken over. They are in `others`.
    """

    def __init__(self, since: int = 0) -> None:
        self._groups: dict[tuple[Kind, tuple[str, ...] | None, int], _Counts] = {}
        self._since = self._total = self._others = since

    @property
    def total(self) -> int:
        """The number of differences, which is the sum of the counts of all groups."""
        return self._total

    def skip_to(self, total: int) -> None:
        """Count the differences before the number `total` that were never fed: in `others`."""
        missed = max(0, total - self._total)
        self._others, self._total = self._others + missed, self._total + missed

    def add(self, difference: Difference) -> None:
        """Count a new difference."""
        self._total += 1
        changes = difference[1]
        group = self._groups.get((difference[0], changes[0], changes[1]))
        if group is None:
            self._put(difference)
        else:
            group.add(difference)

    def move(self, number: int, first: Difference, now: Difference) -> None:
        """Count the difference of a number, which was counted as `first`, as it is known `now`."""
        if number < self._since:
            return
        key = _key_of(first)
        group = self._groups.get(key)
        if group is None:
            self._others -= 1
        else:
            group.remove(first)
            if not group.count:  # It keeps its place, so that `first` is never in it and in `others`.
                self._groups[key] = _Counts()
        self._put(now)

    def _put(self, difference: Difference) -> None:
        key = _key_of(difference)
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= GROUPS:
                self._others += 1
                return
            group = self._groups[key] = _Counts(difference.changes.shown)
        group.add(difference)

    def told(self) -> tuple[Group, ...]:
        """The groups, largest first, without their sentences (see `wording`); `others` last."""
        found = [_told(GroupKey(*key), counts) for key, counts in self._groups.items() if counts.count]
        found.sort(key=lambda group: -group.count)
        return (*found, *([others(self._others)] if self._others else ()))

    def state(self) -> dict[str, Any]:
        """The groups as plain data."""
        return {
            "since": self._since,
            "total": self._total,
            "others": self._others,
            "groups": [
                [kind, None if fields is None else list(fields), more, counts.state()]
                for (kind, fields, more), counts in self._groups.items()
            ],
        }

    @classmethod
    def of(cls, state: dict[str, Any]) -> Groups:
        """The groups of a `state`."""
        found = cls(state["since"])
        found._total, found._others = state["total"], state["others"]
        for kind, fields, more, saved in state["groups"]:
            counts = found._groups[kind, None if fields is None else tuple(fields), more] = _Counts()
            counts.restore(saved)
        return found


def _lower(counts: dict[str, int], name: str) -> None:
    if counts.get(name, 0) > 1:
        counts[name] -= 1
    else:
        counts.pop(name, None)


def others(count: int) -> Group:
    """The group of the differences for which there was no group left."""
    return Group(id="others", kind="others", count=count)


def _told(key: GroupKey, counts: _Counts) -> Group:
    side: SideName = "candidate" if key.kind in ("extra", "duplicate") else "reference"
    top = sorted(counts.keys.items(), key=lambda item: (-item[1], item[0]))[:TOP_KEYS]
    return Group(
        id=key.id,
        kind=key.kind,
        fields=None if key.fields is None else list(key.fields),
        more_fields=key.more,
        count=counts.count,
        first_at=_moment(counts.first_ms),
        last_at=_moment(counts.last_ms),
        side=side,
        partitions=[
            PartitionShare(partition=partition, count=share[0], first=share[1], last=share[2])
            for partition, share in sorted(counts.partitions.items())
        ],
        more_partitions=counts.more_partitions,
        kinds=dict(sorted(counts.event_kinds.items())),
        common=[Member(field=name, value=text) for name, text in counts.common],
        keys=len(counts.keys) if counts.keys else None,
        more_keys=counts.more_keys,
        top_keys=[KeyShare(key=name, count=count) for name, count in top],
        examples=list(counts.examples),
        patterns=[
            _pattern(name, fit, shown)
            for name, patterns, shown in zip(key.fields or (), counts.patterns, counts.shown, strict=False)
            if (fit := patterns.best()) is not None
        ],
    )


def _pattern(field: str, fit: Fit, shown: bool) -> Pattern:
    by = fit.by if shown else None
    text = pattern_text(fit.pattern, fit.side, by)
    return Pattern(field=field, pattern=fit.pattern, side=fit.side, by=by, count=fit.pairs, text=text)


def _moment(milliseconds: int) -> datetime | None:
    return moment_of(milliseconds) if milliseconds else None
