"""Bugs planted around the product, which the simulation must find."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from tests.simulation.plant import Altered, Plant
from tests.simulation.planted_in_core import CRASHES, IN_CORE
from tests.simulation.run import Failure, simulate
from tests.simulation.server import Alter
from twinstream.adapters.redis import scripts as redis_scripts
from twinstream.adapters.redis.store import RedisStore
from twinstream.checkpoints.format import decode
from twinstream.core.arrivals.sharding import Shard
from twinstream.core.events import Side
from twinstream.errors import Fenced
from twinstream.intake.clock_skew import ClockSkew
from twinstream.intake.falls import Caution, Falls
from twinstream.intake.intake import Intake
from twinstream.matcher.worker import Ports
from twinstream.ports import Checkpoint, Gap, Stored
from twinstream.spec.file.model import Spec
from twinstream.starting.reset_model import PendingReset, Resets


class CommitsApart(Altered):
    """Positions are committed at each beat to a place of their own, and not with the state."""

    def after_start(self) -> None:
        for side, positions in self.memory:
            self.intake.positions[side].update(positions)
        self._source.assign(self.intake.positions)

    def beat(self) -> None:
        self.memory[:] = [(side, dict(self.intake.positions[side])) for side in Side]
        super().beat()


class ReadsTwice(Altered):
    """What the last save has taken in is read once more after a start: its answer counts, not its effect."""

    def after_start(self) -> None:
        again = {
            side: {partition: max(0, offset - 1) for partition, offset in self.intake.positions[side].items()}
            for side in Side
        }
        self._source.assign(again)


class FencesItself(RedisStore):
    """Whether this is the owner is asked before each write, and not with it."""

    def _step(self, *what: Any) -> bytes:
        if self._run(self._redis.get, self._keys[0]) not in (None, self._token.encode()):
            raise Fenced("another process has taken this comparison over")
        return super()._step(*what)


def _without(part: str, *others: str, instead: str = "") -> Alter:
    """Scripts without a part; of the others, if they are named, only those."""
    whole = [other.encode() for other in others]

    def alter(script: bytes) -> bytes:
        return script.replace(part.encode(), instead.encode()) if not whole or script in whole else script

    return alter


class SaysItBeforeItIsSaved(Altered):
    """A difference is announced at once."""

    def _publish_status(self) -> Any:
        self._schedule.hold_divergence = self.comparison.proven.for_sure
        return super()._publish_status()


class ReportsBeforeItSaves(Altered):
    """What a closed scope found is reported for good when it is found."""

    def _survey(self) -> None:
        super()._survey()
        unsaved = self._reports.unsaved
        self._reports.saved(set())
        self._reports.unsaved = unsaved


class TrustsTheTopics(Altered):
    """That a topic was created anew is not seen while it is read: it is as it was from the beginning."""

    def _look_at_topics(self) -> None:
        if topics := self._source.seen().topics:
            self._run.topics.begin(topics)
        super()._look_at_topics()


class TakesItsWord(Altered):
    """What a version says of its output holds at once, before that was read."""

    def after_start(self) -> None:
        if (progress := self.comparison.clocks.progress) is not None:
            read, ahead = progress.read, dict.fromkeys(range(3), 1 << 60)
            progress.read = lambda side, _: read(side, ahead)  # type: ignore[method-assign]


class ForgetsBatches(Altered):
    """What was written of a batch is not known any more after a start."""

    def after_start(self) -> None:
        for replays in self.comparison.retries or ():
            replays._queries.clear()


class ForgetsTheCut(Altered):
    """Where it begins by the times of events is not known any more after a start."""

    def after_start(self) -> None:
        if self._writer.sequence:
            self.intake.cut = None


class CountsOn(Altered):
    """A reset ends a comparison, but not its counters."""

    def begin_anew(self) -> bool:
        accounts = self.comparison.ledger.accounts
        if not super().begin_anew():
            return False
        self.memory.append(accounts)
        return True

    def after_start(self) -> None:
        for ended in self.memory:
            for account, before in zip(self.comparison.ledger.accounts, ended, strict=True):
                account.consumed += before.consumed
                account.ignored += before.consumed
        self.memory.clear()


def _begins(head: bytes) -> bool:
    """Whether a comparison begins with this checkpoint."""
    return bool(decode(head).get("anew"))


class StaysFull(Altered):
    """A reset ends a comparison, but not that it has reached its limit."""

    def begin_anew(self) -> bool:
        reached = [hole.reason for hole in self.comparison.holes if "was reached" in hole.reason]
        if not super().begin_anew():
            return False
        self.memory.extend(reached)
        return True

    def after_start(self) -> None:
        for reason in self.memory:
            self.comparison.overflow(reason.partition(" was reached")[0])
            self._tell()
        self.memory.clear()


class KeepsDivergences(Altered):
    """A reset ends a comparison, but not the divergences that it found."""

    def _resume(self, stored: Stored) -> None:
        super()._resume(stored)
        if stored.sequence is not None and _begins(stored.head):
            self._reports.resume(stored.divergences, {}, {})


class KeepsReports(RedisStore):
    """What a reset has ended keeps its reports in the store."""

    def save(self, checkpoint: Checkpoint) -> None:
        super().save(checkpoint._replace(anew=checkpoint.anew and not _begins(checkpoint.head)))


class ForgetsWhereItBegan(Altered):
    """Where a reset has begun is not known any more after a start."""

    def _begin_at(self, resets: Resets) -> None:
        super()._begin_at(resets._replace(start=None))


class TakesItTwice(Altered):
    """A reset that was asked for is made once more, since nobody looks whether it was."""

    def __init__(self, made: list[PendingReset], *ports: Any, **more: Any) -> None:
        super().__init__(made, *ports, **more)
        commit = self._reset_commit
        look = commit.look

        def look_again() -> None:
            look()
            records = {reset.id for reset in self._resets.records}
            if commit._wish is not None and commit._wish not in made:
                made.append(commit._wish)
            elif commit._wish is None and made and made[-1].request.id in records:
                commit._wish = made.pop()
                commit._known = lambda *_: None  # type: ignore[method-assign]

        commit.look = look_again  # type: ignore[method-assign]


class IsIncautious(Altered):
    """It is never told where those before it fell."""

    def __init__(self, memory: list[Any], spec: Spec, ports: Ports, shard: Shard, _: Caution) -> None:
        super().__init__(memory, spec, ports, shard)


def _leave_out_in_silence(intake: Intake, gap: Gap) -> None:
    """What matchers fell over is left out, and nothing says so."""
    if gap.left_out:
        intake.positions[gap.side][gap.partition] = gap.available
    else:
        _note_gap(intake, gap)


_note_gap = Intake._note_gap

ALL: dict[str, Plant] = {
    "commits_apart": Plant("consumed of|undisturbed", CommitsApart),
    "reads_twice": Plant("consumed of|says DIVERGED|two events at offset", ReadsTwice),
    "fences_itself": Plant(
        "took effect though|has no partner",
        store=FencesItself,
        alter=_without(redis_scripts._FENCE, instead="local owner = redis.call('GET', KEYS[1])\n"),
        storm={"pause_in_call": 0.12, "arrives_late": 0.12},
    ),
    "takes_whatever_comes": Plant(
        "late write|_restore", alter=_without(redis_scripts._GUARD), storm={"arrives_late": 0.12}
    ),
    "flips_without_a_look_at_the_sequence": Plant(
        "late write|_restore",
        alter=_without(redis_scripts._GUARD, redis_scripts.FLIP),
        storm={"arrives_late": 0.12},
    ),
    "flips_without_a_look_at_the_parts": Plant(
        "has lost .*, a part of checkpoint",
        alter=_without(redis_scripts._PRESENT, redis_scripts.FLIP, instead="local present = true\n"),
        storm={"store_falls_back": 2.0, "pause_in_call": 0.12},
    ),
    "says_it_before_it_is_saved": Plant("is in no checkpoint", SaysItBeforeItIsSaved),
    "reports_before_it_saves": Plant("for good, which the store does not hold", ReportsBeforeItSaves),
    "trusts_the_topics": Plant("is no hole|DIVERGED", TrustsTheTopics),
    "takes_its_word": Plant("says DIVERGED|undisturbed", TakesItsWord),
    "forgets_batches": Plant("says DIVERGED|undisturbed|a hole for nothing", ForgetsBatches, storm=CRASHES),
    # The clock of a host is never held against that of the store.
    "trusts_its_clock": Plant(
        "a pass though a clock is",
        storm={"wall_jump": 0.5},
        patched=(patch.object(ClockSkew, "trouble", lambda _: None),),
    ),
    "forgets_the_cut": Plant("says DIVERGED|undisturbed|a hole for nothing|has no partner", ForgetsTheCut),
    "leaves_out_in_silence": Plant(
        "consumed of|matchers fall over is no hole",
        patched=(patch.object(Intake, "_note_gap", _leave_out_in_silence),),
    ),
    # However often matchers fall over a batch, it is not left out.
    "falls_for_ever": Plant("not settled", patched=(patch.object(Falls, "fell_over", lambda *_: False),)),
    "counts_on": Plant("consumed of|undisturbed", CountsOn),
    "stays_full": Plant("was reached with", StaysFull),
    "keeps_reports": Plant("places: .*undisturbed", KeepsDivergences, store=KeepsReports),
    "forgets_where_it_began": Plant("consumed of|undisturbed|takes DIVERGED back", ForgetsWhereItBegan),
    "takes_it_twice": Plant("more often than was asked for|though that was refused", TakesItTwice),
    "is_incautious": Plant("processes own a part|is no hole|nothing is said", IsIncautious),
    **IN_CORE,
}


def find(name: str, seed: int) -> Failure | None:
    """What a run says of a planted bug."""
    return simulate(seed, ALL[name])
