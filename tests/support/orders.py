"""Orders of every declared form: what each one means, and random ones.

`dependent` is written from the meaning of the forms alone and shares nothing with the engine. An order stands
as in a comparison file, an event is a small dictionary whose `type` is its kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from random import Random
from typing import Any

from hypothesis import strategies as st

from twinstream.spec.file.model import Spec
from twinstream.spec.load import loads

Order = Any
Event = dict[str, Any]

KINDS = ("a", "b", "c", "e")
NO_KINDS = ("event",)
"""The one kind of a file that declares none."""
FIELDS = ("k", "m", "ts")
"""What orders may read; the field `v` is only compared."""
EVERY = "*"


# -- what an order means -------------------------------------------------------------------------------------


def dependent(order: Order, a: Event, b: Event) -> bool:
    """Whether two events may not change places, for events that reach this order."""
    match order:
        case "unordered":
            return False
        case "total":
            return True
        case {"per_key": fields}:
            return _agree(fields, a, b)
        case {"by_key": fields, "inner": inner}:
            return _agree(fields, a, b) and dependent(inner, a, b)
        case {"barrier": kinds, "inner": inner}:
            return any(x["type"] in _listed(kinds) for x in (a, b)) or dependent(inner, a, b)
        case {"parallel": branches}:
            return any(
                a["type"] in branch["kinds"]
                and b["type"] in branch["kinds"]
                and dependent(branch["order"], a, b)
                for branch in branches.values()
            )
        case {"dependent": rules}:
            return any(_holds(rule, a, b) or _holds(rule, b, a) for rule in rules)
    raise ValueError(f"{order!r} is no order")


def commute(random: Random, order: Order, stream: list[Event], rounds: int, chance: float) -> None:
    """Let adjacent independent events change places, in each round with this chance."""
    for _ in range(rounds):
        for place in range(len(stream) - 1):
            one, other = stream[place : place + 2]
            if random.random() < chance and not dependent(order, one, other):
                stream[place : place + 2] = [other, one]


def _listed(kinds: str | list[str]) -> list[str]:
    return [kinds] if isinstance(kinds, str) else kinds


def _agree(fields: Iterable[str], a: Event, b: Event) -> bool:
    return all(a[field] == b[field] for field in fields)


def _holds(rule: Any, first: Event, second: Event) -> bool:
    """Whether a rule holds for two events in these roles."""
    pair = rule if isinstance(rule, list) else rule["pair"]
    if not all(kind in (EVERY, event["type"]) for kind, event in zip(pair, (first, second), strict=True)):
        return False
    if isinstance(rule, list):
        return True
    holds = all(first[one] == second[other] for one, other in map(_names, rule.get("same", ())))
    if "within" in rule:
        field = rule["within"]["field"]
        holds = holds and abs(first[field] - second[field]) < rule["within"]["less_than"]
    if "before" in rule:
        field = rule["before"]["field"]
        holds = holds and first[field] < second[field]
    return holds


def _names(same: str | dict[str, str]) -> tuple[str, str]:
    return (same, same) if isinstance(same, str) else (same["first"], same["second"])


def needed(order: Order, kind: str) -> set[str]:
    """The fields that an event of this kind must have, to be ordered."""
    match order:
        case {"per_key": fields}:
            return set(fields)
        case {"by_key": fields, "inner": inner}:
            return set(fields) | needed(inner, kind)
        case {"barrier": kinds, "inner": inner}:
            return set() if kind in _listed(kinds) else needed(inner, kind)
        case {"parallel": branches}:
            (branch,) = (branch for branch in branches.values() if kind in branch["kinds"])
            return needed(branch["order"], kind)
        case {"dependent": rules}:
            return {field for rule in rules for field in _rule_needs(rule, kind)}
    return set()


def _rule_needs(rule: Any, kind: str) -> Iterator[str]:
    if isinstance(rule, list):
        return
    for role, wanted in enumerate(rule["pair"]):
        if wanted in (EVERY, kind):
            yield from (_names(same)[role] for same in rule.get("same", ()))
            yield from (rule[bound]["field"] for bound in ("within", "before") if bound in rule)


# -- an order as a function ----------------------------------------------------------------------------------


def as_callable(order: Order) -> dict[str, str]:
    """The same relation, as a function that a comparison file can name."""
    return {"callable": f"{__name__}:order_{json.dumps(order).encode().hex()}"}


def __getattr__(name: str) -> Callable[[Event, Event], bool]:
    """The function that `as_callable` names: its name spells the order."""
    if not name.startswith("order_"):
        raise AttributeError(name)
    order = json.loads(bytes.fromhex(name.removeprefix("order_")))
    return lambda a, b: dependent(order, a, b)


# -- random orders -------------------------------------------------------------------------------------------

key_fields = st.lists(st.sampled_from(["k", "m"]), min_size=1, max_size=2, unique=True)
times = st.sampled_from([1, 2, 0.5])
bounds = st.one_of(
    st.builds(lambda less: {"within": {"field": "ts", "less_than": less}}, times),
    st.just({"before": {"field": "ts"}}),
)
same_fields = st.lists(
    st.one_of(st.sampled_from(["k", "m"]), st.just({"first": "k", "second": "m"})),
    min_size=1,
    max_size=2,
    unique_by=str,
)


@st.composite
def rules(draw: st.DrawFn, kinds: Sequence[str]) -> Any:
    """One rule for kinds that reach its node; what would not be symmetric is left out."""
    names = st.sampled_from([*kinds, EVERY])
    pair = draw(st.lists(names, min_size=2, max_size=2))
    if draw(st.booleans()):
        return pair
    with_itself = EVERY in pair or pair[0] == pair[1]
    same = draw(key_fields if with_itself else same_fields)
    bound = draw(bounds.filter(lambda bound: not (with_itself and "before" in bound)))
    detail = draw(st.sampled_from([{"same": same}, bound, {"same": same, **bound}]))
    return {"pair": pair, **detail}


FLAT = ("unordered", "total", "per_key", "dependent", "dependent")
NESTED = (*FLAT, "by_key", "barrier", "barrier", "parallel")


@st.composite
def orders(draw: st.DrawFn, kinds: Sequence[str] = KINDS, depth: int = 3) -> Order:
    """An order for these kinds, of at most so many nodes on a way down."""
    form = draw(st.sampled_from(NESTED if depth > 1 else FLAT))
    if form == "per_key":
        return {form: draw(key_fields)}
    if form == "dependent":
        return {form: draw(st.lists(rules(kinds), min_size=1, max_size=3))}
    if form == "by_key":
        return {form: draw(key_fields), "inner": draw(orders(kinds, depth - 1))}
    if form not in ("barrier", "parallel"):
        return form
    if len(kinds) == 1:
        return draw(orders(kinds, depth - 1))
    shuffled, cut = draw(st.permutations(kinds)), draw(st.integers(1, len(kinds) - 1))
    one, rest = sorted(shuffled[:cut]), sorted(shuffled[cut:])
    if form == "barrier":
        return {form: one, "inner": draw(orders(rest, depth - 1))}
    parts = {"one": one, "rest": rest}
    return {
        form: {name: {"kinds": part, "order": draw(orders(part, depth - 1))} for name, part in parts.items()}
    }


@st.composite
def events(draw: st.DrawFn, order: Order, kinds: Sequence[str] = KINDS, *, lean: bool = False) -> Event:
    """An event of one of the kinds; a lean one has no field that its kind does not need."""
    kind = draw(st.sampled_from(kinds))
    members = {
        "k": draw(st.integers(0, 1)),
        "m": draw(st.integers(0, 1)),
        "ts": draw(st.sampled_from([0, 0.5, 1, 2])),
        "v": draw(st.integers(0, 1)),
    }
    kept = needed(order, kind) | {"v"} if lean else set(members)
    return {"type": kind, **{name: value for name, value in members.items() if name in kept}}


# -- comparison files ---------------------------------------------------------------------------------------


def spec_of(order: Order, kinds: Sequence[str] = KINDS, **more: Any) -> Spec:
    """The comparison file with this order, and a kind for each type."""
    declared = {} if kinds == NO_KINDS else {kind: {"where": {"type": kind}} for kind in kinds}
    sides = {"reference": {"topic": "r"}, "candidate": {"topic": "c"}}
    return _spec(
        json.dumps({"version": 1, "name": "test", **sides, "kinds": declared, "order": order, **more})
    )


@cache
def _spec(text: str) -> Spec:
    return loads(text)
