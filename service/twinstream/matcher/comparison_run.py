"""One run of a comparison: from a start, new or restored from a checkpoint, until a reset.

Its start is decided once: by the comparison file (`start`, or `Opening` for a start at the input), by a
checkpoint, or, if Kafka remembers a run that the store has lost, by the start of that run. `refusal` says why
none of these is possible; then nothing is read.

A run compares one shard if several matchers share the work. It uses the source, and never the store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import structlog

from twinstream.core.accounting.event_rows import pairs_of
from twinstream.core.accounts import Hole
from twinstream.core.arrivals.sharding import Shard
from twinstream.core.clocks.input import Finished
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.start.input_cut import InputCut
from twinstream.core.state.restore import restore
from twinstream.core.verdict import Verdict
from twinstream.errors import SourceError
from twinstream.explain.coverage import SeenEvents
from twinstream.explain.holes import told
from twinstream.explain.masking import Mask
from twinstream.intake.backpressure import Backpressure
from twinstream.intake.clock_skew import OldestStamp
from twinstream.intake.control import ControlDesk, id_of, missing, unreliable
from twinstream.intake.intake import Intake, Undecodable
from twinstream.intake.topic_monitor import TopicMonitor
from twinstream.intake.topics import TopicBook
from twinstream.ports import Batch, Clock, Item, Marks, Passed, Positions, Source, Topic
from twinstream.reporting.verdict_status import Reporter, Saved, Situation
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.checks import FactReader
from twinstream.spec.compile.compile import rules_of
from twinstream.spec.compile.cut import cut_of
from twinstream.spec.file.model import Spec
from twinstream.spec.lint.sharding import unfit
from twinstream.spec.load import digest
from twinstream.starting.input_start import Opening
from twinstream.starting.offset_backup import (
    AWAITED,
    LOST,
    Backup,
    Past,
    Rereading,
    forgotten,
    marks_of,
    resumed,
)
from twinstream.starting.reset_model import Resets, ResetState
from twinstream.starting.start import Unsafe, apart, bounded, positions_of
from twinstream.status.comparison import ComparisonStatus, Ended, ShardStatus

log = structlog.get_logger()

SURVEY_SECONDS = 5.0
"""Within so much time an event that is overdue is noticed."""


class ComparisonRun:
    """One run of a comparison, with the `intake` that feeds it. Constructing it calls no port.

    It begins where the comparison file says, or the last of its `resets`. `refusal` says why it has no start,
    `shard` what it reads. `opening` finds a start at the input; it may outlive a run that has not begun.
    `resets_before` is how many resets other shards had made when this one began without any state.
    `after_other` is the time when the state of another comparison file began that this run came after: what
    Kafka remembers of an earlier run of this file counts no more.
    `mask` has its secret before the run begins.
    """

    def __init__(
        self,
        spec: Spec,
        codec: Codec,
        source: Source,
        clock: Clock,
        shard: Shard,
        opening: Opening | None,
        resets: Resets,
        mask: Mask,
    ) -> None:
        self._digest = digest(spec)
        spec = resets.applied_to(spec)
        self._spec, self._codec, self._source, self._clock = spec, codec, source, clock
        self._shard, self._opening, self._resets = shard, opening, resets
        self.comparison = Comparison(rules_of(spec, codec))
        cut = cut_of(spec, codec)
        self._mask = mask
        seen, budget = SeenEvents(spec, codec, mask), spec.undecodable.budget
        facts = FactReader(spec, codec) if spec.all_checks else None
        self.intake = Intake(codec, self.comparison, clock, budget, seen, cut, facts)
        self.input_cut = cut if isinstance(cut, InputCut) else None
        self.turns = Backpressure(spec.limits, self.comparison, self.intake, source.ends)
        self.reporter = Reporter(spec, self._digest, self.comparison, self.intake, clock)
        self.situation = Situation(started_at=clock.now(), resets=resets)
        self.topics = TopicBook(spec)
        self.topic_monitor = TopicMonitor(source, self.topics, self.comparison, self.intake, clock)
        self.control = ControlDesk(spec, self._note_said)
        self.refusal: str | None = None
        self._same_beginning = spec.start.is_cut
        self._began_ms: dict[Side, dict[int, int]] = {side: {} for side in Side}
        self._starts: Positions = {side: {} for side in Side}
        self._rereading: Rereading | None = None
        self._awaited_until: float | None = None
        self._placed_behind: list[Hole] = []
        self.resets_before = 0
        self.after_other: str | None = None

    # -- the start -----------------------------------------------------------------------------------------

    def begin(self, topics: Mapping[Side, Topic], head: dict[str, Any] | None) -> None:
        """Begin where the comparison file says, or set `refusal`.

        `head` is that of the saved checkpoint, if there is one, which has decided the start. The head of a
        reset decides only what it contains: maybe the place where this shard begins.
        """
        anew: dict[str, Any] = {}
        if head is not None and head.get("anew"):
            anew, head = head, None
            self.situation.started_at = datetime.fromisoformat(anew["started_at"])
        source = self._source
        positions, refusal = bounded(topics, source.bound()), None
        try:
            if head is None and self._opening is not None:
                positions = self._opening.positions(topics)
                self._hand_over(self._opening)
            elif head is None:
                positions = positions_of(self._spec, topics, source.begins_ms, source.bound())
        except Unsafe as reason:
            refusal = str(reason)
        indivisible = self._indivisible(topics)
        self.refusal = indivisible or ((self._unfit(topics) or refusal) if head is None else None)
        self._placed_behind = list(map(Hole.of, anew.get("holes", ())))
        if place := anew.get("place"):
            positions = {side: dict(place[side]) for side in Side}
            if self._placed_behind:
                self.refusal, self._same_beginning = indivisible or self._unfit(topics), True
        self._starts = {side: self.own(positions[side]) for side in Side}
        self.intake.begin(self._starts)
        for side, topic in topics.items():
            self.comparison.checks.expect(side, len(topic.first))
        self.topics.begin(topics, anew.get("topics", ()))

    def unfit(self) -> str | None:
        """The reason why the topics, as they are now, cannot be compared at all. Raises SourceError."""
        return self._unfit(self._source.topics())

    def _unfit(self, topics: Mapping[Side, Topic]) -> str | None:
        """The reason why these topics cannot be compared at all."""
        return self.topics.refusal(topics) or unreliable(self._spec, self._source.control())

    def _hand_over(self, opening: Opening) -> None:
        """Take over the start at the input, now that it is found, and the control records up to it."""
        assert self.input_cut is not None, "the comparison file starts at the input"
        opening.hand_over(self.comparison, self.input_cut)
        self.control.restore(opening.control)

    def _indivisible(self, topics: Mapping[Side, Topic]) -> str | None:
        """The reason why these topics cannot be compared in so many shards, or as co-partitioned ones."""
        counts = (len(topics[Side.LEFT].first), len(topics[Side.RIGHT].first))
        return unfit(self._spec, self._shard, counts)

    def recall(self, topics: Mapping[Side, Topic], past: Past | None, sequence: int | None) -> None:
        """Begin without a checkpoint: as usual, or by rereading what Kafka's marks show as compared.

        `sequence` is that of the reset that the store holds.
        """
        is_new = sequence is not None and past is not None and past.account.sequence <= sequence
        if past is None or self._is_of_another_beginning(past) or is_new:
            for hole in self._placed_behind:
                self.comparison.hole(hole)
            return
        self.refusal = self._indivisible(topics) or self._unfit(topics)
        self._starts, holes = resumed(past, topics)
        self._starts = {side: self.own(self._starts[side]) for side in Side}
        if self._opening is not None:
            try:
                self._starts = self._opening.positions(topics, self._starts)
            except Unsafe as reason:
                self.refusal = self.refusal or str(reason)
                return
            self._hand_over(self._opening)
        self.intake.begin(self._starts)
        self._same_beginning = True
        self.situation.started_at = past.account.run
        self._rereading = Rereading(past.reached, past.account.verdict)
        self.situation.rereading = self._rereading.sentence(self.intake.positions)
        log.warning("the stored state is gone: reading everything again", comparison=self._spec.name)
        for hole in holes:
            if hole.partition is None or self.reads(hole.partition):
                self.comparison.hole(hole)

    def _is_of_another_beginning(self, past: Past) -> bool:
        """Whether a reset lies between Kafka's marks and the stored state; a lost one is a hole.

        The last reset may have the number of one that was lost; then the time of it differs: the later one is
        that by which the comparison began last.
        """
        noted, resets = past.account, self._resets
        begun = resets.records[-1].at if resets.records else noted.run
        if (noted.resets, noted.run) > (resets.made, begun):
            self.comparison.hole(Hole(f"a reset was lost, since {LOST} in part: reset it again"))
        return (noted.resets, noted.run) != (resets.made, begun)

    def recall_rest(self, past: Past | None) -> None:
        """Reread if the stored state is older than Kafka's marks: no pass before it has come as far."""
        if past is None or self._is_of_another_beginning(past):
            return
        for hole in forgotten(past, len(self.comparison.holes)):
            self.comparison.hole(hole)
        if self.comparison.diverged:
            return
        rereading = Rereading(past.reached, past.account.verdict).joined(self._rereading)
        self.situation.rereading = rereading.sentence(self.intake.positions)
        if self.situation.rereading is not None or rereading.missing(diverged=False):
            self._rereading = rereading
            log.warning("the stored state is old: reading the rest again", comparison=self._spec.name)

    def own(self, offsets: Mapping[int, int]) -> dict[int, int]:
        """The offsets of the partitions that this shard reads."""
        return {partition: offset for partition, offset in offsets.items() if self.reads(partition)}

    def reads(self, partition: int) -> bool:
        """Whether this shard reads a partition."""
        return self._shard.has(partition)

    def begun(self) -> bool:
        """Whether the start is found; records read before that are not saved, but reread after a crash."""
        return self.refusal is None and self.intake.waiting is None

    def same_start(self, side: Side, items: Collection[Item]) -> bool:
        """Whether the first records of a side may be taken: they begin at the time of the other side.

        Where a partition begins is noted once, since Kafka may delete the beginning. Records that are read
        tell it, if they are the first ones: others may be behind an aborted record, or one of another shard.
        Then Kafka is asked. Raises SourceError.
        """
        if self._same_beginning:
            return True
        batches = [item for item in items if isinstance(item, Batch)]
        if not batches:
            self._foresee(side, items)
            return True
        began = self._began_ms[side]
        for item in batches:
            if item.offsets[0] == self._starts[side].get(item.partition):
                began.setdefault(item.partition, item.timestamps_ms[0])
        if not self.intake.newest_ms[side.other] and all(item.partition in began for item in batches):
            return True
        self._note_beginnings()
        for item in batches:  # Else Kafka has deleted the beginning by now.
            self._began_ms[side].setdefault(item.partition, item.timestamps_ms[0])
        if not self._began_ms[side.other]:
            return True
        reason = apart(self._spec, self._began_ms)
        self._same_beginning = reason is None
        self.refusal = self.refusal or reason
        return self._same_beginning

    def _foresee(self, side: Side, items: Iterable[Item]) -> None:
        """Note when the topics begin, while only other shards have records of a side.

        By the first record of this shard Kafka may have deleted a beginning.
        """
        of_others = (item for item in items if isinstance(item, Passed) and item.newest_ms is not None)
        if any(item.partition not in self._began_ms[side] for item in of_others):
            with suppress(SourceError):  # The next item asks again.
                self._note_beginnings()

    def _note_beginnings(self) -> None:
        for side, begins in self._source.begins_ms().items():
            self._began_ms[side] = {**begins, **self._began_ms[side]}

    def unsafe(self) -> str | None:
        """The reason why there is no safe start, as the records read so far show."""
        if self.intake.cut is not None and self.intake.cut.refused is not None:
            self.refusal = self.intake.cut.refused
        return self.refusal

    # -- after the start -----------------------------------------------------------------------------------

    def watch(self, topics: Mapping[Side, Topic]) -> None:
        """Look at the topics before any new record of them is read."""
        self._log(self.topic_monitor.begin(topics, self.intake.positions, self.control.heard))

    def look_at_topics(self) -> bool:
        """Note the changes of the topics themselves as of the last look; returns whether there are any."""
        changes = self.topic_monitor.take(self.control.heard)
        self._log(changes)
        for change in changes:
            self._read_added(change)
        return bool(changes)

    def _log(self, changes: Iterable[Hole]) -> None:
        for change in changes:
            log.warning("a topic has changed", comparison=self._spec.name, reason=told(change, self._spec))

    def _read_added(self, change: Hole) -> None:
        """Also read a partition that was added: the other side may have the partners of its events."""
        side, partition, offset = change.side, change.partition, change.offset
        if side is None or partition is None or offset is None or not self.reads(partition):
            return
        if partition not in self.intake.positions[side]:
            self._source.extend(side, partition, offset)
            self.intake.positions[side][partition] = offset

    def hear_versions(self) -> bool:
        """Take the new control records of both versions; returns whether there are any."""
        heard = False
        while said := self._source.said():
            for entry in said:
                if self.control.begins_anew(entry):
                    self.topics.forget_said()
                self.control.take((entry,), self._source.control())
            heard = True
        return heard

    def troubles(self) -> list[str]:
        """Sentences about faults of the topics themselves, and of the control topic and its records."""
        control = self._source.control()
        found = (self.control.trouble, missing(self._spec, control), unreliable(self._spec, control))
        return [*filter(None, found), *self.topics.missing]

    def _note_said(self, side: Side, fact: Finished) -> None:
        if self.topics.is_of_another(side, fact, id_of(self._source.control())):
            return
        if self._is_earlier(side, fact):
            self.comparison.note_earlier(side, fact)
        else:
            self.comparison.note_finished(side, fact)
        reason = None if self.input_cut is None else self.input_cut.hear(side, fact)
        if reason is not None:
            self.comparison.hole(Hole(reason, side))

    def _is_earlier(self, side: Side, fact: Finished) -> bool:
        """Whether all output up to the end of a batch lies before the start."""
        starts, written = self._starts[side], self.own(fact.written or {})
        return any(starts.values()) and all(end <= starts.get(of, 0) for of, end in written.items())

    def read_again(self) -> bool:
        """Report the progress of rereading after a lost state; at its end note what was not found again.

        Returns whether rereading has just ended.
        """
        if self._rereading is None:
            return False
        self.situation.rereading = self._rereading.sentence(self.intake.positions)
        if self.situation.rereading is not None:
            return False
        missing = self._rereading.missing(diverged=self.comparison.diverged)
        if missing is not None:
            now = self._clock.monotonic()
            self._awaited_until = self._awaited_until or now + self._proof_seconds()
            if now < self._awaited_until:
                self.situation.rereading = AWAITED
                return False
            self.comparison.hole(missing)
        self._rereading = None
        return True

    def _proof_seconds(self) -> float:
        """How long it takes to prove a difference by time when all of it has been read."""
        overdue = self._spec.overdue
        return overdue.after.total_seconds() + SURVEY_SECONDS if overdue.proves else 0.0

    def marks(self, sequence: int, verdict: Verdict) -> Marks | None:
        """The marks of a checkpoint for Kafka; None while rereading, since the marks there are further."""
        if self._rereading is not None:
            return None
        begun, holes, resets = self.situation.started_at, len(self.comparison.holes), self._resets
        account = Backup(
            version=1,
            digest=self._digest,
            run=begun,
            sequence=sequence,
            verdict=verdict,
            holes=holes,
            resets=resets.made,
            begins=resets.noted,
        )
        return marks_of(self._starts, self.intake.positions, self.topics.ids(), account)

    def ground(self) -> ResetState | None:
        """The state of the run that a reset needs, once it has begun."""
        if not self.begun():
            return None
        return ResetState(self._spec, self.comparison, self.intake.positions, self.reporter.holes_seen)

    def told(self, made_at: float) -> ComparisonStatus | ShardStatus:
        """The status to publish; `made_at` is the current time on the monotonic clock."""
        if self._shard.whole:
            return self.reporter.glance(self.situation, made_at)
        return self.reporter.part(self.situation, made_at, self._mask.secret_for("shards"))

    def ended(self) -> Ended:
        """The final state of the run, for the record of the reset that ends it."""
        return self.reporter.ended(self.situation)

    # -- state ---------------------------------------------------------------------------------------------

    def beginning(self, resets: Resets, started_at: str) -> dict[str, Any]:
        """The head of the checkpoint with which the last of these resets ends this run."""
        return {**resets.beginning(self._digest, started_at, self.topics.state()), **self._came_after()}

    def _came_after(self) -> dict[str, Any]:
        """`after_other` as a member of a head, if there is one."""
        return {} if self.after_other is None else {"after_other": self.after_other}

    def state(self) -> dict[str, Any]:
        """The small state of the run, without that of the comparison."""
        intake, reporter = self.intake, self.reporter
        return {
            "spec_digest": self._digest,
            "started_at": self.situation.started_at.isoformat(),
            "verdict_since": None if reporter.since is None else reporter.since.isoformat(),
            "verdict": reporter.verdict.value,
            "matched": self.comparison.matched,
            "divergences": self.ended().divergences,
            "accounts": [dict(vars(account)) for account in self.comparison.ledger.accounts],
            "positions": [pairs_of(intake.positions[side]) for side in Side],
            "newest_ms": [pairs_of(intake.newest_ms[side]) for side in Side],
            "stamps": [[*of, at.advanced_ms(self._clock.monotonic())] for of, at in intake.stamps.items()],
            "first_ms": intake.first_ms,
            "begun": [sorted(intake.begun[side]) for side in Side],
            "same_beginning": self._same_beginning,
            "began_ms": [pairs_of(self._began_ms[side]) for side in Side],
            "topics": self.topics.state(),
            "starts": [pairs_of(self._starts[side]) for side in Side],
            "compared_from": [pairs_of(intake.compared_from[side]) for side in Side],
            "rereading": None if self._rereading is None else self._rereading.state(),
            **self.control.state(),
            "resets_before": self.resets_before,
            **self._came_after(),
            "start": None if intake.cut is None else intake.cut.state(),
            **self._resets.state(),
            "max_unmatched": intake.max_unmatched,
            "undecodable": [list(record) for record in intake.undecodable],
            "hole_times": [seen.when.isoformat() for seen in reporter.holes_seen],
            "seen": intake.seen.state(),
        }

    def restore(
        self, state: dict[str, Any], comparison: dict[str, Any], saved_at: float | None, *, timed: bool
    ) -> None:
        """Take over a `state`, and the merged snapshots of the comparison. Raises KeyError.

        `saved_at`: the time of this clock at which they were saved, None if it is not known. `timed`: whether
        the times of the events are of this clock, too.
        """
        intake, reporter, now = self.intake, self.reporter, self._clock.monotonic()
        restore(self.comparison, comparison, self._codec.form_again, now, timed=timed)
        stamps, read_at = state.get("stamps", ()), now if saved_at is None else saved_at
        intake.stamps = {(Side(side), p): OldestStamp(oldest_ms, read_at) for side, p, oldest_ms in stamps}
        for side in Side:
            intake.positions[side].update(dict(state["positions"][side]))
            intake.newest_ms[side] = dict(state["newest_ms"][side])
        intake.first_ms, intake.max_unmatched = state["first_ms"], state["max_unmatched"]
        self.topics.restore(state["topics"])
        self._starts = {side: dict(state["starts"][side]) for side in Side}
        intake.compared_from = {side: dict(state["compared_from"][side]) for side in Side}
        if state["rereading"]:
            self._rereading = Rereading.of(state["rereading"])
            self.situation.rereading = self._rereading.sentence(intake.positions)
        self.control.restore(state)
        self.resets_before = state.get("resets_before", 0)
        intake.seen.restore(state["seen"])
        intake.undecodable.extend(Undecodable(Side(row[0]), *row[1:]) for row in state["undecodable"])
        self.situation.started_at = datetime.fromisoformat(state["started_at"])
        reporter.resume(state["verdict"], state["verdict_since"], state["hole_times"])
        known = state.get("same_beginning", all(intake.newest_ms.values()))
        self._same_beginning = self._same_beginning or known
        self._began_ms = {side: dict(state.get("began_ms", ((), ()))[side]) for side in Side}
        intake.resume(state["start"], state.get("begun"))
        self.situation.saved = Saved.of(self.comparison)
