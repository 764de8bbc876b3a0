"""A side that is stalled: silent, while newer events of the other side wait for it.

It is stopped or behind, which is no difference: it degrades health, and the verdict stays as it is.

- Last records that lie far apart say nothing by themselves: two idle sides that have matched everything are
  healthy, and so is a side that is behind only by events that take no part in the comparison.
- An unmatched event that is older than the newest record of the other side does not make that side silent.
  Whether it is overdue is decided elsewhere (`core/clocks/arrival.py`).
- A side that has more to be read is not silent. While its end is not known, neither silence nor health is.
"""

from __future__ import annotations

from typing import NamedTuple

from twinstream.core.events import Side
from twinstream.explain.divergence import NAMES
from twinstream.matcher.comparison_run import ComparisonRun

STALLED_SHARE = 0.25
"""A side is called stalled when it is behind by this share of the time after which events are overdue."""


class Silence(NamedTuple):
    """Why health is degraded by a side for which newer events wait; `stalled` if it is known to be silent."""

    side: Side
    stalled: bool
    sentence: str


def silences(run: ComparisonRun) -> list[Silence]:
    """The sides that are silent, or may be. What waits is told as of the last survey, ends as last heard of.

    Complexity: O(k) in the different timestamps of what waits for a side that is behind, else O(1).
    """
    found = []
    for side in Side:
        all_read = _all_read(run, side)
        if all_read is not False and (behind := _behind(run, side)) is not None:
            found.append(_told(side, behind, known=all_read is True))
    return found


class _Behind(NamedTuple):
    """By how many seconds the other side has gone on, and how many newer events wait for a side."""

    seconds: float
    waiting: int
    has_written: bool


def _told(side: Side, behind: _Behind, *, known: bool) -> Silence:
    name, other = NAMES[side], NAMES[side.other]
    if not known:
        return Silence(
            side, stalled=False, sentence=f"it is not known yet where the topic of the {name} ends"
        )
    events = (
        f"1 newer event of the {other} waits"
        if behind.waiting == 1
        else (f"{behind.waiting:,} newer events of the {other} wait")
    )
    older = f"its newest record is {behind.seconds:.0f} s older than the {other}'s"
    nothing = f"it has written nothing in {behind.seconds:.0f} s of the {other}"
    reason = older if behind.has_written else nothing
    return Silence(side, stalled=True, sentence=f"the {name} is stalled: {reason}, and {events} for it")


def _behind(run: ComparisonRun, side: Side) -> _Behind | None:
    """How far a side is behind what waits for it; None where nothing waits that is new enough."""
    other, own = _newest_ms(run, side.other), _newest_ms(run, side)
    since = run.intake.first_ms if own is None else own
    patience_ms = run.comparison.rules.overdue_after_ms * STALLED_SHARE
    if other is None or since is None or other - since <= patience_ms:
        return None
    if run.intake.waiting is not None:  # Nothing is matched yet, so all that is kept for the start waits.
        newer = run.comparison.unmatched(side.other)
    else:
        waiting = run.comparison.ledger.held.of(side.other)
        if len(waiting) == waiting.until(since + int(patience_ms)):
            return None
        newer = len(waiting) - waiting.until(since if own is not None else since - 1)
    return _Behind((other - since) / 1000, newer, own is not None) if newer else None


def _newest_ms(run: ComparisonRun, side: Side) -> int | None:
    """When the newest record of a side was written."""
    return max(run.intake.newest_ms[side].values(), default=None)


def _all_read(run: ComparisonRun, side: Side) -> bool | None:
    """Whether a side is read to its end as last heard of; None where that is not known of a partition."""
    positions, ends = run.intake.positions[side], run.situation.heard_ends[side]
    if any(partition in ends and at < ends[partition] for partition, at in positions.items()):
        return False
    return None if positions.keys() - ends.keys() else True
