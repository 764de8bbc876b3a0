"""Which fields differ between paired events, and what kind of noise each shows.

For each path: a member that is null on one side and absent on the other; an array with the same elements in
another order, or with others of them twice; a number that differs by little; anything else that always
differs. What fits none of these differs too seldom to be noise, and is left unexplained.

A path passes through arrays, as in `equality`. Two arrays of one length are compared place by place, or, if
fewer of their elements differ then, element by element as the elements' own stable fields pair them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from twinstream.spec.calibration.evidence import (
    ALWAYS,
    FEWEST_SEEN,
    SELDOM,
    can_be_named,
    field_text,
    has,
    members,
    scalars,
)
from twinstream.spec.calibration.numbers import Wobble, wobble
from twinstream.spec.canonical import canonical_value
from twinstream.spec.paths import ABSENT, Path
from twinstream.spec.reduction import number_of, without_nulls


class Noise(NamedTuple):
    """How a field differs: in `differed` of the `seen` pairs of events that have it.

    `in_bag`: it lies in the elements of an array without an order. `fractions`: numbers with digits behind
    the point are among its values. `kind`: the kind whose own equality it belongs to, None for that of all.
    """

    path: Path
    how: Literal["ignore", "number", "unordered", "sets", "absent"]
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


class Unexplained(NamedTuple):
    """A field that differs in a way that is no noise, and why it is none."""

    field: str
    differed: int
    seen: int
    why: str


class _Twins(NamedTuple):
    """The members at a path in the pair of events with this number."""

    pair: int
    one: Any
    other: Any


def noise_of(pairs: Sequence[tuple[Any, Any]]) -> tuple[list[Noise], list[Unexplained]]:
    """The noise that the values of paired events show, and what differs and is none."""
    fields = _Fields(pairs)
    return fields.noise, fields.unexplained


class _Fields:
    """What the pairs show, field by field."""

    def __init__(self, pairs: Sequence[tuple[Any, Any]]) -> None:
        self._pairs = pairs
        self._absent: defaultdict[Path, set[int]] = defaultdict(set)
        self._leaves: defaultdict[Path, list[_Twins]] = defaultdict(list)
        self._arrays: defaultdict[Path, list[_Twins]] = defaultdict(list)
        self._bags: set[Path] = set()
        self.noise: list[Noise] = []
        self.unexplained: list[Unexplained] = []
        for number, (one, other) in enumerate(pairs):
            self._compare(number, one, other, ())
        while self._arrays:
            path = min(self._arrays, key=len)
            self._array(path, self._arrays.pop(path))
        for path, found in self._absent.items():
            self._add(path, "absent", found)
        for path, leaves in self._leaves.items():
            self._leaf(path, leaves)

    def _add(self, path: Path, how: Literal["unordered", "sets", "absent"], differing: set[int]) -> None:
        if differing:
            self.noise.append(Noise(path, how, len(differing), self._seen(path)))

    def _seen(self, path: Path) -> int:
        return sum(has(one, path) or has(other, path) for one, other in self._pairs)

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

    # -- arrays ------------------------------------------------------------------------------------------

    def _array(self, path: Path, found: list[_Twins]) -> None:
        """Tell what kind of noise the differing arrays at a path show; their elements may go on."""
        if self._same_elements(path, found):
            return
        if sum(len(one) == len(other) for _, one, other in found) < (1 - SELDOM) * len(found):
            self._leaves[path] += found
            return
        elements = [_Twins(n, *twins) for n, one, other in found for twins in zip(one, other, strict=False)]
        aligned = [_Twins(n, *twins) for n, one, other in found for twins in _aligned(one, other)]
        if _differing(aligned) < _differing(elements):
            self._bags.add(path)
            self._add(path, "unordered", {twins.pair for twins in found})
            elements = aligned
        for pair, one, other in elements:
            self._compare(pair, one, other, path)

    def _same_elements(self, path: Path, found: list[_Twins]) -> bool:
        """Whether nearly all of the arrays have the same elements, in another order or repeated."""
        forms = [(pair, _forms(one), _forms(other)) for pair, one, other in found]
        enough = (1 - SELDOM) * len(found)
        bags = {pair for pair, one, other in forms if sorted(one) == sorted(other)}
        sets = {pair for pair, one, other in forms if set(one) == set(other)}
        if len(sets) < enough:
            return False
        nulls = {pair for pair, one, other in forms if one == other}
        self._absent[path] |= nulls
        self._add(path, *(("unordered", bags - nulls) if len(bags) >= enough else ("sets", sets - nulls)))
        return True

    # -- leaves ------------------------------------------------------------------------------------------

    def _leaf(self, path: Path, found: list[_Twins]) -> None:
        differed, seen = len({twins.pair for twins in found}), self._seen(path)
        numbers = list(_numbers(found))
        if len(numbers) >= (1 - SELDOM) * len(found):
            small = wobble(numbers, self._values(path), differed / seen)
            if small is not None and can_be_named(path):
                in_bag = any(path[: len(bag)] == bag for bag in self._bags)
                self.noise.append(Noise(path, "number", differed, seen, small, in_bag))
                return
        if not can_be_named(path):
            why = "a comparison file cannot name it"
        elif differed < FEWEST_SEEN:
            why = f"fewer than {FEWEST_SEEN} are too few to tell noise from a difference"
        elif differed < ALWAYS * seen:
            why = "noise of a pipeline would show nearly always"
        else:
            fractions = any(a.denominator > 1 or b.denominator > 1 for a, b in numbers)
            self.noise.append(Noise(path, "ignore", differed, seen, fractions=fractions))
            return
        self.unexplained.append(Unexplained(field_text(path), differed, seen, why))

    def _values(self, path: Path) -> Iterator[Fraction]:
        """All numbers at a path, of the reference."""
        numbers = (number_of(value) for one, _ in self._pairs for value in members(one, path))
        return (number for number in numbers if number is not None)


def _numbers(found: Iterable[_Twins]) -> Iterator[tuple[Fraction, Fraction]]:
    for _, one, other in found:
        a, b = number_of(one), number_of(other)
        if a is not None and b is not None:
            yield a, b


def _forms(array: list[Any]) -> list[bytes]:
    return [canonical_value(without_nulls(item)) for item in array]


def _differing(twins: Iterable[_Twins]) -> int:
    """How many plain members differ in pairs of elements."""
    return sum(
        len(dict(scalars(one)).items() ^ dict(scalars(other)).items())
        for _, one, other in twins
        if canonical_value(one) != canonical_value(other)
    )


def _aligned(one: list[Any], other: list[Any]) -> Iterator[tuple[Any, Any]]:
    """The elements of two arrays, paired by the fields whose values are the same in both."""
    left, right = ([dict(scalars(item)) for item in array] for array in (one, other))
    names = {name for element in (*left, *right) for name in element}
    stable = [name for name in sorted(names) if _column(left, name) == _column(right, name)]

    def row(element: dict[Path, Any]) -> list[str]:
        return [repr(element.get(name)) for name in stable]

    if not stable:
        yield from zip(one, other, strict=False)
        return
    first = sorted(range(len(one)), key=lambda place: row(left[place]))
    second = sorted(range(len(other)), key=lambda place: row(right[place]))
    yield from ((one[i], other[j]) for i, j in zip(first, second, strict=False))


def _column(elements: list[dict[Path, Any]], name: Path) -> list[str]:
    return sorted(repr(element.get(name)) for element in elements)
