"""What a comparison file declares of differences: a tolerance, an identity, and known differences."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from tests.simulation.numbers import WITHIN
from tests.simulation.scheduler import Scheduler
from tests.simulation.streams import Planted
from tests.support.orders import Event
from twinstream.core.diagnosis.looks import MEETING_RUN

Rule = dict[str, Any]
TOLERANT = (True, False, False)
"""Whether numbers have a tolerance."""
RULED = (True, False, False)
"""Whether some differences are known."""
KINDS = ("missing", "extra", "changed", "reordered", "duplicate")
PLACES: tuple[dict[str, Any], ...] = ({"k": [1, 2]}, {"type": ["a", "b"]}, {"k": 1, "type": "c"})
CEILINGS = ({"count": 10}, {"count": 10}, {"count": 2}, {"count": 1}, {"share": 1.0}, {"share": 0.05})
EXPIRED, IN_FORCE = "2001-01-01", "2999-01-01"
SOON_MS = 20_000
"""The least time for which the other half of an event that may be a known difference is waited for."""
HALVES = frozenset({"missing", "extra"})
_NAMES = {
    "drop": frozenset({"missing"}),
    "duplicate": frozenset({"duplicate", "extra"}),
    "field": frozenset({"changed"}),
    "stray": frozenset({"changed", *HALVES}),
    "reorder": frozenset({"reordered"}),
    "move": frozenset({"reordered"}),
    "garbage": frozenset[str](),
}


class Declared(NamedTuple):
    """What a file declares, and what differences are called by it.

    `step_ms` lie between two events: by Kafka's clock, or by that of event time if it is declared and faster.
    """

    rules: tuple[Rule, ...] = ()
    tolerant: bool = False
    identity: bool = True
    step_ms: int = 1

    @property
    def file(self) -> dict[str, Any]:
        """Its members in the comparison file."""
        found: dict[str, Any] = {"identity": ["n"]} if self.identity else {}
        found |= {"known_differences": list(self.rules)} if self.rules else {}
        return found | ({"equality": {"tolerance": {"v": {"abs": WITHIN}}}} if self.tolerant else {})

    def names(self, fault: Planted) -> frozenset[str]:
        """What the difference may be called that a fault makes."""
        found = _NAMES[fault.fault]
        if fault.fault in ("field", "stray") and not self.identity:
            return HALVES | found if self.tolerant else HALVES  # What is alike is about the same thing.
        late = fault.fault == "move" and (fault.end - fault.begin) * self.step_ms >= SOON_MS
        return found | HALVES if late or self._explains_a_half(fault) else found

    def _explains_a_half(self, fault: Planted) -> bool:
        """Whether a rule may explain the half that comes first, so that the other is what it is then."""
        late = self.asks_for("extra") and not self._amply("missing", 2)
        alone = self.asks_for("missing") and not any(map(self.asks_for, ("reordered", "extra", "duplicate")))
        return fault.fault in ("reorder", "move") and (late or alone)

    def explains_meanwhile(self, faults: Sequence[Planted]) -> bool:
        """Whether a rule may cover one half of an event that moved far until the other half comes."""
        return any(
            HALVES & set(rule["when"]["divergences"])
            and any(_is_about(rule, event) for event in fault.events)
            for rule in self._in_force()
            for fault in faults
            if fault.fault == "move" and fault.end - fault.begin >= MEETING_RUN
        )

    def may_explain(self, faults: Sequence[Planted]) -> bool:
        """Whether a rule may cover what any of the faults makes."""
        return any(
            self.names(fault) & set(rule["when"]["divergences"])
            and any(_is_about(rule, event) for event in fault.events)
            for rule in self._in_force()
            for fault in faults
        )

    def must_explain(self, faults: Sequence[Planted]) -> bool:
        """Whether rules cover all that the faults make, whatever it is called."""
        most = 2 * len(faults)
        return all(self._amply(name, most) for fault in faults for name in self.names(fault))

    def _amply(self, kind: str, count: int) -> bool:
        """Whether a rule covers so many differences of a kind, wherever they are."""
        return any(
            kind in rule["when"]["divergences"]
            and "where" not in rule["when"]
            and rule["ceiling"].get("count", 0) >= count
            for rule in self._in_force()
        )

    def asks_for(self, kind: str) -> bool:
        """Whether a rule names a kind of difference."""
        return any(kind in rule["when"]["divergences"] for rule in self._in_force())

    def _in_force(self) -> list[Rule]:
        return [rule for rule in self.rules if rule["expires"] != EXPIRED]


NOTHING = Declared()


def _is_about(rule: Rule, event: Event) -> bool:
    """Whether an event is what a rule asks for."""
    where = rule["when"].get("where", {})
    return all(
        event[name] in (wanted if isinstance(wanted, list) else [wanted]) for name, wanted in where.items()
    )


def declared(
    scheduler: Scheduler, *, rules: bool, tolerant: bool, needs_identity: bool, step_ms: int
) -> Declared:
    """What a file declares; `rules`: also known differences."""
    random = scheduler.apart("differences")
    identity = random.random() < (0.5 if tolerant else 0.9) or needs_identity
    known = _rules(random, tolerant=tolerant, identity=identity) if rules else ()
    return Declared(known, tolerant, identity, step_ms)


def _rules(random: Random, *, tolerant: bool, identity: bool) -> tuple[Rule, ...]:
    """One to three rules, of which several may fit one difference; none names a copy beside a tolerance."""
    kinds = tuple(kind for kind in KINDS if kind != "duplicate" or not tolerant)
    numbers = range(random.choice((1, 1, 2, 3)))
    return tuple(_rule(random, kinds, f"rule-{number}", identity=identity) for number in numbers)


def _rule(random: Random, kinds: tuple[str, ...], name: str, *, identity: bool) -> Rule:
    named = random.sample(kinds, min(random.choice((1, 2, 2, 3, 5)), len(kinds)))
    when: dict[str, Any] = {"divergences": named}
    if random.random() < 0.25:
        when["where"] = random.choice(PLACES)
    if identity and "changed" in named and random.random() < 0.3:
        when["fields"] = ["v"]
    expires, ceiling = EXPIRED if random.random() < 0.1 else IN_FORCE, random.choice(CEILINGS)
    return {"id": name, "when": when, "owner": "somebody", "expires": expires, "ceiling": ceiling}
