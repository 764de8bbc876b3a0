"""Feeding: leads the events of a run to matching, each in the quickest way that is open to it.

- As *whole runs* that equal those of the other side, without an object for each event (`whole_runs`).
- By their *twins*, unmatched events of the other side with the same bytes, where these are minimal.
- Else as events (`Matching.take`).

The first two are open where nothing but matching needs each event: see `plain`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from operator import itemgetter
from typing import NamedTuple, cast

from twinstream.core.accounting.by_record import forms_of
from twinstream.core.accounting.ledger import Ledger
from twinstream.core.arrivals.run import Run
from twinstream.core.arrivals.whole_runs import MOST, MOST_OF_A_LOOK, Booking, WholeRuns
from twinstream.core.events import READ_AT, TIMESTAMP_MS, Event, Form, Side
from twinstream.core.matching.index import Index, Pairs
from twinstream.core.matching.lanes import LanesIndex
from twinstream.core.open_scopes import OpenScopes
from twinstream.core.overdue.clocks import Clocks
from twinstream.core.rules import Rules


class Known(NamedTuple):
    """What is known of some records, since unmatched events of the other side have the same bytes.

    `forms` are theirs, `twins` such events that are in the index; None for each record that is unknown, and
    in place of a list without any other. A record with a form need not be read.
    """

    forms: Sequence[Form | None] | None = None
    twins: Sequence[Event | None] | None = None


class Matching(NamedTuple):
    """What a comparison does with events.

    `take` matches and books the events of a run that comes, and returns their partners; `take_earlier` those
    that came before, and returns the pairs. `keeps` says whether events are still compared.
    """

    take: Callable[[Side, Run], list[Event]]
    take_earlier: Callable[[Side, Sequence[Event]], Pairs]
    keeps: Callable[[], bool]


@dataclass
class Feeding:
    """Leads the runs of one comparison to `matching`.

    `plain`: events go to matching as they come, and no memory needs each of them. `looks_up_twins` says
    whether the records of twins need not be read; `whole_runs` are given where runs are paired as a whole.
    """

    rules: Rules
    ledger: Ledger
    open_scopes: OpenScopes
    index: Index
    clocks: Clocks
    matching: Matching
    plain: bool
    looks_up_twins: bool = field(init=False)
    whole_runs: WholeRuns | None = field(init=False)
    _waits: Counter[float] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.looks_up_twins = self.plain and self.rules.equal_by_record
        self.whole_runs = self._pairs_whole_runs()

    def _pairs_whole_runs(self) -> WholeRuns | None:
        if self.plain and self.rules.close is None and type(self.index) is LanesIndex:
            left, right = self.ledger.held
            one_by_one = self.rules.proves or self.clocks.points is not None
            booking = Booking(self.enter, self._enter_seen, self._pair_runs)
            most = MOST_OF_A_LOOK if one_by_one else MOST
            return WholeRuns(self.index, (left.ahead, right.ahead), booking, most)
        return None

    def known(self, side: Side, partition: int, records: Sequence[bytes | None]) -> Known:
        """What is known of new records of a side without reading them: see `Known`."""
        if not self.looks_up_twins:
            return Known()
        ahead = None if self.whole_runs is None else self.whole_runs.known(side, partition, records)
        if ahead is None:
            twins = self.ledger.held[side.other].twins(records)
            return Known(forms_of(twins), twins) if any(twins) else Known()
        if all(ahead):
            return Known(ahead)
        others = [None if form else record for form, record in zip(ahead, records, strict=True)]
        twins = self.ledger.held[side.other].twins(others)
        forms = [one or other for one, other in zip(ahead, forms_of(twins), strict=True)]
        return Known(forms, twins)

    def feed(self, side: Side, run: Run) -> None:
        """Match the events of a run, as a whole if possible, and book them."""
        if self.whole_runs is None:
            self.enter(side, run)
        else:
            self.whole_runs.feed(side, run)

    def take_waits(self) -> Counter[float]:
        """How many of the events paired since the last call had waited since which `read_at`."""
        waits, self._waits = self._waits, Counter()
        return waits

    # -- what waits ahead of the index ---------------------------------------------------------------------

    def enter_all(self) -> None:
        """Let all events enter the index, as if no run had been paired as a whole.

        Nothing enters once events are not kept any more: what is there is not matched, and must not grow.
        """
        self._enter_ahead(unsuited=False)

    def _enter_ahead(self, *, unsuited: bool) -> None:
        if self.whole_runs is not None and self.matching.keeps():
            for side in Side:
                self.whole_runs.enter_side(side, unsuited=unsuited)
            self.open_scopes.close_finished()

    def enter_partners(self) -> None:
        """Let all events enter if any two of them may be partners, or differ."""
        if all(map(self.ledger.waits, Side)):
            self.enter_all()

    def enter_at_look(self) -> None:
        """Let those events enter that may have partners, that a clock judges one by one, or do not suit."""
        judged = self.clocks.points is not None or self.rules.proves
        self._enter_ahead(unsuited=not (judged or all(map(self.ledger.waits, Side))))

    # -- ways to matching ----------------------------------------------------------------------------------

    def _pair_runs(self, side: Side, came: Run, ahead: Run) -> None:
        """Book a run of a side, and one of the other side that was ahead of the index and equals it."""
        forms = came.forms if side is Side.RIGHT else ahead.forms
        if self.clocks.crossed is not None and came.marks != ahead.marks:
            self.clocks.crossed.note(side, came.events(), ahead.events())
        self.ledger.met(side, forms, came.timestamps_ms, ahead.timestamps_ms)
        self._waits[ahead.read_at] += len(forms)

    def _enter_seen(self, side: Side, partition: int) -> int:
        """Match the events of the oldest run that is ahead in a partition, and was there at a look."""
        pairs = self.matching.take_earlier(side, self.ledger.held[side].enter(partition))
        self._waits.update(map(_READ_AT, pairs.partners))
        return len(pairs.partners)

    def enter(self, side: Side, run: Run) -> int:
        """Match the events of a run with those in the index, and book them; returns the number of pairs."""
        twins = self._match_twins(side, run)
        rest = run.behind(len(twins))
        partners = [*twins, *self.matching.take(side, rest)] if rest.forms else twins
        self._waits.update(map(_READ_AT, partners))
        return len(partners)

    def _match_twins(self, side: Side, run: Run) -> list[Event]:
        """Match the first records of a run with their twins, as far as these are their minimal partners."""
        if not run.twins or run.twins[0] is None:
            return []
        twins = cast("list[Event]", list(run.twins if all(run.twins) else takewhile(bool, run.twins)))
        del twins[self.index.match_twins(side, twins) :]
        if twins:
            if self.open_scopes.watch.keeps_partitions:
                self.open_scopes.watch_pairs(Pairs(twins, list(islice(run.events(), len(twins)))))
            if self.clocks.crossed is not None:
                self.clocks.crossed.note(side, run.events(), twins)
            forms, times_ms = run.forms[: len(twins)], run.timestamps_ms[: len(twins)]
            self.ledger.held[side.other].left(twins)
            self.ledger.met(side, forms, times_ms, list(map(_TIME, twins)))
        return twins


_READ_AT = itemgetter(READ_AT)
_TIME = itemgetter(TIMESTAMP_MS)
