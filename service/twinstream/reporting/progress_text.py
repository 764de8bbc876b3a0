"""Describes how far each side has come on the clock of overdue events, and what holds it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice

from twinstream.core.clocks.event_time import EventTimes
from twinstream.core.clocks.input import InputProgress
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.spec.compile.clocks import other_unit
from twinstream.spec.file.model import Spec
from twinstream.status import comparison as status
from twinstream.status.timestamps import rfc3339

SHOWN = 4
"""Input partitions named in a text; there may be hundreds."""


def frontier_of(
    spec: Spec,
    comparison: Comparison,
    side: Side,
    positions: Mapping[int, int],
    ends: Mapping[int, int],
) -> status.Frontier:
    """The frontier of a side that is read up to `positions`, while its partitions end at `ends`."""
    points = comparison.clocks.points
    clock = None if points is None else points.progress
    if isinstance(clock, InputProgress):
        at, reasons = _of_input(spec, clock, side, positions)
    else:
        at, reasons = _of_arrival(comparison, side) if clock is None else _of_event_time(spec, clock, side)
        reasons = [*reasons, *_unread(positions, ends)]
    return status.Frontier(at=at, held_back_by="; ".join(reasons[:2]) or None)


def _of_arrival(comparison: Comparison, side: Side) -> tuple[str | None, list[str]]:
    newest_ms = comparison.clocks.arrival.newest_ms[side]
    return _moment(newest_ms), ["it has no record yet"] if newest_ms is None else []


def _unread(positions: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[str]:
    behind = [partition for partition, end in ends.items() if positions.get(partition, 0) < end]
    if behind:
        yield f"partition {min(behind)} is not read to its end"


def _of_event_time(spec: Spec, times: EventTimes, side: Side) -> tuple[str | None, list[str]]:
    front = times.front(side)
    reasons = [
        f"{_moment(jump)} in partition {partition} is ahead by more than max_jump, and does not count"
        for partition, jump in sorted(front.jumps.items())
    ]
    if front.resting and front.reached_ms is not None:
        reasons.insert(0, f"it has brought nothing for {spec.overdue.idle_after.total_seconds():g} s")
    elif front.slowest is not None:
        newest_ms = times.newest_ms(side, front.slowest)
        seen = "has no event time yet" if newest_ms is None else f"is at {_moment(newest_ms)}"
        reasons.insert(0, f"partition {front.slowest} {seen}")
    return _moment(front.reached_ms), [*_misread(spec, front.reached_ms), *reasons]


def _misread(spec: Spec, reached_ms: int | None) -> Iterator[str]:
    """A hint that times seem to be in another unit than declared: then events are overdue late, or early."""
    if reached_ms is None:
        return
    newest_ms = reached_ms + spec.overdue.after // timedelta(milliseconds=1)
    if unit := other_unit(newest_ms, spec.overdue.unit):
        yield (
            f"as `unit: {spec.overdue.unit}` says its times are of {_moment(newest_ms)}: if they are "
            f"numbers, write `overdue.unit: {unit}`"
        )


def _of_input(
    spec: Spec, progress: InputProgress, side: Side, positions: Mapping[int, int]
) -> tuple[str | None, list[str]]:
    consumed = sorted(progress.consumed(side).items())
    parts = [f"{topic} {partition}: {offset}" for (topic, partition), offset in consumed[:SHOWN]]
    parts += [f"{len(consumed) - SHOWN} more"] if len(consumed) > SHOWN else []
    watermark = _moment(progress.watermark_ms(side))
    parts += [] if watermark is None else [f"watermark {watermark}"]
    reasons = [
        f"batch {awaited.batch} of query {awaited.query} has written partition {awaited.partition} up to "
        f"{awaited.written}, which is read up to {awaited.read}"
        for awaited in islice(progress.awaited(side, positions), 1)
    ]
    if not progress.queries(side):
        version, topic = spec.version_of(side).version, spec.version_of(side).topic
        reasons = [f"version {version} has said nothing about {topic} on {spec.control} yet"]
    return ", ".join(parts) or None, reasons


def _moment(milliseconds: int | None) -> str | None:
    """A time in ISO 8601; a number beyond the calendar."""
    if milliseconds is None:
        return None
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return rfc3339(moment, "milliseconds")
