"""Makes snapshots of a comparison: its state as plain data.

A snapshot is an in-memory value of lists, numbers, texts and bytes; a checkpoint is one that was stored. Each
part of a comparison has a `state` and can `restore` it; this room composes them. `restore(snapshot(c))`
behaves as `c` from then on, except for the clock reading at which unmatched events were read: a snapshot has
that only if it is `timed`, and only a process with the same clock can use it.

Almost all of a snapshot is unsettled events. So there are two kinds: a whole one has all of them under
`held`; a *delta* has those that came and stayed since the last snapshot, and the places of those that left.
`merged` makes one whole snapshot of a whole one and the deltas after it. All other state is small, is part of
each snapshot, and refers to unsettled events by place.

A whole snapshot of many events takes long. So one is enough: in a *sweep* each delta also takes some of the
events that were held when it began; once the deltas have all of these, earlier snapshots are not needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from twinstream.core.accounting.event_rows import event_columns
from twinstream.core.comparison import Comparison
from twinstream.core.events import Event, Side


class Sweep(NamedTuple):
    """The part of a sweep in a delta: the `most` events of a side, changes included; whether it is the first.

    At least half as many are swept in any case, so that a sweep ends soon.
    """

    most: int
    first: bool


def snapshot(comparison: Comparison, *, timed: bool = False) -> dict[str, Any]:
    """The whole state of a comparison. Complexity: O(n) in the events it holds."""
    comparison.settle()
    held = comparison.ledger.held
    for one in held:
        one.take_changes()
    return {
        **_rest(comparison, whole=True),
        "repeats": _repeats(comparison, held[Side.RIGHT], whole=True),
        "held": [event_columns(one, timed=timed) for one in held],
    }


def delta(comparison: Comparison, sweep: Sweep | None = None, *, timed: bool = False) -> dict[str, Any]:
    """The changes since the last snapshot of either kind, and the next events of a sweep.

    Complexity: O(n) in the changes and in the events of the sweep.
    """
    comparison.settle()
    held = comparison.ledger.held
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
        "added": [event_columns(change.added, timed=timed) for change in changes],
        "removed": [list(map(list, change.removed)) for change in changes],
        "again": [event_columns(events, timed=timed) for events in again],
    }


def begin_sweep(comparison: Comparison) -> None:
    """Begin a sweep: the next deltas will include all events held now, and make earlier ones unnecessary.

    Call it right after a `delta`.
    """
    for held in comparison.ledger.held:
        held.begin_sweep()


def sweeping(comparison: Comparison) -> bool:
    """Whether some events that were held when the sweep began are not in a delta yet."""
    return any(held.sweeping for held in comparison.ledger.held)


def _rest(comparison: Comparison, *, whole: bool) -> dict[str, Any]:
    """The state without the unsettled events; unless `whole`, of some parts only changes."""
    ledger, certainty, differences = comparison.ledger, comparison.certainty, comparison.differences
    bags = comparison.bags
    return {
        **ledger.state(),
        **certainty.state(whole=whole),
        **differences.state(whole=whole),
        "ended": list(comparison.ended),
        "moments": [certainty.moment, certainty.proven.at, comparison.ending.disputed_at],
        "overflowing": comparison.overflowing,
        "homes": [homes.state(whole=whole) for homes in comparison.watch.key_partitions],
        "keeps_partitions": comparison.watch.keeps_partitions,
        **comparison.clocks.state(),
        "suspected": comparison.suspected.state(),
        "bags": {} if bags is None else bags.state(whole=whole),
        "copies": [copies.state() for copies in comparison.copies],
        **({} if comparison.tables is None else {"tables": comparison.tables.state(whole=whole)}),
        "chains": [_chains(comparison, side) for side in Side],
        "scopes": comparison.open_scopes.state(),
        "since_lost": comparison.open_scopes.since_lost(whole=whole),
        **({"checks": comparison.checks.state(whole=whole)} if comparison.checks else {}),
    }


def _repeats(comparison: Comparison, events: Iterable[Event], *, whole: bool) -> dict[str, Any]:
    """The state of repeats, where the rules ask for them."""
    told = comparison.ledger.repeats
    return {} if told is None else told.state(events, whole=whole)


def _chains(comparison: Comparison, side: Side) -> list[list[int]]:
    """The places of the oldest copies of chains (see `Index.chains`), each with the chain's time."""
    chains = comparison.index.chains(side)
    return sorted([copies[0][1], copies[0][2], since_ms] for since_ms, copies in chains)
