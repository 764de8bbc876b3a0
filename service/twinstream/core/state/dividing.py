"""Divides the state of a comparison over shards by key, and joins the states of such shards.

An event that waits, an open scope, and a leftover whose other half may come go to the shard of their key.
What only adds up stays with the first shard: accounts, pairs, the differences that nothing changes any more.
What each shard has to know, each gets: holes, clocks, positions of keys. So the shards together say what the
whole said, and each goes on as the whole would for its keys.

Joining is the inverse. Counts are summed. Each shard has read all partitions, so of what all of them know the
latest is taken. The events that wait are put in the order of their offsets; between partitions that order is
by Kafka's time, as there is no other that is common to all shards.

Differences are numbered by each comparison, from 0. So their numbers change, and whoever holds some is told.

Rules of this file: states are whole snapshots (see `snapshot`) as plain data. Nothing is dropped in silence:
a state with parts that belong to no key is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain, zip_longest
from operator import add, itemgetter
from typing import Any, NamedTuple

from twinstream.core.accounting.differences import LEFTOVERS
from twinstream.core.accounting.event_rows import rows_of
from twinstream.core.accounting.match_timeline import united
from twinstream.core.accounts import Account
from twinstream.core.arrivals import lives
from twinstream.core.events import PartitionOffset, Side
from twinstream.core.matching.bags import as_key
from twinstream.core.overdue import suspected
from twinstream.errors import CheckpointError

ShardOf = Callable[[bytes], int]
"""The shard of an event, by its record as a state holds it."""
Columns = Mapping[str, Sequence[Any]]
State = dict[str, Any]
WHOLE_ONLY = {
    "checks": "`checks`",
    "tables": "`emits`",
    "copies": "barriers with copies",
    "replays": "`duplicates: {policy: replays}`",
    "repeats": "`known_differences` of duplicates",
    "known_ceilings": "`known_differences`",
    "progress": "control records",
}
"""The parts of a state that belong to no key, and what they come from."""


class Part(NamedTuple):
    """The state of one shard. `numbers` are those of the differences that it names, before and now."""

    state: State
    numbers: Mapping[int, int]


# -- one into several --------------------------------------------------------------------------------------


def divided(state: State, shard_of: ShardOf, shards: int) -> list[Part]:
    """A whole state as those of so many shards; one shard has it as it is. Complexity: O(n) in its events.

    Raises CheckpointError if a part of it belongs to no single shard.
    """
    if shards == 1:
        return [Part(state, {number: number for number in _named(state)})]
    _refuse_wholes(state)
    held = [[shard_of(record) for record in columns["records"]] for columns in state["held"]]
    homes = [_homes(columns, numbers) for columns, numbers in zip(state["held"], held, strict=True)]
    leftovers = {name: [_dealt_by_record(one, shard_of, shards) for one in state[name]] for name in LEFTOVERS}
    scopes = [(_shard_of_scope(scope, shard_of, homes), scope) for scope in state["scopes"]]
    since_lost = _dealt_since_lost(state, [shard for shard, _ in scopes], shards)
    waiting = [_dealt(columns, numbers, shards) for columns, numbers in zip(state["held"], held, strict=True)]
    rooms = _dealt_bags(state["bags"], shard_of, shards)
    parts = [
        {
            **state,
            "held": [dealt[number] for dealt in waiting],
            **{name: [dealt[number] for dealt in sides] for name, sides in leftovers.items()},
            "scopes": [scope for shard, scope in scopes if shard == number],
            "since_lost": since_lost[number],
            "chains": [
                [row for row in state["chains"][side] if homes[side][row[0], row[1]] == number]
                for side in Side
            ],
            "bags": rooms[number],
        }
        for number in range(shards)
    ]
    _share_counts(state, parts)
    return _numbered(state, parts)


def _refuse_wholes(state: State) -> None:
    found = [what for name, what in WHOLE_ONLY.items() if state.get(name)]
    if found:
        raise CheckpointError(
            f"the state has parts of no single key ({', '.join(found)}): move it to 1 shard"
        )


def _homes(columns: Columns, numbers: Sequence[int]) -> dict[PartitionOffset, int]:
    """The shard of each event that waits, by its place."""
    return dict(zip(zip(columns["partitions"], columns["offsets"], strict=True), numbers, strict=True))


def _dealt(columns: Columns, numbers: Sequence[int], shards: int) -> list[dict[str, list[Any]]]:
    """The rows of some columns for each shard; `numbers` are their shards."""
    places: list[list[int]] = [[] for _ in range(shards)]
    for place, number in enumerate(numbers):
        places[number].append(place)
    return [{name: [column[at] for at in own] for name, column in columns.items()} for own in places]


def _dealt_by_record(columns: Columns, shard_of: ShardOf, shards: int) -> list[dict[str, list[Any]]]:
    return _dealt(columns, list(map(shard_of, columns["records"])), shards)


def _shard_of_scope(scope: State, shard_of: ShardOf, homes: Sequence[Mapping[PartitionOffset, int]]) -> int:
    """The shard of an open scope, which has the events of one key."""
    found = {homes[side][partition, offset] for side in Side for partition, offset in scope["places"][side]}
    found.update(map(shard_of, scope["example"]["records"]))
    if len(found) > 1:
        raise CheckpointError(
            "an open difference touches several keys: move it to 1 shard, or when it closes"
        )
    return found.pop()


def _dealt_since_lost(state: State, homes: Sequence[int], shards: int) -> list[list[Any]]:
    """What lost scopes keep, for the shard of each scope; `homes` are these. Scopes are numbered anew."""
    own = [[number for number, home in enumerate(homes) if home == shard] for shard in range(shards)]
    dealt: list[list[Any]] = [[] for _ in range(shards)]
    for number, *kept in state.get("since_lost", ()):
        home = homes[number]
        dealt[home].append([own[home].index(number), *kept])
    return dealt


def _dealt_bags(state: State, shard_of: ShardOf, shards: int) -> list[State]:
    """Remembered pairs by their key. A mark names a lane by its digest, so each shard has all of them."""
    if not state:
        return [{} for _ in range(shards)]
    rooms: list[State] = [{**state, "pairs": {}} for _ in range(shards)]
    for serial, pair in state["pairs"].items():
        _, _, record, _ = pair
        rooms[shard_of(record)]["pairs"][serial] = pair
    return rooms


def _share_counts(state: State, parts: Sequence[State]) -> None:
    """Count in each shard what it has; the first one has all other counts."""
    first, *others = parts
    first["accounts"] = [dict(account) for account in state["accounts"]]
    for part in others:
        kept = [sum(len(sides[side]["records"]) for _, *sides in part["since_lost"]) for side in Side]
        counts = [len(columns["records"]) + more for columns, more in zip(part["held"], kept, strict=True)]
        part["accounts"] = [Account(consumed=count).state() for count in counts]
        for account, count in zip(first["accounts"], counts, strict=True):
            account["consumed"] -= count
        first["given_up"] = [all_of - own for all_of, own in zip(first["given_up"], kept, strict=True)]
        part.update(matched=0, matched_by_kind={}, stretches=united([]).state(), given_up=kept)
        part["first_unverifiable"] = [[], []]
        part["moments"] = [state["moments"][0], None, state["moments"][2]]


def _numbered(state: State, parts: Sequence[State]) -> list[Part]:
    """The states, with the differences that each names numbered from 0, and counted there.

    The first one names also what nobody else does.
    """
    first, *others = parts
    owned = [set(_numbers_of_leftovers(part)) for part in others]
    named = [set(_named(state)).difference(*owned), *owned]
    found = []
    for part, own in zip(parts, named, strict=True):
        numbers = {old: new for new, old in enumerate(sorted(own))}
        doubts = part["doubts"]
        unvouched = [[at, numbers[old]] for at, old in doubts["not_vouched_for"] if old in numbers]
        part["doubts"] = {**doubts, "not_vouched_for": unvouched}
        _renumber(part, numbers.__getitem__)
        if part is not first:
            part["moments"][1] = min((at for at, _ in unvouched), default=None)
            part["closed_by_kind"] = part["found_by_kind"] = dict(_kinds(part))
        found.append(Part(part, numbers))
    for name in ("closed_by_kind", "found_by_kind"):
        first[name] = dict(Counter(state[name]) - sum((Counter(part[name]) for part in others), Counter()))
    return found


def _numbers_of_leftovers(state: State) -> Iterable[int]:
    """The numbers of the leftovers of a state; one that is not booked has none."""
    each = (number for name in LEFTOVERS for columns in state[name] for number in columns["numbers"])
    return (number for number in each if number >= 0)


def _named(state: State) -> Iterable[int]:
    """All numbers of differences in a state."""
    return chain(_numbers_of_leftovers(state), (number for _, number in state["doubts"]["not_vouched_for"]))


def _kinds(state: State) -> Counter[str]:
    """The kinds of the booked leftovers of a state."""
    rows = (
        row for name in LEFTOVERS for columns in state[name] for row in rows_of(columns, ("kinds", "numbers"))
    )
    return Counter(kind for kind, number in rows if number >= 0)


def _renumber(state: State, new: Callable[[int], int]) -> None:
    """Give the booked leftovers of a state new numbers."""
    for name in LEFTOVERS:
        state[name] = [
            {**columns, "numbers": [number if number < 0 else new(number) for number in columns["numbers"]]}
            for columns in state[name]
        ]


# -- several into one --------------------------------------------------------------------------------------


def joined(states: Sequence[State]) -> tuple[State, list[int]]:
    """The states of shards by key as one whole state; and what is added to the numbers of each.

    Complexity: O(n log n) in their events. Raises CheckpointError as `divided`.
    """
    if len(states) == 1:
        return states[0], [0]
    for state in states:
        _refuse_wholes(state)
    found = [sum(state["found_by_kind"].values()) for state in states]
    before = list(accumulate(found, initial=0))[: len(states)]
    vouched_at = max(state["doubts"]["vouched_at"] for state in states)
    timed = [_on_one_clock(state, vouched_at, added) for state, added in zip(states, before, strict=True)]
    whole = {**timed[0], **_knowledge(timed), **_sums(timed)}
    for name in LEFTOVERS:
        whole[name] = _by_side(timed, name, _chained)
    whole["held"] = list(map(_in_order, _by_side(timed, "held", _chained)))
    whole["scopes"] = [scope for state in timed for scope in state["scopes"]]
    firsts = accumulate((len(state["scopes"]) for state in timed), initial=0)
    whole["since_lost"] = [
        [first + number, *kept]
        for state, first in zip(timed, firsts, strict=False)
        for number, *kept in state.get("since_lost", ())
    ]
    whole["chains"] = _by_side(timed, "chains", lambda rows: sorted(chain.from_iterable(rows)))
    whole["bags"] = _joined_bags([state["bags"] for state in timed])
    return whole, before


def _on_one_clock(state: State, vouched_at: int, added: int) -> State:
    """A state with moments that compare with those of others, and numbers behind theirs.

    Each shard counts the events fed to it. What matters of a moment is whether it is vouched for.
    """
    doubts = state["doubts"]

    def at(moment: int | None) -> int | None:
        own = doubts["vouched_at"]
        return moment if moment is None or moment <= own else vouched_at + moment - own

    unvouched = [[at(moment), number + added] for moment, number in doubts["not_vouched_for"]]
    timed = {
        **state,
        "moments": list(map(at, state["moments"])),
        "doubts": {**doubts, "vouched_at": vouched_at, "not_vouched_for": unvouched},
        "scopes": [{**scope, "moment": at(scope["moment"])} for scope in state["scopes"]],
    }
    for name in LEFTOVERS:
        timed[name] = [{**columns, "moments": list(map(at, columns["moments"]))} for columns in timed[name]]
    _renumber(timed, partial(add, added))
    return timed


def _by_side(states: Iterable[State], name: str, choose: Callable[[list[Any]], Any]) -> list[Any]:
    """By side, what is chosen or made of this part of all states."""
    return [choose(list(parts)) for parts in zip(*(state[name] for state in states), strict=True)]


def _sums(states: Sequence[State]) -> State:
    """What adds up."""
    counters = ("matched_by_kind", "closed_by_kind", "found_by_kind")
    return {
        "accounts": [Account(**counts).state() for counts in _by_side(states, "accounts", _added)],
        "matched": sum(state["matched"] for state in states),
        **{name: _added([state[name] for state in states]) for name in counters},
        "stretches": united(state["stretches"] for state in states).state(),
        "given_up": _by_side(states, "given_up", sum),
    }


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sum(map(Counter, counts), Counter[str]()))


def _knowledge(states: Sequence[State]) -> State:
    """What each of them knows of the whole: the latest of it, and all doubts."""
    doubts = [state["doubts"] for state in states]
    # Earlier versions did not save which holes taint, so there each one does.
    taints = [{"tainting": state["holes"], **state}["tainting"] for state in states]
    moments, clocks = [state["moments"] for state in states], [state["clock"] for state in states]
    return {
        **({"lives": known} if (known := lives.joined(state.get("lives", []) for state in states)) else {}),
        "read": _by_side(({"read": [[], []], **state} for state in states), "read", _greatest),
        "first_unverifiable": _by_side(states, "first_unverifiable", _least),
        "newest_matched_ms": _by_side(states, "newest_matched_ms", _latest),
        "recent": _in_turns([state["recent"] for state in states]),
        "ended": _by_side(states, "ended", any),
        "moments": [
            _latest([one[0] for one in moments]),
            *(_earliest([m[i] for m in moments]) for i in (1, 2)),
        ],
        "overflowing": any(state["overflowing"] for state in states),
        "halted": any(state["halted"] for state in states),
        "homes": _by_side(states, "homes", partial(_in_turns, key=itemgetter(0))),
        "keeps_partitions": all(state.get("keeps_partitions", True) for state in states),
        "holes": _in_turns([state["holes"] for state in states], key=tuple),
        "unclear": max(state["unclear"] for state in states),
        "tainting": _in_turns(taints, key=tuple),
        "doubts": {
            "vouched_at": doubts[0]["vouched_at"],
            "not_vouched_for": [row for one in doubts for row in one["not_vouched_for"]],
            "beginning": next((one["beginning"] for one in doubts if one["beginning"]), None),
            "unchecked": [
                any(one["unchecked"][0] for one in doubts),
                *(_least([one["unchecked"][1 + side] for one in doubts]) for side in Side),
            ],
        },
        "clock": {
            "ticks": _by_side(clocks, "ticks", lambda ticks: sorted(set(chain.from_iterable(ticks)))),
            "newest_ms": _by_side(clocks, "newest_ms", _latest),
        },
        "passing": _event_times([state["passing"] for state in states]),
        "suspected": suspected.joined([state.get("suspected", suspected.NOTHING) for state in states]),
    }


def _event_times(states: Sequence[State]) -> State:
    """The event times of all: of each partition the largest that counts, and the furthest frontiers."""
    if not states[0]:
        return {}
    times = [state["times"] for state in states]
    return {
        "times": {
            "partitions": _by_side(times, "partitions", _furthest_of_each),
            "reached_ms": _by_side(times, "reached_ms", _latest),
        }
    }


def _furthest_of_each(parts: Iterable[Iterable[Sequence[Any]]]) -> list[list[Any]]:
    rows: dict[int, list[Sequence[Any]]] = {}
    for row in chain.from_iterable(parts):
        rows.setdefault(row[0], []).append(row)
    return [_furthest(same) for _, same in sorted(rows.items())]


def _furthest(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """The row of a partition that has come furthest: of the sure ones, if any is."""
    known = [row for row in rows if row[1] is not None]
    best = max(known, key=lambda row: (row[3], row[1]), default=rows[0])
    return [*best[:4], _latest([row[4] for row in rows])]


def _in_order(columns: Columns) -> dict[str, list[Any]]:
    """Events of several shards in an order in which they could have come.

    Those of a partition are in the order of their offsets. Those of several are in the order of Kafka's time,
    which counts as never going back within a partition.
    """
    partitions, offsets, times_ms = (columns[name] for name in ("partitions", "offsets", "timestamps_ms"))
    order = sorted(range(len(offsets)), key=lambda place: (partitions[place], offsets[place]))
    latest: dict[int, int] = {}
    came: dict[int, int] = {}
    for place in order:
        partition = partitions[place]
        came[place] = latest[partition] = max(latest.get(partition, times_ms[place]), times_ms[place])
    order.sort(key=came.__getitem__)
    return {name: [column[place] for place in order] for name, column in columns.items()}


def _joined_bags(states: Sequence[State]) -> State:
    """Remembered pairs and marks, with new serial numbers: the latest have the highest."""
    if not states[0]:
        return {}
    pairs = _by_serial([state["pairs"] for state in states])
    marks = {as_key(mark): mark for mark in _by_serial([state["marks"] for state in states])}
    return {
        "marks": dict(enumerate(marks.values(), 1)),
        "pairs": dict(enumerate(pairs, 1 + len(marks))),
        "gone": [],
    }


def _by_serial(parts: Sequence[Mapping[int, Any]]) -> list[Any]:
    items = chain.from_iterable(part.items() for part in parts)
    return [value for _, value in sorted(items, key=itemgetter(0))]


def _chained(parts: Sequence[Columns]) -> dict[str, list[Any]]:
    return {name: list(chain.from_iterable(part[name] for part in parts)) for name in parts[0]}


def _in_turns(lists: Sequence[Sequence[Any]], key: Callable[[Any], Any] = lambda one: one) -> list[Any]:
    """The members of all lists, the first of each first; those with one key once."""
    found: dict[Any, Any] = {}
    for one in chain.from_iterable(zip_longest(*lists, fillvalue=_NONE)):
        if one is not _NONE:
            found.setdefault(key(one), one)
    return list(found.values())


_NONE = object()


def _least(pairs: Iterable[Iterable[Sequence[int]]]) -> list[list[int]]:
    """By partition the smallest of some offsets."""
    return _by_partition(min, pairs)


def _greatest(pairs: Iterable[Iterable[Sequence[int]]]) -> list[list[int]]:
    """By partition the largest of some offsets."""
    return _by_partition(max, pairs)


def _by_partition(
    choose: Callable[[int, int], int], pairs: Iterable[Iterable[Sequence[int]]]
) -> list[list[int]]:
    found: dict[int, int] = {}
    for partition, offset in chain.from_iterable(pairs):
        found[partition] = choose(offset, found.get(partition, offset))
    return [list(item) for item in found.items()]


def _latest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _earliest(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)
