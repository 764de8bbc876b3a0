"""The hot path: decodes a batch of records, feeds it to the comparison, and counts.

This module works once a batch; the work for each event is in `Codec.forms` and `LanesIndex.feed`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from twinstream.core.accounts import PLACE, Hole
from twinstream.core.arrivals.run import Run
from twinstream.core.comparison import Comparison
from twinstream.core.events import Form, Side
from twinstream.core.overdue.judging import NO_LAG, Lag
from twinstream.core.start.cut import Cut, EventTimeCut
from twinstream.core.start.input_cut import InputCut
from twinstream.errors import SourceError
from twinstream.explain.coverage import SeenEvents
from twinstream.explain.holes import of_falls, of_gap
from twinstream.intake.batches import InSight, marks_of
from twinstream.intake.clock_skew import OldestStamp
from twinstream.intake.falls import FALLS_TO_LEAVE_OUT
from twinstream.ports import Batch, Clock, Gap, Item, Passed
from twinstream.spec.codec.codec import Codec, RefusedRecord, UnjudgedRecord
from twinstream.spec.codec.digests import KeptCodec
from twinstream.spec.compile.checks import FactReader
from twinstream.spec.decode.headers import attempt_of, batch_mark, input_mark, kept_mark
from twinstream.status import comparison as status
from twinstream.status.comparison import HISTOGRAM_EDGES_SECONDS as EDGES_SECONDS

UNDECODABLE_KEPT = 20


class Buckets:
    """Counts of durations up to each edge; the last bucket is open."""

    def __init__(self) -> None:
        self.counts = [0] * (len(EDGES_SECONDS) + 1)
        self.sum_seconds = 0.0

    def add(self, seconds: float, count: int) -> None:
        """Count a duration `count` times."""
        self.counts[bisect_left(EDGES_SECONDS, seconds)] += count
        self.sum_seconds += seconds * count

    def published(self) -> status.Histogram:
        """The buckets as the API shows them."""
        return status.Histogram(
            edges_seconds=list(EDGES_SECONDS), counts=list(self.counts), sum_seconds=self.sum_seconds
        )


class Undecodable(NamedTuple):
    """A record that was kept out of matching: its place, and the reason."""

    side: Side
    partition: int
    offset: int
    reason: str


class Intake:
    """Takes batches into a comparison. `positions` are the next offsets behind all batches taken.

    `begun` are the partitions of which an event was compared, and `stamps` those of each partition's last
    batch. `seen` receives the events that are compared. `facts` reads what checks judge, where the comparison
    file declares any.
    """

    def __init__(
        self,
        codec: Codec,
        comparison: Comparison,
        clock: Clock,
        undecodable_budget: int,
        seen: SeenEvents,
        cut: Cut | None = None,
        facts: FactReader | None = None,
    ) -> None:
        self._codec, self._comparison, self._clock, self.seen = codec, comparison, clock, seen
        self._budget = undecodable_budget
        self._facts = facts
        self._under_way: Batch | None = None
        self.cut = cut
        self.positions: dict[Side, dict[int, int]] = {side: {} for side in Side}
        self.compared_from: dict[Side, dict[int, int]] = {side: {} for side in Side}
        self.surveyed_positions: dict[Side, dict[int, int]] = {side: {} for side in Side}
        self.newest_ms: dict[Side, dict[int, int]] = {side: {} for side in Side}
        self.first_ms: int | None = None
        self.begun: dict[Side, set[int]] = {side: set() for side in Side}
        self.stamps: dict[tuple[Side, int], OldestStamp] = {}
        self.undecodable: deque[Undecodable] = deque(maxlen=UNDECODABLE_KEPT)
        self.match_latency = Buckets()
        self.processing = Buckets()
        self.max_unmatched = 0

    def begin(self, positions: Mapping[Side, Mapping[int, int]]) -> None:
        """Start reading at these positions."""
        self.positions = {side: dict(positions[side]) for side in Side}
        self.compared_from = {side: dict(positions[side]) for side in Side}
        for side in Side:
            self._comparison.expect_partitions(side, positions[side])
        if self.cut is not None:
            self.cut.begin(positions)

    def take(self, item: Item) -> None:
        """Take an item from the source.

        Raises SourceError, and has taken nothing, while the records need something that is not there yet:
        their schema, or a control record about their input.
        """
        if isinstance(item, Gap):
            self._note_gap(item)
            return
        if isinstance(item, Passed):
            self._go_on(item.side, item.partition, item.position, item.newest_ms)
            return
        started = self._clock.monotonic()
        in_order_ms = sorted(item.timestamps_ms)  # Producers set them, so any may be the oldest or newest.
        marks: Sequence[object] | None = self._marks(item)
        known = self._comparison.known(item.side, item.partition, item.records)
        forms, refused = self._codec.forms(item.records, item.side, known.forms)
        self._under_way = item
        run = Run(forms, item.partition, item.offsets, item.timestamps_ms, started, twins=known.twins)
        if item.headers is not None and self._comparison.retries is not None:
            attempts, refused = marks_of(attempt_of, item.headers, refused)
            run = run._replace(attempts=attempts)
        if item.headers is not None and self._comparison.tells_batches:
            marks, refused = marks_of(batch_mark, item.headers, refused)
        run = run._replace(marks=marks)
        if self._facts is not None:
            run = run._replace(facts=self._facts.facts(item.records, item.keys, forms, item.side))
        if refused:
            self._feed_without(refused, run, item.side)
        else:
            self._feed(item.side, run)
        self._under_way = None
        self._go_on(item.side, item.partition, item.offsets[-1] + 1, in_order_ms[-1])
        self.stamps[item.side, item.partition] = OldestStamp(in_order_ms[0], started)
        count = len(item.records)
        self.processing.add((self._clock.monotonic() - started) / count, count)

    def _marks(self, item: Batch) -> list[str | None] | None:
        """The marks that name the input of each record, where they are needed. Raises SourceError."""
        cut = self.cut if isinstance(self.cut, InputCut) else None
        if item.headers is None or not (cut or self._comparison.clocks.reads_input_marks):
            return None
        marks = list(map(input_mark, item.headers))
        if isinstance(self._codec, KeptCodec):
            marks = list(map(kept_mark, marks))
        if cut is not None and (lacking := cut.lacks(item.side, marks)):
            raise SourceError(lacking)
        return marks

    def survey(self, at_end: tuple[bool, bool], lag: Lag = NO_LAG) -> None:
        """Survey the unmatched events, and remember the positions that the survey covers."""
        certainty = self._comparison.certainty
        sure_but_for = certainty.beginning
        if isinstance(self.cut, EventTimeCut):
            certainty.beginning = sure_but_for or self.cut.unread
        self._comparison.survey(at_end, lag)
        certainty.beginning = sure_but_for
        if self.waiting is None:
            self.surveyed_positions = {side: dict(self.positions[side]) for side in Side}

    @property
    def waiting(self) -> str | None:
        """The reason why nothing is compared yet, while the start is not found."""
        return None if self.cut is None else self.cut.waiting

    def resume(self, saved: Any, begun: Sequence[Collection[int]] | None) -> None:
        """Go on behind a known start, with the `saved` state of its cut; partitions of a side have `begun`.

        An earlier version saved none of a start at an event time. There a partition that was not read yet
        may still refute the start, and no other. Nor did it save which partitions have begun.
        """
        if begun is None:  # All that were read, unless nothing of them is compared.
            begun = ((), ()) if self.first_ms is None else list(self.newest_ms.values())
        self.begun = {side: set(begun[side]) for side in Side}
        if self.cut is not None:
            self.cut.begin(self._unread())
            self.cut.restore(saved)
            self.cut.found = True

    def _unread(self) -> dict[Side, dict[int, int]]:
        """The positions in partitions of which nothing was read yet."""
        return {
            side: {
                partition: offset
                for partition, offset in self.positions[side].items()
                if partition not in self.newest_ms[side]
            }
            for side in Side
        }

    def _feed(self, side: Side, run: Run) -> None:
        if self.cut is None:
            self._compare(side, run)
        elif self.cut.refused is None:
            self._sort(self.cut, side, run)

    def _sort(self, cut: Cut, side: Side, run: Run) -> None:
        """Feed the events behind the start, settle those before it, and count held ones as unmatched."""
        passed = cut.take(side, run)
        for place, reason in passed.refused:
            self._refuse(Undecodable(side, run.partition, run.offsets[place], reason))
        for of in Side:
            self._comparison.hold(of, passed.held[of])
        if passed.hole is not None:
            self._comparison.hole(passed.hole)
        if cut.refused is None:
            self._doubt()
        for of, part, behind in passed.parts:
            if not behind:
                self._leave_before(of, part, by_place=cut.by_place)
            elif cut.refused is None:
                self._compare(of, self._with_marks(part))

    def _with_marks(self, run: Run) -> Run:
        """A run that a cut has taken, with its marks only where the clock reads them, too."""
        return run if self._comparison.clocks.reads_input_marks else run._replace(marks=None)

    def _leave_before(self, side: Side, run: Run, *, by_place: bool) -> None:
        """Settle a run before the start; its partition is compared at the earliest from behind the run."""
        self._comparison.arrivals.before_start(side, self._with_marks(run), by_place=by_place)
        begins = self.compared_from[side]
        begins[run.partition] = max(begins.get(run.partition, 0), run.offsets[-1] + 1)

    def _doubt(self) -> None:
        """Keep the doubt about a start that proved unsafe in the comparison's state, over restarts."""
        certainty = self._comparison.certainty
        if isinstance(self.cut, EventTimeCut) and certainty.beginning is None:
            certainty.beginning = self.cut.doubt

    def _compare(self, side: Side, run: Run) -> None:
        comparison = self._comparison
        self._note_first(side, run)
        self.seen.note(side, self._in_sight(side, run))
        for read_at, count in comparison.feed(side, run).items():
            self.match_latency.add(run.read_at - read_at, count)
        unmatched = comparison.unmatched(Side.LEFT) + comparison.unmatched(Side.RIGHT)
        self.max_unmatched = max(self.max_unmatched, unmatched)

    def _note_first(self, side: Side, run: Run) -> None:
        """Note the oldest of the first records that are compared of each partition.

        A later record may bear any time: one that is long past must not lengthen what was compared.
        """
        if run.partition not in self.begun[side]:
            self.begun[side].add(run.partition)
            first = run.timestamps_ms[0]
            self.first_ms = first if self.first_ms is None else min(self.first_ms, first)

    def _in_sight(self, side: Side, run: Run) -> Sequence[Form]:
        """The forms of a run, with their records even if the forms hold none."""
        codec, batch = self._codec, self._under_way
        if not isinstance(codec, KeptCodec) or batch is None:
            return run.forms
        return InSight(codec, side, run, batch)

    def unread(self, side: Side, ends: Mapping[int, int]) -> list[int]:
        """The partitions of a side that are not known to be read to these ends."""
        positions = self.positions[side]
        return [partition for partition, at in positions.items() if at < ends.get(partition, at + 1)]

    def _go_on(self, side: Side, partition: int, position: int, latest_ms: int | None) -> None:
        self.positions[side][partition] = position
        if latest_ms is not None:
            newest = self.newest_ms[side]
            newest[partition] = max(newest.get(partition, latest_ms), latest_ms)

    def _feed_without(self, refused: list[RefusedRecord], run: Run, side: Side) -> None:
        """Feed a run without the records that take no part in matching, which are counted.

        The record that becomes a hole is noted in its place: a difference before it counts.
        """
        cuts = sorted({0, self._first_beyond_budget(refused), self._first_unjudged(refused), len(run.forms)})
        out = {one.place for one in refused}
        for part in map(range, cuts, cuts[1:]):
            for one in refused:
                if one.place in part:
                    self._leave_out(one, run, side)
            if kept := [place for place in part if place not in out]:
                self._feed(side, run.only(kept))

    def _leave_out(self, one: RefusedRecord, run: Run, side: Side) -> None:
        place, reason = one
        if reason is None:
            self._comparison.ignore(side, 1)
        elif isinstance(one, UnjudgedRecord):
            self._comparison.stop(side, run.only([place]), reason)
        else:
            self._refuse(Undecodable(side, run.partition, run.offsets[place], reason))

    def _first_beyond_budget(self, refused: list[RefusedRecord]) -> int:
        """The index of the record that exceeds the budget for undecodable ones; 0 if none does."""
        left = self._budget - sum(account.undecodable for account in self._comparison.accounts)
        places = [
            one.place for one in refused if one.reason is not None and not isinstance(one, UnjudgedRecord)
        ]
        return places[left] if 0 <= left < len(places) else 0

    @staticmethod
    def _first_unjudged(refused: list[RefusedRecord]) -> int:
        """The index of the first record that a function of the user failed on; 0 if there is none."""
        return next((one.place for one in refused if isinstance(one, UnjudgedRecord)), 0)

    def _refuse(self, record: Undecodable) -> None:
        comparison = self._comparison
        comparison.undecodable(record.side)
        self.undecodable.append(record)
        if sum(account.undecodable for account in comparison.accounts) == self._budget + 1:
            reason = (
                f"more records than undecodable.budget ({self._budget}) are no events of this comparison, "
                f"the first beyond it is offset {record.offset:,} of {PLACE}, because: {record.reason}"
            )
            comparison.hole(Hole(reason, record.side, record.partition, record.offset))

    def _note_gap(self, gap: Gap) -> None:
        """Go on behind records that are not read, and note a hole.

        Records before the start are no hole, except those that matchers fell over: nobody knows their
        content. The rest of a stretch that is left out may come with a later batch.
        """
        if gap.left_out and self.positions[gap.side].get(gap.partition, 0) >= gap.available:
            return
        is_hole = True
        if self.cut is not None and (before := self.cut.gap(gap.side, gap.partition)) is not None:
            is_hole = gap.left_out
            self.compared_from[gap.side][gap.partition] = gap.available
            for run in before:
                self._comparison.hold(gap.side, -len(run.forms))
                self._leave_before(gap.side, run, by_place=self.cut.by_place)
        if is_hole:
            self._comparison.hole(Hole(_reason(gap), gap.side, gap.partition, gap.wanted))
        if gap.available < self.positions[gap.side].get(gap.partition, 0):
            self._comparison.go_back(gap.side, gap.partition)
        self.positions[gap.side][gap.partition] = gap.available


def _reason(gap: Gap) -> str:
    if gap.left_out:
        return of_falls(gap.wanted, gap.available, FALLS_TO_LEAVE_OUT)
    return of_gap(gap.wanted, gap.available)
