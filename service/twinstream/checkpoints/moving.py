"""Moves what is saved of a comparison between its one matcher and shards by key.

The state itself is divided and joined by `core.state.dividing`. Here is what is saved beside it: a head, and
the reports of divergences. A report goes to the shard that may still change it: that of a leftover whose
other half may come. All others stay with the first shard.

Two things are only for the eye, and are not carried between one and several: what the events looked like
(`explain.coverage`) is sampled anew, and differences that several shards found are counted in the group of
others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from twinstream.checkpoints import format as checkpoint
from twinstream.core.accounting.differences import LEFTOVERS
from twinstream.core.accounting.event_rows import READ_TIMES
from twinstream.core.accounts import Account
from twinstream.core.events import Side
from twinstream.core.state.dividing import ShardOf, divided, joined
from twinstream.core.state.merge import merged
from twinstream.core.verdict import Verdict
from twinstream.errors import CheckpointError
from twinstream.grouping.found import TimesFound
from twinstream.grouping.groups import Groups
from twinstream.ports import Stored
from twinstream.status.comparison import FoundOverTime

Head = dict[str, Any]
_Place = tuple[Side, int, int]
_WORST = (Verdict.DIVERGED, Verdict.INCONCLUSIVE, Verdict.PENDING, Verdict.EQUIVALENT)
APART = "its shards have come to different positions, so they cannot be joined: {one} and {other}"
READING = "reading"
"""The part of a head that says how far its process has read, and when: see `Settlement.state`."""
NOT_SEEN: Head = {}
"""The state of coverage that has seen nothing."""


def state_of(stored: Stored) -> tuple[Head, dict[str, Any]]:
    """The head of a saved checkpoint, and the state of its comparison. Raises CheckpointError."""
    base, *deltas = map(checkpoint.decode, stored.bodies)
    head, state = checkpoint.decode(stored.head), merged(base, deltas)
    head.pop(READING, None)  # What a process has seen on its clock is of no use to those of another division.
    timed = ("held", *LEFTOVERS)
    return head, {**state, **{name: list(map(_without_times, state[name])) for name in timed}}


def _without_times(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: column for name, column in columns.items() if name != READ_TIMES}


def divided_checkpoint(stored: Stored, shard_of: ShardOf, shards: int) -> list[Stored]:
    """What is saved of a whole comparison, for each of so many shards. Raises CheckpointError."""
    head, state = state_of(stored)
    if head["rereading"] is not None:
        raise CheckpointError("it reads again what its store had lost: move it when that has ended")
    parts = divided(state, shard_of, shards)
    if shards == 1:
        return [_stored(head, state, stored.divergences)]
    others = enumerate(parts[1:], 1)
    where: dict[_Place | None, int] = {
        place: number for number, part in others for place in _leftovers(part.state)
    }
    home = {name: where.get(_place_of(report), 0) for name, report in stored.divergences.items()}
    found = []
    for number, part in enumerate(parts):
        doubted = {
            name: part.numbers[old] for name, old in head["doubted"].items() if home.get(name, 0) == number
        }
        own = {name: stored.divergences[name] for name, at in home.items() if at == number}
        share = {**head, "accounts": _accounts(part.state), "doubted": doubted, "seen": NOT_SEEN}
        share |= _rest_of_first(head, parts) if number == 0 else _rest_of_other(part.state)
        found.append(_stored(share, part.state, own))
    return found


def _accounts(state: Mapping[str, Any]) -> list[dict[str, int]]:
    """The accounts of a state as a head has them."""
    return [dict(vars(Account(**counts))) for counts in state["accounts"]]


def _rest_of_first(head: Head, parts: Sequence[Any]) -> Head:
    """The groups of the first shard: without the differences that the others count."""
    if "groups" not in head:
        return {}
    gone = [kind for part in parts[1:] for kind, n in part.state["found_by_kind"].items() for _ in range(n)]
    return {"groups": _without(head["groups"], gone)}


def _without(groups: Head, kinds: Iterable[str]) -> Head:
    """The state of groups with one difference less for each of some kinds."""
    counts = [[*group[:3], list(group[3])] for group in groups["groups"]]
    others, taken = groups["others"], 0
    for kind in kinds:
        group = next((one for one in counts if one[0] == kind and one[3][0] > 0), None)
        if group is None:
            others -= 1
        else:
            group[3][0] -= 1
        taken += 1
    total = groups["total"] - taken
    return {"since": min(groups["since"], total), "total": total, "others": max(0, others), "groups": counts}


def _rest_of_other(state: Mapping[str, Any]) -> Head:
    """What no shard but the first begins with."""
    return {
        "groups": Groups(since=sum(state["found_by_kind"].values())).state(),
        "found": TimesFound().told().model_dump(),
        "undecodable": [],
        "max_unmatched": 0,
        "matched": 0,
        "divergences": 0,
    }


def _leftovers(state: Mapping[str, Any]) -> Iterable[_Place]:
    """The places of the leftovers of a state."""
    for name in LEFTOVERS:
        for side, columns in zip(Side, state[name], strict=True):
            for partition, offset in zip(columns["partitions"], columns["offsets"], strict=True):
                yield side, partition, offset


def _place_of(report: bytes) -> _Place | None:
    """The place of the event of a report that has one event only."""
    positions = json.loads(report)["positions"]
    (side, place), *more = [
        (side, positions[name])
        for side, name in zip(Side, ("reference", "candidate"), strict=True)
        if positions[name] is not None
    ]
    return None if more else (side, place["partition"], place["offset"])


# -- several into one --------------------------------------------------------------------------------------


def joined_checkpoint(shards: Sequence[Stored]) -> Stored:
    """What is saved of all shards, as that of one comparison. Raises CheckpointError."""
    heads, states = zip(*map(state_of, shards), strict=True)
    reports = {name: report for stored in shards for name, report in stored.divergences.items()}
    if len(shards) == 1:
        return _stored(heads[0], states[0], reports)
    whole, added = joined(states)
    doubted = [
        (name, number + more)
        for head, more in zip(heads, added, strict=True)
        for name, number in head["doubted"].items()
    ]
    times = _hole_times(heads, states, whole["holes"])
    head = {**_joined_head(heads, whole), "doubted": dict(doubted), "hole_times": times}
    return _stored(head, whole, reports)


def _hole_times(
    heads: Sequence[Head], states: Sequence[Mapping[str, Any]], holes: Iterable[Any]
) -> list[str]:
    """When each of these holes was seen first."""
    times: dict[tuple[Any, ...], str] = {}
    for head, state in zip(heads, states, strict=True):
        for hole, moment in zip(state["holes"], head["hole_times"], strict=False):
            times[tuple(hole)] = min(moment, times.get(tuple(hole), moment))
    began: str = heads[0]["started_at"]
    return [times.get(tuple(hole), began) for hole in holes]


def _joined_head(heads: Sequence[Head], whole: Mapping[str, Any]) -> Head:
    verdict = min((Verdict(head["verdict"]) for head in heads), key=_WORST.index).value
    since = [head["verdict_since"] for head in heads if head["verdict"] == verdict]
    return {
        **heads[0],
        "started_at": min(head["started_at"] for head in heads),
        "verdict": verdict,
        "verdict_since": min((moment for moment in since if moment is not None), default=None),
        **{name: sum(head.get(name, 0) for head in heads) for name in ("matched", "divergences")},
        "accounts": _accounts(whole),
        "positions": _positions(heads),
        "newest_ms": _by_partition(heads, "newest_ms", max),
        "first_ms": min((head["first_ms"] for head in heads if head["first_ms"] is not None), default=None),
        "begun": _begun(heads),
        "began_ms": _by_partition([{"began_ms": ([], []), **head} for head in heads], "began_ms", min),
        "same_beginning": all(head.get("same_beginning", all(head["newest_ms"])) for head in heads),
        "starts": _by_partition(heads, "starts", min),
        "compared_from": _by_partition(heads, "compared_from", min),
        "start": _start(heads),
        "max_unmatched": sum(head["max_unmatched"] for head in heads),
        "undecodable": list(chain.from_iterable(head["undecodable"] for head in heads)),
        "seen": NOT_SEEN,
        "first_seen": {name: moment for head in heads for name, moment in head["first_seen"].items()},
        "groups": _groups(heads, sum(whole["found_by_kind"].values())),
        "found": TimesFound(FoundOverTime(**head["found"]) for head in heads).told().model_dump(),
    }


def _begun(heads: Sequence[Head]) -> list[list[int]] | None:
    """By side the partitions of which some shard has compared an event; an earlier version saved none."""
    begun = [head.get("begun") for head in heads]
    if None in begun:
        return None
    return [sorted(set(chain(*of_side))) for of_side in zip(*begun, strict=True)]


def _start(heads: Sequence[Head]) -> list[list[int]] | None:
    """The state of a start at an event time: the partitions of which no shard has read an event."""
    first, *others = (head["start"] for head in heads)
    if first is None or None in others:
        return None
    return [place for place in first if all(place in other for other in others)]


def _positions(heads: Sequence[Head]) -> list[list[list[int]]]:
    """Where the comparison goes on: all shards have read all partitions to the same place."""
    first, last = (_by_partition(heads, "positions", choose) for choose in (min, max))
    if first != last:
        raise CheckpointError(APART.format(one=first, other=last))
    return first


def _by_partition(heads: Sequence[Head], name: str, choose: Callable[..., int]) -> list[list[list[int]]]:
    """By side and partition one of the values of all shards."""
    found = []
    for side in Side:
        values: dict[int, list[int]] = {}
        for partition, value in chain.from_iterable(head[name][side] for head in heads):
            values.setdefault(partition, []).append(value)
        found.append([[partition, choose(same)] for partition, same in sorted(values.items())])
    return found


def _groups(heads: Sequence[Head], total: int) -> Head:
    """The groups of the one shard that has found differences; those of several are counted as others."""
    found = [head["groups"] for head in heads if head["groups"]["total"]]
    return found[0] if len(found) == 1 else Groups(since=total).state()


def _stored(head: Head, state: Mapping[str, Any], reports: Mapping[str, bytes]) -> Stored:
    return Stored(1, checkpoint.encode(head), [checkpoint.encode(dict(state))], dict(reports))
