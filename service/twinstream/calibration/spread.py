"""Tells whether places are spread as noise is: over the whole run, and over the keys of its events.

Noise occurs all the time and for every key. A fault of one hour, or of one customer, shows at many places
too, but these lie together: a rule made from them would hide that fault everywhere. So if places leave out a
good part of the run, or of the values of a key, beyond chance, they are *confined*, and no rule is made from
them.

A *key* here is any field whose values recur and are the same in both runs, plus those the caller names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from math import log
from typing import NamedTuple

from twinstream.calibration.evidence import Members, can_be_named, field_text

QUIET = 0.25
"""Noise may miss this part of a run, or of the values of a key, in addition to what chance misses."""
MOST_QUIET = 0.5
"""Noise misses at most this part of the places where it should show, however few there are."""
CHANCE = 0.01
"""A pattern that chance alone gives more often than this is still taken for noise."""
STRETCHES = 20
"""A run is cut into so many pieces to see at how many times something shows."""
RECUR = 3
"""The fewest events per value, on average, for a field to be a key."""
MOST_KEYS = 40
"""At most so many fields are examined, those with the fewest values."""


class Confined(NamedTuple):
    """Why places are not spread, and the events in the part that they are confined to."""

    why: str
    region: frozenset[int]


Keys = Mapping[str, Sequence[Hashable]]
"""The possible keys of a run, each with its values, event by event."""


def confined(
    keys: Keys, places: Collection[int], within: Sequence[int], *, own: str | None = None, by_key: bool = True
) -> Confined | None:
    """The part of the possible events that some places are confined to; None if they are spread.

    `within` is in ascending order. The key `own` is the differing field itself, and no part of the run.
    `by_key`: whether noise must show for every key, and not only all the time.
    """
    found, count = set(places), len(within)
    hit = [at for at, number in enumerate(within) if number in found]
    if count < 2 or not hit:
        return None
    stretch = [at * STRETCHES // count for at in range(count)]
    missed, touched = _missed(stretch, hit)
    if _is_long(hit, count) or _is_quiet(missed, STRETCHES, len(hit)):
        said = f"{len(touched)} of {len(set(stretch))} stretches of the run"
        return _confined(said, "all the time", touched, within, stretch)
    for name, column in keys.items() if by_key else ():
        values = [column[number] for number in within]
        groups, (missed, touched) = len(set(values)), _missed(values, hit)
        if name != own and _is_quiet(missed, groups, len(hit)):
            said = f"{len(touched):,} of the {groups:,} values of `{name}`"
            return _confined(said, "for others, too", touched, within, values)
    return None


def _confined(
    said: str, where: str, touched: set[Hashable], within: Sequence[int], groups: Sequence[Hashable]
) -> Confined:
    region = (number for number, group in zip(within, groups, strict=True) if group in touched)
    return Confined(f"it is confined to {said}, and noise would show {where}", frozenset(region))


def _is_long(hit: Sequence[int], count: int) -> bool:
    """Whether the longest stretch without a place is longer than by chance."""
    gap = max(later - one - 1 for one, later in pairwise([-1, *hit, count])) / count
    return gap > QUIET and log(len(hit)) + len(hit) * log(1 - gap) < log(CHANCE)


def _is_quiet(missed: float, groups: int, count: int) -> bool:
    """Whether so many places would, by chance, not miss such a part of some groups, whichever these are."""
    by_chance = groups * log(2) + count * log(max(1 - missed, 1e-9))
    return missed > MOST_QUIET or (missed >= QUIET and by_chance < log(CHANCE))


def _missed(groups: Sequence[Hashable], hit: Sequence[int]) -> tuple[float, set[Hashable]]:
    """The share, in events, of groups that places anywhere would touch and these miss; the groups touched."""
    share = len(hit) / len(groups)
    touched = {groups[at] for at in hit}
    expected = shown = 0.0
    for group, size in Counter(groups).items():
        expected += size * (1 - (1 - share) ** size)
        shown += size if group in touched else 0
    return 1 - shown / expected, touched


def keys_of(columns: Members, varying: Collection[tuple[str, ...]] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of fields that may be keys, those with the fewest values first; none of the `varying`."""
    counts = {path: len(set(columns[path])) for path in columns.paths if path not in varying}
    for path, count in sorted(counts.items(), key=lambda one: one[1]):
        if can_be_named(path) and 1 < count <= columns.count / RECUR and columns.is_order_key(path):
            yield path


def examined(columns: Members, varying: Collection[tuple[str, ...]] = ()) -> Keys:
    """The keys of some events that are examined, with their values."""
    return {field_text(path): columns[path] for path in islice(keys_of(columns, varying), MOST_KEYS)}
