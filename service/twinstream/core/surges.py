"""Known differences that explain far more than before.

A known difference is declared for what somebody has looked at. When it begins to cover much more, something
else may hide behind it, long before it reaches its ceiling. That is a *surge*: reported, and no matter for
the verdict.

- *Now* are the ten minutes of Kafka time up to the rule's latest hit, *before* is the day that they follow.
  What is further back is known in longer stretches (`stretches`), so both begin within one of them.
- A rate is the hits of a rule among all that was compared: pairs, and hits of any rule. So more traffic is
  no surge.
- *Far more* is more than three times the rate of before. That it is so, and no chance, is asked of the
  exact conditional test for two rates (Przyborowski and Wilenski, 1940): of all hits of both times, those
  of now are binomial. The tail is bounded from above (Hoeffding, 1963, theorem 1) by `exp(-n KL)`, which
  must be below one in a million: a rule is looked at again with every hit.
- No surge is told of fewer than ten hits, nor before as much was compared before as now. So a comparison
  that has just begun, or begun anew, has none.

The test takes hits for independent. Where they come in rare bursts, each burst is a surge, and told as one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from twinstream.core.stretches import Stretches

COMPARED = ""
"""Under this name, which no rule has, stretches count all that was compared."""
NOW_SECONDS, BEFORE_SECONDS = 600, 86_400
FACTOR = 3
LEAST_HITS = 10
CHANCE = 1e-6


class Rate(NamedTuple):
    """So many hits of a rule among so much that was compared."""

    hits: int
    compared: int


class Surge(NamedTuple):
    """A rule whose rate is far higher now than it was before."""

    rule: str
    now: Rate
    before: Rate


def surges(stretches: Stretches) -> Iterator[Surge]:
    """The rules that explain far more than before, in stretches of hits by rule.

    Complexity: O(n) in the stretches, for each rule that has hit.
    """
    for rule, latest in stretches.latest().items():
        if rule != COMPARED and latest > stretches.at - BEFORE_SECONDS:
            begin = latest - NOW_SECONDS
            now = _rate(stretches, rule, begin + 1, latest)
            before = _rate(stretches, rule, begin + 1 - BEFORE_SECONDS, begin)
            if far_more(now, before):
                yield Surge(rule, now, before)


def far_more(now: Rate, before: Rate) -> bool:
    """Whether one rate is more than three times another, beyond what chance would do.

    >>> far_more(Rate(40, 10_000), Rate(10, 100_000)), far_more(Rate(40, 10_000), Rate(100, 100_000))
    (True, False)
    """
    if now.hits < LEAST_HITS or before.compared < max(1, now.compared):
        return False
    return _chance(now, before) < CHANCE


def _chance(now: Rate, before: Rate) -> float:
    """At most how likely so many hits are now, if the rate is three times that of before and no more."""
    total = now.hits + before.hits
    share = FACTOR * now.compared / (FACTOR * now.compared + before.compared)
    seen = now.hits / total
    if seen <= share:
        return 1.0
    rest = (1 - seen) * math.log((1 - seen) / (1 - share)) if before.hits else 0.0
    return math.exp(-total * (seen * math.log(seen / share) + rest))


def _rate(stretches: Stretches, rule: str, first: int, last: int) -> Rate:
    return Rate(stretches.between(rule, first, last), stretches.between(COMPARED, first, last))
