"""Reduces a value to its compared part: the rules of `equality` as one function.

The rules are applied in this order; each sees the result of those before it:

1. `absent_is_null`: members that are null are removed, in objects at every depth. A null in an array stays.
2. `compare_only` or `ignore`: members that are not compared are removed.
3. `quantum`: a number becomes the nearest multiple, half to even, of its exact decimal.
4. `tolerance`: a number becomes 0, so that only its presence is compared here. Whether two numbers are close
   is asked of the pair (`close`): closeness is not transitive, so no single form can tell it.
5. `unordered`, `sets`: an array is sorted by the canonical forms of its elements; a set drops repeats.

`any_of` comes behind all of these (see `codec.any_of`). `differences` tells where two reduced values differ.

Rules of this file:

- A path names members of objects. An array on the way is passed through: the rule holds in each element, and
  `compare_only` keeps the array's length. An array at the end of a path of `quantum` or `tolerance` is passed
  through too; at the end of a path of `unordered` or `sets` just that array is meant, not those inside it.
- A value that is no finite number is not rounded and has no tolerance: it is compared by value. So is a
  number with more than `DIGITS_LIMIT` digits when it is written out; 1e999999999 would fill the memory.
- Values are changed in place: they were decoded for this alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import isfinite, nan
from typing import Any, NamedTuple

from twinstream.core.canonical import decimal_number
from twinstream.spec.codec.canonical import SIMPLE, canonical_value
from twinstream.spec.file.equality import Equality
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import ABSENT, Path

Change = Callable[[Any], Any]


class Margin(NamedTuple):
    """By how much two numbers may differ: `abs`, and `rel` times the larger of the two."""

    abs: Fraction
    rel: Fraction


Tolerances = Sequence[tuple[Path, Margin]]
DIGITS_LIMIT = 1_000
_SURE_QUANTA = 1 << 40
"""Up to so many quanta, a count told from a float is wrong by less than 0.001 (relative error < 2**-51)."""


def reduction(spec: Spec, equality: Equality, *, tolerant: bool = True) -> Change | None:
    """The function that reduces a value to its compared part; None if all of it is compared.

    With `tolerant` false, the numbers that `tolerance` names stay as they are.
    """
    numbers = [(field, _rounder(quantum)) for field, quantum in equality.quantum.items()]
    if tolerant:
        numbers += [(field, _tolerated) for field in equality.tolerance]
    arrays = [(field, _sorted) for field in equality.unordered] + [
        (field, _as_set) for field in equality.sets
    ]
    kept = _kept(spec, equality)
    steps: list[Change] = [
        *([without_nulls] if equality.absent_is_null else []),
        *([] if kept is None else [_keeper(kept)]),
        *(_remover(spec.path_of(field)) for field in equality.ignore),
        *(_at(spec.path_of(field), _each(change)) for field, change in numbers),
        *(_at(path, change) for path, change in _inner_first(spec, arrays)),
    ]
    return _in_turn(steps) if steps else None


def tolerances(spec: Spec, equality: Equality) -> Tolerances:
    """The tolerances of an equality, with the paths of their fields."""
    return [
        (spec.path_of(field), Margin(Fraction(by.abs), Fraction(by.rel)))
        for field, by in equality.tolerance.items()
    ]


def close(one: Any, other: Any, allowed: Tolerances) -> bool:
    """Whether two values with equal canonical forms agree within every tolerance. Exact.

    Both must be reduced with `tolerant` false.
    """
    return all(near(a, b, by) for path, by in allowed for a, b in _pairs(one, other, path))


def near(one: Any, other: Any, by: Margin) -> bool:
    """Whether two numbers differ by at most ``abs + rel * max(|one|, |other|)``; others may not differ."""
    a, b = number_of(one), number_of(other)
    if a is None or b is None:
        return canonical_value(one) == canonical_value(other)
    return abs(a - b) <= by.abs + (by.rel * max(abs(a), abs(b)) if by.rel else 0)


def with_closer(one: Any, other: Any, allowed: Tolerances) -> Any:
    """`other` with the numbers of `one` where the two are close, so that only real differences remain."""
    for path, by in allowed:
        other = _taken_over(one, other, path, partial(near, by=by))
    return other


def with_same(one: Any, other: Any, paths: Iterable[Path], *, absent_is_null: bool) -> Any:
    """`other` with the members of `one` at some paths; with `absent_is_null` also where one has none."""
    for path in paths:
        if absent_is_null:
            other = _with_presence(one, other, path)
        other = _taken_over(one, other, path, lambda _one, _other: True)
    return other


# -- members -----------------------------------------------------------------------------------------------


def _in_turn(steps: Sequence[Change]) -> Change:
    if len(steps) == 1:
        return steps[0]

    def change(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return change


def without_nulls(value: Any) -> Any:
    """The value without members that are null, at every depth; a null in an array stays."""
    if type(value) is dict:
        if None not in value.values() and SIMPLE.issuperset(map(type, value.values())):
            return value
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    return [without_nulls(item) for item in value] if type(value) is list else value


def _kept(spec: Spec, equality: Equality) -> list[Path] | None:
    """The paths of all compared fields; None for everything. Outside the value, only those the spec names."""
    if equality.compare_only is None and not spec.whole:
        return None
    named = [field for field in spec.deciding_fields if field.startswith("$")]
    fields = equality.compare_only
    values = [("$value",)] if fields is None else [spec.path_of(field) for field in fields]
    return [*values, *(spec.path_of(field) for field in named)]


_Tree = dict[str, Any]
"""The names to keep, each with those below it, or None if all of the member is kept."""


def _keeper(paths: Iterable[Path]) -> Change:
    tree: _Tree = {}
    for path in paths:
        node: Any = tree
        for name in path[:-1]:
            node = None if node is None else node.setdefault(name, {})
        if node is not None:
            node[path[-1]] = None

    def keep(value: Any) -> Any:
        kept = _only(value, tree)
        return {} if kept is ABSENT else kept

    def keep_top(value: Any) -> Any:
        return {name: value[name] for name in tree if name in value} if type(value) is dict else keep(value)

    return keep if any(tree.values()) else keep_top


def _only(value: Any, tree: _Tree | None) -> Any:
    """The parts of a value that a tree names, in the same places; `ABSENT` if there are none."""
    if tree is None:
        return value
    if type(value) is list:
        parts = [_only(item, tree) for item in value]
        return [{} if part is ABSENT else part for part in parts]
    if type(value) is not dict:
        return ABSENT
    kept = {name: _only(value[name], below) for name, below in tree.items() if name in value}
    return {name: part for name, part in kept.items() if part is not ABSENT} or ABSENT


def _remover(path: Path) -> Change:
    """The removal of the members at a path; quick for a member at the top."""

    def removed(value: Any) -> Any:
        if len(path) == 1 and type(value) is dict:
            value.pop(path[0], None)
        else:
            visit(value, path, lambda _member: ABSENT)
        return value

    return removed


def _at(path: Path, change: Change) -> Change:
    """The change of the members at a path; a member that becomes `ABSENT` is removed."""

    def changed(value: Any) -> Any:
        visit(value, path, change)
        return value

    return changed


def visit(value: Any, path: Path, change: Change) -> None:
    """Change the members at a path, in each element of an array on the way; `ABSENT` removes one."""
    if type(value) is list:
        for item in value:
            visit(item, path, change)
    elif type(value) is dict and path[0] in value:
        if len(path) > 1:
            visit(value[path[0]], path[1:], change)
        elif (member := change(value[path[0]])) is ABSENT:
            del value[path[0]]
        else:
            value[path[0]] = member


# -- numbers -----------------------------------------------------------------------------------------------


def number_of(value: Any) -> Fraction | None:
    """The exact number of a value; None if it is no finite number, or too long written out."""
    kind = type(value)
    if kind is int:
        return Fraction(value)
    if kind is float:
        return Fraction(repr(value)) if isfinite(value) else None
    if kind is not Decimal:
        return None
    if value and abs(value.adjusted()) + len(value.as_tuple().digits) >= DIGITS_LIMIT:
        value = _without_zeros(value)
        if abs(value.adjusted()) + len(value.as_tuple().digits) >= DIGITS_LIMIT:
            return None
    return Fraction(value or 0)


def _without_zeros(value: Decimal) -> Decimal:
    """A number, not 0, without the zeros at its end: how it is spelled does not matter."""
    sign, digits, exponent = value.as_tuple()
    end = next(at for at in range(len(digits), 0, -1) if digits[at - 1])
    assert type(exponent) is int, "it is finite"
    return Decimal((sign, digits[:end], exponent + len(digits) - end))


def _each(change: Change) -> Change:
    """The change of a value, or of each value of an array."""

    def changed(value: Any) -> Any:
        return [changed(item) for item in value] if type(value) is list else change(value)

    return changed


def _tolerated(value: Any) -> Any:
    return value if number_of(value) is None else 0


def _rounder(quantum: Decimal) -> Change:
    """A function that rounds a number to the nearest multiple of a quantum, half to even."""
    _, digits, exponent = quantum.as_tuple()
    assert isinstance(exponent, int), "a quantum is finite"
    multiplier, exact, quick = int("".join(map(str, digits))), Fraction(quantum), _inverse(quantum)
    all_whole = multiplier == 1 and exponent <= 0

    def rounded(value: Any) -> Any:
        if type(value) is float:
            quanta = value * quick
            if -_SURE_QUANTA < quanta < _SURE_QUANTA and abs(quanta - (whole := round(quanta))) < 0.499:
                return decimal_number(whole * multiplier, exponent)
        elif all_whole and type(value) is int:
            return value
        number = number_of(value)
        return value if number is None else decimal_number(round(number / exact) * multiplier, exponent)

    return rounded


def _inverse(quantum: Decimal) -> float:
    """About ``1 / quantum``; NaN if no float is near it, so that nothing is concluded from it."""
    try:
        return float(1 / Fraction(quantum)) or nan
    except OverflowError:
        return nan


# -- arrays ------------------------------------------------------------------------------------------------


def _inner_first(spec: Spec, arrays: Iterable[tuple[str, Change]]) -> list[tuple[Path, Change]]:
    """Put inner arrays first: an array is sorted by the final form of its elements."""
    at = [(spec.path_of(field), change) for field, change in arrays]
    return sorted(at, key=lambda rule: -len(rule[0]))


def _sorted(value: Any) -> Any:
    return sorted(value, key=canonical_value) if type(value) is list else value


def _as_set(value: Any) -> Any:
    """A set as an array, without repeats and in the order of the canonical forms."""
    if type(value) is not list:
        return value
    items = {canonical_value(item): item for item in value}
    return [items[form] for form in sorted(items)]


# -- pairs -------------------------------------------------------------------------------------------------


def _pairs(one: Any, other: Any, path: Path) -> Iterator[tuple[Any, Any]]:
    """The pairs of members at a path of two values of one shape."""
    if type(one) is list and type(other) is list and len(one) == len(other):
        for item, twin in zip(one, other, strict=True):
            yield from _pairs(item, twin, path)
    elif not path:
        yield one, other
    elif type(one) is dict and type(other) is dict and path[0] in one and path[0] in other:
        yield from _pairs(one[path[0]], other[path[0]], path[1:])


def _taken_over(one: Any, other: Any, path: Path, same: Callable[[Any, Any], bool]) -> Any:
    """`other` with the members of `one` at a path where the two count as the same."""
    if type(one) is list and type(other) is list and len(one) == len(other):
        return [_taken_over(item, twin, path, same) for item, twin in zip(one, other, strict=True)]
    if not path:
        return one if same(one, other) else other
    if type(one) is dict and type(other) is dict and path[0] in one and path[0] in other:
        return {**other, path[0]: _taken_over(one[path[0]], other[path[0]], path[1:], same)}
    return other


def _with_presence(one: Any, other: Any, path: Path) -> Any:
    """`other` with a member at a path, or without one, as `one` has it."""
    if type(one) is list and type(other) is list and len(one) == len(other):
        return [_with_presence(item, twin, path) for item, twin in zip(one, other, strict=True)]
    if type(one) is not dict or type(other) is not dict:
        return other
    name, rest = path[0], path[1:]
    if name in one and name in other:
        return {**other, name: _with_presence(one[name], other[name], rest)} if rest else other
    if rest:
        return other
    kept = {member: value for member, value in other.items() if member != name}
    return {**kept, name: one[name]} if name in one else kept


def differences(left: Any, right: Any, at: Path = ()) -> Iterator[tuple[Path, tuple[Any, Any]]]:
    """The paths at which two values differ, with both members; `ABSENT` where one has none.

    >>> list(differences({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}}))
    [(('b', 'c'), (2, 3))]
    """
    if isinstance(left, dict) and isinstance(right, dict):
        for name in sorted(_unlike(left, right)):
            yield from differences(left.get(name, ABSENT), right.get(name, ABSENT), (*at, name))
    elif left is ABSENT or right is ABSENT or canonical_value(left) != canonical_value(right):
        yield at, (left, right)


def _unlike(left: dict[str, Any], right: dict[str, Any]) -> Iterator[str]:
    """The members that may differ: all but those of one plain type that are the same."""
    for name, member in left.items():
        twin = right.get(name, ABSENT)
        if type(member) not in SIMPLE or type(twin) is not type(member) or member != twin:
            yield name
    for name in right:
        if name not in left:
            yield name
