"""How a single worker must end that nothing happens to, as far as the faults of the input tell.

The end of a run is held against that of such a worker, which has the bugs of the product, too. So that is
held against what is true by definition: whether there are differences, what they are called, and whether
they are known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.simulation.ends import Outcome
from tests.simulation.inputs import Input
from twinstream.core.events import Side


def surprises(given: Input, calm: Outcome) -> Iterator[str]:
    """What is not as the faults of the input say, in the end of a worker to which nothing happened."""
    declared, told = given.declared, ", ".join(map(str, given.faults)) or "no fault"
    if given.uneven:
        return
    if not any(map(declared.names, given.faults)):
        yield from _as_equal(calm)
    may_be = Counter(name for fault in given.faults for name in declared.names(fault))
    if more := Counter(calm.by_kind) - may_be:
        yield f"{dict(more)} is told of {told}"
    explained = sum(of["explained"] for of in calm.accounts.values())
    if explained and not declared.may_explain(given.faults):
        yield f"{explained} events of {told} are explained by rules that do not fit"
    if calm.verdict != "DIVERGED" and given.all_count and given.only_by_order and _differs(given):
        yield f"{calm.verdict}, and {told} makes the topics differ"
    if calm.verdict == "DIVERGED" and declared.must_explain(given.faults):
        yield f"DIVERGED by what is known: {told}"


def _as_equal(calm: Outcome) -> Iterator[str]:
    """What is not as where both topics are equal; where they have nothing in common, nothing is known."""
    matched = any(of["matched"] for of in calm.accounts.values())
    waiting = any(of["unmatched"] for of in calm.accounts.values())
    if waiting or calm.verdict != ("EQUIVALENT" if matched else "PENDING"):
        yield f"{calm.verdict} of equal topics: {calm.accounts}"


def _differs(given: Input) -> bool:
    everything = {side: dict.fromkeys(range(given.partitions[side]), 1 << 60) for side in Side}
    return given.truth.differ(everything)
