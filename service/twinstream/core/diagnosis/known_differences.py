"""Known differences: the differences that the owner has declared as expected, up to a ceiling.

A rule covers single findings. It counts every finding that it hides, and past its ceiling it covers nothing:
a difference expected ten times that comes a thousand times is not the expected one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

from twinstream.core.diagnosis.ceilings import Ceilings, Choices, IsFree
from twinstream.core.diagnosis.findings import KINDS_OF, Finding
from twinstream.core.events import TIMESTAMP_MS, Event, Side


@dataclass(frozen=True)
class KnownDifference:
    """A declared difference.

    `covers` decides whether a finding is one of these. `may_cover` decides it for a finding that lacks its
    other half: whether it may become one under its kind. Where `share` is given, the ceiling is that share of
    the pairs matched so far and at least 1, else it is `count`. It covers no finding with an event that was
    written at `until_ms` or later.
    """

    id: str
    covers: Callable[[Finding], bool]
    count: int = 0
    share: float | None = None
    until_ms: float = math.inf
    may_cover: Callable[[Finding], bool] = lambda _: True

    def allows(self, hits: int, matched: int) -> bool:
        """Whether one more finding is within the ceiling."""
        return hits < (self.count if self.share is None else share_of(self.share, matched))


def share_of(share: float, matched: int) -> int:
    """The findings that a share of the matched pairs allows: rounded down, and at least one.

    The share is the decimal number of the file.

    >>> share_of(0.07, 100), share_of(0.1, 25), share_of(0.1, 3)
    (7, 2, 1)
    """
    return max(1, floor(Fraction(repr(share)) * matched))


class Covered(NamedTuple):
    """A finding, and the id of the rule that covers it."""

    finding: Finding
    rule: str


class KnownDifferences:
    """The rules of one comparison, and the number of findings that each has covered.

    Some findings that a rule covers are kept as examples to look at: the first hundred, each tenth up to the
    thousandth, each hundredth up to the ten thousandth, and so on. So they are few, and some are always
    recent.
    """

    def __init__(self, rules: Sequence[KnownDifference]) -> None:
        self.rules = rules
        self._by_id = {rule.id: rule for rule in rules}
        self._ceilings = Ceilings()
        self._examples: list[Covered] = []

    @property
    def counts(self) -> dict[str, int]:
        """The number of findings that each rule has covered, zeros included."""
        return {rule.id: self._ceilings.count(rule.id) for rule in self.rules}

    @property
    def hits(self) -> dict[str, int]:
        """The number of findings that each rule has covered which has covered any."""
        return {rule: count for rule, count in self.counts.items() if count}

    @property
    def by_choices(self) -> Counter[Choices]:
        """The number of findings covered, by the rules that each could count against."""
        found = Counter[Choices]()
        for _, choices, count in self._ceilings:
            found[choices] += count
        return found

    def open(self, matched: int) -> bool:
        """Whether any rule may still cover a finding; one with a share may, since more pairs will come."""
        free = self._free(self._ceilings, matched)
        in_force = (rule for rule in self.rules if rule.until_ms > -math.inf)
        return any(rule.share is not None or free(rule.id) for rule in in_force)

    def expired(self, since_ms: float) -> bool:
        """Whether no rule covers events that were written at `since_ms` or later."""
        return all(rule.until_ms <= since_ms for rule in self.rules)

    def explain(self, finding: Finding, matched: int) -> str | None:
        """Count a finding; returns the first rule that covers it, None if the ceilings forbid it.

        If that rule is at its ceiling, the finding counts against another one (see `ceilings`).
        """
        choices = self._choices(finding)
        counted = self._ceilings.take(choices, self._free(self._ceilings, matched))
        if counted is None:
            return None
        rule = counted if counted in choices else choices[0]
        if _is_example(self._ceilings.count(counted) - 1):
            self._examples.append(Covered(finding, rule))
        return rule

    def speaks_of(self, finding: Finding) -> bool:
        """Whether a rule may cover the event of a finding under its kind, whatever the rule's ceiling."""
        return any(rule.may_cover(finding) for rule in self._in_force(finding))

    def speak_of(self, side: Side, event: Event) -> bool:
        """Whether a rule may cover an event of a side, whatever its difference turns out to be."""
        left, right = (event, None) if side is Side.LEFT else (None, event)
        return any(self.speaks_of(Finding(kind, left, right, ())) for kind in KINDS_OF[side])

    def may_cover(self, finding: Finding, matched: int) -> bool:
        """Whether a rule may cover the event of a finding under its kind, whatever its other half is."""
        choices = tuple(rule.id for rule in self._in_force(finding) if rule.may_cover(finding))
        free, reachable = self._free(self._ceilings, matched), self._ceilings.reachable(choices)
        return any(self._by_id[rule].share is not None or free(rule) for rule in reachable)

    def may_turn_out(self, finding: Finding, matched: int) -> bool:
        """Whether a rule has room for a finding and might cover it, if all that it lacks were known."""
        unsure = (rule for rule in self._in_force(finding) if rule.may_cover(finding))
        choices = tuple(rule.id for rule in unsure if not rule.covers(finding))
        free = self._free(self._ceilings, matched)
        return any(map(free, self._ceilings.reachable(choices)))

    def names(self, finding: Finding) -> bool:
        """Whether a rule covers a finding, whatever the rule's ceiling."""
        return bool(self._choices(finding))

    def over_share(self, finding: Finding, matched: int) -> bool:
        """Whether only a share of the pairs keeps rules from covering a finding; more pairs will come."""
        free = self._free(self._ceilings, matched)
        reachable = self._ceilings.reachable(self._choices(finding))
        return any(self._by_id[rule].share is not None and not free(rule) for rule in reachable)

    def take_back(self, finding: Finding) -> None:
        """Stop counting a finding that was explained, and turned out to be another difference."""
        self._ceilings.give_back(self._choices(finding))

    def covers(self, findings: Iterable[Finding], matched: int) -> bool:
        """Whether rules cover all these findings together; nothing is counted."""
        ceilings = Ceilings(self._ceilings)
        free = self._free(ceilings, matched)
        return all(ceilings.take(self._choices(finding), free) is not None for finding in findings)

    def _choices(self, finding: Finding) -> Choices:
        return tuple(rule.id for rule in self._in_force(finding) if rule.covers(finding))

    def _free(self, ceilings: Ceilings, matched: int) -> IsFree:
        return lambda rule: self._by_id[rule].allows(ceilings.count(rule), matched)

    def _in_force(self, finding: Finding) -> Iterator[KnownDifference]:
        """The rules that do not expire before the events of a finding."""
        newest_ms = max(event[TIMESTAMP_MS] for _, event in finding.events if event is not None)
        return (rule for rule in self.rules if newest_ms < rule.until_ms)

    def state(self) -> list[list[Any]]:
        """The counts of differences by rule and choices, as plain data."""
        return [[rule, list(choices), count] for rule, choices, count in self._ceilings]

    def restore(self, state: Iterable[Sequence[Any]]) -> None:
        """Take over the `state`."""
        self._ceilings = Ceilings((rule, tuple(choices), count) for rule, choices, count in state)

    def take_examples(self) -> list[Covered]:
        """The examples since the last call."""
        examples, self._examples = self._examples, []
        return examples


def _is_example(before: int) -> bool:
    """Whether the finding that a rule covers after so many others is one of its examples.

    >>> [sum(map(_is_example, range(hits))) for hits in (99, 100, 1_000, 1_000_000)]
    [99, 100, 190, 460]
    """
    step: int = 10 ** max(0, len(str(before)) - 2)
    return before % step == 0
