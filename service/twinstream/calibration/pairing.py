"""Pairs the events of two runs before it is known which fields may differ.

Source of the idea: noise differs between two runs, so noisy values differ on the two sides; the fields that
name an event are the same on both. So:

1. A field whose values are the same multiset in both runs is *stable*.
2. A combination of stable fields that no two events of a run share *names* the events. There may be several;
   the one under which the fewest other fields differ is right, since a wrong pairing (by a counter of the
   output, say) makes nearly all of them differ. If two are equally good and pair differently, the right one
   cannot be told.
3. Without such a combination, events with equal stable fields form a group. If both runs show the groups in
   one sequence, places show partners. Otherwise equal events of a group are partners, and if one is left on
   each side, they are partners too. Any further pairing is a guess, and `certain` is false.

If events are lost or doubled, no multiset is the same. Then nearly the same is enough, and events without a
partner are left over. Of several equal events, such as the markers of days, the one that is left over is told
by the places among all others: if the first of them is lost, the order of the others is not to seem broken.

Events of different kinds are never partners.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain, combinations, pairwise, starmap
from typing import Any, NamedTuple

from twinstream.calibration.evidence import (
    Members,
    PairedPlaces,
    RunEvent,
    Undecided,
    can_be_named,
    field_text,
)
from twinstream.core.pairing.alignment import ascending, copies
from twinstream.spec.codec.canonical import canonical_value
from twinstream.spec.codec.reduction import differences, without_nulls
from twinstream.spec.file.paths import Path, overlap, parse_path

NEARLY = 0.9
"""The share of a column that both runs must have in common if events are lost or doubled."""
BELOW_ALL = 0.999
SAMPLE = 500
"""The pairs on which a combination of fields is tried."""
FIRST_LOOK = 2_000
"""The events that quickly show whether a combination names nothing."""
PAIRS_OF, TRIPLES_OF = 12, 8
"""From so many fields, combinations of two and of three are tried."""
INFORMATIVE = 20
"""So many changes from one group to the next, the same in both runs, cannot be chance."""


class RunPairing(NamedTuple):
    """Pairs of events; all others have no partner. `named_by`: the fields that name an event."""

    pairs: list[PairedPlaces]
    named_by: tuple[str, ...] = ()
    certain: bool = True


def named(
    left: Sequence[RunEvent], right: Sequence[RunEvent], names: Sequence[Sequence[Hashable]]
) -> RunPairing:
    """The pairs by given names, event by event of both runs.

    If events of a run share a name, those that are alike in all stable fields are partners.
    """
    if all(len(set(some)) == len(some) for some in names):
        return RunPairing(copies(*names))
    pairing = _by_names(left, right, names)
    return pairing._replace(pairs=_by_place(pairing.pairs, left, right))


def _by_names(
    left: Sequence[RunEvent], right: Sequence[RunEvent], names: Sequence[Sequence[Hashable]]
) -> RunPairing:
    columns = [Members([event.value for event in run]) for run in (left, right)]
    runs = list(zip(names, columns, strict=True))
    stable = [
        path
        for path in dict.fromkeys([*columns[0].paths, *columns[1].paths])
        if _common(*(zip(some, column[path], strict=True) for some, column in runs)) >= NEARLY
    ]
    rows = [[*zip(some, column.rows(stable), strict=True)] for some, column in runs]
    certain = rows[0] == rows[1] or all(len(set(some)) == len(some) for some in rows)
    return RunPairing(_completed(copies(*rows), *names), certain=certain)


def _completed(
    pairs: list[PairedPlaces], left: Sequence[Hashable], right: Sequence[Hashable]
) -> list[PairedPlaces]:
    """The pairs, and those of equal names among the events that have no partner."""
    ones, others = (
        [place for place in range(len(run)) if place not in taken]
        for run, taken in ((left, {i for i, _ in pairs}), (right, {j for _, j in pairs}))
    )
    more = copies([left[i] for i in ones], [right[j] for j in others])
    return sorted([*pairs, *((ones[i], others[j]) for i, j in more)])


def _by_place(
    pairs: list[PairedPlaces], left: Sequence[RunEvent], right: Sequence[RunEvent]
) -> list[PairedPlaces]:
    """The pairs, with those of equal events left over that are farthest from the others of their run.

    A place is a number of events that are paired otherwise and kept their order.
    """
    equal: defaultdict[tuple[str, bytes], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, run in enumerate((left, right)):
        for place in set(range(len(run))) - {pair[side] for pair in pairs}:
            equal[_content(run[place])][side].append(place)
    kinds, others = {kind for kind, _ in equal}, []
    for i, j in pairs:
        content = _content(left[i]) if left[i].kind in kinds else None
        if content in equal and content == _content(right[j]):
            equal[content][0].append(i)
            equal[content][1].append(j)
        else:
            others.append((i, j))
    kept = ascending(others)
    places = [i for i, _ in kept], [j for _, j in kept]
    again = (_nearest(sorted(ones), sorted(twos), *places) for ones, twos in equal.values())
    return sorted([*others, *chain.from_iterable(again)])


def _content(event: RunEvent) -> tuple[str, bytes]:
    return event.kind, canonical_value(event.value)


def _nearest(
    ones: list[int], twos: list[int], around: list[int], across: list[int]
) -> Iterator[PairedPlaces]:
    """Pair places of both runs in their order, near ones if possible; the events around them are paired."""
    if len(ones) < len(twos):
        yield from ((i, j) for j, i in _nearest(twos, ones, across, around))
        return
    near = [bisect_left(around, place) for place in ones]
    spare, at = len(ones) - len(twos), 0
    for place in twos:
        here = bisect_left(across, place)
        while spare and abs(near[at + 1] - here) < abs(near[at] - here):
            spare, at = spare - 1, at + 1
        yield ones[at], place
        at += 1


def _common(one: Iterable[Hashable], other: Iterable[Hashable]) -> float:
    """How much of the shorter of two runs both have in common: 1 if it is all of it."""
    left, right = Counter(one), Counter(other)
    return (left & right).total() / max(1, min(left.total(), right.total()))


def inferred(
    left: Sequence[RunEvent], right: Sequence[RunEvent], usable: Callable[[Path], bool]
) -> RunPairing:
    """The pairs, inferred from the fields; `usable` says which fields may name an event.

    Raises Undecided if two ways are equally good.
    """
    kinds = dict.fromkeys(event.kind for event in (*left, *right))
    found = [_of_kind(kind, left, right, usable) for kind in kinds]
    pairs = _by_place(sorted(pair for pairing in found for pair in pairing.pairs), left, right)
    return RunPairing(
        pairs,
        _together([pairing.named_by for pairing in found], [(left[i], right[j]) for i, j in pairs]),
        all(pairing.certain for pairing in found),
    )


def _together(
    names: Sequence[tuple[str, ...]], pairs: Sequence[tuple[RunEvent, RunEvent]]
) -> tuple[str, ...]:
    """The fields that name the events of all kinds; none if a kind has none, or kinds differ in them."""
    every = tuple(dict.fromkeys(field for fields in names for field in fields))
    paths = [parse_path(field) for field in every]
    if len(names) > 1:
        one, other = (Members([pair[side].value for pair in pairs]) for side in (0, 1))
        if not all(names) or not _are_apart(paths) or one.rows(paths) != other.rows(paths):
            return ()
    return every


def _are_apart(paths: Iterable[Path]) -> bool:
    """Whether none of some fields holds another one."""
    return not any(starmap(overlap, combinations(paths, 2)))


def _of_kind(
    kind: str, left: Sequence[RunEvent], right: Sequence[RunEvent], usable: Callable[[Path], bool]
) -> RunPairing:
    mine = [i for i, event in enumerate(left) if event.kind == kind]
    theirs = [j for j, event in enumerate(right) if event.kind == kind]
    found = _Kind([left[i].value for i in mine], [right[j].value for j in theirs], usable).pairing()
    return found._replace(pairs=[(mine[i], theirs[j]) for i, j in found.pairs])


class _Kind:
    """The events of one kind."""

    def __init__(self, left: list[Any], right: list[Any], usable: Callable[[Path], bool]) -> None:
        self._values, self._usable = (left, right), usable
        self._left, self._right = Members(left), Members(right)
        self._shorter = min(len(left), len(right))
        paths = dict.fromkeys([*self._left.paths, *self._right.paths])
        self._shared = {path: self._share([path]) for path in paths}

    def _share(self, paths: Sequence[Path]) -> float:
        """How much of the rows at some paths both runs have in common: 1 for equal multisets.

        If one run is longer, the share of the shorter one, and less than 1.
        """
        share = _common(self._left.rows(paths), self._right.rows(paths))
        return share if self._left.count == self._right.count else min(share, BELOW_ALL)

    def pairing(self) -> RunPairing:
        if not (self._left.count and self._right.count):
            return RunPairing([])
        for share in (1.0, NEARLY):
            stable = [path for path, shared in self._shared.items() if shared >= share]
            if names := [paths for paths in self._names(stable, share) if self._share(paths) >= share]:
                return self._best(names)
        stable = [path for path, shared in self._shared.items() if shared == 1]
        return self._grouped(stable or [path for path, shared in self._shared.items() if shared >= NEARLY])

    # -- fields that name --------------------------------------------------------------------------------

    def _names(self, stable: list[Path], share: float) -> list[tuple[Path, ...]]:
        """The smallest combinations of fields that no two events share, or hardly any.

        Numbers with a fraction are measurements; they name events only if nothing else does.
        """
        nameable = [path for path in stable if can_be_named(path) and self._usable(path)]
        ranked = sorted(nameable, key=lambda path: -len(set(self._left[path])))
        keys = [path for path in ranked if self._left.is_key(path)]
        return self._smallest(keys, share) or self._smallest(ranked, share)

    def _smallest(self, ranked: list[Path], share: float) -> list[tuple[Path, ...]]:
        tried: tuple[Iterator[tuple[Path, ...]], ...] = (
            combinations(ranked, 1),
            combinations(ranked[:PAIRS_OF], 2),
            combinations(ranked[:TRIPLES_OF], 3),
        )
        for candidates in tried:
            if found := [
                paths for paths in filter(_are_apart, candidates) if self._tells_apart(paths, share)
            ]:
                return found
        every = tuple(ranked)
        return [every] if len(every) > 3 and _are_apart(every) and self._tells_apart(every, share) else []

    def _tells_apart(self, paths: tuple[Path, ...], share: float) -> bool:
        for columns in (self._left, self._right):
            for end in (FIRST_LOOK, columns.count):
                rows = [columns[path][:end] for path in paths]
                if len(set(zip(*rows, strict=True))) < share * min(end, self._shorter):
                    return False
        return True

    def _best(self, names: list[tuple[Path, ...]]) -> RunPairing:
        """The pairing by the combination under which the fewest other fields differ."""
        ranked = []
        for paths in names[:PAIRS_OF]:
            pairs = copies(self._left.rows(paths), self._right.rows(paths))
            ranked.append((self._differing(pairs), self._measures(paths), paths, pairs))
        score, _, paths, best = min(ranked, key=lambda one: one[:2])
        for other_score, _, other_paths, other in ranked:
            if other_score == score and other != best:
                raise Undecided(
                    f"both {_text(paths)} and {_text(other_paths)} could name an event, and they pair the "
                    "two runs in different ways; say which does by --identity"
                )
        return RunPairing(best, tuple(map(field_text, paths)))

    def _measures(self, paths: tuple[Path, ...]) -> tuple[int, int, int]:
        """How little some fields look like a name: fractions, numbers, and the number of their values."""
        columns = [self._left[path] for path in paths]
        return (
            sum(not self._left.is_key(path) for path in paths),
            sum(type(column[0]) is not str for column in columns),
            sum(len(set(column)) for column in columns),
        )

    def _differing(self, pairs: list[PairedPlaces]) -> int:
        """How many fields differ, in a sample of pairs."""
        left, right = self._values
        step = max(1, len(pairs) // SAMPLE)
        return sum(
            len(list(differences(without_nulls(left[i]), without_nulls(right[j])))) for i, j in pairs[::step]
        )

    # -- groups ------------------------------------------------------------------------------------------

    def _grouped(self, stable: list[Path]) -> RunPairing:
        if not stable:
            return RunPairing([])
        left, right = self._left.rows(stable), self._right.rows(stable)
        changes = sum(one != next_one for one, next_one in pairwise(left))
        if left == right and changes >= INFORMATIVE:
            return RunPairing(copies(left, right))
        contents = [[canonical_value(value) for value in values] for values in self._values]
        equal = copies(list(zip(left, contents[0], strict=True)), list(zip(right, contents[1], strict=True)))
        partners = dict(equal)
        sizes = Counter(row for i, row in enumerate(left) if i not in partners)
        return RunPairing(_completed(equal, left, right), certain=max(sizes.values(), default=1) == 1)


def _text(paths: Sequence[Path]) -> str:
    return " + ".join(f"`{field_text(path)}`" for path in paths)
