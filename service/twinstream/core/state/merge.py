"""Merges stored snapshots: a whole one and the deltas after it become one whole snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from twinstream.core.accounting.differences import LEFTOVERS
from twinstream.core.accounting.event_rows import COLUMNS, READ_TIMES, Row, columns_of, rows_of
from twinstream.core.arrivals import key_partitions, repeats, replays_state
from twinstream.core.checks import checks
from twinstream.core.events import PartitionOffset, Side
from twinstream.core.matching import bags
from twinstream.core.tables import settled


def merged(whole: dict[str, Any], deltas: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """A whole snapshot and the deltas after it as one whole snapshot. Complexity: O(n) in all of them.

    The deltas of a whole sweep replace a whole snapshot, too.
    """
    states = [whole, *deltas]
    if len(states) == 1 and "held" in whole:
        return whole
    held = [_merged(states, side) for side in Side]
    rest = {name: value for name, value in states[-1].items() if name not in ("added", "removed", "again")}
    if rest["replays"]:
        rest["replays"] = replays_state.merged([state["replays"] for state in states])
    if "tables" in rest:
        changes = [state["tables"]["settled"] for state in states]
        rest["tables"] = {**rest["tables"], "settled": settled.merged(changes)}
    if rest["bags"]:
        rest["bags"] = bags.merged([state["bags"] for state in states])
    if rest["repeats"]:
        gone = [state["removed"][Side.RIGHT] if "removed" in state else () for state in states]
        rest["repeats"] = repeats.merged([state["repeats"] for state in states], gone)
    if "checks" in rest:
        rest["checks"] = checks.merged([state["checks"] for state in states])
    homes = [state["homes"] for state in states if state["homes"]]  # Earlier versions had none in a delta.
    rest["homes"] = list(map(key_partitions.merged, zip(*homes, strict=True)))
    for name in LEFTOVERS:
        rest[name] = next((state[name] for state in reversed(states) if state[name]), [])
    kept = (state.get("since_lost") for state in reversed(states))
    rest["since_lost"] = next((rows for rows in kept if rows is not None), [])
    return {**rest, "held": held}


def _merged(states: Sequence[dict[str, Any]], side: Side) -> dict[str, list[Any]]:
    """The events of one side: first those that only a sweep has, in its order, then all others."""
    names = _names(states, side)
    swept: dict[PartitionOffset, tuple[Any, ...]] = {}
    rows: dict[PartitionOffset, tuple[Any, ...]] = {}
    for state in states:
        if "held" in state:
            rows = _rows(state["held"][side], names)
            continue
        for partition, offset in state["removed"][side]:  # One that only moved is also added.
            rows.pop((partition, offset), None)
            swept.pop((partition, offset), None)
        rows.update(_rows(state["added"][side], names))
        if state["again"]:  # Events that only moved behind the others are among those added, too.
            again = _rows(state["again"][side], names)
            swept.update({place: row for place, row in again.items() if place not in rows})
    return columns_of([*swept.values(), *rows.values()], names)


def _names(states: Sequence[dict[str, Any]], side: Side) -> Sequence[str]:
    """The columns of events that all states have."""
    parts = (state[name][side] for state in states for name in ("held", "added", "again") if state.get(name))
    return (*COLUMNS, READ_TIMES) if all(READ_TIMES in columns for columns in parts) else COLUMNS


def _rows(columns: Mapping[str, Any], names: Sequence[str]) -> dict[PartitionOffset, Row]:
    """The rows of some columns, by place."""
    return {(row[1], row[2]): row for row in rows_of(columns, names)}
