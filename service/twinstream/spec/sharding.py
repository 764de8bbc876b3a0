"""Whether the work of a comparison can be divided among several matchers, and how (see `core.sharding`).

Rules of this file: it decides from the comparison file and the numbers of partitions alone, so that all
matchers of a comparison come to the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from twinstream.core.orders import Keyed, Ruled
from twinstream.core.orders import Order as Compiled
from twinstream.core.sharding import WHOLE, Dealer, Shard, Way, key_of, stable
from twinstream.spec.codec import Codec
from twinstream.spec.model import Barrier, ByKey, Dependent, Order, PairRule, Parallel, PerKey, Spec

ShardKey = tuple[str, ...] | Literal["event"] | None
"""The fields that divide an order; ``event`` where any part of an event does."""
ShardBy = Literal["auto", "partition", "key"]
"""How the work is to be divided; ``auto`` decides when the topics are known."""


class Part(NamedTuple):
    """What a matcher is told of its share: which shard it is, and how the work is to be divided."""

    shard: Shard = WHOLE
    by: ShardBy = "auto"


ALL = Part()
"""The share of a matcher that has no others beside it."""

NOT_AT_ALL = "events of all keys and partitions can depend on each other"
KEPT = "both topics have as many partitions and equal events are in partitions of one number"


class Division(NamedTuple):
    """Whether several matcher processes can share the work, and how."""

    possible: bool
    text: str


def division(spec: Spec) -> Division:
    """Whether several matcher processes can share the work of a comparison, and how."""
    if (reason := _indivisible(spec)) is not None:
        return Division(False, f"not at all: {reason}")
    if (reason := _needs_partition(spec)) is not None:
        return Division(True, f"by partition, where {KEPT}; not by key, since {reason}")
    key = shard_key(spec.order)
    by = f"by a hash of {' and '.join(key) if isinstance(key, tuple) else 'the event'}"
    if (reason := _needs_key(spec)) is not None:
        return Division(True, f"{by}; not by partition, since {reason}")
    return Division(True, f"by partition, where {KEPT}; else {by}")


def refusal(spec: Spec, shards: int, shard_by: ShardBy) -> str | None:
    """Why a comparison cannot be divided as asked for, whatever its topics are; None where it may be."""
    if shards == 1:
        return None
    reason = _indivisible(spec)
    if reason is None and shard_by == "key" and (why := _needs_partition(spec)) is not None:
        reason = f"by key, since {why}: leave `--shard-by key` out"
    if reason is None and shard_by == "partition" and (why := _needs_key(spec)) is not None:
        reason = f"by partition, since {why}: say `--shard-by key`"
    if reason is None:
        return None
    colon = "" if reason.startswith("by ") else ":"
    return f"comparison {spec.name!r} cannot be divided over {shards} matchers{colon} {reason}"


def way_of(spec: Spec, part: Part, partitions: tuple[int, int]) -> Way | None:
    """The way in which the work is divided, once the numbers of partitions of both topics are known.

    None where it cannot be, as `unfit` says. By partition is the quicker one.
    """
    fits = partitions[0] == partitions[1] >= part.shard.of
    either = part.by == "auto" and _needs_partition(spec) is None
    if part.by == "key" or _needs_key(spec) or (either and not fits):
        return "key"
    return "partition" if fits else None


def unfit(shards: int, partitions: tuple[int, int]) -> str:
    """Why the work cannot be divided by partition, as a sentence."""
    one, other = partitions
    return (
        f"the topics have {one} and {other} partitions: {shards} shards by partition need as many in both, "
        f"and at least {shards}"
    )


def dealer(spec: Spec, codec: Codec, shard: Shard) -> Dealer:
    """What picks the events of a shard by key."""
    key = shard_key(spec.order)
    if not isinstance(key, tuple) or not _has_wide_rules(codec.order):
        return Dealer(shard, key_of(codec.order, codec.canonical))
    members = codec.members([spec.path_of(field) for field in key])
    return Dealer(shard, key_of(codec.order, codec.canonical, lambda record: stable(members(record))))


def _has_wide_rules(order: Compiled) -> bool:
    """Whether rules stand in it that are not below a key: their classes may be wider than their fields."""
    match order:
        case Ruled():
            return True
        case Keyed():
            return False
    inner = getattr(order, "orders", None) or [getattr(order, "inner", None)]
    return any(_has_wide_rules(one) for one in inner if one is not None)


def _indivisible(spec: Spec) -> str | None:
    """Why the work cannot be divided at all."""
    order = spec.order
    copied = isinstance(order, Barrier) and order.copies == "per_partition"
    if shard_key(order.inner if isinstance(order, Barrier) and copied else order) is None:
        return NOT_AT_ALL
    if isinstance(order, Barrier) and copied and any(spec.equality_of(k).tolerance for k in order.barrier):
        return "the copies of a barrier with a `tolerance` are compared with each other, and no shard has all"
    if spec.known_differences:
        return "`known_differences` have ceilings, and no shard knows what the others have explained by then"
    if spec.duplicates.policy == "replays":
        return "a batch that is written again (`duplicates`) is told by all that it holds"
    if spec.start.at in ("barrier", "input"):
        return f"`start: {spec.start.at}` is found by what all partitions hold"
    if spec.on_divergence == "halt":
        return "`on_divergence: halt` ends with the first difference of all"
    by_key, by_partition = _needs_key(spec), _needs_partition(spec)
    if by_key is not None and by_partition is not None:
        return f"{by_key}, and {by_partition}"
    return None


def _needs_partition(spec: Spec) -> str | None:
    """Why each shard has to see all of its partitions."""
    if shard_key(spec.order) is None:
        return "each partition has its copy of a barrier"
    if spec.start.at == "event_time":
        return "`start: event_time` has to see the first event of each partition"
    return None


def _needs_key(spec: Spec) -> str | None:
    """Why each shard has to read all partitions."""
    if spec.overdue.proves:
        return "time that proves (`overdue.proves`) would prove a loss where another shard has the partner"
    if spec.overdue.clock != "arrival":
        return f"the clock of `overdue`, {spec.overdue.clock}, reads all partitions of a side"
    return None


def shard_key(order: Order) -> ShardKey:
    """The fields such that events that differ in one of them never depend on each other.

    >>> shard_key("unordered"), shard_key("total"), shard_key(PerKey.model_validate({"per_key": ["taxi"]}))
    ('event', None, ('taxi',))
    """
    match order:
        case "unordered":
            return "event"
        case PerKey(per_key=fields):
            return tuple(fields)
        case ByKey(by_key=fields):
            return tuple(fields)
        case Parallel(parallel=branches):
            return _common_key([shard_key(branch.order) for branch in branches.values()])
        case Dependent(dependent=rules):
            return _common_key([_rule_key(rule) for rule in rules])
    return None


def _rule_key(rule: PairRule | tuple[str, str]) -> ShardKey:
    fields = [field for field in rule.same if isinstance(field, str)] if isinstance(rule, PairRule) else []
    return tuple(fields) or None


def _common_key(keys: Sequence[ShardKey]) -> ShardKey:
    """The fields of all keys; a bag can be divided by any."""
    if None in keys:
        return None
    lists = [set(key) for key in keys if key is not None and key != "event"]
    if not lists:
        return "event"
    common = set.intersection(*lists)
    return tuple(sorted(common)) or None
