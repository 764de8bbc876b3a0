"""Tells whether several matchers can share the work of a comparison (see `core.sharding`).

Rules of this file: it decides from the comparison file and the numbers of partitions alone, so that all
matchers of a comparison come to the same answer.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import NamedTuple

from twinstream.spec.file.model import Spec
from twinstream.spec.file.orders import Barrier, Node, nodes
from twinstream.spec.lint.relations import links


class Division(NamedTuple):
    """Whether several matcher processes can share the work, and how."""

    possible: bool
    text: str


def division(spec: Spec) -> Division:
    """Whether several matcher processes can share the work of a comparison, and how."""
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


def unfit(spec: Spec, shards: int, partitions: tuple[int, int]) -> str | None:
    """Why topics with so many partitions cannot be compared in so many shards, as a sentence."""
    one, other = partitions
    if spec.co_partitioned and one != other:
        return (
            f"the topics have {one} and {other} partitions, but the file says `co_partitioned: true`: equal "
            "events cannot all have the same partition number; remove it"
        )
    if one < shards:
        return f"the topics have {one} partitions, too few for {shards} shards: start at most {one}"
    return None


def _indivisible(spec: Spec) -> str | None:
    """Why the work cannot be divided at all."""
    whole, *inside = nodes(spec.order, spec.compared_kinds)
    copied = isinstance(whole.order, Barrier) and whole.order.copies == "per_partition"
    if not _has_keys(inside[0] if copied else whole):
        return "events of all keys and partitions can depend on each other"
    if spec.known_differences:
        return "`known_differences` have ceilings, and no shard knows what the others have explained"
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
    keys = [
        {field for field, other in link.same if field == other}
        for pair in combinations_with_replacement(node.kinds, 2)
        for link in links(node.order, *pair)
    ]
    return not keys or bool(set.intersection(*keys))
