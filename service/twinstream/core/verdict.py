"""The verdict: a closed set of four answers, and which of them holds.

Precedence: DIVERGED > INCONCLUSIVE > PENDING > EQUIVALENT. A doubt of the checker never becomes the fault of
the candidate, and lack of evidence never becomes a pass.
"""

from __future__ import annotations

from enum import Enum


class Verdict(Enum):
    """What is known about the two streams.

    PENDING       nothing wrong, but not enough was compared; any may follow.
    EQUIVALENT    nothing wrong and enough was compared, up to a stated position; any may follow.
    DIVERGED      a difference is proven; only a reset follows.
    INCONCLUSIVE  something was not checked, or is overdue on a clock that cannot prove it; DIVERGED follows
                  if the difference was proven before, else what holds when the doubt is withdrawn.
    """

    PENDING = "PENDING"
    EQUIVALENT = "EQUIVALENT"
    DIVERGED = "DIVERGED"
    INCONCLUSIVE = "INCONCLUSIVE"


def verdict_of(*, diverged: bool, doubts: bool, lacking: bool) -> Verdict:
    """The verdict by precedence.

    `diverged`: an untainted divergence is proven. `doubts`: there is a hole or a suspicion. `lacking`: the
    evidence asked for is not complete.
    """
    if diverged:
        return Verdict.DIVERGED
    if doubts:
        return Verdict.INCONCLUSIVE
    return Verdict.PENDING if lacking else Verdict.EQUIVALENT
