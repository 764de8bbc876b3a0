"""Random declarations: comparison files that combine what a file may say of order and equality.

A declaration is drawn from a set of allowed *features*, words that also name it when it breaks. The
whole file is one plain mapping, read by the shipped loader, so that a failure prints what a user would write.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tests.support.orders import NO_KINDS
from twinstream.spec.file.model import Spec
from twinstream.spec.load import loads

KINDS = ("a", "b", "e")
BARRIER = "e"
FLAT = ("unordered", "total", "per_key")
RULED = ("always", "same", "within", "before")
ORDERS = (*FLAT, "by_key", "barrier", "parallel", *RULED)
EQUALITIES = ("ignore", "quantum", "tolerance")
IDENTITIES = ("identity", "repeated_identity")
DIFFERENCES = ("known", "several", "fields", "where", "share", "expired")
OTHERS = ("replays", "uneven", "recent_0", "recent_1", "halt", "partitions", "copies", "lost_copy")
FEATURES = frozenset((*ORDERS, *EQUALITIES, *IDENTITIES, *DIFFERENCES, *OTHERS))
"""What a case may have. The trace decides on some: `uneven` is a retry that writes other rows, `partitions`
are several of a topic, a `lost_copy` is one of a barrier that has a copy in each partition (`copies`).
"""
DIVERGENCES = ("missing", "extra", "changed", "reordered", "duplicate")
Order = Any
File = dict[str, Any]


@dataclass(frozen=True)
class Declaration:
    """One comparison file."""

    file: File

    @property
    def order(self) -> Order:
        return self.file["order"]

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.file.get("kinds", NO_KINDS))

    @property
    def rules(self) -> list[dict[str, Any]]:
        """The known differences."""
        return list(self.file.get("known_differences", []))

    @property
    def replays(self) -> bool:
        return bool(self.file.get("duplicates"))

    @property
    def halts(self) -> bool:
        return bool(self.file.get("on_divergence") == "halt")

    @property
    def forgets(self) -> bool:
        """Whether only the latest match is remembered."""
        return bool(self.file.get("limits", {}).get("recent_matches") == 1)

    @property
    def tells_copies(self) -> bool:
        """Whether a rule asks what is a copy: it names `duplicate` or `extra`, and not both."""
        kinds = [set(rule["when"]["divergences"]) for rule in self.rules]
        return any(("duplicate" in one) != ("extra" in one) for one in kinds)

    @property
    def explains_by_rules(self) -> bool:
        """Whether there are known differences in an order by rules."""
        return bool(self.rules) and self.is_ruled

    @property
    def is_ruled(self) -> bool:
        """Whether rules tell which events are dependent."""
        return not set(RULED).isdisjoint(_forms(self.order))

    def uses_up(self, explained: Mapping[str, int]) -> bool:
        """Whether a known difference may explain no more than it has; by a share it always may be so."""
        left = (rule["ceiling"].get("count", 0) - explained.get(rule["id"], 0) for rule in self.rules)
        return any(places <= 0 for places in left)

    @property
    def doubts_everything(self) -> bool:
        """Whether a hole puts everything in doubt that was not certain before it, wherever it stands."""
        return self.has_copies or (self.replays and (self.halts or self.explains_by_rules))

    @property
    def has_copies(self) -> bool:
        """Whether a barrier has a copy in each partition."""
        return isinstance(self.order, dict) and self.order.get("copies") == "per_partition"

    @property
    def placed_by(self) -> list[str] | None:
        """The fields by which events may lie in partitions; None where all have to be in one.

        Without any field they may lie anywhere.
        """
        order = self.order
        if isinstance(order, dict) and self.has_copies:
            order = order["inner"]
        match order:
            case "unordered":
                return []
            case {"per_key": fields} | {"by_key": fields}:
                return list(fields)
        return None

    def equality(self, way: str) -> Any:
        """What the equality of all kinds names under a key."""
        return self.file.get("equality", {}).get(way, {})

    def spec(self) -> Spec:
        return _spec(json.dumps(self.file))

    def features(self) -> frozenset[str]:
        """The words that name it."""
        found = {*_forms(self.order), *self.file.get("equality", ()), *({"identity"} & self.file.keys())}
        if (recent := self.file.get("limits", {}).get("recent_matches")) is not None:
            found.add(f"recent_{recent}")
        for rule in self.rules:
            found |= (rule["when"].keys() & {"fields", "where"}) | (rule["ceiling"].keys() & {"share"})
        told = {
            "replays": self.replays,
            "halt": self.halts,
            "copies": self.has_copies,
            "known": bool(self.rules),
            "several": len(self.rules) > 1,
            "expired": any(rule["expires"] < "1971" for rule in self.rules),
        }
        return frozenset(found) | {word for word, holds in told.items() if holds}


@lru_cache(maxsize=64)
def _spec(text: str) -> Spec:
    return loads(text)


def declared(order: Order, **more: Any) -> Declaration:
    """The file with this order; `more` are further keys of it."""
    kinds = {"kinds": {kind: {"where": {"type": kind}} for kind in KINDS}} if _kinds_of(order) else {}
    sides = {"reference": {"topic": "r"}, "candidate": {"topic": "c"}}
    return Declaration({"version": 1, "name": "law", **sides, **kinds, "order": order, **more})


def _kinds_of(order: Order) -> bool:
    """Whether an order speaks of kinds."""
    return bool({"barrier", "parallel", *RULED} & set(_forms(order)))


def _forms(order: Order) -> Iterator[str]:
    match order:
        case str():
            yield order
        case {"per_key": _}:
            yield "per_key"
        case {"inner": inner}:
            yield from order.keys() & {"by_key", "barrier"}
            yield from _forms(inner)
        case {"parallel": branches}:
            yield "parallel"
            for branch in branches.values():
                yield from _forms(branch["order"])
        case {"dependent": rules}:
            for rule in rules:
                yield from ["always"] if isinstance(rule, list) else (word for word in RULED if word in rule)


# -- drawing -------------------------------------------------------------------------------------------------


class Draw:
    """Random choices among the features that are allowed."""

    def __init__(self, rng: random.Random, allowed: frozenset[str]) -> None:
        self.rng, self.allowed = rng, allowed

    def some(self, feature: str, chance: float) -> bool:
        """Whether a feature is taken, with this chance where it is allowed."""
        return self.rng.random() < chance and feature in self.allowed

    def of(self, features: Sequence[str]) -> list[str]:
        return [feature for feature in features if feature in self.allowed]


def declaration(rng: random.Random, allowed: frozenset[str] = FEATURES) -> Declaration:
    """A random declaration with allowed features only."""
    draw = Draw(rng, allowed)
    order = _order(draw, KINDS, depth=3)
    if _can_have_copies(order) and draw.some("copies", 0.5):
        order = {**order, "copies": "per_partition"}
    more: dict[str, Any] = {}
    if draw.of(IDENTITIES) and rng.random() < 0.5:
        more["identity"] = ["id"]
    if equality := _equality(draw, order, has_identity="identity" in more):
        more["equality"] = equality
    if draw.some("known", 0.5):
        more["known_differences"] = _known(draw, identity="identity" in more)
    if draw.some("replays", 0.3):
        more["duplicates"] = {"policy": "replays", "horizon": 10}
    if recent := [feature for feature in draw.of(("recent_0", "recent_1")) if rng.random() < 0.15]:
        more["limits"] = {"recent_matches": int(recent[0][-1])}
    if draw.some("halt", 0.1):
        more["on_divergence"] = "halt"
    return declared(order, **more)


def _order(draw: Draw, kinds: Sequence[str], depth: int) -> Order:
    nested = ["by_key", *(["barrier"] * 3 if BARRIER in kinds else []), *(["parallel"] * (len(kinds) > 1))]
    forms = draw.of((*FLAT, *RULED[:1], "same", "within", "before", *(nested if depth > 1 else [])))
    form = draw.rng.choice(forms or draw.of(FLAT) or ["total"])
    rest = [kind for kind in kinds if kind != BARRIER]
    match form:
        case "per_key":
            return {"per_key": _key(draw)}
        case "by_key":
            return {"by_key": _key(draw), "inner": _order(draw, kinds, depth - 1)}
        case "barrier":
            return {"barrier": [BARRIER], "inner": _order(draw, rest, depth - 1)}
        case "parallel":
            parts = {"one": [kinds[0]], "rest": list(kinds[1:])}
            orders = {name: _order(draw, part, depth - 1) for name, part in parts.items()}
            return {"parallel": {name: {"kinds": parts[name], "order": orders[name]} for name in parts}}
        case "always" | "same" | "within" | "before":
            return {"dependent": [_rule(draw, kinds) for _ in range(draw.rng.randint(1, 3))]}
    return form


def _can_have_copies(order: Order) -> bool:
    """Whether it is a barrier, with nothing inside that relates events of several partitions."""
    return (
        isinstance(order, dict)
        and "barrier" in order
        and (order["inner"] == "unordered" or bool({"per_key", "by_key"} & set(order["inner"])))
    )


def _key(draw: Draw) -> list[str]:
    return draw.rng.choice([["k"], ["k"], ["m"], ["k", "m"]])


def _rule(draw: Draw, kinds: Sequence[str]) -> Any:
    """A rule of dependence; `before` is for two kinds."""
    rng = draw.rng
    form = rng.choice(draw.of(RULED) or ["always"])
    pair = [rng.choice([*kinds, "*"]), rng.choice([*kinds, "*"])]
    if form == "before" and len(kinds) > 1:
        return {"pair": rng.sample(list(kinds), 2), "before": {"field": "ts"}}
    if form == "within":
        same = {"same": _key(draw)} if draw.some("same", 0.3) else {}
        return {"pair": pair, "within": {"field": "ts", "less_than": rng.choice([1, 2])}, **same}
    return {"pair": pair, "same": _key(draw)} if form == "same" else pair


def _equality(draw: Draw, order: Order, *, has_identity: bool) -> dict[str, Any]:
    equality: dict[str, Any] = {}
    if draw.some("ignore", 0.3):
        equality["ignore"] = ["noise"]
    if draw.some("tolerance", 0.4) and (
        has_identity or set(_forms(order)) <= {"total", "per_key", "barrier"}
    ):
        equality["tolerance"] = {"v": draw.rng.choice([{"abs": 0.5}, {"abs": 0.25, "rel": 0.1}])}
    elif draw.some("quantum", 0.2):
        equality["quantum"] = {"v": 0.5}
    return equality


def _known(draw: Draw, *, identity: bool) -> list[dict[str, Any]]:
    """Rules about known differences, of which several may fit one difference."""
    count = draw.rng.choice([1, 1, 2, 3]) if "several" in draw.allowed else 1
    return [_difference(draw, f"RULE-{place}", identity=identity) for place in range(count)]


def _difference(draw: Draw, name: str, *, identity: bool) -> dict[str, Any]:
    rng = draw.rng
    kinds = rng.choice([[rng.choice(DIVERGENCES)], rng.sample(DIVERGENCES, 2), list(DIVERGENCES)])
    when: dict[str, Any] = {"divergences": kinds}
    if draw.some("where", 0.3):
        when["where"] = rng.choice([{"k": 0}, {"k": [0, 1]}, {"v": [0, 1, 2]}])
    if draw.some("fields", 0.3) and identity and "changed" in kinds:
        when["fields"] = [rng.choice(["v", "k", "noise"])]
    ceiling = (
        {"share": rng.choice([0.05, 0.2, 1.0])}
        if draw.some("share", 0.3)
        else {"count": rng.choice([1, 2, 3, 999])}
    )
    expires = "1970-01-01" if draw.some("expired", 0.1) else "2999-12-31"
    return {"id": name, "when": when, "owner": "o", "expires": expires, "ceiling": ceiling}
