"""One comparison, composed of matching, differences, overdue events and accounts.

How to drive it: `feed` runs of events of either side as they come; after each batch call `review`, which
closes scopes; once in a while `survey`, which looks at all unmatched events. `end` a side when it has no more
events. Read `diverged`, `accounts` and `take_closed` at any time. `snapshot` and `restore` carry the whole
state over a crash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from twinstream.core.accounting.certainty import Certainty
from twinstream.core.accounting.differences import Differences
from twinstream.core.accounting.halves import Divergence
from twinstream.core.accounting.ledger import Ledger, PairsToNote
from twinstream.core.accounts import PLACE, Hole
from twinstream.core.admission import Admission
from twinstream.core.arrivals.key_partitions import PartitionWatch
from twinstream.core.arrivals.run import Run
from twinstream.core.checks.checks import Checks
from twinstream.core.clocks.input import Finished
from twinstream.core.events import TIMESTAMP_MS, Event, Side, place_in_side
from twinstream.core.feeding import Feeding, Known, Matching
from twinstream.core.matching.bags import UNKNOWN_PAIRS, Bags
from twinstream.core.matching.choice import index_of
from twinstream.core.matching.index import Index, Pairs
from twinstream.core.open_scopes import OpenScopes
from twinstream.core.order import Pairwise, nodes
from twinstream.core.overdue.by_arrival import OverdueByArrival
from twinstream.core.overdue.by_progress import OverdueByProgress
from twinstream.core.overdue.clocks import Clocks
from twinstream.core.overdue.ending import Ending
from twinstream.core.overdue.judging import NO_LAG, Judge, Lag, Reading
from twinstream.core.overdue.partnerless import Partnerless
from twinstream.core.overdue.set_apart import SetApart
from twinstream.core.overdue.survey import Survey, Surveyor
from twinstream.core.overdue.suspected import Suspected
from twinstream.core.rules import Rules
from twinstream.core.tables.declared import SettledBy, Step
from twinstream.core.tables.tables import UNCLEAR, Tables
from twinstream.errors import RelationError

OF_DROPPED_ROWS = ("missing", "extra", "changed")
"""The kinds of divergence that a row makes which one version dropped as late."""
TWO_QUERIES = (
    "two queries of this version write its topic, and `emits` takes one: the batches of one say nothing "
    "about the rows of the other"
)


class Comparison:
    """Decides whether two streams are equivalent, and goes on after a difference.

    `accounts` are by side, `holes` are the input that was not checked, `scopes` are the open ones. `proven`
    are the proofs of differences, and the batches they wait for. `copies` are by side the events that wait
    for other partitions, where barriers have a copy in each; `retries` are the replays of both sides, where
    records carry marks of them; `tables` are the rows that wait for later ones. `ended` says by side whether
    it has. `cut_short`: events have come since the comparison halted, and may include partners. `checks` are
    those of single sides. `pairs` wants to know of every pair, so none is made of whole runs.

    >>> from twinstream.core.events import Form
    >>> from twinstream.core.order import Lanes
    >>> forms = [Form("lane", content, "event", content) for content in (b"1", b"2")]
    >>> comparison = Comparison(Rules(canonical=bytes, order=Lanes()))
    >>> _ = comparison.feed(Side.LEFT, Run(forms, 0, [0, 1], [0, 0], 0.0))
    >>> _ = comparison.feed(Side.RIGHT, Run(forms[1:], 0, [0], [0], 0.0))
    >>> comparison.diverged
    True
    """

    def __init__(self, rules: Rules, pairs: PairsToNote | None = None) -> None:
        self.rules = rules
        self.ledger = Ledger(rules)
        self.accounts = self.ledger.accounts
        self.certainty = Certainty(rules)
        self.holes, self.proven = self.certainty.holes, self.certainty.proven
        self.differences = Differences(rules, self.ledger, self.certainty)
        self.watch = PartitionWatch(rules.order, keeps_partitions=rules.co_partitioned)
        self.open_scopes = OpenScopes(rules, self.differences, self.watch)
        self.scopes = self.open_scopes.scopes
        self.bags = None if rules.close is None else Bags(rules.equal)
        hooks = replace(self.open_scopes.hooks(), bags=self.bags, doubt=self.doubt_pairs)
        self.index: Index = index_of(rules.order, hooks)
        self.arrivals = Admission(rules, self.differences, self.open_scopes)
        self.copies, self.retries = self.arrivals.copies, self.arrivals.retries
        self.tables = self.arrivals.tables
        self.partnerless = Partnerless(rules, self.differences, self.index, self.open_scopes, hooks)
        self._singly = rules.halt or any(isinstance(order, Pairwise) for order, _ in nodes(rules.order))
        self.clocks = Clocks(rules, self.ledger.held)
        self.ledger.told_pairs = tuple(filter(None, (self.clocks.crossed, pairs)))
        self.feeding = self._feeding_of(self.clocks, each_pair=pairs is not None)
        self.suspected = Suspected(self.ledger.held, self.clocks.arrival)
        self._surveyor = self._surveyor_of(self.clocks)
        self.checks = Checks(rules.checks, self.certainty.tainting)
        self.cut_short = self.overflowing = False
        self.ending = Ending(rules, self.differences, self.arrivals, self.partnerless, self.bags)
        self.ended = self.ending.ended
        self.surveyed = Survey()

    def _feeding_of(self, clocks: Clocks, *, each_pair: bool) -> Feeding:
        rules, ledger = self.rules, self.ledger
        singly = rules.halt or self.copies or each_pair
        plain = not singly and self.tables is None and ledger.repeats is None
        matching = Matching(self._take, self._match_earlier, lambda: not self.overflowing)
        return Feeding(rules, ledger, self.open_scopes, self.index, clocks, matching, plain)

    def _surveyor_of(self, clocks: Clocks) -> Surveyor:
        rules, ledger = self.rules, self.ledger
        apart = SetApart(
            self.index, self.scopes, self.copies, () if self.tables is None else self.tables.rows
        )
        arrival = OverdueByArrival(rules, ledger, self.index, apart, clocks.arrival)
        declared = (
            arrival
            if clocks.points is None
            else OverdueByProgress(rules, apart, clocks.points, clocks.crossed)
        )
        judge = Judge(ledger, apart, arrival.until, declared, rules.overdue_after_ms)
        return Surveyor(
            ledger,
            self.differences,
            self.open_scopes,
            judge,
            declared,
            self.suspected,
            self.partnerless,
            self.tables,
        )

    @property
    def matched(self) -> int:
        """The number of pairs."""
        return self.ledger.matched

    @property
    def tells_batches(self) -> bool:
        """Whether the marks of events are the numbers of the batches that wrote them."""
        fold = self.rules.fold
        return fold is not None and fold.settled_by is SettledBy.SNAPSHOT

    @property
    def halted(self) -> bool:
        """Whether further events are ignored, since the rules let nothing count after a difference."""
        return self.differences.halted

    @property
    def diverged(self) -> bool:
        """Whether a difference is proven that lies behind no hole."""
        return self.proven.at is not None

    @property
    def in_dispute(self) -> bool:
        """Whether there is a difference that may turn out to be a known one."""
        scopes = any(scope.disputed for scope in self.scopes)
        return self.ending.disputed_at is not None or scopes or len(self.differences.disputed) > 0

    @property
    def disagreeing_batches(self) -> list[str]:
        """A sentence for each open batch whose attempts have not agreed so far."""
        return [sentence for replays in self.retries or () for sentence in replays.disagreeing()]

    # -- feeding ------------------------------------------------------------------------------------------

    def go_back(self, side: Side, partition: int) -> None:
        """Note that a partition goes on at a lower offset, so its offsets come again. That is a hole, too."""
        self.ledger.lives.begin(side, partition)

    def known(self, side: Side, partition: int, records: Sequence[bytes | None]) -> Known:
        """What is known of new records of a side without reading them: see `Known`."""
        return self.feeding.known(side, partition, records)

    def feed(self, side: Side, run: Run) -> Counter[float]:
        """Take a run of one side; return how many of the events now paired had waited since which `read_at`.

        Complexity: O(1) an event, except for orders about times (O(∛n)) and by a function (O(n)).
        """
        run = self.arrivals.without_replays(side, self.ledger.lives.placed(side, run))
        self.checks.take(side, run, self.certainty.moment)
        if not self.rules.halt:
            if run.forms:
                self._feed(side, run)
            return self.feeding.take_waits()
        for place, one in enumerate(run.singly()):
            if self.halted:
                self.cut_short = True
                if not self.proven.for_sure:
                    self._watch_order(side, run.behind(place))
                self.ignore(side, len(run.forms) - place)
                break
            self._feed(side, one)
            if self.in_dispute:
                self.review()  # How events were read must not decide where a known difference ends.
        return self.feeding.take_waits()

    def _feed(self, side: Side, run: Run) -> None:
        faced = self.ending.unanswered(side) if self.ended[side.other] else 0
        self.ledger.accounts[side].consumed += len(run.forms)
        self.ledger.read[side][run.partition] = run.offsets[-1]
        self._watch_order(side, run)
        if self.overflowing:
            self.ledger.give_up(side, next(run.events()))
            return
        self.clocks.saw(side, run)
        if any(self.ended):
            self.feeding.enter(side, run)
        else:
            self.feeding.feed(side, run)
        self.open_scopes.close_finished()
        if self.ended[side.other] and self.ending.unanswered(side) > faced:
            self.ending.face(side, run.partition)
        if self.ledger.waiting > self.rules.unmatched_limit and self._is_full():
            self.overflow(f"limits.unmatched_events ({self.rules.unmatched_limit})")

    def _take(self, side: Side, run: Run) -> list[Event]:
        """Match the events of a run, and book them; returns their partners."""
        events = list(run.events())
        self.arrivals.note_written(side, run.partition, events)
        arranged = self.arrivals.arranged(side, run.partition, events)
        if self.tables is not None:
            self.ledger.held[side].came(events)
            return self._settle_rows(self.tables.take(side, arranged))[side].partners
        pairs = self._match(side, arranged)
        self.open_scopes.watch_pairs(pairs)
        self.ledger.came(side, events, pairs)
        return pairs.partners

    def expect_partitions(self, side: Side, partitions: Iterable[int]) -> None:
        """Set the partitions of a side before its first event: a barrier may have a copy in each."""
        known = frozenset(partitions)
        self.arrivals.expect(side, known)
        self.clocks.expect(side, known)

    def note_finished(self, side: Side, fact: Finished) -> None:
        """Note that a version reports a batch as finished; this holds once a look finds its output fed."""
        if (reason := self.clocks.note_finished(side, fact)) is not None:
            self.hole(Hole(reason, side))
        self.checks.hear(side, fact, self.certainty.moment)

    def note_earlier(self, side: Side, fact: Finished) -> None:
        """Note a batch from before the start: it tells how far its version is, and is not judged."""
        self.clocks.note_finished(side, fact)
        self.checks.hear_earlier(side, fact)

    def look(self, side: Side, positions: Mapping[int, int], ends: Mapping[int, int], now: float) -> None:
        """Note the next position of a side and its end, by partition; `now` never goes back."""
        finished = self.clocks.look(side, positions, ends, now)
        for query, batch in finished:
            self.arrivals.finish_batch(side, query, batch)
        if finished and self.tables is not None and not (self.halted or self._done):
            self._finish_rows(side, self.tables)

    def _match(self, side: Side, events: Sequence[Event]) -> Pairs:
        return self._match_singly(side, events) if self._singly else self.index.feed(side, events)

    def _match_singly(self, side: Side, events: Sequence[Event]) -> Pairs:
        """Match events one by one, since one may end matching; the pairs before it count."""
        pairs = Pairs([], [])
        for place, event in enumerate(events):
            if self.halted:
                self.cut_short = True
                self.ledger.accounts[side].ignored += len(events) - place
                self.ledger.held[side].left(events[place:])
                break
            try:
                found = self.index.feed(side, (event,))
            except RelationError as error:
                self.ledger.drop(side, events[place:])
                self.overflowing = True
                self.hole(Hole(f"{error}; from there on nothing was compared", side))
                break
            pairs.partners.extend(found.partners)
            pairs.events.extend(found.events)
        return pairs

    # -- rows that replace each other ----------------------------------------------------------------------

    def _finish_rows(self, side: Side, tables: Tables) -> None:
        """Settle the rows that are final now, since a side has finished a batch."""
        progress = self.clocks.progress
        assert progress is not None, "only that has found the batch"
        if progress.queries(side) > 1 and (hole := Hole(TWO_QUERIES, side)) not in self.holes:
            self.hole(hole)
        for effect in progress.effects(side):
            written = self.ledger.lives.ends(side, effect.written)
            self._settle_rows(tables.finish(side, effect._replace(written=written)))
        self.open_scopes.close_finished()

    def _settle_rows(self, step: Step) -> tuple[Pairs, Pairs]:
        """Book what the tables have settled, and match what they hand on; returns the pairs by side."""
        ledger = self.ledger
        for side in Side:
            ledger.accounts[side].superseded += len(step.superseded[side])
            ledger.held[side].left(step.superseded[side])
        for side, old, new in step.renewed:
            ledger.held[side].left((old,))
            ledger.held[side].came((new,))
        for side, event, reason in step.holes:
            self.hole(Hole.at(place_in_side(event), side, reason))
        for side, event in step.unclear:
            self.certainty.note_unclear(Hole.at(place_in_side(event), side, UNCLEAR))
        pairs = self._match_rows(Side.LEFT, step.ready[0]), self._match_rows(Side.RIGHT, step.ready[1])
        if step.differing and not self.halted:
            self.partnerless.settle_apart(step.differing)
        return pairs

    def _match_rows(self, side: Side, events: Sequence[Event]) -> Pairs:
        self.ledger.held[side].entered(events)
        return self._match_earlier(side, events)

    def _match_earlier(self, side: Side, events: Sequence[Event]) -> Pairs:
        """Match events of a side that came earlier, and book the pairs."""
        pairs = self._match(side, events)
        self.open_scopes.watch_pairs(pairs)
        if pairs.partners:
            self.ledger.pair(pairs, side)
            for of, paired in ((side, pairs.events), (side.other, pairs.partners)):
                self.ledger.advance(of, max(event[TIMESTAMP_MS] for event in paired))
        return pairs

    def _is_full(self) -> bool:
        self.settle()  # Events that lost scopes have dropped are not kept.
        return self.ledger.waiting > self.rules.unmatched_limit

    def overflow(self, limit: str) -> None:
        """Stop comparing, since a limit of memory was reached: from here on events are only counted."""
        self.overflowing = True
        self.hole(Hole(f"{limit} was reached: what came after was not compared"))

    def stop(self, side: Side, event: Run, reason: str) -> None:
        """Stop comparing at an event of which nobody knows what it equals: a function of the user failed.

        It is a run of one event, and counts as unmatched, as all that come after it.
        """
        if not self.overflowing:
            where = f"for the event at offset {event.offsets[0]:,} of {PLACE}"
            reason = f"{reason}, {where}; from there on nothing was compared"
            self.overflowing = True
            self.hole(Hole(reason, side, event.partition, event.offsets[0]))
        self._feed(side, self.ledger.lives.placed(side, event))

    def ignore(self, side: Side, count: int) -> None:
        """Count events that a declared rule leaves out."""
        self.ledger.accounts[side].consumed += count
        self.ledger.accounts[side].ignored += count

    def hold(self, side: Side, count: int) -> None:
        """Count events that are held until the start is known: consumed, and not settled.

        `count` is the change; held events that are fed later, or lie before the start, are counted again.
        """
        self.ledger.accounts[side].consumed += count

    def undecodable(self, side: Side) -> None:
        """Count a record that is no event of this comparison."""
        self.ledger.accounts[side].consumed += 1
        self.ledger.accounts[side].undecodable += 1

    def hole(self, hole: Hole) -> None:
        """Note a hole: a difference found from here on is held against no side.

        A difference in dispute is not proven yet, and its cause may be in the input that was not checked.
        """
        self.feeding.enter_partners()
        self.open_scopes.hole(hole)

    def doubt_pairs(self) -> None:
        """Note that it is unknown whether some events left over are differences (see `bags`)."""
        if UNKNOWN_PAIRS not in self.holes:
            self.hole(UNKNOWN_PAIRS)

    def _watch_order(self, side: Side, run: Run) -> None:
        """Note it as a hole if dependent events are in two partitions, between which there is no order.

        So the proofs that are not vouched for yet may only show the order in which partitions were read.
        """
        holes = list(self.watch.came(side, run))
        if holes:
            self._withdraw()
            self.hole(holes[0])

    def _withdraw(self) -> None:
        """Withdraw the proofs that are not vouched for."""
        self.feeding.enter_partners()
        self.differences.disown()
        self.open_scopes.disown(self.proven.vouched_at)

    def disown(self) -> None:
        """Note that some input fed behind the vouched moment is not the input to be compared.

        So the differences found since decide nothing. The driver adds a hole for the input not compared.
        """
        self._withdraw()
        self.checks.disown(self.proven.vouched_at)

    def review(self) -> bool:
        """Explain open scopes that have grown, and close those whose sides have met again.

        Returns whether any was closed. Complexity: O(1) an open scope, plus the pairings that the credit pays
        for (see `open_scopes`).
        """
        closed = self.open_scopes.review(self.index, self._over)
        if self.halted and self.differences.disputed:
            self.differences.settle_disputed()
        return closed

    def refresh(self) -> None:
        """Bring all provisional explanations up to date, whatever it costs."""
        self.feeding.enter_all()
        self.open_scopes.refresh(self.index, self._over)

    # -- the end ------------------------------------------------------------------------------------------

    def end(self, side: Side) -> None:
        """End a side: no more of its events will come. Once both end, every event left is a difference."""
        self.feeding.enter_all()
        self.ended[side] = True
        self.arrivals.end(side)
        if self.copies and not self._done:
            self._finish_copies(side)
        if self.tables is not None and not self._done:
            self._settle_rows(self.tables.flush(side))
            self.open_scopes.close_finished()
        if not self._done:
            self.ending.end(side)

    @property
    def _over(self) -> tuple[bool, bool]:
        """By side, whether it has ended, and the comparison has not halted."""
        return (self.ended[0] and not self.halted, self.ended[1] and not self.halted)

    @property
    def _done(self) -> bool:
        """Whether some events were not compared, so that an end proves nothing any more."""
        return self.cut_short or self.overflowing

    def _finish_copies(self, side: Side) -> None:
        """Pass on the barriers that lack copies at the end of a side, with those that they have."""
        finished = self.arrivals.finish_copies(side)
        if self.tables is not None:
            self._settle_rows(self.tables.take(side, finished))
        elif (pairs := self._match(side, finished)).partners:
            self.ledger.pair(pairs, side)
        self.open_scopes.close_finished()
        if all(self.ended):
            self.arrivals.compare_copies()

    # -- when no partner comes ----------------------------------------------------------------------------

    def survey(self, at_end: tuple[bool, bool], lag: Lag = NO_LAG) -> Survey:
        """Find the overdue events among the unmatched ones, and how far each partition is settled.

        `at_end` says by side whether it is read to its end; if not, nothing new is overdue, but on the clock
        of the input. Where the clock proves, overdue events are settled as differences. What is within the
        `lag` may not be read yet; where it is unknown, no clock that needs the ends proves anything. The
        arrival clock proves nothing of events read less than `overdue.after` before that.

        Complexity: O(c) in the changes since the last survey, O(n) where an event is overdue.
        """
        self.feeding.enter_at_look()
        survey = self.surveyed = self._surveyor.survey(Reading(at_end, not self.overflowing, lag))
        self._bound_bytes()
        return survey

    def _bound_bytes(self) -> None:
        """Stop comparing where the records of unmatched events take more than their limit."""
        held = sum(unmatched.size_bytes for unmatched in self.ledger.held)
        if held > self.rules.unmatched_bytes and not self.overflowing:
            self.overflow(f"limits.unmatched_bytes ({self.rules.unmatched_bytes})")

    def oldest(self, side: Side, at_end: tuple[bool, bool], limit: int) -> Iterator[tuple[Event, bool]]:
        """The oldest unmatched events in order, as of the last survey, each with whether it is overdue.

        Complexity: O(limit), and O(c) in the events that are overdue or set aside.
        """
        return self._surveyor.oldest(side, Reading(at_end, gapless=not self.overflowing), limit)

    def settle(self) -> None:
        """Apply the arrivals and departures of unmatched events that were only listed since the last call.

        What they take of memory is known then, and bounded.
        """
        self.feeding.enter_at_look()
        self._surveyor.settle()
        self._bound_bytes()

    def catch_up(self) -> None:
        """Compare all that was fed: events of both sides that wait for each other enter the index."""
        self.feeding.enter_partners()

    # -- reading ------------------------------------------------------------------------------------------

    def unmatched(self, side: Side) -> int:
        """The number of events of a side that are not settled."""
        return self.ledger.unmatched(side)

    def take_closed(self) -> list[Divergence]:
        """The divergences of closed scopes since the last call; one found again keeps its number."""
        return self._with_likely_cause(self.differences.take_closed())

    def take_tainted(self) -> list[int]:
        """The numbers of divergences taken earlier that have been tainted since the last call."""
        return self.differences.take_tainted()

    def provisional(self) -> list[Divergence]:
        """The best explanations of the open scopes, and the events that face a side that has ended."""
        open_findings = [
            Divergence(finding, scope.tainted, finding) for scope in self.scopes for finding in scope.findings
        ]
        open_findings += [half.divergence for side in Side for half in self.differences.disputed.all(side)]
        return self._with_likely_cause(
            open_findings if self.cut_short else open_findings + self.ending.facing()
        )

    def _with_likely_cause(self, divergences: list[Divergence]) -> list[Divergence]:
        """Divergences with what the versions dropped as late, where a dropped row may have made them."""
        uneven = self.clocks.late.uneven() if divergences else None
        if uneven is None:
            return divergences
        return [
            one._replace(uneven=uneven) if one.finding.kind in OF_DROPPED_ROWS else one for one in divergences
        ]

    def verified_up_to(self, side: Side, position: dict[int, int]) -> dict[int, int]:
        """By partition, the offset below which every event is settled and none differs, explained or not.

        `position` is the next offset to read. It holds as of the last survey.
        """
        settled = self.ledger.lives.below(side, position, self.surveyed.first_open[side])
        return self.ledger.lives.below(side, settled, self.ledger.first_unverifiable[side])

    def settled_up_to(self, side: Side, position: dict[int, int]) -> dict[int, int]:
        """By partition, the offset below which every event is settled, even if it is divergent.

        Where events were left out of the comparison, no later event counts as settled.
        """
        if self.halted or self.overflowing:
            return self.verified_up_to(side, position)
        return self.ledger.lives.below(side, position, self.surveyed.first_open[side])
