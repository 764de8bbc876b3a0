"""Before matching: takes out replays, and lets events wait for copies of a barrier, or for later rows.

Events that a retry wrote again are settled as replayed (see `replays`). Where barriers have a copy in each
partition, the events behind them wait until all copies have come (see `barrier_copies`). Where rows replace
each other, each waits until it is known to be the last of its key (see `tables`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from twinstream.core.accounting.differences import Differences
from twinstream.core.accounts import Hole
from twinstream.core.arrivals.barrier_copies import Copies
from twinstream.core.arrivals.replays import written_rows
from twinstream.core.arrivals.run import Run
from twinstream.core.events import Event, Side, place_in_side
from twinstream.core.open_scopes import OpenScopes
from twinstream.core.rules import Rules
from twinstream.core.tables.tables import Tables


class Admission:
    """Admits the events of one comparison; it has `copies` by side, `retries` and `tables` if declared."""

    def __init__(self, rules: Rules, differences: Differences, open_scopes: OpenScopes) -> None:
        self._rules, self._differences, self._open_scopes = rules, differences, open_scopes
        self._ledger, self._certainty = differences.ledger, differences.certainty
        self.copies: tuple[Copies, ...] = (Copies(rules.equal), Copies(rules.equal)) if rules.copied else ()
        self.retries = self._certainty.retries
        self.tables = None if rules.fold is None else Tables(rules.fold, rules.canonical)

    def expect(self, side: Side, partitions: Iterable[int]) -> None:
        """Set the partitions of a side, before its first event."""
        if self.copies:
            self.copies[side].expect(partitions)
        if self.retries is not None:
            self.retries[side].expect(frozenset(partitions))

    def end(self, side: Side) -> None:
        """Note that a side has ended, so no retry of it can come."""
        if self.retries is not None:
            self.retries[side].end()
            self._settle_batches(side)

    def note_written(self, side: Side, partition: int, events: Sequence[Event]) -> None:
        """Note the events of the right side, where the rules ask which of them are repeats."""
        if side is Side.RIGHT and self._ledger.repeats is not None:
            self._ledger.repeats.note(partition, events)

    # -- what a retry has written again --------------------------------------------------------------------

    def without_replays(self, side: Side, run: Run) -> Run:
        """The run without the events that a retry wrote again; these are settled as replayed."""
        if run.attempts is None or self.retries is None:
            return run
        feed = self.retries[side].feed
        new = [place for place, row in enumerate(written_rows(run, self._rules)) if feed(row)]
        self._settle_batches(side)
        account, replayed = self._ledger.accounts[side], len(run.forms) - len(new)
        account.consumed += replayed
        account.replayed += replayed
        return run.only(new) if replayed else run

    def before_start(self, side: Side, run: Run, *, by_place: bool) -> None:
        """Settle a run before the start, sorted `by_place`, or by its content (see `start.cut`).

        It only shows which rows the attempts wrote there.
        """
        account = self._ledger.accounts[side]
        account.consumed += len(run.forms)
        account.before_start += len(run.forms)
        if side is Side.RIGHT and by_place and self._ledger.repeats is not None:
            self._ledger.repeats.skip(run.partition)
        if run.attempts is not None and self.retries is not None:
            for row in written_rows(self._ledger.lives.placed(side, run), self._rules):
                self.retries[side].note_before(row, by_place=by_place)
            self._settle_batches(side)

    def finish_batch(self, side: Side, query: str, batch: int) -> None:
        """Note that a query of a side has finished a batch, and that its whole output up to it was fed.

        So no retry of it can come, and the differences found in it count.
        """
        if self.retries is not None:
            self.retries[side].finish(query, batch)
            self._settle_batches(side)

    @property
    def requested(self) -> int:
        """The number of the last look at the ends of the topics that was requested, where replays need it."""
        return 0 if self.retries is None else self.retries[Side.LEFT].requested

    def note_request(self, number: int) -> None:
        """Note that a look at the ends of the topics is requested; numbers grow."""
        for replays in self.retries or ():
            replays.note_request(number)

    def note_read(self, side: Side, number: int) -> None:
        """Note that all records of a side up to the ends that a look found were fed."""
        if self.retries is not None:
            self.retries[side].note_read(number)
            self._settle_batches(side)

    def _settle_batches(self, side: Side) -> None:
        """Apply the results of closed batches: a difference counts, or there is a hole."""
        for hole in self._differences.settle_batches(side):
            self._open_scopes.doubt_batch(hole)

    # -- barriers with copies ------------------------------------------------------------------------------

    def arranged(self, side: Side, partition: int, events: Sequence[Event]) -> Sequence[Event]:
        """The events of a side that can be compared now."""
        if not self.copies:
            return events
        return self._enter(side, self.copies[side].arrange(partition, events))

    def waiting(self, side: Side) -> int:
        """The number of events of a side that wait for its other partitions, or for later rows."""
        pending = 0 if self.tables is None else len(self.tables.rows[side])
        return pending + (len(self.copies[side]) if self.copies else 0)

    def finish_copies(self, side: Side) -> Sequence[Event]:
        """The waiting events of a side that has ended; their barriers need no further copies."""
        return self._enter(side, self.copies[side].finish())

    def compare_copies(self) -> None:
        """Compare the copies of barriers that each side lacks; both sides have ended."""
        if self.copies[Side.LEFT].lacking != self.copies[Side.RIGHT].lacking:
            self._open_scopes.hole(Hole("at the end, one side lacks copies of a barrier that the other has"))

    def _enter(self, side: Side, ready: Sequence[Event]) -> Sequence[Event]:
        """Pass events on to matching, and settle the copies of a barrier that one of them stands for."""
        copies = self.copies[side]
        self._ledger.accounts[side].ignored += len(copies.surplus)
        self._ledger.held[side].left(copies.surplus)
        copies.surplus.clear()
        for event in copies.unequal:
            reason = "the copies of one barrier in several partitions are not equal"
            hole = Hole.at(place_in_side(event), side, reason)
            if hole not in self._certainty.holes:  # as after a restart
                self._open_scopes.hole(hole)
        copies.unequal.clear()
        self._ledger.held[side].entered(ready)
        return ready
