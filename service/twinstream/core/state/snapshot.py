"""The state of a comparison as plain data, and back.

A snapshot is an in-memory value of lists, numbers, texts and bytes; a checkpoint is one that was stored.
Events are kept as columns of their raw records: their forms are read from the records again, so the stored
state does not depend on how a form is represented. ``restore(snapshot(c))`` behaves as ``c`` from then on,
but for the clock reading at which waiting events were read.

Almost all of a snapshot is the unsettled events. So there are two kinds: a whole one has all of them under
``held``; a *delta* has those that came and stayed since the snapshot before it, and the places of those that
left. `merged` makes a whole one of a whole one and the deltas behind it. Everything else is small, stands in
each of them, and speaks of events by their place among the unsettled ones.

A whole snapshot of many events takes long. So there need be but one: a *sweep* lets the deltas have some of
the events each that were held when it began; when they have had all, what is before the sweep is not needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, NamedTuple, cast

from twinstream.core.accounting.halves import Divergence, Half
from twinstream.core.accounting.match_timeline import united
from twinstream.core.accounting.unpaired import Reach, Unpaired
from twinstream.core.accounts import Hole
from twinstream.core.arrivals import repeats, replays_state
from twinstream.core.arrivals.barrier_copies import Copies
from twinstream.core.comparison import Comparison
from twinstream.core.diagnosis.findings import Finding
from twinstream.core.diagnosis.scope import NOTHING, Scope
from twinstream.core.events import Event, Form, PartitionOffset, Side
from twinstream.core.matching import bags
from twinstream.core.order import nodes
from twinstream.core.state.event_rows import COLUMNS, Row, columns_of, rows_of


class Sweep(NamedTuple):
    """What a delta has of a sweep: of each side so many events less what changed; whether it is the first.

    Half as many come in any case, so that a sweep ends soon.
    """

    most: int
    first: bool


LEFTOVERS = ("strays", "lone", "disputed", "explained")
"""What is remembered of differences in case their other half comes."""
FormOf = Callable[[bytes], Form]
_PLAIN = (1, 2, 3, 5)
"""Where the columns behind that of the records stand in an event."""


def snapshot(comparison: Comparison) -> dict[str, Any]:
    """The whole state of a comparison. Complexity: O(n) in the events it holds."""
    comparison.settle()
    held = [comparison.ledger.held.of(side) for side in Side]
    for one in held:
        one.take_changes()
    return {
        **_rest(comparison, whole=True),
        "repeats": _repeats(comparison, held[Side.RIGHT], whole=True),
        "held": [_columns(one) for one in held],
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
        "added": [_columns(change.added) for change in changes],
        "removed": [list(map(list, change.removed)) for change in changes],
        "again": list(map(_columns, again)),
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


def _rest(comparison: Comparison, *, whole: bool) -> dict[str, Any]:
    """All but the unsettled events; unless `whole`, of replays and strays what has changed."""
    return {
        "accounts": [dict(vars(account)) for account in comparison.ledger.accounts],
        "matched": comparison.ledger.matched,
        "matched_by_kind": dict(comparison.ledger.matched_by_kind),
        "stretches": comparison.ledger.stretches.state(),
        "ended": list(comparison.ended),
        "moments": [comparison.moment, comparison.diverged_at, comparison.disputed_at],
        "known_hits": comparison.ledger.known.hits,
        "known_ceilings": comparison.ledger.known.state(),
        "halted": comparison.halted,
        "overflowing": comparison.overflowing,
        "holes": [list(hole) for hole in comparison.holes],
        "unclear": comparison.ledger.unclear,
        "closed_by_kind": dict(comparison.ledger.closed_by_kind),
        "found_by_kind": dict(comparison.ledger.found_by_kind),
        "doubts": comparison.ledger.doubts(),
        "homes": [homes.snapshot() for homes in comparison.watch.homes] if whole else [],
        **{name: _strays(getattr(comparison.ledger, name), whole=whole) for name in LEFTOVERS},
        "first_unverifiable": [_pairs(first) for first in comparison.ledger.first_unverifiable],
        "newest_matched_ms": list(comparison.ledger.newest_matched_ms),
        "given_up": list(comparison.ledger.given_up),
        "clock": comparison.clock.snapshot(),
        "passing": comparison.passing.snapshot() if comparison.passing is not None else {},
        "progress": comparison.progress.snapshot() if comparison.progress is not None else [],
        "recent": comparison.ledger.recent.snapshot(),
        "replays": comparison.retries.snapshot(whole=whole) if comparison.retries is not None else {},
        "bags": comparison.bags.state(whole=whole) if comparison.bags is not None else {},
        "copies": [_copies(comparison, side) for side in Side] if comparison.copies else [],
        "chains": [_chains(comparison, side) for side in Side],
        "scopes": [_scope(comparison, scope) for scope in comparison.scopes],
    }


def _repeats(comparison: Comparison, events: Iterable[Event], *, whole: bool) -> dict[str, Any]:
    """What the right side has written twice, where that is told."""
    told = comparison.ledger.repeats
    return {} if told is None else told.snapshot(events, whole=whole)


def restore(comparison: Comparison, state: dict[str, Any], form_of: FormOf, read_at: float) -> None:
    """Take over the state of `snapshot` into a comparison that was not fed yet.

    `form_of` reads the form of a record. `read_at` stands for the time at which waiting events were read.
    """
    for account, values in zip(comparison.ledger.accounts, state["accounts"], strict=True):
        vars(account).update(values)
    comparison.ledger.matched = state["matched"]
    comparison.ledger.matched_by_kind = Counter(state["matched_by_kind"])
    comparison.ledger.stretches = united(filter(None, [state.get("stretches")]))
    comparison.ended = list(state["ended"])
    comparison.moment, comparison.ledger.diverged_at, comparison.disputed_at = state["moments"]
    comparison.ledger.known.restore(state["known_hits"], state.get("known_ceilings"))
    comparison.ledger.halted, comparison.overflowing = state["halted"], state["overflowing"]
    comparison.cut_short = comparison.halted
    comparison.ledger.holes = list(map(Hole.of, state["holes"]))
    comparison.ledger.unclear = state.get("unclear", 0)
    comparison.ledger.closed_by_kind = Counter(state["closed_by_kind"])
    comparison.ledger.found_by_kind = Counter(state["found_by_kind"])
    comparison.ledger.first_unverifiable = (
        dict(state["first_unverifiable"][0]),
        dict(state["first_unverifiable"][1]),
    )
    comparison.ledger.newest_matched_ms = list(state["newest_matched_ms"])
    comparison.ledger.given_up = list(state.get("given_up", (0, 0)))
    comparison.ledger.restore_doubts(state.get("doubts", {}))
    for homes, known in zip(comparison.watch.homes, state.get("homes", ()), strict=False):
        homes.restore(known)
    _restore_clocks(comparison, state)
    comparison.ledger.recent.restore(state["recent"])
    _restore_held_back(comparison, state, form_of)
    held = [
        {(event[1], event[2]): event for event in _events(columns, form_of, read_at)}
        for columns in state["held"]
    ]
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
        _restore_copies(comparison.copies[side], apart, held[side])
    for columns in state["scopes"]:
        _restore_scope(comparison, columns, held, form_of, read_at)
    for name in LEFTOVERS:
        _restore_strays(comparison, getattr(comparison.ledger, name), state.get(name), form_of, read_at)


def _restore_copies(copies: Copies, state: dict[str, Any], held: dict[PartitionOffset, Event]) -> None:
    copies.lacking = frozenset(state.get("lacking", ()))
    for partition, offset in state["places"]:
        copies.restore(partition, held[partition, offset])


def _restore_held_back(comparison: Comparison, state: dict[str, Any], form_of: FormOf) -> None:
    if comparison.retries is not None and state.get("replays"):
        comparison.retries.restore(state["replays"])
    if comparison.bags is not None and state.get("bags"):
        comparison.bags.restore(state["bags"], form_of)


def _restore_clocks(comparison: Comparison, state: dict[str, Any]) -> None:
    comparison.clock.restore(state["clock"])
    if comparison.passing is not None:
        comparison.passing.restore(state.get("passing", {}))
    # Earlier it was a part of the clock.
    said = state.get("progress") or state.get("passing", {}).get("progress")
    if comparison.progress is not None and said:
        comparison.progress.restore(said)


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
            comparison.index.restore(side, event, event[0][0], since_ms_of.get(place, event[3]))


def _chains(comparison: Comparison, side: Side) -> list[list[int]]:
    """The oldest copies of bags that have waited without a break for longer than these copies."""
    chains = comparison.index.chains(side)
    return sorted([copies[0][1], copies[0][2], since_ms] for since_ms, copies in chains)


def _copies(comparison: Comparison, side: Side) -> dict[str, Any]:
    copies = comparison.copies[side]
    return {
        "places": [[partition, event[2]] for partition, event in copies.in_order()],
        "expected": sorted(copies.partitions),
        "lacking": sorted(copies.lacking),
    }


def _scope(comparison: Comparison, scope: Scope) -> dict[str, Any]:
    order = next(n for n, node in enumerate(nodes(comparison.rules.order)) if node.order is scope.order)
    return {
        "order": order,
        "places": [_places(piece) for piece in scope.pieces],
        "tainted": scope.tainted,
        "needs": None if scope.needs is None else [list(batch) for batch in sorted(scope.needs)],
        "disputed": scope.disputed,
        "moment": scope.moment,
        "lost": scope.lost,
        "gathering": scope.gathering,
        "example": _columns([scope.example] if scope.example is not None else []),
    }


def _restore_scope(
    comparison: Comparison,
    state: dict[str, Any],
    held: Sequence[dict[PartitionOffset, Event]],
    form_of: FormOf,
    read_at: float,
) -> None:
    order, depth = nodes(comparison.rules.order)[state["order"]]
    scope = Scope(comparison.index, order, depth, comparison.rules)
    scope.tainted, scope.disputed, scope.moment = state["tainted"], state["disputed"], state["moment"]
    if (needs := state.get("needs")) is not None:
        scope.needs = frozenset((Side(side), name, number) for side, name, number in needs)
    (scope.example,) = _events(state["example"], form_of, read_at)
    comparison.scopes[scope] = None
    if state.get("gathering"):
        scope.gather()
    comparison.index.adopt(scope, scope.example[0][0])
    for side in Side:
        for partition, offset in state["places"][side]:
            scope.add(side, held[side][partition, offset])
    (scope.example,) = _events(state["example"], form_of, read_at)
    if state["lost"]:
        scope.lose(NOTHING)


def _strays(strays: Unpaired[Half], *, whole: bool) -> list[dict[str, Any]] | None:
    """What is remembered of both sides; None where it is what it was, unless `whole`."""
    changed = strays.take_changed()
    return [_strays_of(list(strays.all(side))) for side in Side] if whole or changed else None


def _strays_of(halves: Sequence[Half]) -> dict[str, Any]:
    return {
        **_columns(half.finding.event for half in halves),
        "witnesses": [_columns(event for _, event in half.finding.witness) for half in halves],
        "kinds": [half.finding.kind for half in halves],
        "tainted": [half.divergence.tainted for half in halves],
        "numbers": [half.divergence.number for half in halves],
        "moments": [half.moment for half in halves],
        "reaches": [
            None if half.reach is None else [*map(_pairs, half.reach.offsets), half.reach.until_ms]
            for half in halves
        ],
        "partners": [_columns(filter(None, (half.finding.partner,))) for half in halves],
    }


def _restore_strays(
    comparison: Comparison,
    strays: Unpaired[Half],
    state: Sequence[dict[str, Any]] | None,
    form_of: FormOf,
    read_at: float,
) -> None:
    for side, columns in zip(Side, state or (), strict=False):
        for half in _halves(side, columns, form_of, read_at):
            strays.note(side, comparison.ledger.keys_of(half.finding), half)


def _halves(side: Side, state: dict[str, Any], form_of: FormOf, read_at: float) -> Iterator[Half]:
    rows = zip(
        _events(state, form_of, read_at),
        state["witnesses"],
        state["kinds"],
        state["tainted"],
        state["numbers"],
        state.get("moments") or repeat(0),
        state.get("reaches") or repeat(None),
        state.get("partners") or repeat(_columns(())),
        strict=False,
    )
    for event, witness, kind, tainted, number, moment, reach, partners in rows:
        proof = tuple(zip(Side, _events(witness, form_of, read_at), strict=False))
        partner = next(iter(_events(partners, form_of, read_at)), None)
        left, right = (event, partner) if side is Side.LEFT else (partner, event)
        finding = Finding(kind, left, right, proof)
        divergence = Divergence(finding, tainted, finding, number)
        yield Half(divergence, moment, None if reach is None else _reach(reach))


def _reach(state: Sequence[Any]) -> Reach:
    left, right, until_ms = state
    return Reach((dict(left), dict(right)), until_ms)


def _places(events: Iterable[Event]) -> list[list[int]]:
    return [[event[1], event[2]] for event in events]


def _columns(events: Iterable[Event]) -> dict[str, list[Any]]:
    rows = list(events)
    forms = map(itemgetter(0), rows)
    columns = (list(map(itemgetter(3), forms)), *(list(map(itemgetter(place), rows)) for place in _PLAIN))
    return dict(zip(COLUMNS, columns, strict=True))


def _rows(columns: dict[str, list[Any]]) -> dict[PartitionOffset, Row]:
    """The events of some columns by their place, each a row."""
    return {(row[1], row[2]): row for row in rows_of(columns)}


def _events(columns: dict[str, list[Any]], form_of: FormOf, read_at: float) -> Iterable[Event]:
    records, partitions, offsets, timestamps_ms, marks = (columns[name] for name in COLUMNS)
    rows = zip(
        map(form_of, records), partitions, offsets, timestamps_ms, repeat(read_at), marks, strict=False
    )
    return cast("Iterable[Event]", rows)


def _pairs(mapping: Mapping[int, int]) -> list[list[int]]:
    return [[key, value] for key, value in mapping.items()]
