"""Which event of the one run belongs to which of the other, before it is known what may differ.

Source of the idea: what is noise differs between two runs, so its values are others on the two sides; what
names an event is there on both. So:

1. A field whose values are the same multiset in both runs is *stable*.
2. A combination of stable fields that no two events of a run share *names* the events. Several may: the one
   under which the fewest other fields differ is right, since a wrong pairing (by a counter of the output,
   say) makes nearly all of them differ. If two are as good and pair differently, nothing tells which is
   right.
3. Without such a combination, events with equal stable fields are a group. If both runs show the groups in
   one sequence, places tell partners. Else equal events of a group are partners, and one that is left on
   either side is the partner of the other. Beyond that a pairing is a guess, and `certain` is false.

Where events are lost or doubled no multiset is the same. Then nearly the same is enough, and what has no
partner is left over.

Events of different kinds are never partners.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

from twinstream.spec.calibration.evidence import Columns, Event, Pair, Undecided, can_be_named, field_text
from twinstream.spec.canonical import canonical_value
from twinstream.spec.differences import differences
from twinstream.spec.paths import Path
from twinstream.spec.reduction import without_nulls

NEARLY = 0.9
"""The share of a column that both runs must have in common where events are lost or doubled."""
BELOW_ALL = 0.999
SAMPLE = 500
"""Pairs on which a combination of fields is tried."""
FIRST_LOOK = 2_000
"""Events on which it is seen quickly that a combination names none."""
PAIRS_OF, TRIPLES_OF = 12, 8
"""Of so many fields combinations of two and of three are tried."""
INFORMATIVE = 20
"""So many changes from one group to the next, the same in both runs, are no chance."""


class Pairing(NamedTuple):
    """Pairs of events, and the events that are left. `named_by`: the fields that name an event."""

    pairs: list[Pair]
    left: list[int]
    right: list[int]
    named_by: tuple[str, ...] = ()
    certain: bool = True


def by_name(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairing:
    """The pairs of equal names, the first with the first; names are given event by event."""
    waiting: defaultdict[Hashable, list[int]] = defaultdict(list)
    for j, name in enumerate(right):
        waiting[name].append(j)
    for queue in waiting.values():
        queue.reverse()
    pairs, rest = [], []
    for i, name in enumerate(left):
        candidates = waiting.get(name)
        if candidates:
            pairs.append((i, candidates.pop()))
        else:
            rest.append(i)
    return Pairing(pairs, rest, sorted(j for queue in waiting.values() for j in queue))


def inferred(left: Sequence[Event], right: Sequence[Event]) -> Pairing:
    """The pairs, told from the fields. Raises Undecided where two ways are as good."""
    kinds = dict.fromkeys(event.kind for event in (*left, *right))
    found = [_of_kind(kind, left, right) for kind in kinds]
    return Pairing(
        sorted(pair for pairing in found for pair in pairing.pairs),
        sorted(i for pairing in found for i in pairing.left),
        sorted(j for pairing in found for j in pairing.right),
        found[0].named_by if len(found) == 1 else (),
        all(pairing.certain for pairing in found),
    )


def _of_kind(kind: str, left: Sequence[Event], right: Sequence[Event]) -> Pairing:
    mine = [i for i, event in enumerate(left) if event.kind == kind]
    theirs = [j for j, event in enumerate(right) if event.kind == kind]
    found = _Kind([left[i].value for i in mine], [right[j].value for j in theirs]).pairing()
    return found._replace(
        pairs=[(mine[i], theirs[j]) for i, j in found.pairs],
        left=[mine[i] for i in found.left],
        right=[theirs[j] for j in found.right],
    )


class _Kind:
    """The events of one kind."""

    def __init__(self, left: list[Any], right: list[Any]) -> None:
        self._values = (left, right)
        self._left, self._right = Columns(left), Columns(right)
        self._shorter = min(len(left), len(right))
        paths = dict.fromkeys([*self._left.paths, *self._right.paths])
        self._shared = {path: self._share([path]) for path in paths}

    def _share(self, paths: Sequence[Path]) -> float:
        """How much of the rows at some paths both runs have in common: 1 for equal multisets.

        Where one run is longer, that much of the shorter one, and less than 1.
        """
        one, other = Counter(self._left.rows(paths)), Counter(self._right.rows(paths))
        share = (one & other).total() / max(1, self._shorter)
        return share if self._left.count == self._right.count else min(share, BELOW_ALL)

    def pairing(self) -> Pairing:
        if not (self._left.count and self._right.count):
            return Pairing([], list(range(self._left.count)), list(range(self._right.count)))
        for share in (1.0, NEARLY):
            stable = [path for path, shared in self._shared.items() if shared >= share]
            if names := [paths for paths in self._names(stable, share) if self._share(paths) >= share]:
                return self._best(names)
        stable = [path for path, shared in self._shared.items() if shared == 1]
        return self._grouped(stable or [path for path, shared in self._shared.items() if shared >= NEARLY])

    # -- fields that name --------------------------------------------------------------------------------

    def _names(self, stable: list[Path], share: float) -> list[tuple[Path, ...]]:
        """The smallest combinations of fields that no two events share, or hardly any."""
        named = filter(can_be_named, stable)
        ranked = sorted(named, key=lambda path: -len(set(self._left[path])))
        tried: tuple[Iterator[tuple[Path, ...]], ...] = (
            combinations(ranked, 1),
            combinations(ranked[:PAIRS_OF], 2),
            combinations(ranked[:TRIPLES_OF], 3),
        )
        for candidates in tried:
            if found := [paths for paths in candidates if self._tells_apart(paths, share)]:
                return found
        return [tuple(stable)] if len(stable) > 3 and self._tells_apart(tuple(stable), share) else []

    def _tells_apart(self, paths: tuple[Path, ...], share: float) -> bool:
        for columns in (self._left, self._right):
            for end in (FIRST_LOOK, columns.count):
                rows = [columns[path][:end] for path in paths]
                if len(set(zip(*rows, strict=True))) < share * min(end, self._shorter):
                    return False
        return True

    def _best(self, names: list[tuple[Path, ...]]) -> Pairing:
        """The pairing by the combination under which the fewest other fields differ."""
        ranked = []
        for rank, paths in enumerate(names[:PAIRS_OF]):
            pairing = by_name(self._left.rows(paths), self._right.rows(paths))
            ranked.append((self._differing(pairing.pairs), rank, paths, pairing))
        score, _, paths, best = min(ranked, key=lambda one: one[:2])
        for other_score, _, other_paths, other in ranked:
            if other_score == score and other.pairs != best.pairs:
                raise Undecided(
                    f"both {_text(paths)} and {_text(other_paths)} could name an event, and they pair the "
                    "two runs in different ways; say which does by --identity"
                )
        return best._replace(named_by=tuple(map(field_text, paths)))

    def _differing(self, pairs: list[Pair]) -> int:
        """How many fields differ, in a sample of pairs."""
        left, right = self._values
        step = max(1, len(pairs) // SAMPLE)
        return sum(
            len(list(differences(without_nulls(left[i]), without_nulls(right[j])))) for i, j in pairs[::step]
        )

    # -- groups ------------------------------------------------------------------------------------------

    def _grouped(self, stable: list[Path]) -> Pairing:
        if not stable:
            return by_name([("left", i) for i in range(self._left.count)], range(self._right.count))
        left, right = self._left.rows(stable), self._right.rows(stable)
        changes = sum(one != next_one for one, next_one in pairwise(left))
        if left == right and changes >= INFORMATIVE:
            return by_name(left, right)
        contents = [[canonical_value(value) for value in values] for values in self._values]
        equal = by_name(list(zip(left, contents[0], strict=True)), list(zip(right, contents[1], strict=True)))
        rest = by_name([left[i] for i in equal.left], [right[j] for j in equal.right])
        sizes = Counter(left[i] for i in equal.left)
        return Pairing(
            sorted([*equal.pairs, *((equal.left[i], equal.right[j]) for i, j in rest.pairs)]),
            [equal.left[i] for i in rest.left],
            [equal.right[j] for j in rest.right],
            certain=max(sizes.values(), default=1) == 1,
        )


def _text(paths: Sequence[Path]) -> str:
    return " + ".join(f"`{field_text(path)}`" for path in paths)
