"""Tells whether places are spread as noise is: over the whole run, and over the keys of its events.

Noise occurs all the time and for every key. A fault of one hour, or of one customer, shows at many places
too, but these lie together: a rule made from them would hide that fault everywhere. So if places leave out a
good part of the run, or of the values of a key, beyond chance, they are *confined*, and no rule is made from
them.

A *key* here is any field whose values recur and are the same in both runs, plus those the caller names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
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


class Spread:
    """The events of a run, by number, with the values of their possible keys."""

    def __init__(self, keys: Mapping[str, Sequence[Hashable]]) -> None:
        """`keys` are the values of each key, event by event."""
        self._keys = keys

    def confined(
        self, places: Collection[int], within: Sequence[int], *, own: str | None = None, by_key: bool = True
    ) -> Confined | None:
        """The part of the possible events that some places are confined to; None if they are spread.

        `within` is in ascending order. The key `own` is the differing field itself, and no part of the run.
        `by_key`: whether noise must show for every key, and not only all the time.
        """
        found = set(places)
        if len(within) < 2 or not found:
            return None
        if (quiet := self._in_time(found, within)) is not None:
            return quiet
        for name, column in self._keys.items() if by_key else ():
            if name != own and (quiet := _at_values(name, column, found, within)) is not None:
                return quiet
        return None

    def _in_time(self, found: set[int], within: Sequence[int]) -> Confined | None:
        count = len(within)
        hit = [at for at, number in enumerate(within) if number in found]
        stretch = [at * STRETCHES // count for at in range(count)]
        missed, touched = _missed(stretch, hit)
        gap = max(later - one - 1 for one, later in pairwise([-1, *hit, count])) / count
        long = gap > QUIET and (gap == 1 or log(len(hit)) + len(hit) * log(1 - gap) < log(CHANCE))
        if not long and not _is_quiet(missed, STRETCHES, len(hit)):
            return None
        region = frozenset(within[at] for at in range(count) if stretch[at] in touched)
        said = f"{len(touched)} of {len(set(stretch))} stretches of the run"
        return Confined(f"it is confined to {said}, and noise would show all the time", region)


def _at_values(
    name: str, column: Sequence[Hashable], found: set[int], within: Sequence[int]
) -> Confined | None:
    values = [column[number] for number in within]
    hit = [at for at, number in enumerate(within) if number in found]
    missed, touched = _missed(values, hit)
    groups = len(set(values))
    if not _is_quiet(missed, groups, len(hit)):
        return None
    region = frozenset(number for number, value in zip(within, values, strict=True) if value in touched)
    said = f"{len(touched):,} of the {groups:,} values of `{name}`"
    return Confined(f"it is confined to {said}, and noise would show for others, too", region)


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
        if can_be_named(path) and 1 < count <= columns.count / RECUR and columns.is_key(path):
            yield path


def spread_of(columns: Members, varying: Collection[tuple[str, ...]] = ()) -> Spread:
    """The spread over some events, by their fields that may be keys."""
    paths = list(keys_of(columns, varying))[:MOST_KEYS]
    return Spread({field_text(path): columns[path] for path in paths})


def groups_of(rows: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    """The numbers of the events of each row, in their order."""
    found: defaultdict[Hashable, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        found[row].append(number)
    return found
