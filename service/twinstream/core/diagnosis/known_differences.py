"""Known differences: what the owner has declared to be expected, within a ceiling.

A rule covers single findings. It never hides one without counting it, and past its ceiling it covers nothing:
what was expected ten times and comes a thousand times is not what was expected.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from twinstream.core.diagnosis.findings import Finding


@dataclass(frozen=True)
class KnownDifference:
    """A declared difference.

    `covers` tells whether it is one of these, `may_cover` of an event that has no other half yet whether it
    may become one under the name that it is given. Where `share` is given, the ceiling is that share of the
    pairs matched so far and at least 1, else it is `count`. It covers nothing of which an event was written
    at `until_ms` or later.
    """

    id: str
    covers: Callable[[Finding], bool]
    count: int = 0
    share: float | None = None
    until_ms: float = math.inf
    may_cover: Callable[[Finding], bool] = lambda _: True

    def allows(self, hits: int, matched: int) -> bool:
        """Whether one more finding is within the ceiling."""
        return hits < (self.count if self.share is None else max(1.0, self.share * matched))


class Covered(NamedTuple):
    """A finding, and the id of the rule that covers it."""

    finding: Finding
    rule: str


@dataclass
class KnownDifferences:
    """The rules of one comparison, and how often each has covered a finding.

    Some of what a rule covers are examples, to be looked at: the first hundred, each tenth up to the
    thousandth, each hundredth up to the ten thousandth, and so on. So they are few, and there are always some
    of late.
    """

    rules: Sequence[KnownDifference]
    hits: dict[str, int] = field(default_factory=dict)
    _examples: list[Covered] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """How often each rule has covered a finding, also those that never have."""
        return {rule.id: self.hits.get(rule.id, 0) for rule in self.rules}

    def open(self, matched: int) -> bool:
        """Whether any rule may still cover something: a share of the pairs may, since there will be more."""
        in_force = (rule for rule in self.rules if rule.until_ms > -math.inf)
        return any(rule.share is not None or rule.allows(self._hits(rule), matched) for rule in in_force)

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
        if _is_example(hits):
            self._examples.append(Covered(finding, rule.id))
        return rule.id

    def speaks_of(self, finding: Finding) -> bool:
        """Whether a rule may cover an event under this name, whatever its ceiling."""
        return any(rule.may_cover(finding) for rule in self._in_force(finding))

    def may_cover(self, finding: Finding, matched: int) -> bool:
        """Whether a rule may cover an event under this name, whatever its other half is."""
        return any(
            rule.may_cover(finding) and (rule.share is not None or rule.allows(self._hits(rule), matched))
            for rule in self._in_force(finding)
        )

    def over_share(self, finding: Finding, matched: int) -> bool:
        """Whether a rule covers a finding but for its share of the pairs, of which there will be more."""
        return any(
            rule.share is not None and not rule.allows(self._hits(rule), matched) and rule.covers(finding)
            for rule in self._in_force(finding)
        )

    def take_back(self, rule: str) -> None:
        """What a rule has covered turned out to be another difference."""
        self.hits[rule] -= 1

    def _hits(self, rule: KnownDifference) -> int:
        return self.hits.get(rule.id, 0)

    def _in_force(self, finding: Finding) -> Iterator[KnownDifference]:
        """The rules that do not expire before the events of a finding."""
        newest_ms = max(event[3] for _, event in finding.events if event is not None)
        return (rule for rule in self.rules if newest_ms < rule.until_ms)

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
        return next(
            (
                rule
                for rule in self._in_force(finding)
                if rule.allows(hits.get(rule.id, 0), matched) and rule.covers(finding)
            ),
            None,
        )

    def take_examples(self) -> list[Covered]:
        """The examples since the last call."""
        examples, self._examples = self._examples, []
        return examples


def _is_example(before: int) -> bool:
    """Whether what a rule covers after so many others is one of its examples.

    >>> [sum(map(_is_example, range(hits))) for hits in (99, 100, 1_000, 1_000_000)]
    [99, 100, 190, 460]
    """
    step: int = 10 ** max(0, len(str(before)) - 2)
    return before % step == 0
