"""Where rules on trial begin beside a comparison that is under way, and what they wait for until then.

Which rules can begin at which moment is told by the files (`spec.trial.midway`), whether this is such a
moment by the comparison. One that has found a difference has settled events without a partner; by other rules
these may have one behind the place where it is. So there is no such moment any more.
"""

from __future__ import annotations

from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.runtime.course import Course
from twinstream.spec.explain import NAMES
from twinstream.spec.trial import Midway

MOST_TAKEN_OVER = 100_000
"""So many events that wait are fed to a trial at once: about half a second, in which nothing is read."""

_CURE = "begin it anew (`twinstream reset`), or try the rules on what is kept with `twinstream replay`"
NEVER = "the comparison was under way before this trial, and {reason}: " + _CURE
REST = (
    "the comparison was under way before this trial, which begins at the next moment at which {needed} wait "
    "for a partner ({waiting}): let both versions rest for a moment, or begin the comparison anew "
    "(`twinstream reset`)"
)


def hindrance(live: Course, midway: Midway) -> str | None:
    """Why a trial cannot begin beside a comparison now, as a sentence; None where it can. It asks nobody."""
    if not live.begun():
        return "the comparison has not begun"
    if (reason := midway.refusal or _unsettled(live.comparison, midway)) is not None:
        return NEVER.format(reason=reason)
    waits = {NAMES[side]: live.comparison.ledger.waits(side) for side in Side}
    if sum(waits.values()) <= (MOST_TAKEN_OVER if midway.anytime else 0):
        return None
    needed = f"no more than {MOST_TAKEN_OVER:,} events" if midway.anytime else "no events"
    return REST.format(needed=needed, waiting=", ".join(f"{n:,} of the {name}" for name, n in waits.items()))


def _unsettled(comparison: Comparison, midway: Midway) -> str | None:
    """What the comparison has not paired and does not keep, or cannot tell yet."""
    ledger, accounts = comparison.ledger, comparison.accounts
    differs = ledger.found_by_kind.total() or any(one.divergent or one.explained for one in accounts)
    if differs or comparison.scopes or comparison.in_dispute or comparison.diverged:
        return "it has found differences, of which other rules may pair some with what comes"
    if comparison.holes or ledger.beginning is not None or comparison.overflowing or comparison.halted:
        return "something was not compared, of which the partners may still come"
    if not midway.same_events and any(one.undecodable for one in accounts):
        return "some records were no events to it, which may be events by other rules"
    return None
