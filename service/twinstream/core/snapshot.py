"""The state of a comparison as plain data, and back.

A snapshot is an in-memory value of lists, numbers, texts and bytes; a checkpoint is one that was stored.
Events are kept as columns of their raw records: their forms are read from the records again, so the stored
state does not depend on how a form is represented. ``restore(snapshot(c))`` behaves as ``c`` from then on,
but for the clock reading at which waiting events were read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, cast

from twinstream.core.accounts import Hole
from twinstream.core.comparison import Comparison
from twinstream.core.events import Event, Form, Side
from twinstream.core.findings import Finding
from twinstream.core.ledger import Divergence
from twinstream.core.orders import nodes
from twinstream.core.scopes import Scope

FormOf = Callable[[bytes], Form]


def snapshot(comparison: Comparison) -> dict[str, Any]:
    """The whole state of a comparison. Complexity: O(n) in the events it holds."""
    return {
        "accounts": [dict(vars(account)) for account in comparison.ledger.accounts],
        "matched": comparison.ledger.matched,
        "matched_by_kind": dict(comparison.ledger.matched_by_kind),
        "ended": list(comparison.ended),
        "moments": [comparison.moment, comparison.diverged_at, comparison.disputed_at],
        "known_hits": comparison.ledger.known.hits,
        "halted": comparison.halted,
        "overflowing": comparison.overflowing,
        "holes": [list(hole) for hole in comparison.holes],
        "closed_by_kind": dict(comparison.ledger.closed_by_kind),
        "found_by_kind": dict(comparison.ledger.found_by_kind),
        "strays": [_strays(comparison, side) for side in Side],
        "first_unverifiable": [_pairs(first) for first in comparison.ledger.first_unverifiable],
        "newest_matched_ms": list(comparison.ledger.newest_matched_ms),
        "clock": comparison.clock.snapshot(),
        "recent": comparison.ledger.recent.snapshot(),
        "copies": [_copies(comparison, side) for side in Side] if comparison.copies else [],
        "waiting": [_waiting(comparison, side) for side in Side],
        "scopes": [_scope(comparison, scope) for scope in comparison.scopes],
    }


def restore(comparison: Comparison, state: dict[str, Any], form_of: FormOf, read_at: float) -> None:
    """Take over the state of `snapshot` into a comparison that was not fed yet.

    `form_of` reads the form of a record. `read_at` stands for the time at which waiting events were read.
    """
    for account, values in zip(comparison.ledger.accounts, state["accounts"], strict=True):
        vars(account).update(values)
    comparison.ledger.matched = state["matched"]
    comparison.ledger.matched_by_kind = Counter(state["matched_by_kind"])
    comparison.ended = list(state["ended"])
    comparison.moment, comparison.ledger.diverged_at, comparison.disputed_at = state["moments"]
    comparison.ledger.known.hits.update(state["known_hits"])
    comparison.halted, comparison.overflowing = state["halted"], state["overflowing"]
    comparison.cut_short = comparison.halted
    comparison.holes = [_hole(*hole) for hole in state["holes"]]
    comparison.ledger.closed_by_kind = Counter(state["closed_by_kind"])
    comparison.ledger.found_by_kind = Counter(state["found_by_kind"])
    comparison.ledger.first_unverifiable = (
        dict(state["first_unverifiable"][0]),
        dict(state["first_unverifiable"][1]),
    )
    comparison.ledger.newest_matched_ms = list(state["newest_matched_ms"])
    comparison.clock.restore(state["clock"])
    comparison.ledger.recent.restore(state["recent"])
    for side in Side:
        columns = state["waiting"][side]
        for event, since_ms in zip(_events(columns, form_of, read_at), columns["since_ms"], strict=True):
            comparison.index.restore(side, event, event[0][0], since_ms)
    for side, columns in zip(Side, state["copies"], strict=False):
        comparison.expect_partitions(side, columns["expected"])
        for event in _events(columns, form_of, read_at):
            comparison.copies[side].arrange(event[1], (event,))
    for columns in state["scopes"]:
        _restore_scope(comparison, columns, form_of, read_at)
    for side in Side:
        _restore_strays(comparison, side, state["strays"][side], form_of, read_at)


def _waiting(comparison: Comparison, side: Side) -> dict[str, list[Any]]:
    held = list(comparison.index.unmatched(side))
    return {**_columns(event for event, _ in held), "since_ms": [since_ms for _, since_ms in held]}


def _copies(comparison: Comparison, side: Side) -> dict[str, Any]:
    copies = comparison.copies[side]
    return {**_columns(copies), "expected": sorted(copies.partitions)}


def _scope(comparison: Comparison, scope: Scope) -> dict[str, Any]:
    order = next(n for n, node in enumerate(nodes(comparison.rules.order)) if node.order is scope.order)
    return {
        "order": order,
        "pieces": [_columns(piece) for piece in scope.pieces],
        "tainted": scope.tainted,
        "disputed": scope.disputed,
        "moment": scope.moment,
        "lost": scope.lost,
        "example": _columns([scope.example] if scope.example is not None else []),
    }


def _restore_scope(comparison: Comparison, state: dict[str, Any], form_of: FormOf, read_at: float) -> None:
    order, depth = nodes(comparison.rules.order)[state["order"]]
    scope = Scope(comparison.index, order, depth, comparison.rules.canonical)
    scope.tainted, scope.disputed, scope.moment = state["tainted"], state["disputed"], state["moment"]
    (scope.example,) = _events(state["example"], form_of, read_at)
    comparison.scopes[scope] = None
    comparison.index.adopt(scope, scope.example[0][0])
    for side in Side:
        for event in _events(state["pieces"][side], form_of, read_at):
            scope.add(side, event)
    (scope.example,) = _events(state["example"], form_of, read_at)
    if state["lost"]:
        scope.lose()


def _strays(comparison: Comparison, side: Side) -> dict[str, Any]:
    strays = list(comparison.ledger.strays.all(side))
    return {
        **_columns(stray.finding.event for stray in strays),
        "witnesses": [_columns(event for _, event in stray.finding.witness) for stray in strays],
        "kinds": [stray.finding.kind for stray in strays],
        "tainted": [stray.tainted for stray in strays],
        "numbers": [stray.number for stray in strays],
    }


def _restore_strays(
    comparison: Comparison, side: Side, state: dict[str, Any], form_of: FormOf, read_at: float
) -> None:
    rows = zip(
        _events(state, form_of, read_at),
        state["witnesses"],
        state["kinds"],
        state["tainted"],
        state["numbers"],
        strict=True,
    )
    for event, witness, kind, tainted, number in rows:
        proof = tuple(zip(Side, _events(witness, form_of, read_at), strict=False))
        finding = Finding(
            kind, event if side is Side.LEFT else None, event if side is Side.RIGHT else None, proof
        )
        letter = comparison.rules.canonical(event[0][1])
        comparison.ledger.strays.note(side, letter, Divergence(finding, tainted, finding, number))


def _columns(events: Iterable[Event]) -> dict[str, list[Any]]:
    rows = list(events)
    return {
        "records": [event[0][3] for event in rows],
        "partitions": [event[1] for event in rows],
        "offsets": [event[2] for event in rows],
        "timestamps_ms": [event[3] for event in rows],
        "marks": [event[5] for event in rows],
    }


def _events(columns: dict[str, list[Any]], form_of: FormOf, read_at: float) -> Iterable[Event]:
    rows = zip(
        map(form_of, columns["records"]),
        columns["partitions"],
        columns["offsets"],
        columns["timestamps_ms"],
        repeat(read_at),
        columns["marks"],
        strict=False,
    )
    return cast("Iterable[Event]", rows)


def _pairs(mapping: dict[int, int]) -> list[list[int]]:
    return [[key, value] for key, value in mapping.items()]


def _hole(reason: str, side: int | None, partition: int | None, offset: int | None) -> Hole:
    return Hole(reason, None if side is None else Side(side), partition, offset)
