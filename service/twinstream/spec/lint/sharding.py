"""Tells whether several matchers can share the work of a comparison (see `core.sharding`).

Rules of this file: it decides from the comparison file and the numbers of partitions alone, so that all
matchers of a comparison come to the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import NamedTuple

from twinstream.core.arrivals.sharding import Shard
from twinstream.spec.file.model import Spec
from twinstream.spec.file.orders import Barrier, Dependent, Node, Parallel, nodes
from twinstream.spec.lint.relations import links


class Division(NamedTuple):
    """Whether several matcher processes can share the work, and how."""

    possible: bool
    text: str


def division(spec: Spec) -> Division:
    """Whether several matchers can share the work of a comparison, and how."""
    possible, text = _by_partition(spec)
    return Division(possible, f"{text}; {_on_spark(spec)}")


def _on_spark(spec: Spec) -> str:
    reason = _undealable(spec)
    return f"on Spark in one shard: {reason}" if reason else "on Spark by key"


def _by_partition(spec: Spec) -> Division:
    if (reason := _indivisible(spec)) is not None:
        return Division(False, f"one shard only: {reason}")
    if not spec.co_partitioned:
        return Division(
            False,
            "one shard only. For more, both topics need the same number of partitions, and equal or "
            "dependent events the same partition number: then declare `co_partitioned: true`",
        )
    return Division(True, "by partition (`serve --shards N`), as `co_partitioned` says")


def refusal(spec: Spec, shards: int) -> str | None:
    """Why a comparison cannot be divided, whatever its topics; None if it can."""
    if shards == 1:
        return None
    reason = _indivisible(spec)
    if reason is None and not spec.co_partitioned:
        reason = (
            "its file does not declare `co_partitioned: true`: equal and dependent events have the same "
            "partition number"
        )
    return reason and f"comparison {spec.name!r} cannot be divided over {shards} shards: {reason}"


def unfit(spec: Spec, shard: Shard, partitions: tuple[int, int]) -> str | None:
    """Why topics with so many partitions cannot be compared in the shards of this one, as a sentence."""
    one, other = partitions
    if spec.co_partitioned and one != other:
        return (
            f"the topics have {one} and {other} partitions, but the file says `co_partitioned: true`: equal "
            "events cannot all have the same partition number; remove it"
        )
    if shard.by_partition and one < shard.of:
        return f"the topics have {one} partitions, too few for {shard.of} shards: start at most {one}"
    return None


def refusal_by_key(spec: Spec, shards: int) -> str | None:
    """Why the events of a comparison cannot be dealt out to so many shards by key; None if they can.

    An event whose key has changed is `missing` and `extra`, if its halves are in two shards.
    """
    reason = None if shards == 1 else _undealable(spec)
    return reason and f"comparison {spec.name!r} cannot be divided by key: {reason}; or give --shards 1"


def _undealable(spec: Spec) -> str | None:
    return _undealt_order(spec) or next((why for found, why in _undealt(spec) if found), None)


def _undealt_order(spec: Spec) -> str | None:
    """Why the order of a comparison keeps no keys apart."""
    node, *_ = nodes(spec.order, spec.compared_kinds)
    if isinstance(node.order, Barrier):
        return (
            "a barrier depends on the events of all keys; one with a copy in each partition can be divided "
            "by partition"
        )
    if not _has_keys(node):
        return "events of all keys can depend on each other: declare `per_key`, `by_key` or `unordered`"
    return None


def _undealt(spec: Spec) -> Iterator[tuple[object, str]]:
    """What a comparison may declare that needs more than the events of one key, and why."""
    yield (
        spec.folding and spec.folding.tells_batches,
        "a table of `complete` is known by its rows of all keys",
    )
    yield (
        spec.duplicates.policy == "replays",
        "with `duplicates: {policy: replays}` the attempts of a batch have to agree in the rows of all keys",
    )
    yield from _unexplained(spec)
    yield spec.start.at == "barrier", "`start: barrier` needs all events to find it"
    yield from _unchecked(spec)
    yield spec.on_divergence == "halt", "`on_divergence: halt` ends at the first difference of all keys"


def _unexplained(spec: Spec) -> Iterator[tuple[object, str]]:
    """What known differences need that no shard knows, and why."""
    known, named = spec.known_differences, set(spec.named_by or ())
    shared = any(rule.ceiling.share is not None for rule in known)
    yield (
        shared,
        "a `share` of `known_differences` is one of all pairs, and a shard has its own: give a `count`",
    )
    if known and named and (apart := [field for field in _deciding(spec) if field not in named]):
        halves = (
            f"an event whose {' or '.join(dict.fromkeys(apart))} has changed is `missing` in one shard and "
            "`extra` in another, and `known_differences` cover kinds: add what is not in `identity`"
        )
        yield True, halves


def _unchecked(spec: Spec) -> Iterator[tuple[object, str]]:
    """The checks that judge a row by other rows than those of its shard, and why."""
    loose = _is_loose(spec)
    dealt_by = {*_deciding(spec), *((spec.named_by or ()) if loose else ())}
    helps = f"name {', '.join(sorted(dealt_by))} among its fields"
    if by_content := loose and not spec.named_by:
        helps = "declare `per_key`, or `identity`"
    for check in spec.all_checks:
        named = f"the check `{check.id}` (`{check.what}`)"
        yield check.watermark, f"{named} is about control records, which belong to no key"
        together = {*(check.once or check.key_partition or check.per)}
        yield (
            (together or check.ascending) and (by_content or not dealt_by <= together),
            f"{named} compares rows that may be in several shards: {helps}",
        )


def _is_loose(spec: Spec) -> bool:
    """Whether some events depend on no other. These are dealt out by identity, else by their content."""
    kinds = spec.compared_kinds
    return not all(any(any(links(spec.order, one, other)) for other in kinds) for one in kinds)


def _deciding(spec: Spec) -> Iterator[str]:
    """The fields that decide to which shard an event belongs that depends on others."""
    orders = [node.order for node in nodes(spec.order, spec.compared_kinds)]
    by_kind = any(isinstance(order, (Parallel, Dependent)) for order in orders)
    whats = ("order", "kind") if by_kind else ("order",)
    return (decision.field for decision in spec.decisions if decision.what in whats)


def _indivisible(spec: Spec) -> str | None:
    """Why the work cannot be divided at all."""
    whole, *inside = nodes(spec.order, spec.compared_kinds)
    copied = isinstance(whole.order, Barrier) and whole.order.copies == "per_partition"
    if not _has_keys(inside[0] if copied else whole):
        return "events of all keys and partitions can depend on each other"
    if spec.known_differences:
        return (
            "`known_differences` may explain both halves of an event that is in two partitions, and then "
            "nothing shows that the topics are not co-partitioned"
        )
    if spec.folding is not None:
        return "`emits` needs all partitions together to know what is settled"
    if spec.duplicates.policy == "replays":
        return "`duplicates` needs all partitions of a batch together to recognize a replay"
    if spec.start.at in ("barrier", "input"):
        return f"`start: {spec.start.at}` needs all partitions together to find it"
    if spec.overdue.clock == "input":
        return "`overdue: {clock: input}` needs all partitions of a side together"
    for check in spec.checks:
        if check.over_partitions:
            return (
                f"the check `{check.id}` (`{check.what}`) needs all partitions of a side together, and a "
                "shard sees only its own: remove it"
            )
    if spec.on_divergence == "halt":
        return "`on_divergence: halt` ends at the first difference of all partitions"
    return None


def _has_keys(node: Node) -> bool:
    """Whether some fields keep events apart: those that differ in one of them never depend on each other."""
    return not _links(node) or bool(_keys(node))


def _keys(node: Node) -> set[str]:
    """The fields that keep events apart; none where events depend on nothing."""
    found = _links(node)
    return set.intersection(*found) if found else set()


def _links(node: Node) -> list[set[str]]:
    """For each way in which two events can depend on each other, the fields that must be equal then."""
    return [
        {field for field, other in link.same if field == other}
        for pair in combinations_with_replacement(node.kinds, 2)
        for link in links(node.order, *pair)
    ]
