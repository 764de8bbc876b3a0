"""Puts a group of differences into one sentence, and its likely cause into another where there is evidence.

A cause is told only if chance hardly makes what the group has in common: if its differences were spread over
all that was compared, they would lie like this less than once in a thousand times. Differences of one key are
counted once for that, since they lie in one partition anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from twinstream.grouping.extent import Whole
from twinstream.status.common import SideName
from twinstream.status.groups import Group, Member, PartitionShare, Pattern, PatternName

CHANCE = 0.001
"""Rarer than this is no chance."""
FIELDS_NAMED = 3
"""The most fields that a sentence names."""
COMMON_FROM = 11
"""A member that half of all events have is in so many differences less than once in a thousand times."""
ZONE_SECONDS = 14 * 3600
"""Time zones are at most so far from UTC."""


def with_sentences(groups: Sequence[Group], whole: Whole) -> list[Group]:
    """The groups with their texts."""
    return [
        group.model_copy(update={"text": sentence(group, whole), "cause": cause(group, whole)})
        for group in groups
    ]


def provisional_with_sentences(
    provisional: Sequence[Group], final: Sequence[Group], whole: Whole
) -> list[Group]:
    """The provisional groups with their texts.

    Those of one that is also final are only its newest differences. Where they lie speaks for no cause.
    """
    known = {group.id for group in final}
    return [
        group.model_copy(update={"cause": None}) if group.id in known else group
        for group in with_sentences(provisional, whole)
    ]


def without_values(groups: Iterable[Group]) -> tuple[Group, ...]:
    """The groups without what may be a value of an event: members, names of keys, and constants."""
    bare = (
        group.model_copy(update={"common": [], "top_keys": [], "patterns": _without_constants(group)})
        for group in groups
    )
    return tuple(group.model_copy(update={"text": sentence(group, Whole({}))}) for group in bare)


def _without_constants(group: Group) -> list[Pattern]:
    return [_without_constant(pattern) for pattern in group.patterns]


def _without_constant(pattern: Pattern) -> Pattern:
    if pattern.pattern != "constant":
        return pattern
    return pattern.model_copy(update={"by": None, "text": pattern_text("constant", pattern.side, None)})


# -- the sentence ------------------------------------------------------------------------------------------


def sentence(group: Group, whole: Whole) -> str:
    """What a group amounts to.

    >>> pattern = Pattern(field="campaign_id", pattern="shift", by=1, count=7868, text="value + 1")
    >>> group = Group(kind="changed", fields=["campaign_id"], count=7868, keys=39, patterns=[pattern])
    >>> sentence(group, Whole({}, keys=100))
    '7,868 changed, all in `campaign_id`; 39 of 100 keys; value + 1 in 100 %.'
    """
    if group.kind == "others":
        return f"{group.count:,} others, which are in no group of their own."
    is_one_copy = (group.kind, group.count) == ("duplicate", 1)
    kind = "duplicate in the candidate" if is_one_copy else _KINDS[group.kind]
    what = f"{group.count:,} {kind}{_fields(group)}"
    parts = what, *_common(group, whole), *_keys(group, whole), *_times(group), *_patterns(group)
    return f"{'; '.join(parts)}."


_KINDS = {
    "missing": "missing from the candidate",
    "extra": "only in the candidate",
    "changed": "changed",
    "reordered": "in another order",
    "duplicate": "duplicates in the candidate",
}


def _fields(group: Group) -> str:
    if group.fields is None or not group.fields:
        return ""
    names = [f"`{name}`" if name else "the whole value" for name in group.fields[:FIELDS_NAMED]]
    more = len(group.fields) + group.more_fields - len(names)
    if more:
        names.append(f"{more:,} more fields")
    return f", {'all ' if group.count > 1 else ''}in {listed_text(names)}"


def _common(group: Group, whole: Whole) -> Iterator[str]:
    told = _in_common(group, whole)
    if told:
        yield f"all with {listed_text([f'`{one.field}` {one.value}' for one in told[:FIELDS_NAMED]])}"


def _in_common(group: Group, whole: Whole) -> list[Member]:
    """The members that all have in common, if other events have other values, and this is hardly chance."""
    if _spread(group) < COMMON_FROM:
        return []
    return [one for one in group.common if one.field not in whole.constants]


def _keys(group: Group, whole: Whole) -> Iterator[str]:
    if group.keys is None:
        return
    if group.keys == 1 and not group.more_keys:
        yield f"{'all of ' if group.count > 1 else ''}{group.top_keys[0].key}" if group.top_keys else "1 key"
    elif group.more_keys:
        yield f"at least {group.keys:,} keys"
    elif whole.keys == group.keys:
        yield f"all {group.keys:,} keys{' seen' if whole.more_keys else ''}"
    elif whole.keys is not None and whole.keys > group.keys:
        yield f"{group.keys:,} of {'at least ' if whole.more_keys else ''}{whole.keys:,} keys"
    else:
        yield f"{group.keys:,} keys"


def _times(group: Group) -> Iterator[str]:
    if group.first_at is not None and group.last_at is not None:
        yield _span(group.first_at, group.last_at)


def _span(first: datetime, last: datetime) -> str:
    if f"{first:%F %T}" == f"{last:%F %T}":
        return f"at {first:%F %T} UTC"
    return f"from {first:%F %T} to {last:{'%T' if first.date() == last.date() else '%F %T'}} UTC"


def _patterns(group: Group) -> Iterator[str]:
    for pattern in group.patterns[:FIELDS_NAMED]:
        share = 100 if pattern.count == group.count else min(99, 100 * pattern.count // group.count)
        name = f"`{pattern.field}`: " if len(group.fields or ()) > 1 else ""
        yield f"{name}{pattern.text} in {share} %" if group.count > 1 else f"{name}{pattern.text}"


def pattern_text(pattern: PatternName, side: SideName | None, by: float | str | None) -> str:
    """A pattern in words; without a parameter it is only named.

    >>> pattern_text("shift", None, -2), pattern_text("shift", None, None), pattern_text("later", None, 3600)
    ('value - 2', 'shifted by a constant', '1 h later')
    """
    return _PATTERNS[pattern](side, by)


def _shift_text(_: SideName | None, by: float | str | None) -> str:
    if not isinstance(by, (int, float)):
        return "shifted by a constant"
    return f"value {'-' if by < 0 else '+'} {abs(by):,}"


def _later_text(_: SideName | None, by: float | str | None) -> str:
    if not isinstance(by, (int, float)):
        return "a time shifted by a constant"
    return f"{_duration(abs(by))} {'earlier' if by < 0 else 'later'}"


def _duration(seconds: float) -> str:
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if not seconds % unit:
            return f"{seconds / unit:g} {name}"
    return f"{seconds:g} s"


def _rounded_text(side: SideName | None, by: float | str | None) -> str:
    if by is None:
        return f"rounded in the {side}"
    digits = int(by)
    if digits > 0:
        return f"rounded to {digits} {'decimal' if digits == 1 else 'decimals'} in the {side}"
    return f"rounded to {f'multiples of {10**-digits:,}' if digits else 'whole numbers'} in the {side}"


_PATTERNS: dict[PatternName, Callable[[SideName | None, float | str | None], str]] = {
    "shift": _shift_text,
    "later": _later_text,
    "sign": lambda _, __: "opposite sign",
    "factor": lambda _, by: "multiplied by a constant" if by is None else f"value {by}",
    "rounded": _rounded_text,
    "case": lambda _, __: "upper and lower case differ",
    "cut": lambda side, _: f"cut short in the {side}",
    "null": lambda side, _: f"null in the {side}",
    "absent": lambda side, _: f"absent in the {side}",
    "constant": lambda side, by: f"always {'one value' if by is None else by} in the {side}",
}


def listed_text(names: Sequence[str]) -> str:
    """Some names as one text: `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# -- the likely cause --------------------------------------------------------------------------------------


def cause(group: Group, whole: Whole) -> str | None:
    """The likely cause of a group, or None if nothing speaks for one."""
    if group.kind == "others":
        return None
    return _shifted_time(group, whole) or _one_partition(group, whole) or _from_an_offset(group, whole)


def _spread(group: Group) -> int:
    """How many differences lie independently of each other, as far as keys tell."""
    return group.count if group.keys is None else group.keys


def _by_chance(share: float, count: int) -> bool:
    """Whether so many differences may lie in this share of all by chance; the first lies anywhere."""
    return count < 2 or share ** (count - 1) >= CHANCE


def _shifted_time(group: Group, whole: Whole) -> str | None:
    later = [one for one in group.patterns if one.pattern == "later" and one.count == group.count]
    span, length = _length(group), _length(whole)
    if not later or span is None or not length or _by_chance(span / length, group.count):
        return None
    assert group.first_at is not None, "a group with a span has a first time"
    assert group.last_at is not None, "a group with a span has a last time"
    when = _span(group.first_at, group.last_at)
    return f"`{later[0].field}` is {later[0].text} only {when}: {_why_shifted(later[0])}."


def _length(times: Group | Whole) -> timedelta | None:
    """How long a group, or all that was compared, lasted; None if it has no times."""
    if times.first_at is None or times.last_at is None:
        return None
    return max(timedelta(0), times.last_at - times.first_at)


def _why_shifted(pattern: Pattern) -> str:
    by = pattern.by
    zone = isinstance(by, (int, float)) and not by % 900 and abs(by) <= ZONE_SECONDS
    return "a time zone or daylight saving is the likely cause" if zone else "something held only then"


def _one_partition(group: Group, whole: Whole) -> str | None:
    partitions = whole.partitions.get(group.side or "reference", {})
    if len(group.partitions) != 1 or group.more_partitions or len(partitions) < 2:
        return None
    if _in_common(group, whole):  # Events with one value may all lie in one partition.
        return None
    read = {number: max(0, end - first) for number, (first, end) in partitions.items()}
    only = group.partitions[0].partition
    if _by_chance(read.get(only, 0) / (sum(read.values()) or 1), _spread(group)):
        return None
    return (
        f"All are in partition {only}, one of {len(partitions)}: look for what differs there only, "
        "such as one task or one machine."
    )


def _from_an_offset(group: Group, whole: Whole) -> str | None:
    """Says so if a partition was equal for long, and then no more up to its end."""
    if len(group.partitions) != 1 or group.more_partitions:
        return None
    share: PartitionShare = group.partitions[0]
    first, end = whole.partitions.get(group.side or "reference", {}).get(share.partition, (0, 0))
    before = share.first - first
    if before <= 0 or end <= share.first or _by_chance((end - share.first) / (end - first), share.count):
        return None
    if not _by_chance((share.last - share.first) / (end - share.first), share.count):
        return None
    return (
        f"None before offset {share.first:,} of partition {share.partition}, "
        f"though {before:,} offsets were compared: look for what changed there, such as a restart."
    )
