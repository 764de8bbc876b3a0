"""The open scopes of one comparison: how they open, are explained, close, and return events to matching.

A scope (see `scope`) opens where an index finds a difference (`index.Hooks`). After each batch the scopes
that have grown are reviewed. A scope whose sides have met again closes: its findings are booked, and the
events that it did not settle go back to matching. Its content alone decides where it closes
(`Scope.next_look`); the time of the review does not matter.

The explanation of an open scope is provisional. Where everything differs, explaining all grown scopes after
each batch would take a hundred times as long as matching. So only new scopes are explained at once. The
others (those that both sides have passed, then the one not explained for longest) share a credit: each review
and each event adds to it, and an explanation takes its cost from it.

A hole taints: a difference found behind it decides nothing (see `proofs`). A scope whose differences may all
be known ones is *in dispute*; its difference is not proven yet, so a hole without a place taints it, too.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import compress, islice
from operator import attrgetter
from typing import Any, NamedTuple

from twinstream.core.accounting.differences import Differences
from twinstream.core.accounting.event_rows import EventReader, event_columns
from twinstream.core.accounting.halves import Reach
from twinstream.core.accounts import Hole
from twinstream.core.arrivals.key_partitions import PartitionWatch
from twinstream.core.arrivals.replays import NotAgreed
from twinstream.core.diagnosis.findings import Finding
from twinstream.core.diagnosis.looks import Look
from twinstream.core.diagnosis.resync import Lengths
from twinstream.core.diagnosis.scope import PROVING, Explanation, Scope
from twinstream.core.events import (
    FORM,
    OFFSET,
    PARTITION,
    ROUTE,
    TIMESTAMP_MS,
    Event,
    PartitionOffset,
    Side,
    place_in_side,
)
from twinstream.core.matching.index import Hooks, Index, Pairs, node_of_scopes
from twinstream.core.order import Epochs, Order, nodes
from twinstream.core.proofs import NOTHING as NO_BATCH
from twinstream.core.proofs import Starts, place_of
from twinstream.core.rules import Rules

CREDIT_OF_A_REVIEW = 10_000
CREDIT_OF_AN_EVENT = 4
"""In steps of an alignment; a step takes about half a microsecond."""
MOST_CREDIT = 200_000
PASSED_AT_ONCE = 2_000
"""The number of passed scopes that a look notes; there is one look a second."""
WHOLE = Look((sys.maxsize, sys.maxsize), whole=True)
GIVEN_UP = "the rest of what it touches is counted as unmatched, and not explained"


class Finished(NamedTuple):
    """A scope to which no more events come, but that is not booked yet.

    `look` says where its sides have met. `pairs` are those of the events that it has returned to matching,
    None where it has not returned them yet.
    """

    scope: Scope
    look: Look
    pairs: Pairs | None = None


class Passed(NamedTuple):
    """A scope that both sides have passed as of a look, and the places of the events around it by side."""

    scope: Scope
    size: int
    around: tuple[Set[PartitionOffset], Set[PartitionOffset]]

    def is_as_it_was(self, node: Index | None) -> bool:
        """Whether no event has come to the scope since the look, nor around it in its node."""
        return len(self.scope) == self.size and (
            node is None or all(places_of(node.gathered(side)) <= self.around[side] for side in Side)
        )


def places_of(events: Iterable[Event]) -> Set[PartitionOffset]:
    """The places of events of one side."""
    return {(event[PARTITION], event[OFFSET]) for event in events}


class OpenScopes:
    """The open `scopes` of one comparison, in the order in which they opened; `watch` checks each pair."""

    def __init__(self, rules: Rules, differences: Differences, watch: PartitionWatch) -> None:
        self._rules, self.watch, self._differences = rules, watch, differences
        self._ledger, self._certainty = differences.ledger, differences.certainty
        self.scopes: dict[Scope, None] = {}
        limit = f"limits.scope_events ({rules.scope_limit})"
        self._too_much = Hole(f"a difference spread over more than {limit}: {GIVEN_UP}")
        self._opened: list[Scope] = []
        self._finished: deque[Finished] = deque()
        self._passed: list[Passed] = []
        self._credit, self._size = 0, 0
        self._over = False
        self._explanations, self._closed = 0, 0
        self._saved_since_lost: list[tuple[Any, ...]] = []
        """What the last state had of `since_lost`: by scope and side, where the events begin and end."""

    def hooks(self) -> Hooks:
        """The functions that the index calls."""
        rules, came_back = self._rules, self._ledger.take_back
        return Hooks(
            rules.canonical,
            rules.equal,
            self._open,
            self._finish,
            self._finish_met,
            self._absorb,
            came_back,
            rules.scope_limit,
        )

    # -- holes ---------------------------------------------------------------------------------------------

    def hole(self, hole: Hole, starts: Starts | None = None) -> None:
        """Note a hole: a difference found behind its `starts` is held against no side.

        Without `starts` that applies to every difference found from here on, and to those not proven yet.
        """
        for scope in () if starts else self.scopes:
            scope.tainted = scope.tainted or scope.disputed
        self._differences.hole(hole, starts)

    def doubt_batch(self, found: NotAgreed) -> None:
        """Note that the rows of a batch that count are unknown: differences that need it decide nothing."""
        self._judge_opened()
        self.hole(found.hole, found.starts)
        for scope in self.scopes:
            scope.tainted = scope.tainted or found.batch in (scope.needs or ())

    def disown(self, moment: int) -> None:
        """Taint the scopes that opened after a moment."""
        for scope in self.scopes:
            scope.tainted = scope.tainted or scope.moment > moment

    # -- what an index calls -------------------------------------------------------------------------------

    def _open(self, owner: Index, order: Order, depth: int) -> Scope:
        scope = Scope(owner, order, depth, self._rules)
        scope.tainted, scope.moment = self._certainty.tainted, self._certainty.moment
        self.scopes[scope] = None
        if self._differences.may_be_known():
            scope.disputed, scope.tainted = True, self._certainty.unchecked.all_over
            self._opened.append(scope)
            return scope
        self._differences.halt_by_rules()
        if self._certainty.doubts_nothing():
            scope.needs = NO_BATCH
            self._count(scope)
        else:
            scope.tainted = True
            self._opened.append(scope)
        return scope

    def _judge_opened(self) -> None:
        """Decide for the scopes just opened whether their proofs were checked; only now do they have them."""
        opened, self._opened = self._opened, []
        for scope in opened:
            self._judge_new(scope)

    def _judge_new(self, scope: Scope) -> None:
        if scope.disputed:
            self._end_dispute(scope)
        else:
            self._judge(scope)

    def _judge(self, scope: Scope) -> None:
        """Count a difference by each of its proofs that was checked; without a proof, if all input was."""
        proofs = [
            proof for proof in scope.proofs(self._rules) or (None,) if self._certainty.is_checked(proof)
        ]
        for needs in sorted(map(self._certainty.needs, proofs), key=len, reverse=True):
            scope.needs = needs
            self._count(scope)

    def _judge_again(self, scope: Scope, explanation: Explanation) -> None:
        """Judge a scope by all its proofs, now that all have come: it may need less than was known before.

        A scope that was in dispute until now needs every event that the explanation read.
        """
        self._end_dispute(scope)
        if not scope.disputed:
            if scope.tainted or scope.needs:
                if scope.proofs(self._rules):
                    self._judge(scope)
                if self._over:
                    self._judge_at_an_end(scope, explanation)
            return
        ends = zip(Side, explanation.places, strict=True)
        proof = [(side, partition, offset) for side, places in ends for partition, offset in places.items()]
        scope.tainted = scope.tainted or not self._certainty.is_checked(proof)
        scope.needs = self._certainty.needs(proof)

    def _judge_at_an_end(self, scope: Scope, explanation: Explanation) -> None:
        """Judge a scope when both sides have ended: an event without an equal one in it is a proof, too."""
        alone = (finding for finding in explanation.findings if finding.partner is None)
        for finding in islice(alone, PROVING):
            side, event = finding.side, finding.event
            if self._certainty.unchecked.spares_at_an_end(side, event) and not any(
                self._rules.equal(event, other) for other in scope.pieces[side.other]
            ):
                scope.needs = self._certainty.needs([place_of(side, event)])
                self._count(scope)

    def _count(self, scope: Scope) -> None:
        """Count the difference of a scope, which is not a known one, from the moment of its proof."""
        scope.tainted = self._differences.diverge(scope.moment, scope.needs) is None

    def _absorb(self, whole: Scope, part: Scope) -> None:
        self.scopes.pop(part, None)
        if part in self._opened:
            self._opened.remove(part)
            self._judge_new(part)
        if part.lost and not whole.lost:
            self._give_up(whole, self.explain(whole, whole=False))

    def _finish(self, scope: Scope) -> None:
        """Note that no more events will come to a scope: it closes when the events fed with it are booked.

        Only then is it known which of its events are copies. All that finish within a run are booked in the
        order of their epochs. So where both halves of a difference are in it, the same one is always first.
        """
        if scope.lost:
            self._drop(scope)
            del self.scopes[scope]
            scope.owner.resume(scope, ((), ()))
        else:
            self._finished.append(Finished(scope, WHOLE))

    # -- explaining and closing ----------------------------------------------------------------------------

    def close_finished(self) -> None:
        """Close the scopes to which no more events come."""
        self._judge_opened()
        while self._finished:
            scope, look, pairs = self._finished.popleft()
            explanation = self.explain(scope, whole=look.whole, lengths=look.lengths)
            if pairs is None:
                self.close(scope, explanation, scope.owner)
            else:
                self._book(scope, explanation)
                self._pair(pairs)

    def review(self, index: Index, ended: tuple[bool, bool]) -> bool:
        """Close the scopes whose sides have met again, and explain others that have grown.

        Returns whether any was closed or lost. `ended` says by side whether it has ended.

        Complexity: O(1) a scope and event, plus the pairing of those that may have met, and of others as far
        as the credit goes.
        """
        self.drop()
        size, before = sum(map(len, self.scopes)), self._closed
        earned = CREDIT_OF_A_REVIEW + CREDIT_OF_AN_EVENT * max(0, size - self._size)
        self._credit, self._size = min(self._credit + earned, MOST_CREDIT), size
        self._settle_all(index, ended)
        for scope in self._grown():
            if scope.is_new:
                self._explain_again(scope)
        self._close_passed(index, ended)
        for scope in sorted(self._grown(), key=attrgetter("explained_as")):
            if self._credit <= 0:
                break
            self._explain_again(scope)
        return self._closed > before

    def refresh(self, index: Index, ended: tuple[bool, bool]) -> None:
        """Bring all explanations up to date, whatever it costs."""
        self._settle_all(index, ended)
        for scope in self._grown():
            self._explain_again(scope)

    def _grown(self) -> Iterator[Scope]:
        """The open scopes that have grown; those that close meanwhile are left out."""
        for scope in tuple(self.scopes):
            if scope in self.scopes and not scope.lost and scope.grown:
                yield scope

    def _explain_again(self, scope: Scope) -> None:
        """Explain a scope as it is now. All events of a scope that gathers are differences."""
        most = self._rules.scope_limit
        scope.show(self.explain(scope, whole=scope.gathering, lengths=(most, most)))
        self._explanations += 1
        scope.explained_as = self._explanations
        self._credit -= scope.cost
        self._end_dispute(scope)

    def _end_dispute(self, scope: Scope) -> None:
        """End the dispute of a scope to which no rule applies; its proofs decide if it counts."""
        if scope.disputed and not self._may_be_known(scope):
            scope.disputed = False
            self._differences.halt_by_rules()
            if not scope.tainted:
                scope.tainted = True
                self._judge(scope)

    def _may_be_known(self, scope: Scope) -> bool:
        """Whether all differences of a scope may be known ones.

        In a sequence, and under rules, each of its proofs holds an event of one of its differences. So one is
        none if no rule applies to any event of a proof, under whatever kind. An epoch has no such proofs: its
        first event may have a partner behind others in it, and it ends soon.
        """
        known = self._differences.known
        if not len(scope):
            return True
        if known.expired(scope.oldest_ms()):
            return False
        proofs = () if isinstance(scope.order, Epochs) else scope.proofs(self._rules)
        proving = {place for proof in proofs for place in proof}
        events = ((place_of(side, event), event) for side in Side for event in scope.pieces[side])
        hidden = {at for at, event in events if at in proving and known.speak_of(at[0], event)}
        return all(not hidden.isdisjoint(proof) for proof in proofs)

    # -- where the sides have met again --------------------------------------------------------------------

    def settle_rest(self, index: Index) -> Iterator[Finding]:
        """Close all scopes at the end of both sides, in the order of their events; yield their findings.

        The order may decide which rule covers which finding. The events that a scope returns as it closes may
        open one that gathers, or one within an epoch that a side is past; that is complete, too.
        """
        self._over = True
        self._complete(index)
        self._put_in_order()
        yield from self._settle_all(index, (True, True))
        while any(scope.gathering for scope in self.scopes) or next(index.torn(), None) is not None:
            self._complete(index)
            yield from self._settle_all(index, (True, True))
        self._put_in_order()
        for scope in tuple(self.scopes):
            if not scope.lost:
                explanation = self.explain(scope, whole=True)
                self.close(scope, explanation, index)
                yield from explanation.findings

    def _complete(self, index: Index) -> None:
        """Give gathering scopes all unmatched events of their parts; close those that finish."""
        index.complete()
        self.close_finished()

    def _settle_all(self, index: Index, ended: tuple[bool, bool]) -> list[Finding]:
        """Close all scopes whose sides have met, and those that the events they return open.

        Returns their findings.
        """
        found: list[Finding] = []
        before: dict[Scope, None] = {}
        while opened := [scope for scope in self.scopes if scope not in before]:
            before = dict(self.scopes)
            for scope in opened:
                if scope in self.scopes and (met := self._next_met(scope, ended)) is not None:
                    _, look, explanation = met
                    found += explanation.findings
                    if not look.lost:
                        self.close(scope, explanation, index)
                    self.close_finished()
        return found

    def _put_in_order(self) -> None:
        """Sort the scopes by their first events."""
        ordered = sorted(self.scopes, key=Scope.first_place)
        self.scopes.clear()
        self.scopes.update(dict.fromkeys(ordered))

    def _finish_met(self, index: Index) -> None:
        """Finish the scopes of an index whose sides have met, and resume their parts.

        No more events come to the index.
        """
        ended = (True, True)
        while found := next(filter(None, (self._next_met(one, ended) for one in index.scopes())), None):
            scope, look, explanation = found
            if not look.lost:
                self._finished.append(Finished(scope, look, index.resume(scope, explanation.tails)))

    def _next_met(self, scope: Scope, ended: tuple[bool, bool]) -> tuple[Scope, Look, Explanation] | None:
        """The scope and the look at which its sides have met, or at which it is lost, and given up."""
        while (look := scope.next_look(ended, self._rules.scope_limit)) is not None:
            if look.lost:
                explanation = scope.explain_lost(self._rules, self._ledger.is_copy, look.lengths)
                self._judge_opened()  # The hole must not taint what was proven before it.
                self.hole(self._too_much)
                self._give_up(scope, explanation)
                return scope, look, explanation
            explanation = self.explain(scope, whole=look.whole, lengths=look.lengths)
            self._credit -= scope.cost
            if look.whole or explanation.met:
                return scope, look, explanation
        return None

    def note_passed(self, passed: Iterable[Passed]) -> None:
        """Note the scopes that both sides have passed, so that no more events should come to them.

        The next reviews close them. Each look names those still open again, so few need to be noted.
        """
        lately = (one for one in passed if one.scope.kept_at != one.size)
        self._passed = list(islice(lately, PASSED_AT_ONCE))

    def _close_passed(self, index: Index, ended: tuple[bool, bool]) -> None:
        """Close scopes that both sides have passed, if no event has come to them since.

        Where the clock does not prove, a difference without its other half may still get it. And one that may
        be a known difference stays in dispute, unless it is one as it is now.
        """
        node_of = node_of_scopes(index) if self._passed and self._rules.proves else None
        while self._passed and self._credit > 0:
            passed = self._passed.pop()
            scope: Scope | None = passed.scope
            if scope not in self.scopes or passed.size > self._rules.scope_limit:
                continue
            node = None if node_of is None else node_of(scope)
            if not passed.is_as_it_was(node):
                continue
            if node is not None:
                self._complete(node)
                scope = next((whole for whole in node.scopes() if not whole.lost), None)
            if scope is not None:
                self._close_if_settled(scope, index, ended)

    def _close_if_settled(self, scope: Scope, index: Index, ended: tuple[bool, bool]) -> None:
        """Close a scope that both sides have passed, unless late events might change its findings."""
        explanation = self.explain(scope, whole=True)
        self._credit -= scope.cost
        if self._rules.proves or self._is_settled(scope, explanation.findings):
            self.close(scope, explanation, index)
            self.close_finished()
            self._settle_all(index, ended)
        else:
            scope.kept_at = len(scope)

    def _is_settled(self, scope: Scope, findings: Sequence[Finding]) -> bool:
        """Whether no late event could change the findings of a scope."""
        if not all(finding.left and finding.right for finding in findings):
            return False
        return not scope.disputed or self._differences.known.covers(findings, self._ledger.matched)

    def explain(self, scope: Scope, *, whole: bool, lengths: Lengths | None = None) -> Explanation:
        """The pairs and findings of the pieces of a scope, or of their first `lengths` events."""
        return scope.explain(self._rules, self._ledger.is_copy, whole=whole, lengths=lengths)

    def close(self, scope: Scope, explanation: Explanation, owner: Index) -> None:
        """Settle the findings of a scope, and feed the events that it did not settle to matching again.

        Where its difference halted the comparison, the event that proved it may have an equal one here. These
        two stay unmatched: nothing behind the first difference counts as matched.
        """
        self._book(scope, explanation)
        self._pair(owner.resume(scope, explanation.tails))
        self._judge_opened()

    def _book(self, scope: Scope, explanation: Explanation) -> None:
        """Book what a scope has found, as it is no longer open."""
        self._judge_opened()
        self._judge_again(scope, explanation)
        del self.scopes[scope]
        self._closed += 1
        self._settle(scope, explanation)

    def _settle(self, scope: Scope, explanation: Explanation) -> Explanation:
        """Book the findings of a scope, and its pairs if they count; returns what is booked."""
        if self._differences.halted:
            explanation = explanation._replace(matched=[])
        in_time = bool(self._rules.known)
        until_ms = explanation.newest_ms + self._rules.overdue_after_ms if in_time else math.inf
        reach = Reach(explanation.places, until_ms)
        for finding in explanation.findings:
            self._differences.settle(
                finding, scope.moment, tainted=scope.tainted, needs=scope.needs, reach=reach
            )
        left, right = ([pair[side] for pair in explanation.matched] for side in Side)
        self._pair(Pairs(left, right))
        return explanation

    def _pair(self, pairs: Pairs) -> None:
        """Book pairs of a left event, as the partner, and a right one."""
        self.watch_pairs(pairs)
        if pairs.partners:
            self._ledger.pair(pairs)
            for side, events in zip(Side, pairs, strict=True):
                self._ledger.advance(side, max(event[TIMESTAMP_MS] for event in events))

    def watch_pairs(self, pairs: Pairs) -> None:
        """Note a hole if a pair spans two partitions against the rules (see `PartitionWatch`)."""
        if (apart := self.watch.paired(pairs)) is not None:
            self.hole(apart)

    # -- scopes that outgrow their limit -------------------------------------------------------------------

    @property
    def gave_up(self) -> bool:
        """Whether a scope was lost, so that not all differences are explained."""
        return self._too_much in self._certainty.holes

    def _give_up(self, scope: Scope, explanation: Explanation) -> None:
        """Settle the last findings of a scope, and drop all its other events.

        A difference in dispute might have become a known difference: so it counts against no side.
        """
        self._closed += 1
        scope.tainted, scope.disputed = scope.tainted or scope.disputed, False
        scope.lose(self._settle(scope, explanation))

    def drop(self) -> None:
        """Book the events that lost scopes have dropped."""
        for scope in self.scopes:
            left, right = scope.dropped
            if left or right:
                self._drop(scope)

    def _drop(self, scope: Scope) -> None:
        """Book the events that a scope dropped, which will never be verified."""
        for side in Side:
            dropped: list[Event] = scope.dropped[side]
            self._ledger.drop(side, dropped)
            dropped.clear()

    # -- state ---------------------------------------------------------------------------------------------

    def state(self) -> list[dict[str, Any]]:
        """The open scopes as plain data."""
        orders = [node.order for node in nodes(self._rules.order)]
        return [
            {
                "order": next(number for number, order in enumerate(orders) if order is scope.order),
                **scope.state(),
                "example": event_columns([scope.example]),
            }
            for scope in self.scopes
        ]

    def since_lost(self, *, whole: bool) -> list[list[Any]] | None:
        """What is kept to find where the sides of lost scopes meet again: events as columns, by side.

        The first of each row is the number of the scope in `state`. None if nothing has changed since the
        last call, unless `whole`. What is kept grows at its end and shrinks at its beginning, so these two
        tell whether it has changed.

        Complexity: O(1) an open scope, O(n) in the events that are kept.
        """
        lost = ((number, scope) for number, scope in enumerate(self.scopes) if scope.lost)
        found = [(number, kept) for number, scope in lost if any(kept := scope.owner.kept_since_lost(scope))]
        before = self._saved_since_lost
        self._saved_since_lost = [(number, *map(_ends_of, kept)) for number, kept in found]
        if not whole and self._saved_since_lost == before:
            return None
        return [
            [number, event_columns(left, timed=True), event_columns(right, timed=True) | self._copies(right)]
            for number, (left, right) in found
        ]

    def _copies(self, events: Sequence[Event]) -> dict[str, list[bool]]:
        """A column that says which events are repeats, where the rules ask for them."""
        repeats = self._ledger.repeats
        return {} if repeats is None else {"repeats": list(map(repeats.is_copy, events))}

    def restore(
        self,
        states: Iterable[dict[str, Any]],
        index: Index,
        held: Sequence[Mapping[PartitionOffset, Event]],
        reader: EventReader,
    ) -> None:
        """Take over the `state`; `held` are the unmatched events of each side, by place."""
        for state in states:
            order, depth = nodes(self._rules.order)[state["order"]]
            (example,) = reader.events(state["example"])
            scope = Scope(index, order, depth, self._rules)
            scope.example = example
            self.scopes[scope] = None
            index.adopt(scope, example[FORM][ROUTE])
            scope.restore(state, held)

    def restore_since_lost(self, rows: Iterable[Sequence[Any]], reader: EventReader) -> None:
        """Take over what is `since_lost`, after the scopes."""
        scopes = tuple(self.scopes)
        for number, *sides in rows:
            left, right = (list(reader.events(columns)) for columns in sides)
            scopes[number].owner.keep_since_lost(scopes[number], (left, right))
            if self._ledger.repeats is not None:
                self._ledger.repeats.mark(compress(right, sides[Side.RIGHT]["repeats"]))
            self._saved_since_lost.append((number, _ends_of(left), _ends_of(right)))


def _ends_of(events: Sequence[Event]) -> tuple[PartitionOffset, ...]:
    """The places of the first and the last of some events of one side."""
    return tuple(place_in_side(event) for event in (*events[:1], *events[-1:]))
