"""Compiles the declared order: to the core's order, and a route through it for each event.

The declared order is brought into the form with the quickest index:

- sequences, bags, keys and branches of these become lanes;
- a rule ``[kind, "*"]`` makes that kind a barrier;
- for the other rules, kinds that no rule connects are branches; a class of kinds in which each pair is
  dependent is a sequence, or a sequence per key if all its rules ask for the same fields to be equal; if all
  rules of a class ask for that, it is keyed, and only the rest of the rules is looked up by rule.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

from twinstream.core.order import (
    BARRIER,
    Branches,
    Epochs,
    Keyed,
    KindInRule,
    KindInRules,
    Lanes,
    Order,
    Pairwise,
    Roles,
    Ruled,
    RuleTime,
    Time,
)
from twinstream.errors import DecodeError
from twinstream.spec.codec.callables import DecodeValue, find, related_by
from twinstream.spec.codec.canonical import canonical_value
from twinstream.spec.decode.formats.jsontext import decode
from twinstream.spec.describe import trait
from twinstream.spec.file.model import Spec
from twinstream.spec.file.orders import Barrier, ByKey, CallableOrder, Dependent, PairRule, Parallel, PerKey
from twinstream.spec.file.paths import ABSENT, Path, path_text, read
from twinstream.spec.file.values import WantedValues, listed

TIME_DIGITS = 400
"""Places before or after the point that a time may have: written out, 1e999999999 would fill the memory."""

Route = Callable[[str, Any, bytes], Any]
"""The route of an event, from its kind, its value and its canonical form. Raises DecodeError."""
Project = Callable[[Any], Hashable]


class Routing(NamedTuple):
    """An order, and the function that gives each event its route through it.

    `flat`: the route is a lane and nothing else. `by_content`: some partners are looked up by their canonical
    forms, not found by place alone: those of bags, whose lane it is, and those of rules and functions.
    """

    order: Order
    route: Route
    flat: bool
    by_content: bool


def routing_of(spec: Spec, decode: DecodeValue = decode) -> Routing:
    """Compile the order of a spec. Raises SpecError where its function cannot be found.

    A function is called with the result of `decode` for records as forms hold them.
    """
    return _Compiler(spec, decode).compile(spec.order, spec.kind_names)


@dataclass(frozen=True)
class _Rule:
    """One rule: the kinds of its two roles, the fields that must be equal, and its times."""

    first: frozenset[str]
    second: frozenset[str]
    same: tuple[tuple[Path, Path], ...] = ()
    time: Path | None = None
    within: Time | None = None

    @property
    def one_role(self) -> bool:
        """Whether both roles are the same, so that one bucket serves for both."""
        return (
            self.first == self.second and self.keyed_alike and (self.time is None or self.within is not None)
        )

    @property
    def keyed_alike(self) -> bool:
        return all(first == second for first, second in self.same)

    def covers(self, one: str, another: str) -> bool:
        """Whether it applies to these two kinds."""
        return (one in self.first and another in self.second) or (
            another in self.first and one in self.second
        )


class _Compiler:
    def __init__(self, spec: Spec, decode: DecodeValue) -> None:
        self._spec, self._path, self._decode = spec, spec.path_of, decode

    def compile(self, order: Any, kinds: Sequence[str]) -> Routing:
        match order:
            case "unordered":
                return Routing(Lanes(), lambda _kind, _value, content: content, True, True)
            case "total":
                return Routing(Lanes(), lambda _kind, _value, _content: (), True, False)
            case PerKey(per_key=fields):
                return self._keyed([self._path(field) for field in fields], self.compile("total", kinds))
            case ByKey(by_key=fields, inner=inner):
                return self._keyed([self._path(field) for field in fields], self.compile(inner, kinds))
            case Barrier(barrier=barriers, inner=inner):
                rest = [kind for kind in kinds if kind not in barriers]
                each = order.copies == "per_partition"
                below = self.compile(inner, rest)
                if each and isinstance(below.order, Epochs):
                    below = _side_by_side([(rest, below)])  # so that an inner barrier is no copy
                return _with_barriers(frozenset(barriers), below, copies=each)
            case Parallel(parallel=branches):
                parts = [
                    (branch.kinds, self.compile(branch.order, branch.kinds)) for branch in branches.values()
                ]
                return _side_by_side(parts)
            case Dependent(rules=rules):
                return self._ruled([self._rule(rule, kinds) for rule in rules], kinds)
            case CallableOrder(callable=name):
                related = related_by(name, find(name, self._spec.name), self._decode)
                return Routing(Pairwise(related), lambda *_: (), False, True)
            case _:
                raise AssertionError(f"{order!r} is no order")

    def _keyed(self, paths: Sequence[Path], inner: Routing) -> Routing:
        key = projection(paths)
        _, below, flat, by_content = inner

        def route(kind: str, value: Any, content: bytes) -> Hashable:
            own = key(value)
            under: Hashable = below(kind, value, content)
            if flat and under == ():
                return own
            return under if flat and type(under) is bytes else (own, under)

        return Routing(Lanes() if flat else Keyed(inner.order), route, flat, by_content)

    # -- rules ---------------------------------------------------------------------------------------------

    def _rule(self, rule: PairRule, kinds: Sequence[str]) -> _Rule:
        same = tuple((self._path(one), self._path(other)) for one, other in rule.pairs)
        first, second = (_kinds(kind, kinds) for kind in rule.pair)
        time = rule.within or rule.before
        within = None if rule.within is None else exact_time(rule.within.less_than)
        return _Rule(first, second, same, None if time is None else self._path(time.field), within)

    def _ruled(self, rules: Sequence[_Rule], kinds: Sequence[str]) -> Routing:
        everything = frozenset(kinds)
        plain = [rule for rule in rules if not rule.same and rule.time is None]
        barriers = frozenset(
            kind
            for kind in kinds
            if all(any(rule.covers(kind, other) for rule in plain) for other in everything)
        )
        if barriers == everything:
            return self.compile("total", kinds)
        if barriers:
            rest = [kind for kind in kinds if kind not in barriers]
            return _with_barriers(barriers, self._ruled(_restricted(rules, frozenset(rest)), rest))
        parts: list[tuple[Sequence[str], Routing]] = []
        looked_up: list[_Class] = []
        for names in _classes(rules, kinds):
            own = _restricted(rules, frozenset(names))
            lanes = self._lanes_of(own, names)
            if lanes is None:
                looked_up.append(_Class(names, own))
            else:
                parts.append((names, lanes))
        tolerant = {kind for kind in kinds if self._spec.equality_of(kind).tolerance}
        return _joined(parts, looked_up, tolerant)

    def _lanes_of(self, rules: Sequence[_Rule], kinds: Sequence[str]) -> Routing | None:
        """The lanes of a class of kinds that rules connect; None if it has none."""
        if not rules:
            return self.compile("unordered", kinds)
        common = _common(rules)
        if common is None or not _complete([rule for rule in rules if rule.time is None], kinds):
            return None
        sequence = self.compile("total", kinds)
        return self._keyed([path for path, _ in common], sequence) if common else sequence


class _Class(NamedTuple):
    """Kinds that rules connect, with these rules."""

    kinds: Sequence[str]
    rules: Sequence[_Rule]


def _joined(
    lanes: Sequence[tuple[Sequence[str], Routing]], classes: Sequence[_Class], tolerant: Set[str]
) -> Routing:
    """One routing for classes that are lanes and classes that must be looked up by rule.

    Kinds that no rule names need no lanes of their own beside rules: they have no role. But with a tolerance
    only a bag pairs as many of their events as possible.
    """
    if not classes:
        return lanes[0][1] if len(lanes) == 1 else _side_by_side(lanes)
    roleless = [kinds for kinds, part in lanes if part.by_content and tolerant.isdisjoint(kinds)]
    apart = [(kinds, part) for kinds, part in lanes if kinds not in roleless]
    bags = [_Class(kinds, ()) for kinds in roleless]
    routing = _looked_up([*classes, *bags])
    if not apart:
        return routing
    names = [kind for part in (*classes, *bags) for kind in part.kinds]
    return _side_by_side([*apart, (names, routing)])


def _common(rules: Sequence[_Rule]) -> tuple[tuple[Path, Path], ...] | None:
    """The fields that all rules ask to be equal, by one name; None if the rules differ in that."""
    common = rules[0].same
    return common if all(rule.same == common and rule.keyed_alike for rule in rules) else None


def _kinds(name: str, kinds: Sequence[str]) -> frozenset[str]:
    return frozenset(kinds if name == "*" else (name,))


def _restricted(rules: Iterable[_Rule], kinds: frozenset[str]) -> list[_Rule]:
    """The rules, restricted to these kinds."""
    kept = [replace(rule, first=rule.first & kinds, second=rule.second & kinds) for rule in rules]
    return [rule for rule in kept if rule.first and rule.second]


def _complete(rules: Sequence[_Rule], kinds: Sequence[str]) -> bool:
    return all(
        any(rule.covers(one, another) for rule in rules)
        for one, another in combinations_with_replacement(kinds, 2)
    )


def _classes(rules: Sequence[_Rule], kinds: Sequence[str]) -> list[list[str]]:
    """The kinds by the classes that rules connect, in the order of the kinds."""
    class_of = {kind: {kind} for kind in kinds}
    for rule in rules:
        merged = set().union(*(class_of[kind] for kind in rule.first | rule.second))
        for kind in merged:
            class_of[kind] = merged
    different = {id(names): names for names in class_of.values()}
    return [[kind for kind in kinds if kind in names] for names in different.values()]


def _with_barriers(barriers: frozenset[str], inner: Routing, *, copies: bool = False) -> Routing:
    below = inner.route

    def route(kind: str, value: Any, content: bytes) -> Any:
        return BARRIER if kind in barriers else below(kind, value, content)

    return Routing(Epochs(inner.order, copies), route, False, inner.by_content)


def _side_by_side(parts: Sequence[tuple[Sequence[str], Routing]]) -> Routing:
    number_of = {kind: number for number, (names, _) in enumerate(parts) for kind in names}
    routes = [part.route for _, part in parts]
    flat = all(part.flat for _, part in parts)

    def route(kind: str, value: Any, content: bytes) -> Hashable:
        number = number_of[kind]
        below: Hashable = routes[number](kind, value, content)
        return below if flat and type(below) is bytes else (number, below)

    order = Lanes() if flat else Branches(tuple(part.order for _, part in parts))
    return Routing(order, route, flat, any(part.by_content for _, part in parts))


# -- keys --------------------------------------------------------------------------------------------------


def typed(value: Any) -> Hashable:
    """A value that is equal to another only if both are equal as values of a record; never bytes."""
    if type(value) is str or (type(value) is int and value.bit_length() < 64):
        return value  # a larger number may come as another type, and then has the text of an exponent
    text = canonical_value(value)
    return int(text) if text.lstrip(b"-").isdigit() else (text,)


def condition(spec: Spec, where: Mapping[str, WantedValues], absent: Any = ABSENT) -> Callable[[Any], bool]:
    """Whether a value has, in each of some fields, the value that is wanted or one of those.

    An absent field has the value `absent`.
    """
    wanted = [(spec.path_of(field), set(map(typed, listed(values)))) for field, values in where.items()]

    def holds(value: Any) -> bool:
        for path, values in wanted:
            member = read(value, path)
            if member is ABSENT:
                member = absent
            if member is ABSENT or typed(member) not in values:
                return False
        return True

    return holds


def projection(paths: Sequence[Path]) -> Project:
    """A function that reads the values at some paths, as a key. Raises DecodeError if one is missing."""
    if len(paths) == 1:
        return _one(paths[0])
    parts = list(map(_one, paths))
    return lambda value: tuple(part(value) for part in parts)


def _one(path: Path) -> Project:
    def key(value: Any) -> Hashable:
        member = read(value, path)
        if member is ABSENT:
            raise DecodeError(f"field `{_shown(path)}`, that the order needs, is missing")
        return typed(member)

    return key


def _shown(path: Path) -> str:
    """A path as its owner wrote it."""
    return path_text(path[1:] if path[0] == "$value" else path)


def exact_time(number: Any) -> Time:
    """A number of a record as an exact time. Raises DecodeError for any other value.

    >>> exact_time(3), exact_time(0.1)
    (3, Fraction(1, 10))
    """
    if type(number) is int:
        return number
    if isinstance(number, Decimal) and number.is_finite():
        if number and abs(number.adjusted()) > TIME_DIGITS:
            raise DecodeError(f"it is not a time: it has more than {TIME_DIGITS} digits")
        return Fraction(number)
    if isinstance(number, float) and number - number == 0:
        return Fraction(repr(number))
    raise DecodeError(f"it is not a number ({trait(number)})")


# -- roles -------------------------------------------------------------------------------------------------


def _looked_up(classes: Sequence[_Class]) -> Routing:
    """Classes looked up by rule: each a group, divided if its rules ask for the same fields."""
    plans: dict[str, KindInRules] = {}
    keys: dict[str, list[Project]] = {}
    roles = 0
    for number, (kinds, rules) in enumerate(classes):
        divided = bool(rules and _common(rules))
        for kind in kinds:
            found = [
                part for place, rule in enumerate(rules) for part in _parts(roles + 2 * place, rule, kind)
            ]
            plans[kind] = KindInRules(number, divided, tuple(part for part, _ in found))
            keys[kind] = [key for _, key in found]
        roles += 2 * len(rules)

    def route(kind: str, value: Any, _content: bytes) -> Roles:
        return Roles(plans[kind], tuple([key(value) for key in keys[kind]]))

    return Routing(Ruled(roles), route, False, True)


def _parts(number: int, rule: _Rule, kind: str) -> list[tuple[KindInRule, Project]]:
    """The roles of a kind in one rule, whose roles have this number and the next."""
    timed = rule.time is not None
    if rule.one_role:
        return [(KindInRule(number, number, timed), _key(rule, 0))] if kind in rule.first else []
    return [
        (KindInRule(number + role, number + 1 - role, timed), _key(rule, role))
        for role, kinds in enumerate((rule.first, rule.second))
        if kind in kinds
    ]


def _key(rule: _Rule, role: int) -> Project:
    """The key of an event with one of the two roles."""
    paths = [pair[role] for pair in rule.same]
    key: Project = projection(paths) if paths else lambda _value: ()
    return key if rule.time is None else _timed(rule.time, rule.within, role, key)


def _timed(path: Path, within: Time | None, role: int, key: Project) -> Project:
    """The key of an event in a rule about times. The first role of `before` opposes later events."""

    def timed(value: Any) -> RuleTime:
        member = read(value, path)
        if member is ABSENT:
            raise DecodeError(f"field `{_shown(path)}`, that the order needs, is missing")
        try:
            time = exact_time(member)
        except DecodeError as error:
            raise DecodeError(f"field `{_shown(path)}`, a time that the order needs: {error}") from None
        if within is not None:
            return RuleTime(key(value), time, time - within, time + within)
        return RuleTime(key(value), time, *((time, None) if role == 0 else (None, time)))

    return timed
