"""Merges the groups of several matchers of one comparison. Each partition and each key is in one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from twinstream.grouping.groups import EXAMPLES, GROUPS, TOP_KEYS, others
from twinstream.grouping.patterns import WITHOUT_PARAMETER
from twinstream.status.groups import Group, KeyShare, Pattern


def merged_groups(parts: Iterable[Sequence[Group]]) -> list[Group]:
    """The groups of all parts, largest first.

    A pattern is told if all parts tell it, so that its count is exact. One whose constant may not be shown is
    not: it may be another constant in each part.
    """
    found: dict[object, list[Group]] = {}
    for group in chain.from_iterable(parts):
        key = group.kind, None if group.fields is None else tuple(group.fields), group.more_fields
        found.setdefault(key, []).append(group)
    groups = sorted(map(_merged, found.values()), key=lambda group: (group.kind == "others", -group.count))
    named = [group for group in groups if group.kind != "others"]
    rest = [*named[GROUPS:], *groups[len(named) :]]
    remaining = [others(sum(group.count for group in rest))] if rest else []
    return [*named[:GROUPS], *remaining]


def _merged(groups: Sequence[Group]) -> Group:
    first = groups[0]
    times = [moment for group in groups for moment in (group.first_at, group.last_at) if moment is not None]
    keys = [group.keys for group in groups if group.keys is not None]
    top = sorted(chain.from_iterable(group.top_keys for group in groups), key=lambda one: -one.count)
    return first.model_copy(
        update={
            "count": sum(group.count for group in groups),
            "first_at": min(times, default=None),
            "last_at": max(times, default=None),
            "partitions": sorted(
                chain.from_iterable(group.partitions for group in groups), key=lambda one: one.partition
            ),
            "more_partitions": sum(group.more_partitions for group in groups),
            "common": [member for member in first.common if all(member in group.common for group in groups)],
            "kinds": dict(sum((Counter(group.kinds) for group in groups), Counter())),
            "keys": sum(keys) if keys else None,
            "more_keys": any(group.more_keys for group in groups),
            "top_keys": [KeyShare(key=one.key, count=one.count) for one in top[:TOP_KEYS]],
            "examples": list(chain.from_iterable(group.examples for group in groups))[:EXAMPLES],
            "patterns": list(_patterns(groups)),
        }
    )


def _patterns(groups: Sequence[Group]) -> Iterable[Pattern]:
    for pattern in groups[0].patterns:
        if len(groups) > 1 and pattern.by is None and pattern.pattern not in WITHOUT_PARAMETER:
            continue
        same = [
            one
            for group in groups
            for one in group.patterns
            if (one.field, one.pattern, one.side, one.by)
            == (pattern.field, pattern.pattern, pattern.side, pattern.by)
        ]
        if len(same) == len(groups):
            yield pattern.model_copy(update={"count": sum(one.count for one in same)})
