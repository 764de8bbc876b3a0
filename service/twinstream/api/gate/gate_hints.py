"""Lists what would decide an undecided gate, in sentences for the page, the command line, release tools.

Every hint follows from what the API process knows: the status, its freshness, the unmatched events, and the
pace of the last minute. A hint says first what has to happen, then what a person can do.

Rules of this file: nothing is promised (a pace describes the past); a step that only needs time says so; and
so does a condition that never heals by itself (a hole).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from twinstream.api.gate.freshness import Freshness, said, sentence
from twinstream.api.gate.samples import Sample
from twinstream.explain.checks import judged
from twinstream.explain.coverage import asked_of, beyond_counts
from twinstream.spec.file.evidence import Wanted
from twinstream.status.common import SideName
from twinstream.status.comparison import Awaited, ComparisonStatus, Dependency, UnmatchedEvent

PACE_SECONDS = 60.0
"""The past from which the future is estimated: long enough for the micro-batches of a pipeline."""

_SIDES: tuple[SideName, ...] = ("reference", "candidate")
_OTHER: dict[SideName, SideName] = {"reference": "candidate", "candidate": "reference"}
_LIVE = {
    "awaited": "The matcher must start. If it does not, see its log.",
    "stale": "The matcher must report again. It hangs or waits: see its log.",
    "unheard": "The matcher of another process must be heard. The reason says what prevents that.",
    "lost": "The matcher must run again. The service restarts it; if it keeps failing, see its log.",
}
_SERVICES: dict[Dependency, str] = {
    "kafka": "Kafka must answer. Reading then continues by itself; nothing that Kafka keeps is lost.",
    "redis": "Redis must answer. Checkpoints then continue by themselves.",
}
_AWAITED: dict[Awaited, str] = {
    "checkpoint": "A difference was found. It counts once a checkpoint has it.",
    "classification": "A difference was found. Whether a known difference covers it is decided once both "
    "sides have passed it by 16 equal events, or for `overdue.after` where that clock proves.",
    "batches": "A difference was found. It counts once the batches open at that time are finished: by "
    "control records of both versions, or by all records until then.",
}


class GateFacts(NamedTuple):
    """What is known of one comparison: `waiting` are unmatched events, `samples` its recent past."""

    status: ComparisonStatus
    freshness: Freshness
    waiting: Sequence[UnmatchedEvent]
    samples: Sequence[Sample]
    verified_age: float | None


def to_decide(known: GateFacts) -> list[str]:
    """The conditions that must be met before an undecided gate of this comparison can be decided.

    Runtime complexity: O(unmatched events), of which there are at most 400 for each matcher.
    """
    status, freshness = known.status, known.freshness
    if not freshness.fresh:
        return [_LIVE[freshness.state]]
    steps = [_SERVICES[name] for name in status.health.unreachable]
    if status.waiting_for:
        return steps or [_begun(status, status.waiting_for.rstrip("."))]
    steps += [_stalled(side) for side in status.health.stalled]
    steps += [_AWAITED[name] for name in status.difference_awaits]
    steps += _of_holes(status)
    steps += _of_suspicions(known)
    steps += _of_evidence(known)
    steps += _of_checks(status)
    return steps or list(_of_a_pass(known))


def _begun(status: ComparisonStatus, reason: str) -> str:
    """What must happen before it begins; a reset forgets a verdict, so it is named only where it helps."""
    if status.health.standby:
        return f"The process that owns the comparison must be heard, or stop: {reason}."
    declared = " Set `start` in the comparison file or in a reset." if "no safe start" in reason else ""
    return f"The comparison must start: {reason}.{declared}"


def _stalled(side: SideName) -> str:
    return f"The {side} must write again or catch up: newer events of the {_OTHER[side]} wait for it."


# -- doubts ------------------------------------------------------------------------------------------------


def _of_holes(status: ComparisonStatus) -> Iterator[str]:
    count = max(status.hole_count, len(status.holes))
    if count:
        what = "Part of the input was" if count == 1 else f"{count:,} parts of the input were"
        yield (
            f"{what} not checked, and cannot be checked later. Fix the cause, then reset: "
            f"`twinstream reset {status.name} --reason …`; with a later `--start` where reading from `start` "
            "on would meet it again."
        )


def _of_suspicions(known: GateFacts) -> Iterator[str]:
    count = known.status.suspicions
    if not count:
        return
    overdue = [event for event in known.waiting if event.overdue]
    needs = "Its partner" if count == 1 else "Their partners"
    yield (
        f"{_events(count)} overdue{_whose(overdue, count)}. {needs} must arrive. A loss is proven only "
        "with `overdue.proves`, or with `overdue.clock: input` where all records name their input."
    )


def _events(count: int) -> str:
    return "1 event is" if count == 1 else f"{count:,} events are"


def _whose(overdue: Sequence[UnmatchedEvent], count: int) -> str:
    """The sides of the overdue events, as far as they are known one by one, and the oldest event."""
    if not overdue:
        return ""
    number = {side: sum(event.side == side for event in overdue) for side in _SIDES}
    least = "" if len(overdue) == count else "at least "
    named = " and ".join(f"{least}{number[side]:,} of the {side}" for side in _SIDES if number[side])
    oldest = min(overdue, key=lambda event: event.at)
    return f" ({named}; the oldest is {_place(oldest)}, of {said(oldest.at)})"


def _place(event: UnmatchedEvent) -> str:
    return f"{event.position.topic} {event.position.partition}:{event.position.offset}"


def _of_checks(status: ComparisonStatus) -> Iterator[str]:
    checked = judged(status.checks)
    if checked is not None:
        yield (
            f"A check must hold, but {checked.reason}. Fix the cause, then reset: `twinstream "
            f"reset {status.name} --reason …`. If the check is wrong, change it in the comparison file."
        )


# -- evidence ----------------------------------------------------------------------------------------------


def _of_evidence(known: GateFacts) -> Iterator[str]:
    coverage = known.status.coverage
    found = coverage.matched, coverage.seconds, coverage.matched_by_kind
    yield from more_evidence(asked_of(coverage), *found, pace_of(known.samples))
    yield from map(sentence, beyond_counts(coverage))


def more_evidence(
    asked: Wanted, matched: int, seconds: float, by_kind: Mapping[str, int], pace: float
) -> Iterator[str]:
    """The matches and the verified time still missing; `pace` is in pairs a second."""
    if matched < asked.matched:
        yield _of_pairs(matched, asked.matched, pace)
    if seconds < asked.seconds:
        yield _of_seconds(seconds, asked.seconds)
    yield from (_of_kind(kind) for kind in asked.kinds if not by_kind.get(kind))


def _of_pairs(matched: int, required: int, pace: float) -> str:
    lack = required - matched
    of = f"({matched:,} of {required:,})"
    return f"{lack:,} more {'pair' if lack == 1 else 'pairs'} required {of}{_in_time(lack, pace)}."


def _of_seconds(seconds: float, required: float) -> str:
    of = f"({_span(math.floor(seconds))} of {_span(required)})"
    return f"{_span(required - seconds)} more of Kafka time required {of}, while both sides keep writing."


def _of_kind(kind: str) -> str:
    return (
        f"No event of kind `{kind}` has matched yet; one is required. If the input may lack it, name it in "
        "`evidence.may_be_absent`."
    )


def pace_of(samples: Sequence[Sample]) -> float:
    """The recent pace, in pairs a second."""
    if not samples:
        return 0.0
    last = samples[-1]
    first = next(sample for sample in samples if (last.at - sample.at).total_seconds() <= PACE_SECONDS)
    seconds = (last.at - first.at).total_seconds()
    return max(0, last.matched - first.matched) / seconds if seconds > 0 else 0.0


def _in_time(lack: int, pace: float) -> str:
    if pace <= 0:
        return "; no match recently: both sides must write"
    speed = f" at {pace:,.0f} per second" if pace >= 1 else ""
    return f": about {_span(lack / pace)}{speed}"


def _span(seconds: float) -> str:
    """A duration in words that a person would use.

    >>> _span(0.4), _span(75), _span(4000), _span(9_910_000)
    ('1 s', '1 min 15 s', '1 h 6 min', '115 days')
    """
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{round(whole / 86_400):,} days"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


# -- why an equivalent comparison does not pass -----------------------------------------------------------


def _of_a_pass(known: GateFacts) -> Iterator[str]:
    status = known.status
    if status.health.status != "ok":
        reasons = " ".join(sentence(reason) for reason in status.health.reasons)
        yield f"Health must be ok. {reasons}".rstrip()
        return
    if known.verified_age is not None and known.verified_age < -status.max_staleness_seconds:
        yield "The clocks of Kafka and of this host must agree: see the times of the newest records."
        return
    oldest = min(known.waiting, key=lambda event: event.at, default=None)
    if oldest is None:
        unread = _unread(status, *_SIDES)
        rest = f": there are {unread}" if unread else ", with no unmatched event left."
        yield f"Both topics must be read to their ends{rest}"
        return
    other = _OTHER[oldest.side]
    unread = _unread(status, other)
    rest = f", or it is among its {unread}" if unread else "."
    yield (
        f"The oldest unmatched event must find its partner: {_place(oldest)}, of {said(oldest.at)}. The "
        f"{other} has not written it yet{rest}"
    )


def _unread(status: ComparisonStatus, *sides: SideName) -> str:
    """The records of some sides that are not read yet, and what may keep them back; empty without any."""
    found = [
        (part.lag, f"{getattr(status, side).topic} {part.partition}:{part.position}")
        for side in sides
        for part in getattr(status.progress, side)
        if part.lag
    ]
    if not found:
        return ""
    return (
        f"unread records ({sum(lag for lag, _ in found):,}, from {found[0][1]} on). If they stay unread, a "
        "transaction is open there, which its producer must end."
    )
