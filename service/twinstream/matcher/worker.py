"""The matcher: one loop on one thread that owns its source, its state and its store.

    acquire the lease → load the checkpoint → assign positions → loop:
        poll the side that is behind → take its records → review; every second a beat:
            survey → checkpoint → publish

The loop waits for nothing but records, and for those only a few milliseconds. Without Kafka or Redis it is
*degraded*, not dead: it goes on, reports since when, and recovers by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog

from twinstream.checkpoints import format as checkpoint
from twinstream.checkpoints.writer import CheckpointWriter
from twinstream.core.arrivals.sharding import WHOLE, Shard
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.state.merge import merged
from twinstream.core.state.restore import of_this_version
from twinstream.errors import (
    CheckpointError,
    Divided,
    MovedAway,
    NoTopic,
    Replaced,
    SourceError,
    StoreError,
    Unready,
)
from twinstream.explain.divergence import NAMES
from twinstream.explain.masking import fresh_secret
from twinstream.grouping.found import TimesFound
from twinstream.grouping.groups import Groups
from twinstream.intake.backpressure import POLL_SECONDS
from twinstream.intake.clock_skew import ClockSkew
from twinstream.intake.falls import Caution, Trail
from twinstream.intake.intake import Intake
from twinstream.matcher.comparison_run import ComparisonRun
from twinstream.matcher.memory import FreedMemory, watch_memory
from twinstream.matcher.other_file import OtherFile
from twinstream.matcher.reader import Reader
from twinstream.matcher.reset_commit import ResetCommit
from twinstream.matcher.saved_heads import SavedHeads, difference_in
from twinstream.matcher.schedule import SaveSchedule
from twinstream.matcher.settlement import CLOCK, Settlement, reading_of, saved_at
from twinstream.matcher.shard_resets import ShardResets
from twinstream.matcher.stalled import silences, waits_in_vain
from twinstream.ports import (
    CheckpointStore,
    Clock,
    Item,
    OwnersRelay,
    Publisher,
    Recall,
    Source,
    Stored,
)
from twinstream.processes.remote_status import FOREIGN
from twinstream.processes.shards import ShardStore
from twinstream.processes.standby import Bulletin, OwnersWord, standing_by
from twinstream.reporting.divergences import Reports
from twinstream.reporting.record_refetch import explainer_of, nothing
from twinstream.reporting.secrecy import Secrecy
from twinstream.reporting.unmatched_sample import UnmatchedSampler
from twinstream.spec.codec.digests import codec_of
from twinstream.spec.file.model import Spec
from twinstream.spec.load import digest
from twinstream.starting.input_start import Opening
from twinstream.starting.offset_backup import LOST, moved_marks, moved_to, past_of
from twinstream.starting.reset_model import Resets
from twinstream.status.comparison import ComparisonStatus, Dependency, FoundOverTime, ShardStatus

BEAT_SECONDS = 1.0
RETRY_SECONDS = 1.0
NOTE_SECONDS = 3600.0
"""Until Kafka is told again where a comparison was moved: after days it forgets what a group committed."""

STANDBY = "another process owns this comparison; this one stands by"
TAKING_OVER = "the process that owned this comparison has ended, and this one takes it over"

log = structlog.get_logger()


@dataclass(frozen=True)
class Ports:
    """The ports of a worker: each is an interface with a real implementation and a fake.

    `mask_secret` is called once the worker owns the comparison, and may raise StoreError. `recall` reads
    records again, where none are held. `shards` are the other workers of the comparison. `opening` finds a
    start at the input. `clock_name` names the clock where a later process may have the same one, which then
    knows how old the records are. Where the worker `keeps_times`, it goes on with those of its surveys and
    events, too: see `Settlement.state`.
    """

    source: Source
    store: CheckpointStore
    relay: OwnersRelay
    publisher: Publisher
    clock: Clock
    mask_secret: Callable[[], bytes] = fresh_secret
    recall: Recall = nothing
    shards: ShardStore | None = None
    opening: Callable[[Spec, Source], Opening] = Opening
    clock_name: str | None = None
    keeps_times: bool = False


class Worker:
    """The matcher of one comparison. Call `run`, or `start` once and `step` in a loop.

    Constructing it opens no connection. `where` names its process, for people who look for the owner.
    """

    def __init__(
        self, spec: Spec, ports: Ports, shard: Shard = WHOLE, caution: Caution | None = None, where: str = ""
    ) -> None:
        self._shard, self._shards = shard, ports.shards
        self._caution = caution or Caution(Trail())
        self._spec, self._digest = spec, digest(spec)
        self._source, self._store, self._relay = ports.source, ports.store, ports.relay
        self._where = where
        publisher, clock = self._publisher, self._clock = ports.publisher, ports.clock
        self._codec = codec_of(spec)
        self._resets, self._find_opening = Resets(), ports.opening
        self._opening = self._new_opening()
        self._secrecy = Secrecy(spec, self._codec, ports.mask_secret)
        self._owners_word = OwnersWord(
            self._digest, ports.relay, ports.store, publisher, clock, standing_by, self._topic_ids
        )
        self._clock_skew = ClockSkew(clock)
        self._heads = SavedHeads(spec.name, self._digest, None if shard.whole else ports.shards)
        self._reset_commit = ResetCommit(spec, ports.source, ports.relay, clock, shard, self._heads.read)
        self._shard_resets = ShardResets(spec, ports.source, shard, ports.shards, clock)
        explainer = explainer_of(spec, self._codec, self._secrecy.mask, ports.recall, clock)
        self._reports = Reports(spec, explainer, publisher, clock)
        self._sampler = UnmatchedSampler(spec.name, explainer, publisher)
        self._clock_name, timed = ports.clock_name, ports.keeps_times and ports.clock_name is not None
        self._surveys_clock = ports.clock_name if timed else None
        self._writer = CheckpointWriter(spec.name, ports.store, self._reports, clock, timed=timed)
        self._other_file = OtherFile(spec.name, self._digest, self._writer, clock)
        self._run = self._new_run()
        self._freed = FreedMemory()
        self._owns = False
        self._next_beat = self._next_note = 0.0

    def _new_run(self) -> ComparisonRun:
        run = ComparisonRun(
            self._spec,
            self._codec,
            self._source,
            self._clock,
            self._shard,
            self._opening,
            self._resets,
            self._secrecy.mask,
        )
        run.comparison.partnerless.pause = self._keep_lease
        self._reader = Reader(run, self._source, self._clock, self._caution)
        self._settlement = Settlement(run, self._source, self._clock, self._clock_skew)
        self._schedule = SaveSchedule(run, self._source, self._writer, self._clock, self._head)
        return run

    def _new_opening(self) -> Opening | None:
        spec = self._resets.applied_to(self._spec)
        return self._find_opening(spec, self._source) if spec.start.at == "input" else None

    @property
    def comparison(self) -> Comparison:
        """The comparison of the current run."""
        return self._run.comparison

    @property
    def intake(self) -> Intake:
        """The intake that feeds the comparison."""
        return self._run.intake

    # -- life ----------------------------------------------------------------------------------------------

    def run(self, stopping: Callable[[float], bool]) -> bool:
        """Work until `stopping(seconds)`, which may wait that long, returns True. Raises Fenced.

        Returns whether another worker has to go on, since the comparison was reset, by this one or another
        shard.
        """
        try:
            return self._work(stopping)
        except Replaced as reason:
            log.info("leaves its state", comparison=self._spec.name, reason=str(reason))
            self._leave(self._resets)
            self._close()
            return True

    def _work(self, stopping: Callable[[float], bool]) -> bool:
        while not self.start():
            if stopping(RETRY_SECONDS):
                return False
            if self.begin_anew():
                return True
        while not stopping(0.0 if self._reader.goes_on else POLL_SECONDS):
            self.step()
            if self.begin_anew():
                return True
        self.stop()
        return False

    def start(self) -> bool:
        """Try to own the comparison and to find its positions; if False, publish why, to try again later.

        Raises CheckpointError if the stored state cannot be read.
        """
        try:
            self._owns, self._heads.divided = self._store.acquire(), None
            if not self._owns:
                return self._stand_by()
            self._secrecy.take()
            self._clock_skew.ask(self._relay)
            if self._owners_word.end():
                self._wait_for(TAKING_OVER)  # Loading takes time, and the relayed status is no longer valid.
            self._resume(self._store.load())
            self._shard_resets.look(self._resets)
            self._shard_resets.follow(self._run, self._writer)
        except (CheckpointError, Replaced):
            raise
        except MovedAway as state:
            return self._turn_away(state)
        except Divided as state:
            return self._wait_for_number(state)
        except SourceError as error:
            away: Dependency | None = None if isinstance(error, NoTopic) else "kafka"
            return self._try_again(str(error), away)
        except StoreError as error:
            return self._try_again(str(error), "redis")
        if reason := self._run.refusal:
            return self._wait_for(reason)
        self._run.situation.waiting_for, self._run.situation.standby = None, False
        self._source.assign(self.intake.positions)
        if self._spec.followed is not None:
            self._source.follow(self._run.control.position)
        log.info("started", comparison=self._spec.name, positions=_by_name(self.intake.positions))
        return True

    def step(self) -> None:
        """Do one round: read, match, and beat when it is due. Raises Fenced."""
        self._round()
        if not self._writer.trouble:
            self._shard_resets.follow(self._run, self._writer)

    def feed(self, side: Side, items: Iterable[Item]) -> None:
        """Take items of a side that were read elsewhere, in place of `step`; call `settle` after them.

        Raises SourceError if they cannot be taken now, since they need something that is not there yet. They
        are kept: to try them again, feed the side nothing.
        """
        self._schedule.dirty = True
        if self._run.refusal is None:
            taken = self._reader.take(side, items)
            if reason := self._run.unsafe():
                self._wait_for(reason)
            elif not taken and (lacking := self._reader.lacking.get(side)):
                raise SourceError(lacking)
        self.comparison.review()

    @property
    def refusal(self) -> str | None:
        """Why there is no safe start: nothing is compared."""
        return self._run.refusal

    @property
    def waits_for(self) -> str:
        """The reason for which it has not started."""
        return self._run.situation.waiting_for or ""

    def refuse(self, reason: str) -> None:
        """Compare nothing from now on, for the reason that a worker before has found."""
        self._run.refusal = reason
        self._wait_for(reason)

    def settle(self) -> None:
        """Review, survey, save and publish everything that was fed. Raises Fenced."""
        self.comparison.catch_up()
        while self.comparison.review():
            self._schedule.dirty = True
        self._schedule.hasten()
        self.beat()

    def _round(self) -> None:
        if self._run.refusal is None:
            self._read()
        self._schedule.dirty |= self.comparison.review()
        if self.comparison.diverged and not self.comparison.proven.for_sure:
            self._run.topic_monitor.ask()
            self._look_at_topics()
        if self._clock.monotonic() >= self._next_beat or (
            self._schedule.newly_diverged() and not self._writer.trouble
        ):
            self.beat()

    def _read(self) -> None:
        self._schedule.dirty |= self._reader.read()
        if reason := self._run.unsafe():
            self._wait_for(reason)

    def stop(self) -> None:
        """Checkpoint, publish and release the lease; a store that cannot be reached is left alone."""
        self._schedule.hasten()
        try:
            self.beat()
            self._store.release()
        except StoreError as error:
            log.warning("stopped without a checkpoint", comparison=self._spec.name, reason=str(error))
        self._close()

    def _close(self) -> None:
        for port in (self._store, self._relay, self._source):
            port.close()

    # -- resets --------------------------------------------------------------------------------------------

    def begin_anew(self) -> bool:
        """Reset the comparison, if this is the owner, and a reset is requested and possible by now.

        Returns True if it took effect: this worker is done, and a new one finds the new start in the
        store. Raises StoreError if nobody knows whether it took effect.
        """
        if self._owns:
            self._reset_commit.look()
        made = self._reset_commit.take(self._run, self._resets, self._writer)
        if made is None:
            return False
        self._leave(made)
        record = made.records[-1]
        self._publisher.publish(record)  # Last, so that its receivers find no earlier status.
        self._reset_commit.answer(record)
        self._close()
        return True

    def _leave(self, resets: Resets) -> None:
        """End this worker: nothing that it published is valid any more."""
        self._resets = resets
        self._forget()
        self._wait_for("it begins anew")

    def _forget(self) -> None:
        """Know nothing of the comparison, as before it was loaded."""
        self._reports.resume({}, {}, {})
        self._run = self._new_run()

    def _stand_by(self) -> bool:
        """Show the owner's status, else why there is none; returns False."""
        if self._owners_word.pass_on():
            return False
        return self._wait_for(FOREIGN if self._owners_word.foreign else STANDBY, standby=True)

    def _topic_ids(self) -> tuple[str, ...] | None:
        """The ids of both topics as Kafka says now: none where one is not there, None if it says nothing."""
        try:
            topics = self._source.topics()
        except NoTopic:
            return ()
        except SourceError:
            return None
        return tuple(topics[side].id for side in Side)

    def _turn_away(self, state: MovedAway) -> bool:
        """Leave the comparison to the Spark job that has it; returns False."""
        self._reset_commit.turn_down(str(state))  # While the lease runs: nobody else may take a request.
        self._note_move(state.place)
        self._owns = False
        with suppress(StoreError):
            self._store.release()  # For the move that brings it back.
        return self._wait_for(str(state))

    def _note_move(self, place: str) -> None:
        """Have Kafka know of the move, too, for a store that comes back empty; best effort, now and then."""
        if self._clock.monotonic() < self._next_note:
            return
        with suppress(SourceError):
            self._source.remember(moved_marks(self._source.remembered(), place))
            self._next_note = self._clock.monotonic() + NOTE_SECONDS

    def _wait_for_number(self, state: Divided) -> bool:
        """Wait for a reset, since the state is that of another number of shards; returns False."""
        self._owns = True
        try:
            ours = self._heads.of(state)
        except MovedAway as moved:
            return self._turn_away(moved)
        if self._shards is not None and not any(ours):
            return self._replace_other_file(self._shards, state)
        self._resets = max(map(Resets.of, ours), key=lambda resets: resets.made, default=Resets())
        self._run = self._new_run()
        self._run.refusal = reason = f"{self._lost_number() or state}{difference_in(ours)}"
        return self._wait_for(reason)

    def _lost_number(self) -> str | None:
        """The reason to wait where the store has lost the reset to this number of shards."""
        with suppress(SourceError):
            past = past_of(self._source.remembered(), self._digest)
            if past is not None and past.account.resets > self._resets.made:
                return f"a reset to --shards {self._shard.of} was lost, since {LOST} in part: reset it again"
        return None

    def _replace_other_file(self, shards: ShardStore, state: Divided) -> bool:
        """Drop the state of another number of shards, and another file; returns False.

        The first shard does it, once no process works on that state; the others wait.
        """
        try:
            if self._shard.number == 0:
                shards.check_idle(state.found)
                if not self._other_file.give_way(state.heads, self._source.remembered()):
                    shards.forget(state.found)
        except SourceError as error:
            return self._wait_for(str(error), unreachable="kafka")
        except StoreError as error:
            return self._wait_for(str(error), standby=isinstance(error, Unready))
        self._heads.divided = None
        return self._wait_for("it begins anew")

    def _try_again(self, reason: str, away: Dependency | None) -> bool:
        """Publish why it cannot start now; returns False.

        What was loaded says nothing any more: a reset may take effect before it is loaded again.
        """
        self._forget()
        return self._wait_for(reason, unreachable=away)

    def _wait_for(self, reason: str, *, unreachable: Dependency | None = None, standby: bool = False) -> bool:
        """Publish the reason why there is no start yet; returns False."""
        situation = self._run.situation
        situation.standby, situation.waiting_for, situation.troubles = standby, reason, [reason]
        situation.unreachable = [unreachable] if unreachable else []
        self._tell()
        return False

    # -- the beat ------------------------------------------------------------------------------------------

    def beat(self) -> None:
        """Once a second: checkpoint if it is due, else keep the lease; then publish. Raises Fenced."""
        self._next_beat = self._clock.monotonic() + BEAT_SECONDS
        self._look_at_topics()
        self.hear()
        self.comparison.catch_up()
        if self._schedule.due():
            self._schedule.save(self._survey)
        if not self._writer.trouble:
            self._shard_resets.look(self._resets)
        self._run.topic_monitor.ask()
        self._look_at_topics()
        self._reports.show(self.comparison.provisional())
        self._tell()

    def hear(self) -> None:
        """Take the new control records of both versions, if anything depends on them."""
        if self._spec.followed is not None:
            self._schedule.dirty |= self._run.hear_versions()

    def _tell(self) -> None:
        """Publish the status, and tell it to other processes, with the time before it was made."""
        tells = self._owns and not self._writer.trouble
        stamp = self._clock_skew.ask(self._relay) if tells else None
        said = self._publish_status()
        if stamp is not None:
            topics = tuple(name for _, name in sorted(self._run.topics.ids().items()))
            place = {"owner": self._where, "topics": topics}
            told = {"stamp": stamp, "number": self._clock.monotonic(), **place}
            provisional = self._reports.provisional.values()
            bulletin = Bulletin.of(said, provisional, self._sampler.shown, **told)
            self._relay.tell(bulletin.model_dump_json().encode())

    def _look_at_topics(self) -> None:
        """Note the changes of the topics themselves, and the input vouched for, as of the last look."""
        self._schedule.dirty |= self._run.look_at_topics()
        self._settlement.vouch()

    def _survey(self) -> None:
        """Survey the unmatched events, and report the differences found since the last survey."""
        if self._run.refusal is not None:  # Some records read were left out, so the events prove nothing.
            return
        watch_memory(self.comparison, self._caution.memory_limit_bytes)
        self._settlement.take()
        # Before more is read: scopes that both sides have passed may close.
        self._schedule.dirty |= self.comparison.review()
        self._freed.look(self.comparison, self._run.intake.seen)
        self._sampler.show(self.comparison, self._settlement.at_end)
        self._report_closed()
        self._reports.add_explained(self.comparison.differences.known.take_examples())
        self._schedule.dirty |= self._run.read_again()

    def _report_closed(self) -> None:
        """Report the differences of scopes that have closed, and those that turned out to decide nothing."""
        closed, tainted = self.comparison.take_closed(), self.comparison.take_tainted()
        self._reports.add(closed, tainted, self._keep_lease)

    def _keep_lease(self) -> None:
        """Prolong the lease within a long survey: a standby takes over only from a process that hangs."""
        if self._writer.may_try():
            self._writer.renewed()

    def _publish_status(self) -> ComparisonStatus | ShardStatus:
        situation = self._run.situation
        self._report_closed()
        situation.groups, situation.found = self._reports.groups, self._reports.found
        situation.provisional_groups = self._reports.provisional_groups(self.comparison.provisional())
        situation.heard_ends = self._source.ends()  # They give the lag, and surveys are far between.
        if situation.waiting_for is None:
            away: dict[Dependency, str | None] = {
                "kafka": self._source.trouble(),
                "redis": self._writer.trouble,
            }
            situation.unreachable = [name for name, trouble in away.items() if trouble]
            lacking = dict.fromkeys(self._reader.lacking.values())
            troubles = (*away.values(), *lacking, self._clock_skew.trouble(), *self._run.troubles())
            silent = silences(self._run)
            in_vain = waits_in_vain(self._run)
            situation.stalled = [one.side for one in silent if one.stalled]
            situation.troubles = [*filter(None, troubles), *(one.sentence for one in silent), *in_vain]
        situation.unsaved_divergence = self.comparison.diverged and not self._schedule.hold_divergence
        made_at = self._clock.monotonic()
        said = self._run.told(made_at)
        self._publisher.publish(said, made_at)
        return said

    # -- state ---------------------------------------------------------------------------------------------

    def _resume(self, stored: Stored) -> None:
        """Restore the saved state, or begin where the topics begin."""
        topics, marks = self._source.topics(), self._source.remembered()
        head = self._saved_head(stored)
        if place := moved_to(marks, stored.sequence, "" if head is None else head["started_at"]):
            raise MovedAway(place)
        if head is not None and head["spec_digest"] != self._digest:
            if not self._other_file.give_way([stored.head], marks):
                self._store.clear()
            self._resume(self._store.load())
            return
        after_other = self._shard_resets.after_other() if head is None else head.get("after_other")
        past = past_of(marks, self._digest, after_other)
        self._begin_at(Resets.of(head) if head is not None or past is None else past.resets(topics))
        run = self._run = self._new_run()
        run.begin(topics, head)
        run.after_other = after_other
        if head is None and past is None:
            run.resets_before = self._shard_resets.made()
        if head is None or head.get("anew"):
            run.recall(topics, past, None if head is None else stored.sequence)
            run.watch(topics)
            self._reports.resume({}, {}, {})
            if head is not None and run.refusal is None:
                self._schedule.remember()  # If the store loses the reset before it begins, Kafka knows of it.
            return
        base, *deltas = map(checkpoint.decode, stored.bodies)
        reading = reading_of(head, self._surveys_clock, self._clock)
        with of_this_version():
            at = saved_at(head, self._clock_name, self._clock)
            run.restore(head, merged(base, deltas), at, timed=reading is not None)
            first_seen, doubted = head["first_seen"], head["doubted"]
            groups, found = self._groups_of(head), _found_of(head)
        self._schedule.resume()
        run.recall_rest(past)
        self._reports.resume(stored.divergences, first_seen, doubted, groups, found)
        run.watch(topics)
        if reading is not None:
            with of_this_version():
                self._settlement.restore(reading, head["positions"])

    def _groups_of(self, head: Mapping[str, Any]) -> Groups:
        """The saved groups, of all saved differences; the state of an older version has only their number."""
        total = self.comparison.differences.found_by_kind.total()
        groups = Groups.of(head["groups"]) if "groups" in head else Groups(since=total)
        groups.skip_to(total)
        return groups

    def _begin_at(self, resets: Resets) -> None:
        """Begin the comparison at the start of the last reset, else at that of its file."""
        if resets.start != self._resets.start:
            self._resets = resets
            self._opening = self._new_opening()
        self._resets = resets

    def _head(self) -> dict[str, Any]:
        """The head of a checkpoint: the small state, without that of the comparison."""
        reports = self._reports.state(self.comparison.proven.doubted)
        reading = self._settlement.state(self._surveys_clock)
        saved = {CLOCK: [self._clock_name, self._clock.monotonic()]}
        return {**self._run.state(), **reports, **self._secrecy.state(), **saved, **reading}

    def _saved_head(self, stored: Stored) -> dict[str, Any] | None:
        """The head of the saved checkpoint, maybe of another file; None if there is none."""
        if stored.sequence is None:
            return None
        self._writer.adopt(stored.sequence)
        head = checkpoint.decode(stored.head)
        if "moved" in head:
            raise MovedAway(head["moved"]["place"])
        if head["spec_digest"] == self._digest:
            self._secrecy.check(head)
        return head


def _found_of(head: Mapping[str, Any]) -> TimesFound:
    """When the saved differences were found; the state of an older version does not know it."""
    return TimesFound([FoundOverTime(**head["found"])] if "found" in head else ())


def _by_name(positions: Mapping[Side, Mapping[int, int]]) -> dict[str, dict[int, int]]:
    return {NAMES[side]: dict(offsets) for side, offsets in positions.items()}
