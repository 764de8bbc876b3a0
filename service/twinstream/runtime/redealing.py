"""The checkpoints of some shards, dealt to another number of them (see `core.dealing`).

Shards that read everything have not all come equally far when they end. Those that come after begin where the
one furthest behind stood, and leave out what the others have taken (`core.sharding.Taken`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

from twinstream.core import dealing, snapshot
from twinstream.core.events import Side
from twinstream.core.orders import BARRIER, Epochs
from twinstream.core.sharding import Shard, Taken, Undealt, Way
from twinstream.errors import Unready
from twinstream.ports import Checkpoint, Stored
from twinstream.runtime import checkpoint
from twinstream.runtime.intake import UNDECODABLE_KEPT
from twinstream.runtime.resets import Resets
from twinstream.spec.codec import Codec
from twinstream.spec.coverage import united
from twinstream.spec.explain import NAMES
from twinstream.spec.keeping import codec_of
from twinstream.spec.load import digest
from twinstream.spec.model import Spec
from twinstream.spec.sharding import Part, ShardBy, dealer, refusal, unfit, way_of
from twinstream.status import DivergenceReport

Head = dict[str, Any]
Reached = list[dict[Side, dict[int, int]]]


class Redealing:
    """What deals the state of a comparison."""

    def __init__(self, spec: Spec, shard_by: ShardBy) -> None:
        self._spec, self._shard_by = spec, shard_by

    def deal(self, stored: Sequence[Stored], shards: int) -> Sequence[Checkpoint | None]:
        """The checkpoints with which so many shards begin; None for one that begins anew. Raises Unready."""
        used = [one for one in stored if one.sequence is not None]
        heads = [checkpoint.decode(one.head) for one in used]
        if any(head["spec_digest"] != digest(self._spec) for head in heads) or not heads:
            return [None] * shards
        try:
            if any(head.get("anew") for head in heads):
                raise Undealt("it was reset and has not begun yet")
            if len({head.get("secret") for head in heads}) > 1:
                raise Undealt("parts of it were made with different secrets")
            states = list(map(_state, used))
            if len(used) < len(stored):
                states = list(map(dealing.without_clocks, states))
            return self._dealt(heads, states, stored, shards)
        except Undealt as why:
            raise Unready(
                f"the stored state is that of --shards {len(stored)} and cannot be dealt to {shards}, since "
                f"{why}: start with --shards {len(stored)}, or begin anew"
            ) from None

    def _dealt(
        self, heads: list[Head], states: list[dict[str, Any]], stored: Sequence[Stored], shards: int
    ) -> list[Checkpoint | None]:
        resets = Resets.of(heads[0])
        spec = resets.applied_to(self._spec)
        if reason := refusal(spec, shards, self._shard_by):
            raise Undealt(reason)
        codec, counts = codec_of(self._spec), _partitions(heads[0])
        if any(self._behind(head, codec) for head in heads):
            raise Undealt("it has not caught up yet with where it stood before")
        way = way_of(self._spec, Part(Shard(0, shards), self._shard_by), counts) if shards > 1 else None
        if shards > 1 and way is None:
            raise Undealt(unfit(shards, counts))
        deal = dealer(self._spec, codec, Shard(0, shards))

        def shard_of(record: bytes, partition: int) -> int:
            return deal.number(codec.form_again(record)) if way == "key" else partition % shards

        copies = isinstance(codec.order, Epochs) and codec.order.copies

        def letter_of(record: bytes) -> bytes | None:
            form = codec.form_again(record)
            return codec.canonical(form[1]) if form[0] is BARRIER else None

        def key_of(record: bytes) -> bytes | None:
            form = codec.form_again(record)
            return None if copies and form[0] is BARRIER else deal.key_of(form)

        if copies and len(heads) < len(stored):
            raise Undealt("not all of its shards have begun")
        shares = dealing.dealt(states, shards, shard_of, letter_of)
        if any(head["way"] == "partition" for head in heads):
            dealing.check_apart(states, key_of)
        reached = [_reached(one) for one in stored]
        earliest = spec.start.at == "earliest"  # which begins only where both topics are whole
        begins = [dict.fromkeys(range(count if earliest else 0), 0) for count in counts]
        owns = [
            lambda partition, number=number: way != "partition" or partition % shards == number
            for number in range(shards)
        ]
        reports = self._reports(stored, shares)
        checkpoints: list[Checkpoint | None] = []
        for number, share in enumerate(shares):
            head = _head(heads, reached, begins, owns[number], first=number == 0)
            head.update(
                **resets.state(), way=way, accounts=share["accounts"], hole_times=_hole_times(heads, states)
            )
            parts = checkpoint.encode(head), checkpoint.encode(share)
            checkpoints.append(Checkpoint(1, None, *parts, reports[number]))
        return checkpoints

    def _behind(self, head: Head, codec: Codec) -> bool:
        """Whether some of what was taken before is still to be read again."""
        if head.get("rereading") or not head.get("taken"):
            return bool(head.get("rereading"))
        return not taken_of(head["taken"], self._spec, codec).over(_positions(head["positions"]))

    def _reports(self, stored: Sequence[Stored], shares: Sequence[dict[str, Any]]) -> list[dict[str, bytes]]:
        """The divergences of each shard: those that it may complete, and with shard 0 all others."""
        whose: dict[tuple[str, int, int], int] = {
            (NAMES[side], partition, offset): number
            for number, share in enumerate(shares)
            for name in ("strays", "lone")
            for side, columns in zip(Side, share[name], strict=True)
            for partition, offset in zip(columns["partitions"], columns["offsets"], strict=True)
        }
        found: list[dict[str, bytes]] = [{} for _ in shares]
        for key, text in chain.from_iterable(one.divergences.items() for one in stored):
            positions = DivergenceReport.model_validate_json(text).positions
            places = [
                (name, position.partition, position.offset)
                for name, position in (("reference", positions.reference), ("candidate", positions.candidate))
                if position is not None
            ]
            found[whose.get(places[0], 0) if len(places) == 1 else 0][key] = text
        return found


def _state(stored: Stored) -> dict[str, Any]:
    base, *deltas = map(checkpoint.decode, stored.bodies)
    return snapshot.merged(base, deltas)


def taken_state(taken: Taken) -> list[Any]:
    """What earlier shards have taken, as JSON values."""
    return [[_pairs(one[side]) for side in Side] for one in taken.reached]


def taken_of(state: list[Any], spec: Spec, codec: Codec) -> Taken:
    """What `taken_state` was of."""
    reached = [_positions(one) for one in state]
    return Taken(reached, dealer(spec, codec, Shard(0, len(reached))).number)


def _partitions(head: Head) -> tuple[int, int]:
    counts = {side: len(partitions) for side, _, partitions, _ in head["topics"]}
    return counts[Side.LEFT], counts[Side.RIGHT]


def _reached(stored: Stored) -> dict[Side, dict[int, int]]:
    """How far a shard had come: nowhere, where it has saved nothing."""
    if stored.sequence is None:
        return {side: {} for side in Side}
    return _positions(checkpoint.decode(stored.head)["positions"])


def _positions(pairs: Sequence[Any]) -> dict[Side, dict[int, int]]:
    return {side: dict(pairs[side]) for side in Side}


def _head(
    heads: Sequence[Head], reached: Reached, begins: Sequence[dict[int, int]], owns: Any, *, first: bool
) -> Head:
    """The head of one of the new shards; where none had begun it `begins`, whatever is gone by now."""
    way = heads[0]["way"]

    def own(parts: Mapping[int, Any]) -> list[list[Any]]:
        return [[partition, value] for partition, value in parts.items() if owns(partition)]

    diverged = [head for head in heads if head["verdict"] == "DIVERGED"]
    worst = min(diverged, key=lambda head: str(head["verdict_since"])) if diverged else heads[0]
    return {
        "spec_digest": heads[0]["spec_digest"],
        **({"secret": heads[0]["secret"]} if "secret" in heads[0] else {}),
        "started_at": min(head["started_at"] for head in heads),
        "verdict": worst["verdict"] if first else "PENDING",
        "verdict_since": worst["verdict_since"] if first else None,
        "positions": [
            own({**begins[side], **_merged(heads, "starts", side, min), **_begin(reached, side, way)})
            for side in Side
        ],
        "newest_ms": [own(_merged(heads, "newest_ms", side, max)) for side in Side],
        "first_ms": min((head["first_ms"] for head in heads if head["first_ms"] is not None), default=None),
        "taken": [[_pairs(one[side]) for side in Side] for one in reached] if way == "key" else None,
        "topics": heads[0]["topics"],
        "starts": [own(_merged(heads, "starts", side, min)) for side in Side],
        "rereading": None,
        "control": None,
        "max_unmatched": sum(head["max_unmatched"] for head in heads) if first else 0,
        "undecodable": [record for head in heads for record in head["undecodable"]][-UNDECODABLE_KEPT:]
        if first
        else [],
        "first_seen": {key: moment for head in heads for key, moment in head["first_seen"].items()},
        "doubted": {},
        "seen": united([head["seen"] for head in heads if head.get("seen")]) if first else None,
    }


def _hole_times(heads: Sequence[Head], states: Sequence[dict[str, Any]]) -> list[str]:
    """When each of the holes that all have together was seen."""
    found: dict[tuple[Any, ...], str] = {}
    for head, state in zip(heads, states, strict=True):
        for hole, moment in zip_longest(
            state["holes"], head["hole_times"][: len(state["holes"])], fillvalue=head["started_at"]
        ):
            found.setdefault(tuple(hole), moment)
    return list(found.values())


def _pairs(mapping: Mapping[int, int]) -> list[list[int]]:
    return [[key, value] for key, value in mapping.items()]


def _begin(reached: Reached, side: Side, way: Way | None) -> dict[int, int]:
    """Where to go on: where all that read a partition have come; not told where one had not begun."""
    found: dict[int, int] = {}
    for partition in sorted({partition for one in reached for partition in one[side]}):
        readers = reached if way == "key" else [one for one in reached if partition in one[side]]
        if all(partition in one[side] for one in readers):
            found[partition] = min(one[side][partition] for one in readers)
    return found


def _merged(heads: Sequence[Head], name: str, side: Side, choose: Any) -> dict[int, int]:
    found: dict[int, int] = {}
    for head in heads:
        for partition, value in head[name][side]:
            found[partition] = choose(found.get(partition, value), value)
    return found
