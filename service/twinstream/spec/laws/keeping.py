"""The laws of `keep: hashes`: what is refused because only digests of events are held (see `digests`)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations

from twinstream.spec.file.model import Spec
from twinstream.spec.file.orders import CallableOrder, Dependent, nodes
from twinstream.spec.file.paths import overlap
from twinstream.spec.file.values import Breach, Location, dotted

WHY = "with `keep: hashes` only digests of values are held, which tell whether two are equal and no more"
CURE = "take it out, or leave `keep` out"


def keeping_laws(spec: Spec) -> Iterator[Breach]:
    """Every declaration of a file that needs more than digests, with what it needs."""
    if spec.keep == "records":
        return
    for at, what in chain(_of_order(spec), _of_values(spec), _of_fields(spec)):
        yield Breach(("keep",), f"{WHY}, and `{dotted(at)}` {what}: {CURE}")


def _of_order(spec: Spec) -> Iterator[tuple[Location, str]]:
    for node in nodes(spec.order, spec.compared_kinds):
        if isinstance(node.order, CallableOrder):
            yield (*node.at, "callable"), "needs the values"
        rules = node.order.rules if isinstance(node.order, Dependent) else ()
        for n, rule in enumerate(rules):
            if rule.within or rule.before:
                yield (*node.at, "dependent", n), "needs the times"


def _of_values(spec: Spec) -> Iterator[tuple[Location, str]]:
    for at, equality in spec.equalities:
        if equality.tolerance:
            yield (*at, "tolerance"), "needs the numbers"
    for n, rule in enumerate(spec.known_differences):
        if rule.when.where or rule.when.fields:
            name = "where" if rule.when.where else "fields"
            yield ("known_differences", n, "when", name), "needs the values"
    if spec.start.field is not None:
        yield ("start", "field"), "needs the time"
    for name in ("field", "window_end"):
        if getattr(spec.overdue, name) is not None:
            yield ("overdue", name), "needs the time"


def _of_fields(spec: Spec) -> Iterator[tuple[Location, str]]:
    """Fields must not hold one another: such a field would be known twice."""
    deciding = [decision for decision in spec.decisions if decision.what in ("order", "identity")]
    for one, other in combinations(deciding, 2):
        paths = spec.path_of(one.field), spec.path_of(other.field)
        if paths[0] != paths[1] and overlap(*paths):
            yield other.at, f"names `{other.field}`, beside `{one.field}` that it lies in or holds"
