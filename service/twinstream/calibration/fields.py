"""Finds the fields that differ between paired events, and the kind of noise that each shows.

For each path, noise is: a member that is null on one side and absent on the other; an array with the same
elements in another order, or with some of them repeated; a number that differs by little; any other value
that always differs. Noise shows in many pairs, and these are spread over the run and over the keys of its
events (`spread`). Every other difference is left unexplained, with the pairs in which it shows, even if only
a few pairs differ in another way than the noise of their field.

A path passes through arrays, as in `equality`. Two arrays of equal length are compared place by place.
Alternatively, their elements are paired by their own stable fields, if fewer of them differ then.

`unlike` finds the kinds without the noise of the others: a rule made for those would hide their differences.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from twinstream.calibration.evidence import (
    ALWAYS,
    FEWEST_SEEN,
    OFTEN,
    SELDOM,
    Members,
    PairedPlaces,
    can_be_named,
    field_text,
    members,
    scalars,
)
from twinstream.calibration.numbers import Numbers, Wobble, is_last_digits, outliers, widest, wobble
from twinstream.calibration.spread import CHANCE, Keys, confined, examined
from twinstream.spec.codec.canonical import canonical_value
from twinstream.spec.codec.reduction import differences, number_of, without_nulls
from twinstream.spec.file.paths import ABSENT, Path, holds

ValuePairs = Sequence[tuple[Any, Any]]
How = Literal["ignore", "number", "unordered", "sets", "absent"]


class Noise(NamedTuple):
    """How a field differs, in `differed` of the `seen` pairs of events that have it.

    `in_bag`: it lies in the elements of an array without an order. `fractions`: some of its values have
    digits after the point. `kind`: the kind whose own equality it belongs to, None for the equality of all
    kinds.
    """

    path: Path
    how: How
    differed: int
    seen: int
    wobble: Wobble | None = None
    in_bag: bool = False
    fractions: bool = False
    kind: str | None = None

    @property
    def field(self) -> str:
        """The path as a comparison file has it."""
        return field_text(self.path)


class Left(NamedTuple):
    """A field that differs in a way that is not noise; why, and in which pairs.

    `hidden`: so many of them the proposed file, whose rules come from other pairs, would not report.
    """

    field: str
    differed: int
    seen: int
    why: str
    places: tuple[PairedPlaces, ...] = ()
    hidden: int = 0


class LeftOrder(Left):
    """The order that some events did not keep. It has a type of its own, as a field may be called `order`."""


class _Twins(NamedTuple):
    """The members at a path in the pair of events with this number."""

    pair: int
    one: Any
    other: Any


def noise_of(pairs: ValuePairs, places: Sequence[PairedPlaces]) -> tuple[list[Noise], list[Left]]:
    """The noise that the values of paired events show, and the differences that are not noise."""
    fields = _Fields(pairs, places)
    return fields.noise, fields.unexplained


class _Fields:
    """Collects the differences of all pairs, field by field."""

    def __init__(self, pairs: ValuePairs, places: Sequence[PairedPlaces]) -> None:
        self._pairs, self._places = pairs, places
        self._absent: defaultdict[Path, set[int]] = defaultdict(set)
        self._leaves: defaultdict[Path, list[_Twins]] = defaultdict(list)
        self._arrays: defaultdict[Path, list[_Twins]] = defaultdict(list)
        self._bags: set[Path] = set()
        self.noise: list[Noise] = []
        self.unexplained: list[Left] = []
        for number, (one, other) in enumerate(pairs):
            self._compare(number, one, other, ())
        differing = {*self._absent, *self._leaves}
        self._keys: Keys = {}
        if differing or self._arrays:
            self._keys = examined(Members([one for one, _ in pairs]), differing)
        while self._arrays:
            path = min(self._arrays, key=len)
            self._array(path, self._arrays.pop(path))
        for path, found in self._absent.items():
            self._nulls(path, found)
        for path, leaves in self._leaves.items():
            self._leaf(path, leaves)

    # -- conditions of noise -----------------------------------------------------------------------------

    def _add(self, path: Path, how: How, differing: set[int], seen: Sequence[int], share: float) -> bool:
        """Add the noise of a field if enough pairs show it, spread enough; else they are unexplained."""
        if not differing:
            return False
        why = self._no_noise(path, differing, seen, share, named=how != "absent")
        if why is None:
            self.noise.append(Noise(path, how, len(differing), len(seen)))
        else:
            self._leave(path, differing, seen, why)
        return why is None

    def _no_noise(
        self,
        path: Path,
        differing: set[int],
        seen: Sequence[int],
        share: float,
        *,
        by_key: bool = True,
        named: bool = True,
    ) -> str | None:
        """Why a difference is not noise: it shows rarely, or not all the time, or not for every key.

        What would be noise is none if its rule has to be `named` and cannot be.
        """
        if len(differing) < FEWEST_SEEN:
            return f"fewer than {FEWEST_SEEN} are too few to tell noise from a difference"
        if len(differing) < share * len(seen):
            return (
                "noise of a pipeline would show nearly always" if share == ALWAYS else "noise is seen oftener"
            )
        part = confined(self._keys, differing, seen, own=field_text(path), by_key=by_key)
        if part is None and named and not can_be_named(path):
            return "a comparison file cannot name it"
        return None if part is None else part.why

    def _leave(self, path: Path, pairs: Collection[int], seen: Sequence[int], why: str) -> None:
        """Leave the difference in some pairs unexplained."""
        if pairs:
            places = tuple(self._places[number] for number in sorted(pairs))
            self.unexplained.append(Left(field_text(path), len(pairs), len(seen), why, places))

    def _seen(self, path: Path) -> list[int]:
        """The pairs in which either event has a value there."""
        return _having(self._pairs, path, lambda value: value is not None)

    # -- where two values differ -------------------------------------------------------------------------

    def _compare(self, pair: int, one: Any, other: Any, path: Path) -> None:
        if type(one) is dict and type(other) is dict:
            for name in dict.fromkeys((*one, *other)):
                member, twin = one.get(name, ABSENT), other.get(name, ABSENT)
                if type(member) is not type(twin) or type(member) in {dict, list} or member != twin:
                    self._compare(pair, member, twin, (*path, name))
        elif (one is ABSENT and other is None) or (one is None and other is ABSENT):
            self._absent[path].add(pair)
        elif one is ABSENT or other is ABSENT or canonical_value(one) != canonical_value(other):
            both = type(one) is list and type(other) is list
            (self._arrays if both else self._leaves)[path].append(_Twins(pair, one, other))

    def _nulls(self, path: Path, found: set[int]) -> None:
        """Nulls that are absent on one side: noise if most nulls of the field are."""
        nulls = _having(self._pairs, path, lambda value: value is None)
        self._add(path, "absent", found, sorted(found.union(nulls)), ALWAYS)

    # -- arrays ------------------------------------------------------------------------------------------

    def _array(self, path: Path, found: list[_Twins]) -> None:
        """Find the kind of noise that the differing arrays at a path show; their elements may follow."""
        if self._same_elements(path, found):
            return
        alike = [twins for twins in found if len(twins.one) == len(twins.other)]
        if len(alike) < (1 - SELDOM) * len(found):
            self._leaves[path] += found
            return
        lengths = {twins.pair for twins in found if len(twins.one) != len(twins.other)}
        self._leave(path, lengths, self._seen(path), "others have arrays of one length")
        elements = [_Twins(n, *twins) for n, one, other in alike for twins in zip(one, other, strict=True)]
        aligned = [_Twins(n, *twins) for n, one, other in alike for twins in _aligned(one, other)]
        if _differing(aligned) < _differing(elements):
            self._bags.add(path)
            if self._add(path, "unordered", {twins.pair for twins in alike}, self._seen(path), OFTEN):
                elements = aligned
        for pair, one, other in elements:
            self._compare(pair, one, other, path)

    def _same_elements(self, path: Path, found: list[_Twins]) -> bool:
        """Whether nearly all of the arrays have the same elements, in another order or repeated."""
        forms = [(pair, _forms(one), _forms(other)) for pair, one, other in found]
        enough, seen = (1 - SELDOM) * len(found), self._seen(path)
        bags = {pair for pair, one, other in forms if sorted(one) == sorted(other)}
        sets = {pair for pair, one, other in forms if set(one) == set(other)}
        if len(sets) < enough:
            return False
        nulls = {pair for pair, one, other in forms if one == other}
        self._absent[path] |= nulls
        how: How = "unordered" if len(bags) >= enough else "sets"
        same = bags if how == "unordered" else sets
        self._add(path, how, same - nulls, seen, OFTEN)
        self._leave(path, {twins.pair for twins in found} - same, seen, "others have the same elements")
        return True

    # -- leaves ------------------------------------------------------------------------------------------

    def _leaf(self, path: Path, found: list[_Twins]) -> None:
        """Find the noise of a plain value: a number that wobbles, or a value that always differs."""
        differing = {twins.pair for twins in found}
        seen = sorted(differing.union(self._seen(path)))
        if self._number(path, found, seen):
            return
        if self._add(path, "ignore", differing, seen, ALWAYS):
            fractions = any(a.denominator > 1 or b.denominator > 1 for _, (a, b) in _numbers(found))
            self.noise[-1] = self.noise[-1]._replace(fractions=fractions)

    def _number(self, path: Path, found: list[_Twins], seen: Sequence[int]) -> bool:
        """Whether the values at a path are numbers that wobble; other differences are left unexplained."""
        numbers = list(_numbers(found))
        apart = outliers([ab for _, ab in numbers])
        near = [one for place, one in enumerate(numbers) if place not in apart]
        if len(near) < (1 - SELDOM) * len(found):
            return False
        others = {numbers[place][0] for place in apart}
        others |= {pair for pair, *both in found if None in map(number_of, both)}
        near, apart_in_time = self._all_the_time(near, seen)
        others |= apart_in_time
        small = wobble([ab for _, ab in near], self._values(path)) if near else None
        if small is None:
            return False
        alike, rest = {pair for pair, _ in near} - others, [pair for pair in seen if pair not in others]
        share = 0 if small.seldom else OFTEN
        why = self._no_noise(path, alike, rest, share, by_key=not small.last_digits)
        if why is not None:
            self._leave(path, {twins.pair for twins in found}, seen, why)
            return True
        in_bag = any(holds(bag, path) for bag in self._bags)
        self.noise.append(Noise(path, "number", len(alike), len(seen), small, in_bag))
        self._leave(path, others, seen, "others differ by far less")
        return True

    def _all_the_time(
        self, every: list[tuple[int, Numbers]], seen: Sequence[int]
    ) -> tuple[list[tuple[int, Numbers]], set[int]]:
        """Drop the widest pairs if they show only at some times or for some keys."""
        near, apart = every, set[int]()
        while near:
            wide = widest([ab for _, ab in near])
            left = [n for n in seen if n not in apart]
            part = confined(self._keys, {near[place][0] for place in wide}, left)
            wide = {place for place in wide if not is_last_digits(near[place][1])}
            if part is None or not wide:
                break
            apart |= {near[place][0] for place in wide}
            near = [one for one in near if one[0] not in apart]
        return (near, apart) if near else (every, set())

    def _values(self, path: Path) -> Iterator[Fraction]:
        """All numbers at a path, of the reference."""
        numbers = (number_of(value) for one, _ in self._pairs for value in members(one, path))
        return (number for number in numbers if number is not None)


def _having(pairs: ValuePairs, path: Path, fits: Callable[[Any], bool]) -> list[int]:
    """The numbers of the pairs in which a fitting member of either event is at a path."""
    return [
        number
        for number, pair in enumerate(pairs)
        if any(fits(value) for one in pair for value in members(one, path))
    ]


def _numbers(found: Iterable[_Twins]) -> Iterator[tuple[int, Numbers]]:
    """The pairs of numbers, each with the number of its pair of events."""
    for pair, one, other in found:
        a, b = number_of(one), number_of(other)
        if a is not None and b is not None:
            yield pair, (a, b)


def _forms(array: list[Any]) -> list[bytes]:
    return [canonical_value(without_nulls(item)) for item in array]


def _differing(twins: Iterable[_Twins]) -> int:
    """The number of plain members that differ in pairs of elements."""
    return sum(
        len(dict(scalars(one)).items() ^ dict(scalars(other)).items())
        for _, one, other in twins
        if canonical_value(one) != canonical_value(other)
    )


def _aligned(one: list[Any], other: list[Any]) -> Iterator[tuple[Any, Any]]:
    """The elements of two arrays of one length, paired by the fields whose values are the same in both."""
    left, right = Members(one), Members(other)
    paths = sorted({*left.paths, *right.paths})
    stable = [path for path in paths if Counter(left[path]) == Counter(right[path])]
    turns = []
    for found in (left, right):
        keys = [list(map(repr, row)) for row in found.rows(stable)]
        turns.append(sorted(range(found.count), key=keys.__getitem__))
    return ((one[i], other[j]) for i, j in zip(*turns, strict=True))


class _Sort(NamedTuple):
    """A sort of difference that a kind may have: of the value at a path, or of a null that is missing."""

    path: Path
    of_null: bool

    def may_show(self, value: Any) -> bool:
        """Whether the difference could show at such a value."""
        return value is None or not self.of_null


def unlike(kinds: Mapping[str, ValuePairs]) -> dict[str, Path]:
    """The kinds in which a field hardly differs that differs in others, with that field."""
    differing = {kind: _sorts(pairs) for kind, pairs in kinds.items()}
    differed = sum(differing.values(), Counter[_Sort]())
    sorts = [sort for sort in differed if can_be_named(sort.path)]
    there = {
        kind: Counter({sort: len(_having(pairs, sort.path, sort.may_show)) for sort in sorts})
        for kind, pairs in kinds.items()
    }
    seen = sum(there.values(), Counter[_Sort]())
    found: dict[str, Path] = {}
    for sort in sorts:
        for kind in kinds:
            own, own_seen = differing[kind][sort], there[kind][sort]
            if kind not in found and _is_unlike(own, own_seen, differed[sort] - own, seen[sort] - own_seen):
                found[kind] = sort.path
    return found


def _is_unlike(differed: int, seen: int, others_differed: int, others_seen: int) -> bool:
    """Whether a field differs much more rarely in a kind than in others, beyond chance."""
    if others_differed < FEWEST_SEEN or not seen:
        return False
    share = min(1.0, others_differed / others_seen)
    return differed / seen < share / 2 and (1 - share) ** (seen - differed) < CHANCE


def _is_nothing(member: Any) -> bool:
    return member is None or member is ABSENT


def _sorts(pairs: ValuePairs) -> Counter[_Sort]:
    found: Counter[_Sort] = Counter()
    for one, other in pairs:
        if one != other:
            values = differences(without_nulls(one), without_nulls(other))
            found.update({_Sort(path, of_null=False) for path, _ in values})
            nulls = {path for path, both in differences(one, other) if all(map(_is_nothing, both))}
            found.update(_Sort(path, of_null=True) for path in nulls)
    return found
