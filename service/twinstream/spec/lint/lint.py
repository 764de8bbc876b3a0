"""Reports what a comparison file amounts to: which kinds depend on which, the index, the cost of an event.

A file that loads is valid. Its consequences show whether it says what its author means: the matrix of kinds,
the index, whether the work can be divided, and the cautions (`cautions`).

Rules of this file: everything is derived from the model, or from the index that the service itself would
build. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

from twinstream.core.order import BARRIER, Branches, Epochs, Keyed, Lanes, Pairwise, Ruled
from twinstream.core.order import Order as Index
from twinstream.errors import DecodeError
from twinstream.spec.codec.routes import routing_of
from twinstream.spec.decode.records import Records
from twinstream.spec.file.checks import Check
from twinstream.spec.file.model import Spec
from twinstream.spec.file.paths import Path, put
from twinstream.spec.lint.cautions import Note, cautions
from twinstream.spec.lint.relations import when
from twinstream.spec.lint.sharding import Division, division
from twinstream.spec.load import digest

OPERATIONS: Mapping[str, tuple[int, str]] = {
    "bag": (350, "finds its partner in the queue of equal events"),
    "queue": (350, "finds its partner in the queue of its key"),
    "epoch": (200, "looks up the open epoch"),
    "barrier": (1000, "closes an epoch and opens the next"),
    "key": (250, "looks up the index of its key"),
    "branch": (150, "looks up the index of its branch"),
    "rules": (1000, "finds its partner by value"),
    "rule": (500, "finds the oldest event that a rule makes it depend on"),
    "rule with times": (4500, "finds the oldest event that a rule makes it depend on, in a range of times"),
    "table": (8000, "replaces the row of its key until the last row is known"),
    "function": (1000, "calls the function for each unmatched event"),
}
"""What an index does for an event, and the time that this takes on a core of a usual server, in nanoseconds.

With up to 10,000 unmatched events. Measured by ``loadtest.matching`` and rounded up: for orientation, no
promise. Reading the record is extra.
"""


class PairDependence(NamedTuple):
    """When events of two kinds are dependent: `never`, `always`, or a condition."""

    first: str
    second: str
    when: str


class Step(NamedTuple):
    """One operation of an index for an event, and how often it runs."""

    operation: str
    times: int = 1

    @property
    def meaning(self) -> str:
        """What the operation does, to be read behind "the event"."""
        more = f" ({self.times} of them)" if self.times > 1 else ""
        return f"{OPERATIONS[self.operation][1]}{more}"


class Cost(NamedTuple):
    """The work of the index for an event of a kind. `nanoseconds` is None if it grows with the unmatched."""

    kind: str
    steps: tuple[Step, ...]
    nanoseconds: int | None


@dataclass(frozen=True)
class LintReport:
    """The report on a comparison file. `topics` and `refused` are filled if topics were examined."""

    name: str
    spec_digest: str
    order: str
    kinds: tuple[str, ...]
    matrix: tuple[PairDependence, ...]
    costs: tuple[Cost, ...]
    division: Division
    warnings: tuple[Note, ...]
    refused: tuple[Note, ...] = ()
    checks: tuple[Note, ...] = ()
    topics: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data: what ``twinstream lint --json`` prints."""
        named = {"division": "sharding"}
        return {named.get(name, name): _plain(member) for name, member in vars(self).items()}


def _plain(value: Any) -> Any:
    """A part of a report as plain data."""
    if hasattr(value, "_asdict"):
        return {name: _plain(member) for name, member in value._asdict().items()}
    return list(map(_plain, value)) if isinstance(value, tuple) else value


def lint(spec: Spec, today: date) -> LintReport:
    """The report on a loaded comparison file.

    Raises SpecError if its function is not found, or a schema file cannot be used.
    """
    Records(spec)
    kinds = spec.compared_kinds
    return LintReport(
        name=spec.name,
        spec_digest=digest(spec),
        order=spec.order_text,
        kinds=kinds,
        matrix=tuple(
            PairDependence(first, second, when(spec.order, first, second))
            for first, second in combinations_with_replacement(kinds, 2)
        ),
        costs=tuple(costs(spec)),
        division=division(spec),
        warnings=tuple(cautions(spec, today)),
        checks=tuple(Note(check.id, f"{check.text}; {_effect(check)}") for check in spec.all_checks),
    )


def _effect(check: Check) -> str:
    """What a violation does, and on which sides it is looked for."""
    sides = "both sides" if check.side == "both" else f"the {check.side} alone"
    return f"{sides}, gate: {check.gate}"


# -- the index ---------------------------------------------------------------------------------------------


def costs(spec: Spec) -> Iterator[Cost]:
    """The work of the index for an event of each compared kind."""
    routing = routing_of(spec)
    value = _value_with_fields([spec.path_of(field) for field in spec.order_fields])
    for kind in spec.compared_kinds:
        try:
            steps = tuple(_steps(routing.order, routing.route(kind, value, b"")))
            if spec.folding is not None and kind in spec.row_kinds:
                steps = (Step("table"), *steps)
        except DecodeError:
            continue  # one field is read both as a time and as an object: no event is like that
        grows = any(step.operation == "function" for step in steps)
        spent = sum(OPERATIONS[step.operation][0] * step.times for step in steps)
        yield Cost(kind, steps, None if grows else spent)


def _value_with_fields(paths: Sequence[Path]) -> dict[str, Any]:
    """A value that has every field: its route is that of any event, except for the keys."""
    value: dict[str, Any] = {}
    for path in sorted(paths, key=len, reverse=True):
        put(value, path, 0)
    return value


def _steps(index: Index, route: Any) -> Iterator[Step]:
    match index:
        case Lanes():
            yield Step("bag" if type(route) is bytes else "queue")
        case Epochs() if route is BARRIER:
            yield Step("barrier")
        case Epochs(inner=inner):
            yield Step("epoch")
            yield from _steps(inner, route)
        case Keyed(inner=inner):
            yield Step("key")
            yield from _steps(inner, route[1])
        case Branches(orders=orders):
            yield Step("branch")
            yield from _steps(orders[route[0]], route[1])
        case Ruled():
            yield Step("rules")
            timed = sum(part.timed for part in route.plan.parts)
            if plain := len(route.plan.parts) - timed:
                yield Step("rule", plain)
            if timed:
                yield Step("rule with times", timed)
        case Pairwise():
            yield Step("function")
