"""What is set aside of one comparison: its open scopes, and how they open, close and are fed again.

A scope opens where an index finds a difference (`index.Hooks`); after each batch those that have grown are
reviewed. One whose sides have met again closes: what it found is booked, what it did not settle goes back to
matching. See `scopes` for what a scope is.

Where everything differs, explaining all that grew after each batch would take a hundred times as long as
matching. So only what is pressing is explained at once. The rest (what both sides have passed, then the one
not explained for longest) goes as far as a credit does, to which each review and each event adds, and from
which an explanation takes its cost.

A hole taints: what is found behind it decides nothing. A scope that may hold known differences only is *in
dispute*; its difference is not proven yet, so a hole taints that, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter

from twinstream.core.accounts import Hole
from twinstream.core.events import Event, Side
from twinstream.core.findings import Finding
from twinstream.core.homes import Watch
from twinstream.core.index import Hooks, Index, Pairs
from twinstream.core.ledger import Ledger
from twinstream.core.orders import Order
from twinstream.core.rules import Rules
from twinstream.core.scopes import Explanation, Scope

CREDIT_OF_A_REVIEW = 10_000
CREDIT_OF_AN_EVENT = 4
"""In steps of an alignment, of which one takes about half a microsecond."""
MOST_CREDIT = 200_000
PASSED_AT_ONCE = 2_000
"""So many scopes that both sides have passed are noted at each look, one a second."""
GIVEN_UP = "the rest of what it touches is counted as unmatched, and not explained"


class Aside:
    """The open scopes of one comparison, in the order in which they opened."""

    def __init__(self, rules: Rules, ledger: Ledger, watch: Watch) -> None:
        self._rules, self._ledger, self._watch = rules, ledger, watch
        self.scopes: dict[Scope, None] = {}
        limit = f"limits.scope_events ({rules.scope_limit})"
        self._too_much = Hole(f"a difference spread over more than {limit}: {GIVEN_UP}")
        self._finished: list[Scope] = []
        self._passed: list[tuple[Scope, int]] = []
        self._credit, self._size = 0, 0
        self._explanations, self._closed = 0, 0

    def hooks(self) -> Hooks:
        """What the index asks of this."""
        rules, came_back = self._rules, self._ledger.take_back
        return Hooks(
            rules.canonical, rules.equal, self._open, self._finish, self._absorb, came_back, rules.scope_limit
        )

    # -- holes ---------------------------------------------------------------------------------------------

    def hole(self, hole: Hole) -> None:
        """Note that something was not checked: from here on, nothing found is held against a side."""
        for scope in self.scopes:
            scope.tainted = scope.tainted or scope.disputed
        self._ledger.hole(hole)

    def doubt(self, hole: Hole) -> None:
        """Note that what is set aside was not checked either."""
        self.hole(hole)
        for scope in self.scopes:
            scope.tainted = True

    def disown(self, moment: int) -> None:
        """What was found behind a moment decides nothing."""
        for scope in self.scopes:
            scope.tainted = scope.tainted or scope.moment > moment

    # -- what an index asks --------------------------------------------------------------------------------

    def _open(self, owner: Index, order: Order, depth: int) -> Scope:
        ledger = self._ledger
        scope = Scope(owner, order, depth, self._rules.canonical)
        scope.tainted, scope.moment = ledger.tainted, ledger.moment
        self.scopes[scope] = None
        if ledger.known.open(ledger.matched):
            scope.disputed = True
        else:
            self._count(scope)
        return scope

    def _count(self, scope: Scope) -> None:
        """The difference of a scope is no known one: it counts from when it was proven."""
        self._ledger.halted = self._ledger.halted or self._rules.halt
        if not scope.tainted:
            scope.tainted = not self._ledger.diverge(scope.moment)

    def _absorb(self, whole: Scope, part: Scope) -> None:
        self.scopes.pop(part, None)
        if part.lost and not whole.lost:
            self._give_up(whole, self.explain(whole, whole=False))

    def _finish(self, scope: Scope) -> None:
        """Nothing more will come to a scope: it closes when what was fed with it is booked."""
        if scope.lost:
            self._drop(scope)
            del self.scopes[scope]
            scope.owner.resume(scope, ((), ()))
        else:
            self._finished.append(scope)

    # -- explaining and closing ----------------------------------------------------------------------------

    def close_finished(self) -> None:
        """Close the scopes to which nothing more comes."""
        while self._finished:
            scope = self._finished.pop(0)
            self.close(scope, self.explain(scope, whole=True), scope.owner)

    def review(self, index: Index, *, whole: bool) -> bool:
        """Explain scopes that have grown, and close those whose sides have met again.

        Returns whether any was closed or lost. `whole`: no more comes of either side.

        Complexity: O(1) a scope and event, plus the pairing of those that are pressing, and of others as far
        as the credit goes.
        """
        size, before = sum(map(len, self.scopes)), self._closed
        earned = CREDIT_OF_A_REVIEW + CREDIT_OF_AN_EVENT * max(0, size - self._size)
        self._credit, self._size = min(self._credit + earned, MOST_CREDIT), size
        for scope in self._grown():
            if whole or scope.pressing() or len(scope) > self._rules.scope_limit:
                self._explain_again(scope, index, whole=whole)
        self._close_passed(index)
        self._spend(index)
        return self._closed > before

    def refresh(self, index: Index) -> None:
        """Bring all explanations up to date, whatever it costs."""
        for scope in self._grown():
            self._explain_again(scope, index, whole=False)

    def _grown(self) -> Iterator[Scope]:
        """The scopes that have grown, as long as they are open."""
        for scope in tuple(self.scopes):
            if scope in self.scopes and not scope.lost and scope.grown:
                yield scope

    def _spend(self, index: Index) -> None:
        for scope in sorted(self._grown(), key=attrgetter("explained_as")):
            if self._credit <= 0:
                break
            if scope in self.scopes:
                self._explain_again(scope, index, whole=False)

    def _explain_again(self, scope: Scope, index: Index, *, whole: bool) -> None:
        explanation = self.explain(scope, whole=whole)
        self._explanations += 1
        scope.explained_as = self._explanations
        self._credit -= scope.cost
        if explanation.met:
            self.close(scope, explanation, index)
        elif len(scope) > self._rules.scope_limit:
            self._lose(scope, explanation)
        elif scope.disputed and self._ledger.known.expired(scope.oldest_ms()):
            scope.disputed = False
            self._count(scope)
        self.close_finished()

    def note_passed(self, passed: Iterable[Scope]) -> None:
        """Note to which scopes nothing more is to come, since both sides have gone on beyond them.

        The next reviews close them. They are told again as long as they are open, so few need to be noted.
        """
        lately = (scope for scope in passed if scope.kept_at != len(scope))
        self._passed = [(scope, len(scope)) for scope in islice(lately, PASSED_AT_ONCE)]

    def _close_passed(self, index: Index) -> None:
        """Close scopes that both sides have passed, if nothing has come to them since.

        Where the clock does not prove, what has no other half yet may still get one. And what may be a known
        difference stays in dispute, unless it is one as it stands.
        """
        while self._passed and self._credit > 0:
            scope, size = self._passed.pop()
            if scope not in self.scopes or len(scope) != size:
                continue
            explanation = self.explain(scope, whole=True)
            self._credit -= scope.cost
            if self._rules.proves or self._is_settled(scope, explanation.findings):
                self.close(scope, explanation, index)
                self.close_finished()
            else:
                scope.kept_at = size
                self.explain(scope, whole=False)

    def _is_settled(self, scope: Scope, findings: Sequence[Finding]) -> bool:
        """Whether nothing that comes late could be a part of what a scope found."""
        if not all(finding.left and finding.right for finding in findings):
            return False
        return not scope.disputed or self._ledger.known.covers(findings, self._ledger.matched)

    def explain(self, scope: Scope, *, whole: bool) -> Explanation:
        """What the pieces of a scope have in common, and where they differ."""
        return scope.explain(self._rules, self._ledger.recent.has, whole=whole)

    def close(self, scope: Scope, explanation: Explanation, owner: Index) -> None:
        """Settle what a scope found, and feed again what it did not settle.

        Where its difference halted the comparison, the event that proved it may have an equal one here. These
        two wait for good: nothing behind the first difference counts as matched.
        """
        del self.scopes[scope]
        self._closed += 1
        self._settle(scope, explanation)
        self._pair(owner.resume(scope, explanation.tails))

    def _settle(self, scope: Scope, explanation: Explanation) -> Explanation:
        """Book what a scope found, and its pairs if they count; returns what is booked."""
        ledger = self._ledger
        if ledger.halted:
            explanation = explanation._replace(matched=[])
        for finding in explanation.findings:
            ledger.settle(finding, scope.moment, tainted=scope.tainted)
        if explanation.matched:
            left, right = ([pair[side] for pair in explanation.matched] for side in Side)
            self._pair(Pairs(right, left))
            for side, events in zip(Side, (left, right), strict=True):
                ledger.advance(side, max(event[3] for event in events))
        return explanation

    def _pair(self, pairs: Pairs) -> None:
        self.watch_pairs(pairs)
        if pairs.partners:
            self._ledger.pair(pairs)

    def watch_pairs(self, pairs: Pairs) -> None:
        """Note a pair that should not be one here."""
        if (apart := self._watch.paired(pairs)) is not None:
            self.hole(apart)

    # -- scopes that outgrow their limit -------------------------------------------------------------------

    @property
    def gave_up(self) -> bool:
        """Whether a scope was lost, so that not all that differs is explained."""
        return self._too_much in self._ledger.holes

    def _lose(self, scope: Scope, explanation: Explanation) -> None:
        self.hole(self._too_much)
        self._give_up(scope, explanation)

    def _give_up(self, scope: Scope, explanation: Explanation) -> None:
        """Settle what a scope has found, which is the last that is known of it, and drop all else.

        What is in dispute may have become a known difference yet: so it counts against no side.
        """
        self._closed += 1
        scope.tainted, scope.disputed = scope.tainted or scope.disputed, False
        scope.lose(self._settle(scope, explanation))

    def drop(self) -> None:
        """Take in what lost scopes have dropped."""
        for scope in self.scopes:
            left, right = scope.dropped
            if left or right:
                self._drop(scope)

    def _drop(self, scope: Scope) -> None:
        """Nothing of what a scope dropped will ever be verified."""
        for side in Side:
            dropped: list[Event] = scope.dropped[side]
            self._ledger.drop(side, dropped)
            dropped.clear()
