"""Finds stalled sides: silent, while newer events of the other side are unmatched.

Such a side is stopped or behind, which is no difference: it degrades health, and the verdict does not change.

- A time gap between the last records of both sides is not enough: two idle sides that have matched all events
  are healthy, and so is a side that is behind only by events that take no part in the comparison.
- An unmatched event that is older than the newest record of the other side does not make that side silent.
  Whether it is overdue is decided elsewhere (`core/clocks/arrival.py`).
- A side that has unread records is not silent. While its end is unknown, neither silence nor health is known.

A side that is not read on for lack of room, while the other has no more records, degrades health, too:
nothing is compared until the other writes.
"""

from __future__ import annotations

from typing import NamedTuple

from twinstream.core.events import Side
from twinstream.explain.divergence import NAMES
from twinstream.matcher.comparison_run import ComparisonRun

STALLED_SHARE = 0.25
"""A side is stalled when it is behind by this share of the time after which events are overdue."""


class Silence(NamedTuple):
    """A side that degrades health, since newer events of the other wait; `stalled`: known to be silent."""

    side: Side
    stalled: bool
    sentence: str


def silences(run: ComparisonRun) -> list[Silence]:
    """The sides that are silent, or may be; unmatched events as of the last survey, ends as last polled.

    Complexity: O(k) in the distinct timestamps of the unmatched events that face a side behind, else O(1).
    """
    found = []
    for side in Side:
        all_read = _all_read(run, side)
        if all_read is not False and (behind := _behind(run, side)) is not None:
            found.append(_told(side, behind, known=all_read is True))
    return found


def waits_in_vain(run: ComparisonRun) -> list[str]:
    """The sentence about a side that is not read on though the other has no more records, if there is one."""
    side = run.turns.in_vain
    if side is None:
        return []
    why = f"unmatched events take more than half of a limit, and the {NAMES[side.other]} has no more records"
    return [f"the {NAMES[side]} is not read on: {why}; if it writes none, raise `limits`"]


class _Behind(NamedTuple):
    """The seconds by which a side is behind, and the number of newer unmatched events of the other."""

    seconds: float
    waiting: int
    has_written: bool


def _told(side: Side, behind: _Behind, *, known: bool) -> Silence:
    name, other = NAMES[side], NAMES[side.other]
    if not known:
        return Silence(side, stalled=False, sentence=f"the end of the {name}'s topic is not known yet")
    events = (
        f"1 newer event of the {other} waits"
        if behind.waiting == 1
        else (f"{behind.waiting:,} newer events of the {other} wait")
    )
    older = f"its newest record is {behind.seconds:,.0f} s older than the {other}'s"
    nothing = f"it wrote nothing while the {other} wrote for {behind.seconds:,.0f} s"
    reason = older if behind.has_written else nothing
    return Silence(side, stalled=True, sentence=f"the {name} is stalled: {reason}; {events} for it")


def _behind(run: ComparisonRun, side: Side) -> _Behind | None:
    """How far a side is behind the unmatched events of the other; None if none of them is new enough."""
    other, own = _newest_ms(run, side.other), _newest_ms(run, side)
    since = run.intake.first_ms if own is None else own
    patience_ms = run.comparison.rules.overdue_after_ms * STALLED_SHARE
    if other is None or since is None or other - since <= patience_ms:
        return None
    if run.intake.waiting is not None:  # No event is matched yet, so all held for the start are unmatched.
        newer = run.comparison.unmatched(side.other)
    else:
        waiting = run.comparison.ledger.held[side.other]
        if len(waiting) == waiting.until(since + int(patience_ms)):
            return None
        newer = len(waiting) - waiting.until(since if own is not None else since - 1)
    return _Behind((other - since) / 1000, newer, own is not None) if newer else None


def _newest_ms(run: ComparisonRun, side: Side) -> int | None:
    """The time of the newest record of a side."""
    return max(run.intake.newest_ms[side].values(), default=None)


def _all_read(run: ComparisonRun, side: Side) -> bool | None:
    """Whether a side is read to its end as last polled; None if the end of a partition is unknown."""
    positions, ends = run.intake.positions[side], run.situation.heard_ends[side]
    if any(partition in ends and at < ends[partition] for partition, at in positions.items()):
        return False
    return None if positions.keys() - ends.keys() else True
