"""The verdict: one of four answers, by precedence.

Precedence: DIVERGED > INCONCLUSIVE > PENDING > EQUIVALENT. A doubt of the checker never becomes the fault of
the candidate, and lack of evidence never becomes a pass.
"""

from __future__ import annotations

from enum import Enum


class Verdict(Enum):
    """The state of knowledge about the two streams.

    PENDING       no difference, but not enough was compared; any verdict may follow.
    EQUIVALENT    no difference, and enough was compared, up to a stated position; any verdict may follow.
    DIVERGED      a difference is proven; only a reset changes it.
    INCONCLUSIVE  some input was not checked, or an event is overdue on a clock that cannot prove it; DIVERGED
                  may follow if the difference was proven before, else another when the doubt is withdrawn.
    """

    PENDING = "PENDING"
    EQUIVALENT = "EQUIVALENT"
    DIVERGED = "DIVERGED"
    INCONCLUSIVE = "INCONCLUSIVE"


def verdict_of(*, diverged: bool, doubts: bool, lacking: bool) -> Verdict:
    """The verdict by precedence.

    `diverged`: an untainted divergence is proven. `doubts`: there is a hole or a suspicion. `lacking`: the
    required evidence is incomplete.
    """
    if diverged:
        return Verdict.DIVERGED
    if doubts:
        return Verdict.INCONCLUSIVE
    return Verdict.PENDING if lacking else Verdict.EQUIVALENT
