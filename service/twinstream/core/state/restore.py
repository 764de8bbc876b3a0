"""Restores a comparison from its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from twinstream.core.accounting.event_rows import START_OVER, EventReader, by_place
from twinstream.core.comparison import Comparison
from twinstream.core.events import FORM, ROUTE, TIMESTAMP_MS, Event, Form, PartitionOffset, Side
from twinstream.core.overdue.suspected import NOTHING
from twinstream.errors import CheckpointError

FormOf = Callable[[bytes], Form]


@contextmanager
def of_this_version() -> Iterator[None]:
    """Refuse a state by the part that it lacks, which has a name. Raises CheckpointError."""
    try:
        yield
    except KeyError as lacking:
        if not isinstance(lacking.args[0], str):
            raise
        raise CheckpointError(
            f"the stored state has no {lacking}, so another version wrote it: {START_OVER}"
        ) from None


@of_this_version()
def restore(
    comparison: Comparison, state: dict[str, Any], form_of: FormOf, read_at: float, *, timed: bool = False
) -> None:
    """Take over the state of `snapshot` into a comparison that was not fed yet.

    `form_of` reads the form of a record. `read_at` becomes the time at which unmatched events were read, but
    where the state has that time, and it is of the clock of `read_at` (`timed`).
    Raises CheckpointError for a state of another structure.
    """
    reader = EventReader(form_of, read_at, timed)
    comparison.ledger.restore(state)
    comparison.ended[:] = state["ended"]
    comparison.certainty.moment, proven_at, comparison.ending.disputed_at = state["moments"]
    comparison.certainty.restore(state, proven_at)
    comparison.differences.restore(state, reader)
    comparison.overflowing, comparison.cut_short = state["overflowing"], comparison.halted
    for homes, known in zip(comparison.watch.key_partitions, state["homes"], strict=False):
        homes.restore(known)
    if not state.get("keeps_partitions", True):  # An earlier version forgot it.
        comparison.watch.keeps_partitions = False
    comparison.clocks.restore(state)
    comparison.suspected.restore(state.get("suspected", NOTHING))  # An earlier version forgot it.
    if comparison.checks:
        comparison.checks.restore(state["checks"])
    if comparison.bags is not None:
        comparison.bags.restore(state["bags"], form_of)
    _restore_events(comparison, state, reader)


def _restore_events(comparison: Comparison, state: dict[str, Any], reader: EventReader) -> None:
    """Put the unsettled events back where they were."""
    held = [by_place(reader.events(columns)) for columns in state["held"]]
    if comparison.ledger.repeats is not None:
        comparison.ledger.repeats.restore(state["repeats"], held[Side.RIGHT])
    for side in Side:
        unsettled = comparison.ledger.held[side]
        unsettled.came(list(held[side].values()))
        unsettled.settle()
        unsettled.take_changes()
        _restore_waiting(comparison, side, held[side], state)
    for side, apart in zip(Side, state["copies"], strict=False):
        comparison.expect_partitions(side, apart["expected"])
        comparison.copies[side].restore(apart, held[side])
    if comparison.tables is not None:
        comparison.tables.restore(state["tables"], held)
    comparison.open_scopes.restore(state["scopes"], comparison.index, held, reader)
    since_lost = state.get("since_lost", ())  # An earlier version forgot it.
    comparison.open_scopes.restore_since_lost(since_lost, reader)


def _restore_waiting(
    comparison: Comparison, side: Side, held: dict[PartitionOffset, Event], state: dict[str, Any]
) -> None:
    """Put the events back into matching that are in no scope and do not wait for copies of a barrier."""
    apart = {tuple(place) for scope in state["scopes"] for place in scope["places"][side]}
    for columns in state["copies"][side : side + 1]:
        apart.update(map(tuple, columns["places"]))
    if "tables" in state:
        rows = state["tables"]["rows"][side]
        apart.update(zip(rows["partitions"], rows["offsets"], strict=True))
    since_ms_of = {(partition, offset): since_ms for partition, offset, since_ms in state["chains"][side]}
    for place, event in held.items():
        if place not in apart:
            comparison.index.restore(
                side, event, event[FORM][ROUTE], since_ms_of.get(place, event[TIMESTAMP_MS])
            )
