"""The state of some shards, dealt to another number of them: from snapshots to snapshots.

Each event that is not settled goes where it belongs now, and with it all that is kept of it. What is only
counted goes to shard 0, so that sums stay as they are; holes, and all that makes a shard doubt, go to each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from twinstream.core import bags
from twinstream.core.columns import COLUMNS, Row, columns_of, rows_of
from twinstream.core.dealing_copies import LetterOf, dealt_copies
from twinstream.core.events import Side
from twinstream.core.findings import KINDS
from twinstream.core.ledger import EVERYTHING
from twinstream.core.sharding import Undealt
from twinstream.core.stretches import united

ShardOf = Callable[[bytes, int], int]
"""The shard of an event, from its record and its partition."""
State = dict[str, Any]
LEFTOVERS = ("strays", "lone", "disputed", "explained")
LATER = ("moments", "reaches", "rules", "partners")
STRAYS = (*COLUMNS, "witnesses", "kinds", "tainted", "numbers", *LATER)
SUMMED = (
    "accounts",
    "given_up",
    "matched",
    "matched_by_kind",
    "stretches",
    "found_by_kind",
    "closed_by_kind",
)
SHARED = (
    "ended",
    "moments",
    "doubts",
    "homes",
    "overflowing",
    "holes",
    "first_unverifiable",
    "newest_matched_ms",
    "clock",
    "recent",
)
OF_EVENTS = ("held", *LEFTOVERS, "chains", "scopes", "copies")
UNDIVIDED = ("known_hits", "halted", "replays", "repeats", "unclear")
"""Members that are empty in every comparison that can be divided."""
HEARD_ANEW: State = {"progress": []}
"""What the versions have said of themselves is read again from its beginning."""
BAGS = "bags"
"""What matched lately, where that counts."""
PASSING = "passing"
ASKED = "asked"
FORMER = "known_stretches"
"""What an older version kept, and nobody reads."""


def dealt(states: Sequence[State], count: int, shard_of: ShardOf, letter_of: LetterOf) -> list[State]:
    """The snapshots of so many shards that stand for those given. Raises Undealt.

    `letter_of` tells the barriers of which each partition has a copy. Complexity: O(n) in the events held,
    and one asking for the shard of each.
    """
    for state in states:
        _check(state)
    by_copies = dealt_copies(states, count, letter_of) if any(state["copies"] for state in states) else None
    if by_copies is not None:
        held = [[shard[side] for shard in by_copies.held] for side in Side]
    else:
        held = [
            _dealt_rows([state["held"][side] for state in states], COLUMNS, count, shard_of) for side in Side
        ]
        for rows in chain.from_iterable(held):
            rows.sort(key=itemgetter(1, 2))  # Events of one partition come in its order again.
    where = [
        {(row[1], row[2]): number for number, rows in enumerate(held[side]) for row in rows} for side in Side
    ]
    strays = {
        name: [
            _dealt_rows(
                [_complete(state[name][side]) for state in states if state.get(name)], STRAYS, count, shard_of
            )
            for side in Side
        ]
        for name in LEFTOVERS
    }
    scopes: list[list[Any]] = [[] for _ in range(count)]
    for scope in chain.from_iterable(state["scopes"] for state in states):
        scopes[_shard_of_scope(scope, where, shard_of)].append(scope)
    shares = [_common(states) for _ in range(count)]
    matched = [state[BAGS] for state in states if state.get(BAGS)]
    for share, dealt_pairs in zip(shares, bags.dealt(matched, count, shard_of), strict=True):
        share[BAGS] = dealt_pairs if matched else {}
    for number, share in enumerate(shares):
        share["held"] = [columns_of(held[side][number]) for side in Side]
        share["scopes"] = scopes[number]
        share["chains"] = [
            [
                waiting
                for state in states
                for waiting in state["chains"][side]
                if where[side].get((waiting[0], waiting[1])) == number
            ]
            for side in Side
        ]
        for name, both in strays.items():
            share[name] = [columns_of(both[side][number], STRAYS) for side in Side]
        share["copies"] = [] if by_copies is None else by_copies.copies[number]
    _count(states, shares, [0, 0] if by_copies is None else by_copies.settled)
    return shares


def _complete(strays: dict[str, Any]) -> dict[str, Any]:
    """Leftovers with the columns that states of before do not have."""
    count = len(strays["kinds"])
    no_partner: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    more = {name: [value] * count for name, value in zip(LATER, (0, None, None, no_partner), strict=True)}
    return {**more, **strays}


def check_apart(states: Sequence[State], key_of: Callable[[bytes], bytes | None]) -> None:
    """Raise Undealt where events of one key wait on both sides, each in another state.

    Among what waits in one state no event of a side may depend on one of the other: that would be a proven
    difference. In different ones they may, where events of a key do not keep their partition; put together
    they would look like a difference, which they need not be.

    `key_of` tells the key of a record: equal for events that may be equal or dependent, None for a barrier of
    which each state has copies. Complexity: O(n).
    """
    where: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})
    for number, state in enumerate(states):
        for side in Side:
            for record in state["held"][side]["records"]:
                if (key := key_of(record)) is None:
                    continue
                if where[side.other].get(key, number) != number:
                    raise Undealt("events of one key wait on both sides, in partitions of several shards")
                where[side].setdefault(key, number)


def without_clocks(state: State) -> State:
    """A state where some shard has none and begins anew: nobody knows how far all together have come."""
    return {**state, PASSING: {}}


def _check(state: State) -> None:
    if state.get(ASKED):
        raise Undealt("a difference in it waits for the word of the other shards")
    if unknown := state.keys() - {
        ASKED,
        *SUMMED,
        *SHARED,
        *OF_EVENTS,
        *UNDIVIDED,
        *HEARD_ANEW,
        PASSING,
        BAGS,
        FORMER,
    }:
        raise Undealt(f"it holds {', '.join(sorted(unknown))}")
    if any(state["ended"]) or any(state.get(name) for name in UNDIVIDED) or state["moments"][2] is not None:
        raise Undealt("it holds what is told of all events together")


# -- what is kept of events --------------------------------------------------------------------------------


def _dealt_rows(
    parts: Iterable[State], names: Sequence[str], count: int, shard_of: ShardOf
) -> list[list[Row]]:
    """The rows of some columns, by the shards that their events belong to, each in the order given."""
    found: list[list[Row]] = [[] for _ in range(count)]
    for columns in parts:
        for row in rows_of(columns, names):
            found[shard_of(row[0], row[1])].append(row)
    return found


def _shard_of_scope(scope: State, where: Sequence[dict[tuple[int, int], int]], shard_of: ShardOf) -> int:
    """The shard to which all events of a scope go."""
    example = scope["example"]
    numbers = {shard_of(example["records"][0], example["partitions"][0])}
    for side in Side:
        numbers.update(where[side][place[0], place[1]] for place in scope["places"][side])
    if len(numbers) > 1:
        raise Undealt("a difference is open in it that belongs to several shards")
    return numbers.pop()


# -- what is known of all ----------------------------------------------------------------------------------


def _common(states: Sequence[State]) -> State:
    """What each shard takes over: doubts, the clock, and what only makes it more careful."""
    first = states[0]
    newest = [[state["newest_matched_ms"][side] for state in states] for side in Side]
    return {
        **HEARD_ANEW,
        PASSING: _passing([state.get(PASSING, {}) for state in states]),
        **{name: first[name] for name in ("ended", *UNDIVIDED) if name in first},
        "accounts": [dict.fromkeys(account, 0) for account in first["accounts"]],
        "given_up": [0, 0],
        "matched": 0,
        "matched_by_kind": {},
        "stretches": united([]).state(),
        "moments": [max(state["moments"][0] for state in states), None, None],
        "doubts": {
            "vouched_at": EVERYTHING,
            "not_vouched_for": [],
            "held": [],
            "beginning": next(filter(None, (s.get("doubts", {}).get("beginning") for s in states)), None),
        },
        "homes": [],
        "overflowing": any(state["overflowing"] for state in states),
        "holes": [list(hole) for hole in dict.fromkeys(tuple(hole) for s in states for hole in s["holes"])],
        "closed_by_kind": {},
        "found_by_kind": {},
        "first_unverifiable": [
            _smallest(state["first_unverifiable"][side] for state in states) for side in Side
        ],
        "newest_matched_ms": [None if None in moments else min(moments) for moments in newest],
        "clock": _clock([state["clock"] for state in states]),
        "recent": list(dict.fromkeys(chain.from_iterable(state["recent"] for state in states))),
    }


def _smallest(parts: Iterable[Iterable[Sequence[int]]]) -> list[list[int]]:
    found: dict[int, int] = {}
    for partition, offset in chain.from_iterable(parts):
        found[partition] = min(found.get(partition, offset), offset)
    return [[partition, offset] for partition, offset in found.items()]


def _clock(clocks: Sequence[State]) -> State:
    """The clock of all that was seen."""
    newest = [[clock["newest_ms"][side] for clock in clocks] for side in Side]
    return {
        "ticks": [sorted({tick for clock in clocks for tick in clock["ticks"][side]}) for side in Side],
        "newest_ms": [max((ms for ms in moments if ms is not None), default=None) for moments in newest],
    }


def _passing(clocks: Sequence[State]) -> State:
    """The clock of event time as far as all have come: each share has events of the one furthest behind."""
    times = [clock["times"] for clock in clocks if clock.get("times")]
    if len(times) < len(clocks):
        return {}
    reached = [[one["reached_ms"][side] for one in times] for side in Side]
    return {
        "times": {
            "partitions": [_behind([one["partitions"][side] for one in times]) for side in Side],
            "reached_ms": [None if None in moments else min(moments) for moments in reached],
        }
    }


def _behind(sides: Sequence[Sequence[Any]]) -> list[Any]:
    """Of each partition what is known where least is: nothing, a time that is not sure, or the smallest."""
    found: dict[int, list[Any]] = {}
    for row in chain.from_iterable(sides):
        found.setdefault(row[0], []).append(row)
    return [
        min(rows, key=lambda row: (row[1] is not None, bool(row[3]), row[1] or 0))
        for rows in found.values()
        if len(rows) == len(sides)
    ]


def _count(states: Sequence[State], shares: Sequence[State], settled: Sequence[int]) -> None:
    """Book all that was settled with shard 0; the others have what waits there, and what may be completed.

    `settled` are by side the copies of barriers that do not wait any more.
    """
    first = shares[0]
    for side in Side:
        first["given_up"][side] = sum(state.get("given_up", (0, 0))[side] for state in states)
        account = first["accounts"][side]
        for name in account:
            account[name] = sum(state["accounts"][side][name] for state in states)
        account["ignored"] += settled[side]
        for share in shares[1:]:
            waiting = len(share["held"][side]["records"])
            share["accounts"][side]["consumed"] = waiting
            account["consumed"] -= waiting
    first["matched"] = sum(state["matched"] for state in states)
    first["matched_by_kind"] = _sum(state["matched_by_kind"] for state in states)
    first["stretches"] = united(filter(None, (state.get("stretches") for state in states))).state()
    first["found_by_kind"] = _sum(state["found_by_kind"] for state in states)
    closed = Counter(_sum(state["closed_by_kind"] for state in states))
    for share in shares[1:]:
        share["closed_by_kind"] = dict(_kinds_of_strays(share))
        closed.subtract(share["closed_by_kind"])
    first["closed_by_kind"] = {kind: closed[kind] for kind in KINDS if closed[kind]}
    proven = [state for state in states if state["moments"][1] is not None]
    first["moments"][1] = min((state["moments"][1] for state in proven), default=None)
    if proven and not any(map(_for_sure, proven)):
        first["doubts"]["vouched_at"] = first["moments"][1] - 1


def _for_sure(state: State) -> bool:
    """Whether the difference that was proven in it lies in what was vouched for."""
    doubts = state.get("doubts")
    return not doubts or bool(state["moments"][1] <= doubts["vouched_at"])


def _sum(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)


def _kinds_of_strays(share: State) -> Counter[str]:
    """The differences that a shard may still complete, each once."""
    found = {
        (side, columns["partitions"][row], columns["offsets"][row]): columns["kinds"][row]
        for name in ("strays", "lone")
        for side, columns in zip(Side, share[name], strict=True)
        for row in range(len(columns["kinds"]))
    }
    return Counter(found.values())
