"""Known differences: what the owner has declared to be expected, within a ceiling.

A rule covers single findings. It never hides one without counting it, and past its ceiling it covers nothing:
what was expected ten times and comes a thousand times is not what was expected.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from twinstream.core.findings import Finding
from twinstream.core.stretches import Stretches
from twinstream.core.surges import COMPARED


@dataclass(frozen=True)
class KnownDifference:
    """A declared difference.

    `covers` tells whether it is one of these; where `share` is given, the ceiling is that share of the pairs
    matched so far and at least 1, else it is `count`. It covers nothing of which an event was written at
    `until_ms` or later.
    """

    id: str
    covers: Callable[[Finding], bool]
    count: int = 0
    share: float | None = None
    until_ms: float = math.inf

    def allows(self, hits: int, matched: int) -> bool:
        """Whether one more finding is within the ceiling."""
        return hits < (self.count if self.share is None else max(1.0, self.share * matched))


class Covered(NamedTuple):
    """A finding, and the id of the rule that covers it."""

    finding: Finding
    rule: str


@dataclass
class Known:
    """The rules of one comparison, and how often each has covered a finding.

    `stretches` has the hits of each by time, beside all that was compared, for `surges`. Some of what a rule
    covers are examples, to be looked at: the first hundred, each tenth up to the thousandth, each hundredth
    up to the ten thousandth, and so on. So they are few, and there are always some of late.
    """

    rules: Sequence[KnownDifference]
    hits: dict[str, int] = field(default_factory=dict)
    stretches: Stretches = field(default_factory=Stretches)
    _examples: list[Covered] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """How often each rule has covered a finding, also those that never have."""
        return {rule.id: self.hits.get(rule.id, 0) for rule in self.rules}

    def open(self, matched: int) -> bool:
        """Whether any rule may still cover something."""
        in_force = (rule for rule in self.rules if rule.until_ms > -math.inf)
        return any(rule.allows(self.hits.get(rule.id, 0), matched) for rule in in_force)

    def expired(self, since_ms: float) -> bool:
        """Whether no rule covers events that were written at `since_ms` or later."""
        return all(rule.until_ms <= since_ms for rule in self.rules)

    def explain(self, finding: Finding, matched: int) -> str | None:
        """The first rule that covers a finding, which is then counted; None where none does."""
        rule = self._rule_of(finding, self.hits, matched)
        if rule is None:
            return None
        hits = self.hits.get(rule.id, 0)
        self.hits[rule.id] = hits + 1
        oldest_ms = min(event[3] for _, event in finding.events if event is not None)
        self.stretches.note_late(oldest_ms, {rule.id: 1, COMPARED: 1})
        if _is_example(hits):
            self._examples.append(Covered(finding, rule.id))
        return rule.id

    def covers(self, findings: Iterable[Finding], matched: int) -> bool:
        """Whether rules cover all these findings together; nothing is counted."""
        hits = Counter(self.hits)
        for finding in findings:
            rule = self._rule_of(finding, hits, matched)
            if rule is None:
                return False
            hits[rule.id] += 1
        return True

    def _rule_of(self, finding: Finding, hits: Mapping[str, int], matched: int) -> KnownDifference | None:
        newest_ms = max(event[3] for _, event in finding.events if event is not None)
        return next(
            (
                rule
                for rule in self.rules
                if newest_ms < rule.until_ms
                and rule.allows(hits.get(rule.id, 0), matched)
                and rule.covers(finding)
            ),
            None,
        )

    def take_examples(self) -> list[Covered]:
        """The examples since the last call."""
        examples, self._examples = self._examples, []
        return examples

    def compared(self, came_ms: Sequence[int], waited_ms: Sequence[int]) -> None:
        """Count pairs by the times of the older of their events, where there are rules.

        Each by its own time: a run that is read late spans minutes, and hits are counted one by one.
        """
        if self.rules:
            seconds = Counter(ms // 1000 for ms in map(min, came_ms, waited_ms))
            for second, pairs in seconds.items():
                self.stretches.note(second * 1000, {COMPARED: pairs})


def _is_example(before: int) -> bool:
    """Whether what a rule covers after so many others is one of its examples.

    >>> [sum(map(_is_example, range(hits))) for hits in (99, 100, 1_000, 1_000_000)]
    [99, 100, 190, 460]
    """
    step: int = 10 ** max(0, len(str(before)) - 2)
    return before % step == 0
