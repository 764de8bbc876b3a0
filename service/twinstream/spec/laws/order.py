"""The laws of an order by itself: every kind that a node names reaches it, and dependence is symmetric.

A node can name a kind that never reaches it: one misspelt, left out of the comparison, kept by an outer
barrier, or let into another branch. Each is refused: its author would rely on a rule that can never hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from twinstream.spec.file.model import Spec
from twinstream.spec.file.orders import (
    EVERY,
    Barrier,
    Dependent,
    Node,
    PairRule,
    Parallel,
    nodes,
)
from twinstream.spec.file.paths import holds, parse_path
from twinstream.spec.file.values import Breach, Location, dotted, nearest


def order_laws(spec: Spec) -> Iterator[Breach]:
    """The breaches in the order of a file, the outer nodes before the inner."""
    for node in nodes(spec.order, spec.compared_kinds):
        yield from _told_apart(spec, node)
        for kind, at in _named(node):
            yield from _reaches(spec, node, kind, at)
        match node.order:
            case Barrier(barrier=kinds):
                yield from _once(kinds, (*node.at, "barrier"))
                yield from _outermost(node, node.order)
            case Parallel():
                yield from _one_branch(node, node.order)
            case Dependent():
                yield from _symmetric(node, node.order)


def _told_apart(spec: Spec, node: Node) -> Iterator[Breach]:
    """A node that tells events apart by kind needs declared kinds."""
    if isinstance(node.order, (Barrier, Parallel)) and not spec.kinds:
        form = "barrier" if isinstance(node.order, Barrier) else "parallel"
        problem = "tells events apart by their kind, and the file declares none; write `kinds` first"
        yield Breach((*node.at, form), problem)


def _named(node: Node) -> Iterator[tuple[str, Location]]:
    """The kinds that a node names itself, with their places."""
    match node.order:
        case Barrier(barrier=kinds):
            yield from ((kind, (*node.at, "barrier", n)) for n, kind in enumerate(kinds))
        case Parallel(parallel=branches):
            for name, branch in branches.items():
                at = (*node.at, "parallel", name, "kinds")
                yield from ((kind, (*at, n)) for n, kind in enumerate(branch.kinds))
        case Dependent(dependent=rules):
            for n, rule in enumerate(rules):
                pair, more = (rule.pair, ("pair",)) if isinstance(rule, PairRule) else (rule, ())
                yield from ((kind, (*node.at, "dependent", n, *more, i)) for i, kind in enumerate(pair))


def _reaches(spec: Spec, node: Node, kind: str, at: Location) -> Iterator[Breach]:
    if kind in node.kinds or (kind == EVERY and isinstance(node.order, Dependent)):
        return
    if kind not in spec.kind_names:
        near = nearest(kind, spec.kinds)
        hint = f"; did you mean `{near}`?" if near else "" if spec.kinds else "; write it under `kinds` first"
        yield Breach(at, f"`{kind}` is not a declared kind{hint}")
    elif spec.kinds[kind].ignore:
        problem = f"`{kind}` is left out of the comparison by `kinds.{kind}.ignore`, so no order may name it"
        yield Breach(at, problem)
    else:
        yield Breach(at, f"`{kind}` does not come here: {_elsewhere(spec, node, kind)}")


def _elsewhere(spec: Spec, node: Node, kind: str) -> str:
    """The outer node that keeps a kind from coming here, as text."""
    around = [o for o in nodes(spec.order, spec.compared_kinds) if holds(o.at, node.at) and kind in o.kinds]
    outer = around[-1]
    if isinstance(outer.order, Barrier):
        return f"it is a barrier of `{dotted((*outer.at, 'barrier'))}`, further out"
    branch = node.at[: len(outer.at) + 2]
    return f"`{dotted((*branch, 'kinds'))}` does not name it"


def _once(kinds: list[str], at: Location) -> Iterator[Breach]:
    for n, kind in enumerate(kinds):
        if kind in kinds[:n]:
            yield Breach((*at, n), f"names `{kind}` twice")


def _outermost(node: Node, order: Barrier) -> Iterator[Breach]:
    """Copies count the epochs of whole partitions, so everything must depend on such a barrier."""
    if order.copies == "per_partition" and node.at != ("order",):
        problem = (
            "`per_partition` says that a barrier divides whole partitions, so only the outermost form of "
            "`order` can have it; put this barrier there, or leave `copies` out"
        )
        yield Breach((*node.at, "copies"), problem)


def _one_branch(node: Node, order: Parallel) -> Iterator[Breach]:
    """Every kind that reaches the node must be in exactly one branch."""
    branch_of: dict[str, str] = {}
    for name, branch in order.parallel.items():
        at = (*node.at, "parallel", name, "kinds")
        yield from _once(branch.kinds, at)
        for n, kind in enumerate(branch.kinds):
            if branch_of.setdefault(kind, name) != name:
                problem = f"`{kind}` is in two branches, `{branch_of[kind]}` and `{name}`; leave it in one"
                yield Breach((*at, n), problem)
    for kind in node.kinds:
        if kind not in branch_of:
            problem = f"`{kind}` comes here and is in none of the branches; name it in one"
            yield Breach((*node.at, "parallel"), problem)


def _symmetric(node: Node, order: Dependent) -> Iterator[Breach]:
    """A rule that tells first from second must not relate a kind to itself."""
    for place, rule in enumerate(order.rules):
        at, (one, other) = (*node.at, "dependent", place), rule.pair
        if one != other and EVERY not in rule.pair:
            continue
        itself = f"`{one}` with itself"
        if one != other:
            itself = f"two events of one kind, since `{EVERY}` is every kind"
        why = f"the rule is for {itself}: which of the two is the first would decide"
        if rule.before:
            problem = f"`before` asks which event is the earlier, and {why}"
            yield Breach((*at, "before"), f"{problem}; write `within`, or name two kinds")
        for n, (first, second) in enumerate(rule.pairs):
            if parse_path(first) != parse_path(second):
                problem = f"`same` has two names here, `{first}` and `{second}`, and {why}"
                yield Breach((*at, "same", n), f"{problem}; write one field, or name two kinds")
