"""The state of a comparison as plain data, and back.

A snapshot is an in-memory value of lists, numbers, texts and bytes; a checkpoint is one that was stored.
Events are kept as columns of their raw records: their forms are read from the records again, so the stored
state does not depend on how a form is represented. ``restore(snapshot(c))`` behaves as ``c`` from then on,
but for the clock reading at which waiting events were read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from itertools import repeat
from typing import Any, cast

from twinstream.core.comparison import Comparison, Hole
from twinstream.core.events import Event, Form, Side
from twinstream.core.scopes import Scope

FormOf = Callable[[bytes], Form]


def snapshot(comparison: Comparison) -> dict[str, Any]:
    """The whole state of a comparison. Complexity: O(n) in the events it holds."""
    return {
        "accounts": [dict(vars(account)) for account in comparison.accounts],
        "matched": comparison.matched,
        "matched_by_kind": dict(comparison.matched_by_kind),
        "ended": list(comparison.ended),
        "diverged": comparison.diverged,
        "halted": comparison.halted,
        "overflowing": comparison.overflowing,
        "holes": [list(hole) for hole in comparison.holes],
        "closed_by_kind": dict(comparison.closed_by_kind),
        "first_unverifiable": [_pairs(first) for first in comparison.first_unverifiable],
        "newest_matched_ms": list(comparison.newest_matched_ms),
        "clock": comparison.clock.snapshot(),
        "recent": comparison.recent.snapshot(),
        "waiting": [_waiting(comparison, side) for side in Side],
        "scopes": [_scope(scope) for scope in comparison.scopes.values()],
    }


def restore(comparison: Comparison, state: dict[str, Any], form_of: FormOf, read_at: float) -> None:
    """Take over the state of `snapshot` into a comparison that was not fed yet.

    `form_of` reads the form of a record. `read_at` stands for the time at which waiting events were read.
    """
    for account, values in zip(comparison.accounts, state["accounts"], strict=True):
        vars(account).update(values)
    comparison.matched = state["matched"]
    comparison.matched_by_kind = Counter(state["matched_by_kind"])
    comparison.ended = list(state["ended"])
    comparison.diverged, comparison.halted = state["diverged"], state["halted"]
    comparison.overflowing = state["overflowing"]
    comparison.holes = [_hole(*hole) for hole in state["holes"]]
    comparison.closed_by_kind = Counter(state["closed_by_kind"])
    comparison.first_unverifiable = (
        dict(state["first_unverifiable"][0]),
        dict(state["first_unverifiable"][1]),
    )
    comparison.newest_matched_ms = list(state["newest_matched_ms"])
    comparison.clock.restore(state["clock"])
    comparison.recent.restore(state["recent"])
    for side in Side:
        columns = state["waiting"][side]
        for event, since_ms in zip(_events(columns, form_of, read_at), columns["since_ms"], strict=True):
            comparison.lanes.restore(side, event, since_ms)
    for columns in state["scopes"]:
        _restore_scope(comparison, columns, form_of, read_at)


def _waiting(comparison: Comparison, side: Side) -> dict[str, list[Any]]:
    held = list(comparison.lanes.unmatched(side))
    return {**_columns(event for event, _ in held), "since_ms": [since_ms for _, since_ms in held]}


def _scope(scope: Scope) -> dict[str, Any]:
    return {
        "pieces": [_columns(piece) for piece in scope.pieces],
        "tainted": scope.tainted,
        "lost": scope.lost,
        "records": [scope.example],
    }


def _restore_scope(comparison: Comparison, state: dict[str, Any], form_of: FormOf, read_at: float) -> None:
    lane: Hashable = form_of(state["records"][0])[0]
    scope = Scope(lane, comparison.rules.canonical, tainted=state["tainted"])
    comparison.adopt(scope)
    for side in Side:
        for event in _events(state["pieces"][side], form_of, read_at):
            scope.add(side, event)
    scope.example = state["records"][0]
    if state["lost"]:
        scope.lose()


def _columns(events: Iterable[Event]) -> dict[str, list[Any]]:
    rows = list(events)
    return {
        "records": [event[0][3] for event in rows],
        "partitions": [event[1] for event in rows],
        "offsets": [event[2] for event in rows],
        "timestamps_ms": [event[3] for event in rows],
    }


def _events(columns: dict[str, list[Any]], form_of: FormOf, read_at: float) -> Iterable[Event]:
    rows = zip(
        map(form_of, columns["records"]),
        columns["partitions"],
        columns["offsets"],
        columns["timestamps_ms"],
        repeat(read_at),
        strict=False,
    )
    return cast("Iterable[Event]", rows)


def _pairs(mapping: dict[int, int]) -> list[list[int]]:
    return [[key, value] for key, value in mapping.items()]


def _hole(reason: str, side: int | None, partition: int | None, offset: int | None) -> Hole:
    return Hole(reason, None if side is None else Side(side), partition, offset)
