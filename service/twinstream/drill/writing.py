"""Decides the order and the portions in which the copies are written.

If replays are told by their batches, a difference counts when the batches open at that time are finished, as
later ones show. So the last part of the copies is held back until the part before it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twinstream.core.events import Side
from twinstream.drill.copies import CopiedPair
from twinstream.drill.planting import PlantedDifference
from twinstream.spec.drills import DrillRecord, Names
from twinstream.spec.file.model import Spec

Written = Sequence[tuple[str, DrillRecord]]
"""Records, each with its topic."""


class Behind(NamedTuple):
    """The records after the first half: those written at once, and those written when these have been read.

    `mark` is the number of the record at which the difference shows, `events` how many events each side has
    with those written at once.
    """

    first: Written
    mark: int
    events: tuple[int, int]
    rest: Written


def before(names: Names, copies: CopiedPair, plan: PlantedDifference) -> Written:
    """The records before the difference."""
    return _turns(names, CopiedPair(*(copies.of(side)[: plan.before[side]] for side in Side)))


def behind(spec: Spec, names: Names, copies: CopiedPair, plan: PlantedDifference) -> Behind:
    """The records after it."""
    turns = _turns(names, CopiedPair(*(copies.of(side)[plan.before[side] :] for side in Side)))
    mark = 0
    if plan.kind != "stall":
        shown, topic = copies.candidate[plan.at], names.topics[Side.RIGHT]
        mark = next(n for n, (name, record) in enumerate(turns) if name == topic and record is shown)
    cut = (mark + len(turns)) // 2 if spec.duplicates.policy == "replays" else len(turns)
    first = turns[:cut]
    reference, candidate = (sum(1 for name, _ in first if name == topic) for topic in names.topics)
    events = plan.before[Side.LEFT] + reference, plan.before[Side.RIGHT] + candidate
    return Behind(first, mark, events, turns[cut:])


def _turns(names: Names, pair: CopiedPair) -> list[tuple[str, DrillRecord]]:
    """The records of both sides, interleaved in proportion."""
    parts = [
        (place / max(1, len(pair.of(side))), int(side), place)
        for side in Side
        for place in range(len(pair.of(side)))
    ]
    return [(names.topics[side], pair.of(Side(side))[place]) for _, side, place in sorted(parts)]
