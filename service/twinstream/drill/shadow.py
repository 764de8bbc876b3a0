"""Makes the comparison of the copies: the rules of the live one, on topics of the drill's own.

Kafka's times of the copies are moved so that the newest is now, since a gate asks for freshness. If only the
arrival clock can detect the difference, or a silent side, its time must pass after the difference; and
neither side may lead by too much. If the records' own times do not allow that, the copies get evenly spaced
ones, far enough apart. The order of records never changes.

If replays are told by their batches, a difference counts when the batches open at that time are finished, as
later ones show. So the last part of the copies is held back until the part before it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from twinstream.core.events import Side
from twinstream.drill.copies import CopiedPair
from twinstream.drill.planting import PlantedDifference
from twinstream.errors import SettingsError
from twinstream.explain.divergence import NAMES
from twinstream.spec.drills import DrillRecord, Names
from twinstream.spec.file.model import Evidence, Overdue, Spec
from twinstream.spec.file.start import Start

ExpectedSign = Literal["fail", "suspicion", "stall"]

Written = Sequence[tuple[str, DrillRecord]]
"""Records, each with its topic."""

LEAST_SPAN_MS = 1000
ENOUGH = 2
"""After the difference, so many times the overdue time has to pass."""


def shadow_of(spec: Spec, names: Names, before: int) -> Spec:
    """The comparison file of the copies; it asks for no more evidence than `before` events can give."""
    sides: dict[str, Any] = {
        NAMES[side]: spec.version_of(side).model_copy(update={"topic": names.topics[side]}) for side in Side
    }
    evidence = Evidence(
        matched=max(1, min(spec.evidence.matched, before // 2)),
        seconds=0,
        may_be_absent=list(spec.compared_kinds) if spec.kinds else [],
    )
    overdue = Overdue() if spec.overdue.clock == "input" else spec.overdue
    own: dict[str, Any] = {"name": names.comparison, "control": None, "start": Start(), "checks": []}
    return spec.model_copy(update={**sides, **own, "evidence": evidence, "overdue": overdue})


def left_out(spec: Spec) -> Iterator[str]:
    """The parts of the live comparison that the copies lack, as sentences."""
    if spec.overdue.clock == "input":
        yield "the clock of the input: the copies have no control topic"
    if spec.start.at != "earliest":
        yield f"the start at `{spec.start.at}`: the copies are compared from their first record on"
    if spec.checks:
        yield "the checks: the drill is about a difference between the copies"


def expected(spec: Spec, plan: PlantedDifference) -> ExpectedSign:
    """The expected reaction of a comparison to a difference. Raises SettingsError if there can be none."""
    if plan.kind == "stall":
        return "stall"
    if plan.proven:
        return "fail"
    if spec.overdue.clock == "input":
        raise SettingsError(
            f"only the clock of the input can tell this {plan.kind} in {spec.name}, since no order relates "
            "the event to a later one, and the copies of a drill have no control topic: take another --kind"
        )
    return "fail" if spec.overdue.proves else "suspicion"


def awaited(spec: Spec, plan: PlantedDifference) -> timedelta:
    """How long the rules themselves wait: the arrival clock also needs the reader to see time pass."""
    by_clock = not plan.proven and spec.overdue.clock == "arrival" and spec.overdue.proves
    return spec.overdue.after if by_clock else timedelta(0)


def dated(spec: Spec, plan: PlantedDifference, now_ms: int) -> CopiedPair:
    """Both copies with Kafka times up to now. Raises SettingsError if no suitable times exist."""
    needed = _needed_ms(spec, plan)
    newest = max(record.timestamp_ms for record in plan.pair.reference)
    fits = newest - plan.origin.timestamp_ms >= needed
    if fits and _together(spec, plan.pair):
        moved = now_ms - max(newest, *(record.timestamp_ms for record in plan.pair.candidate))
        return _at(plan.pair, lambda side, place: plan.pair[side][place].timestamp_ms + moved)
    if "$timestamp" in spec.deciding_fields:
        raise SettingsError(
            f"behind the difference {needed / 1000:g} s of Kafka time have to pass, and {spec.name} compares "
            "$timestamp, which must stay as it is: give more --records"
        )
    return _evenly(plan, needed, now_ms)


def _together(spec: Spec, pair: CopiedPair) -> bool:
    """Whether both sides wrote the records at about the same time: neither leads, nor looks stalled."""
    firsts = [pair[side][0].timestamp_ms for side in Side]
    apart = min(spec.limits.lead, spec.overdue.after / 4)
    return abs(firsts[0] - firsts[1]) * 2 <= apart.total_seconds() * 1000


def _needed_ms(spec: Spec, plan: PlantedDifference) -> int:
    """How much of Kafka's time has to pass after the difference for it to be detected."""
    by_clock = not plan.proven and spec.overdue.clock == "arrival"
    after_ms = int(spec.overdue.after.total_seconds() * 1000)
    return ENOUGH * after_ms if by_clock or plan.kind == "stall" else 0


def _evenly(plan: PlantedDifference, needed_ms: int, now_ms: int) -> CopiedPair:
    """Spread both halves of both copies evenly, so that matching records have one time."""
    behind = 1 - _share(plan, Side.RIGHT, plan.at)
    span = max(needed_ms / max(behind, 0.05), LEAST_SPAN_MS)
    return _at(plan.pair, lambda side, place: now_ms - int(span * (1 - min(1, _share(plan, side, place)))))


def _share(plan: PlantedDifference, side: Side, place: int) -> float:
    """The position of a record in its copy, from 0 to about 1; the part before the difference is one half."""
    return place / (2 * plan.before[side])


def _at(pair: CopiedPair, time_ms: Callable[[Side, int], int]) -> CopiedPair:
    """The records with other times, as given for a side and a place in its copy."""
    return CopiedPair(
        *(
            [one._replace(timestamp_ms=time_ms(side, place)) for place, one in enumerate(pair[side])]
            for side in Side
        )
    )


# -- writing the copies ------------------------------------------------------------------------------------


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
    return _turns(names, CopiedPair(*(copies[side][: plan.before[side]] for side in Side)))


def behind(spec: Spec, names: Names, copies: CopiedPair, plan: PlantedDifference) -> Behind:
    """The records after it."""
    turns = _turns(names, CopiedPair(*(copies[side][plan.before[side] :] for side in Side)))
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
    turns = [(place / len(pair[side]), side, place) for side in Side for place in range(len(pair[side]))]
    return [(names.topics[side], pair[side][place]) for _, side, place in sorted(turns)]
