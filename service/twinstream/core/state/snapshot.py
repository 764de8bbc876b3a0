"""The state of a comparison as plain data, and back.

A snapshot is an in-memory value of lists, numbers, texts and bytes; a checkpoint is one that was stored. Each
part of a comparison has a `state` and can `restore` it; here they are put together. `restore(snapshot(c))`
behaves as `c` from then on, but for the clock reading at which waiting events were read.

Almost all of a snapshot is the unsettled events. So there are two kinds: a whole one has all of them under
`held`; a *delta* has those that came and stayed since the snapshot before it, and the places of those that
left. `merged` makes a whole one of a whole one and the deltas behind it. Everything else is small, stands in
each of them, and speaks of events by their place among the unsettled ones.

A whole snapshot of many events takes long. So there need be but one: a *sweep* lets the deltas have some of
the events each that were held when it began; when they have had all, what is before the sweep is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from twinstream.core.accounting.differences import LEFTOVERS
from twinstream.core.accounting.event_rows import (
    EventReader,
    Row,
    by_place,
    columns_of,
    event_columns,
    rows_of,
)
from twinstream.core.arrivals import repeats, replays_state
from twinstream.core.comparison import Comparison
from twinstream.core.events import FORM, ROUTE, TIMESTAMP_MS, Event, Form, PartitionOffset, Side
from twinstream.core.matching import bags

FormOf = Callable[[bytes], Form]


class Sweep(NamedTuple):
    """What a delta has of a sweep: of each side so many events less what changed; whether it is the first.

    Half as many come in any case, so that a sweep ends soon.
    """

    most: int
    first: bool


def snapshot(comparison: Comparison) -> dict[str, Any]:
    """The whole state of a comparison. Complexity: O(n) in the events it holds."""
    comparison.settle()
    held = [comparison.ledger.held.of(side) for side in Side]
    for one in held:
        one.take_changes()
    return {
        **_rest(comparison, whole=True),
        "repeats": _repeats(comparison, held[Side.RIGHT], whole=True),
        "held": list(map(event_columns, held)),
    }


def delta(comparison: Comparison, sweep: Sweep | None = None) -> dict[str, Any]:
    """What changed since the last snapshot of either kind, and of a sweep the next events.

    Complexity: O(n) in the changes and in the events of the sweep.
    """
    comparison.settle()
    held = [comparison.ledger.held.of(side) for side in Side]
    changes = [one.take_changes() for one in held]
    again: list[list[Event]] = []
    if sweep is not None:
        portions = (sweep.most - len(change.added) - len(change.removed) for change in changes)
        least = 1 + sweep.most // 2
        again = [one.sweep(max(least, most)) for one, most in zip(held, portions, strict=True)]
    saved = chain(changes[Side.RIGHT].added, *again[Side.RIGHT :])
    whole = sweep is not None and sweep.first
    return {
        **_rest(comparison, whole=whole),
        "repeats": _repeats(comparison, saved, whole=whole),
        "added": [event_columns(change.added) for change in changes],
        "removed": [list(map(list, change.removed)) for change in changes],
        "again": list(map(event_columns, again)),
    }


def begin_sweep(comparison: Comparison) -> None:
    """Let the deltas from here on have, bit by bit, all that is held now: then none before them is needed.

    Call it right after a `delta`.
    """
    for side in Side:
        comparison.ledger.held.of(side).begin_sweep()


def sweeping(comparison: Comparison) -> bool:
    """Whether some of what was held when the sweep began is not in a delta since."""
    return any(comparison.ledger.held.of(side).sweeping for side in Side)


def merged(whole: dict[str, Any], deltas: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """A whole snapshot and the deltas behind it as one whole snapshot. Complexity: O(n) in all of them.

    The deltas of a whole sweep stand for a whole snapshot, too.
    """
    states = [whole, *deltas]
    if len(states) == 1 and "held" in whole:
        return whole
    held = [_merged(states, side) for side in Side]
    rest = {name: value for name, value in states[-1].items() if name not in ("added", "removed", "again")}
    if rest.get("replays"):
        rest["replays"] = replays_state.merged([state["replays"] for state in states])
    if rest.get("bags"):
        rest["bags"] = bags.merged([state["bags"] for state in states if state.get("bags")])
    if rest.get("repeats"):
        gone = [state["removed"][Side.RIGHT] if "removed" in state else () for state in states]
        rest["repeats"] = repeats.merged([state["repeats"] for state in states], gone)
    for name in (*LEFTOVERS, "homes"):
        rest[name] = next((found for state in reversed(states) if (found := state.get(name))), [])
    return {**rest, "held": held}


def _merged(states: Sequence[dict[str, Any]], side: Side) -> dict[str, list[Any]]:
    """The events of one side: those that only a sweep has came before all others, in its order."""
    swept: dict[PartitionOffset, tuple[Any, ...]] = {}
    rows: dict[PartitionOffset, tuple[Any, ...]] = {}
    for state in states:
        if "held" in state:
            rows = _rows(state["held"][side])
            continue
        for partition, offset in state["removed"][side]:  # a topic that was created anew has places twice
            rows.pop((partition, offset), None)
            swept.pop((partition, offset), None)
        rows.update(_rows(state["added"][side]))
        if state["again"]:  # what has only moved behind the others is among those added, too
            again = _rows(state["again"][side])
            swept.update({place: row for place, row in again.items() if place not in rows})
    return columns_of([*swept.values(), *rows.values()])


def _rows(columns: Mapping[str, Any]) -> dict[PartitionOffset, Row]:
    """The events of some columns by their place, each a row."""
    return {(row[1], row[2]): row for row in rows_of(columns)}


def _rest(comparison: Comparison, *, whole: bool) -> dict[str, Any]:
    """All but the unsettled events; unless `whole`, of replays and leftovers what has changed."""
    ledger, certainty, differences = comparison.ledger, comparison.certainty, comparison.differences
    bags = comparison.bags
    return {
        **ledger.state(),
        **certainty.state(whole=whole),
        **differences.state(whole=whole),
        "ended": list(comparison.ended),
        "moments": [comparison.moment, comparison.diverged_at, comparison.ending.disputed_at],
        "overflowing": comparison.overflowing,
        "homes": [homes.state() for homes in comparison.watch.homes] if whole else [],
        **comparison.clocks.state(),
        "bags": {} if bags is None else bags.state(whole=whole),
        "copies": [copies.state() for copies in comparison.copies],
        "chains": [_chains(comparison, side) for side in Side],
        "scopes": comparison.aside.state(),
    }


def _repeats(comparison: Comparison, events: Iterable[Event], *, whole: bool) -> dict[str, Any]:
    """What the right side has written twice, where that is told."""
    told = comparison.ledger.repeats
    return {} if told is None else told.state(events, whole=whole)


def _chains(comparison: Comparison, side: Side) -> list[list[int]]:
    """The oldest copies of bags that have waited without a break for longer than these copies."""
    chains = comparison.index.chains(side)
    return sorted([copies[0][1], copies[0][2], since_ms] for since_ms, copies in chains)


def restore(comparison: Comparison, state: dict[str, Any], form_of: FormOf, read_at: float) -> None:
    """Take over the state of `snapshot` into a comparison that was not fed yet.

    `form_of` reads the form of a record. `read_at` stands for the time at which waiting events were read.
    """
    reader = EventReader(form_of, read_at)
    comparison.ledger.restore(state)
    comparison.ending.ended = list(state["ended"])
    comparison.moment, proven_at, comparison.ending.disputed_at = state["moments"]
    comparison.certainty.restore(state, proven_at)
    comparison.differences.restore(state, reader)
    comparison.overflowing, comparison.cut_short = state["overflowing"], comparison.halted
    for homes, known in zip(comparison.watch.homes, state.get("homes", ()), strict=False):
        homes.restore(known)
    comparison.clocks.restore(state)
    if comparison.bags is not None and state.get("bags"):
        comparison.bags.restore(state["bags"], form_of)
    _restore_events(comparison, state, reader)


def _restore_events(comparison: Comparison, state: dict[str, Any], reader: EventReader) -> None:
    """Let the unsettled events wait where they did."""
    held = [by_place(reader.events(columns)) for columns in state["held"]]
    if comparison.ledger.repeats is not None:
        comparison.ledger.repeats.restore(state.get("repeats", {}), held[Side.RIGHT])
    for side in Side:
        comparison.ledger.held.came(side, held[side].values())
    comparison.ledger.held.settle()
    for side in Side:
        comparison.ledger.held.of(side).take_changes()
        _restore_waiting(comparison, side, held[side], state)
    for side, apart in zip(Side, state["copies"], strict=False):
        comparison.expect_partitions(side, apart["expected"])
        comparison.copies[side].restore(apart, held[side])
    comparison.aside.restore(state["scopes"], comparison.index, held, reader)


def _restore_waiting(
    comparison: Comparison, side: Side, held: dict[PartitionOffset, Event], state: dict[str, Any]
) -> None:
    """Let events wait that are in no scope and not waiting for copies of a barrier."""
    apart = {tuple(place) for scope in state["scopes"] for place in scope["places"][side]}
    for columns in state["copies"][side : side + 1]:
        apart.update(map(tuple, columns["places"]))
    since_ms_of = {(partition, offset): since_ms for partition, offset, since_ms in state["chains"][side]}
    for place, event in held.items():
        if place not in apart:
            comparison.index.restore(
                side, event, event[FORM][ROUTE], since_ms_of.get(place, event[TIMESTAMP_MS])
            )
