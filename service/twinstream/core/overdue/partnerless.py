"""Settles events that have no partner as differences.

An event is known to have none when both sides have ended, or when a clock proves it (see `judging`). Two such
events of one identity, one of each side, are one event that has changed (see `findings`). A clock may prove
one of them earlier, so the other is waited for where its name decides whether a known difference covers it.

Where everything differs, a clock may prove hundreds of thousands at once, some 15 µs each. So `pause` is
called now and then, for whatever must not wait that long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from typing import TypeVar

from twinstream.core.accounting.differences import Differences
from twinstream.core.accounting.halves import Divergence, Reach
from twinstream.core.diagnosis.findings import Finding, explain_partnerless
from twinstream.core.events import FORM, PARTITION, RECORD, ROUTE, TIMESTAMP_MS, Event, Side, place_in_side
from twinstream.core.matching.index import Hooks, Index
from twinstream.core.open_scopes import OpenScopes
from twinstream.core.proofs import place_of
from twinstream.core.rules import Rules

Pieces = tuple[list[Event], list[Event]]
"""Events by side."""
Book = Callable[[Finding], None]
"""Books a finding."""
PAUSE_CALLS = 20_000
"""The calls of one function between two pauses: well below a second."""
T = TypeVar("T")
R = TypeVar("R")


class Partnerless:
    """The unmatched events in the index and in scopes that have no partner.

    `at_end` counts, by side, the events that were left when the input ended. `pause` may be set. `_asked` are
    the partitions, with their side, whose first event that faces an end was tried as a proof.
    """

    def __init__(
        self, rules: Rules, differences: Differences, index: Index, open_scopes: OpenScopes, hooks: Hooks
    ) -> None:
        self._rules, self._index, self._open_scopes, self._hooks = rules, index, open_scopes, hooks
        self._differences, self._certainty = differences, differences.certainty
        self._is_copy = differences.ledger.is_copy
        self.pause: Callable[[], object] = bool
        self._letter = self._pausing(rules.letter)
        self._identity = None if rules.identity is None else self._pausing(rules.identity)
        self.at_end = [0, 0]
        self._asked: set[tuple[Side, int | None]] = set()

    def settle(self, proven: Pieces) -> list[Finding]:
        """Settle unmatched events by side that a clock has proven to have no partner.

        Each takes an unmatched event of its identity with it. But which ones are unmatched depends on pace,
        so where a known difference may hang on it, such an event has to be proven, too.
        """
        gone = proven if self._rules.known else self._gone(proven)
        return self._settle(gone, self._found_by_clock)

    def settle_apart(self, findings: Iterable[Finding]) -> None:
        """Settle differences of rows that never went to matching."""
        for finding in map(self._pausing(lambda found: found), findings):
            self._differences.settle_apart(finding, self._certainty.moment, tainted=self._certainty.tainted)

    def settle_facing(self, side: Side) -> None:
        """Settle the unmatched events of a side, since the other has ended.

        Those that a scope may still gather wait for it: their partners may be among its events.
        """
        gathered = set(map(id, self._index.gathered(side)))
        alone = _among(self._facing(side), lambda event: id(event) not in gathered)
        gone, moment = self._gone(alone), self._certainty.moment
        self._count(self._settle(gone, lambda finding: self._found_at_end(finding, moment)))

    def prove_at_an_end(self, side: Side) -> None:
        """Prove differences by the first unmatched event in each partition, since the other side has ended.

        Later events prove no more than the first one. Complexity: O(n log n) in the unmatched events.
        """
        lanes = {} if self._hooks.bags is None else self._hooks.bags.doubtful()
        for event in self._waiting(side):
            if event[FORM][ROUTE] in lanes or (side, event[PARTITION]) in self._asked:
                continue
            self._asked.add((side, event[PARTITION]))
            if self._certainty.unchecked.spares_at_an_end(side, event):
                self._differences.diverge(
                    self._certainty.moment, self._certainty.needs([place_of(side, event)])
                )

    def was_asked(self, side: Side, partition: int | None) -> bool:
        """Whether an event of a partition, before those that come now, was tried as a proof."""
        return (side, partition) in self._asked

    def settle_rest(self, moment: int) -> None:
        """Settle all unmatched events, scopes included, as of a moment; both sides have ended."""
        self._count(list(self._open_scopes.settle_rest(self._index)))
        rest = self._waiting(Side.LEFT), self._waiting(Side.RIGHT)
        self._count(self._settle(rest, lambda finding: self._found_at_end(finding, moment)))
        self._differences.settle_disputed()

    def facing(self, side: Side) -> list[Divergence]:
        """The unmatched events of a side as provisional differences, since the other side has ended."""
        findings = explain_partnerless(*self._facing(side), self._rules.letter, None, self._is_copy)
        checked = self._is_checked_at_an_end
        return [Divergence(finding, not checked(finding), finding) for finding in findings]

    def _is_checked_at_an_end(self, finding: Finding) -> bool:
        """Whether no hole puts in doubt that some event of a finding has no partner."""
        spares = self._certainty.unchecked.spares_at_an_end
        return any(event is not None and spares(side, event) for side, event in finding.events)

    def _facing(self, side: Side) -> Pieces:
        waiting = self._waiting(side)
        return (waiting, []) if side is Side.LEFT else ([], waiting)

    def _waiting(self, side: Side) -> list[Event]:
        """The unmatched events of a side as they were written: the order may decide which rule covers one."""
        return sorted((event for event, _ in self._index.unmatched(side)), key=place_in_side)

    def _gone(self, proven: Pieces) -> Pieces:
        """Events that are proven to have no partner, each with an event of its identity on the other side."""
        if (identity := self._identity) is None:
            return proven
        gone = (list(proven[0]), list(proven[1]))
        for side in Side:
            wanted = Counter(identity(event[FORM][RECORD]) for event in proven[side.other])
            wanted.subtract(Counter(identity(event[FORM][RECORD]) for event in proven[side]))
            taken = {id(event) for event in proven[side]}
            for event in self._waiting(side) if +wanted else ():
                name = identity(event[FORM][RECORD])
                if wanted[name] > 0 and id(event) not in taken:
                    wanted[name] -= 1
                    gone[side].append(event)
        return gone

    def _settle(self, gone: Pieces, book: Book) -> list[Finding]:
        """Settle events; those that may have had partners come last, behind a doubt."""
        lanes = {} if self._hooks.bags is None else self._hooks.bags.doubtful()
        unsure = _among(gone, lambda event: event[FORM][ROUTE] in lanes)
        if not any(unsure):
            return self._remove(gone, book)
        found = self._remove(_among(gone, lambda event: event[FORM][ROUTE] not in lanes), book)
        self._hooks.doubt()
        return found + self._remove(unsure, book)

    def _remove(self, gone: Pieces, book: Book) -> list[Finding]:
        for side in Side:
            self._index.remove(side, gone[side])
        return self._explain(gone, book)

    def _explain(self, gone: Pieces, book: Book) -> list[Finding]:
        findings = explain_partnerless(*gone, self._letter, self._identity, self._is_copy)
        for finding in map(self._pausing(lambda found: found), findings):
            book(finding)
        return findings

    def _found_by_clock(self, finding: Finding) -> None:
        """Book what a clock proves; where a known difference may hang on it, its other half has time."""
        newest_ms = max(event[TIMESTAMP_MS] for _, event in finding.events if event is not None)
        reach = Reach(({}, {}), newest_ms + self._rules.overdue_after_ms) if self._rules.known else None
        tainted = self._certainty.tainted
        self._differences.settle(finding, self._certainty.moment, tainted=tainted, reach=reach)

    def _found_at_end(self, finding: Finding, moment: int) -> None:
        """Book what the end of a side shows, as of a moment: no other half comes."""
        self._differences.settle(finding, moment, tainted=not self._is_checked_at_an_end(finding))

    def _pausing(self, function: Callable[[T], R]) -> Callable[[T], R]:
        """The function, with a pause every `PAUSE_CALLS` calls."""
        calls = count(1)

        def called(argument: T) -> R:
            if next(calls) % PAUSE_CALLS == 0:
                self.pause()
            return function(argument)

        return called

    def _count(self, findings: list[Finding]) -> None:
        for finding in findings:
            if finding.kind != "reordered":
                self.at_end[Side.LEFT] += finding.left is not None
                self.at_end[Side.RIGHT] += finding.right is not None


def _among(gone: Pieces, which: Callable[[Event], bool]) -> Pieces:
    left, right = (list(filter(which, events)) for events in gone)
    return left, right
