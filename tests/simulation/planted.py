"""Bugs planted around the product, which the simulation must find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

from tests.simulation.line import SimulatedShelf
from tests.simulation.planted_in_core import CRASHES, IN_CORE
from tests.simulation.run import Failure, simulate
from tests.simulation.server import Alter
from twinstream.adapters.redis import scripts as redis_scripts
from twinstream.adapters.redis.store import RedisStore
from twinstream.checkpoints.format import decode
from twinstream.core.accounts import Account
from twinstream.core.arrivals.sharding import Shard
from twinstream.core.events import Side
from twinstream.errors import Fenced
from twinstream.intake.falls import Caution, Falls
from twinstream.intake.intake import Intake
from twinstream.matcher.comparison_run import ComparisonRun
from twinstream.matcher.side_inputs import SideInputs
from twinstream.matcher.worker import Ports, Worker
from twinstream.ports import Checkpoint, Gap, Stored
from twinstream.spec.file.model import Spec
from twinstream.starting.reset_model import PendingReset, Resets


class CommitsApart(Worker):
    """Positions are committed at each beat to a place of their own, and not with the state."""

    def __init__(self, committed: dict[Side, dict[int, int]], *ports: Any, **more: Any) -> None:
        super().__init__(*ports, **more)
        self._committed, self._topics_read = committed, ports[1].source

    def start(self) -> bool:
        if not super().start():
            return False
        for side, positions in self._committed.items():
            self.intake.positions[side].update(positions)
        self._topics_read.assign(self.intake.positions)
        return True

    def beat(self) -> None:
        self._committed.update({side: dict(self.intake.positions[side]) for side in Side})
        super().beat()


class ReadsTwice(Worker):
    """What the last save has taken in is read once more after a start: its answer counts, not its effect."""

    def __init__(self, *ports: Any, **more: Any) -> None:
        super().__init__(*ports, **more)
        self._topics_read = ports[1].source

    def start(self) -> bool:
        if not super().start():
            return False
        again = {
            side: {partition: max(0, offset - 1) for partition, offset in self.intake.positions[side].items()}
            for side in Side
        }
        self._topics_read.assign(again)
        return True


class FencesItself(RedisStore):
    """Whether this is the owner is asked before each write, and not with it."""

    def _step(self, *what: Any) -> bytes:
        if self._run(self._redis.get, self._keys[0]) not in (None, self._token.encode()):
            raise Fenced("another process has taken this comparison over")
        return super()._step(*what)


class FencingShelf(SimulatedShelf):
    """Its stores fence themselves."""

    kind = FencesItself


LATE = {"arrives_late": 0.12}
TAKEN_OVER = {"pause_in_call": 0.12}
JUMPS = {"wall_jump": 0.5}
FALLS_BACK = {"store_falls_back": 2.0, "pause_in_call": 0.12}


def _without(part: str, *others: str, instead: str = "") -> Alter:
    """Scripts without a part; of the others, if they are named, only those."""
    whole = [other.encode() for other in others]

    def alter(script: bytes) -> bytes:
        return script.replace(part.encode(), instead.encode()) if not whole or script in whole else script

    return alter


class SaysItBeforeItIsSaved(Worker):
    """A difference is announced at once."""

    def _publish_status(self) -> Any:
        self._schedule.hold_divergence = self.comparison.diverged_for_sure
        return super()._publish_status()


class ReportsBeforeItSaves(Worker):
    """What a closed scope found is reported for good when it is found."""

    def _survey(self) -> None:
        super()._survey()
        unsaved = self._reports.unsaved
        self._reports.saved(set())
        self._reports.unsaved = unsaved


class HearsNoChange(SideInputs):
    """How the topics are is how they have been from the beginning."""

    def look_at_topics(self) -> bool:
        if topics := self._source.seen().topics:
            self._run.topics.begin(topics)
        return super().look_at_topics()


class TrustsTheTopics(Worker):
    """That a topic was created anew is not seen while it is read."""

    def _new_run(self) -> ComparisonRun:
        run = super()._new_run()
        self._side_inputs = HearsNoChange(self._spec, run, self._source, self._settlement, self._writer)
        return run


class TakesItsWord(Worker):
    """What a version says of its output holds at once, before that was read."""

    def start(self) -> bool:
        if not super().start():
            return False
        if (progress := self.comparison.clocks.progress) is not None:
            read, ahead = progress.read, dict.fromkeys(range(3), 1 << 60)
            progress.read = lambda side, _: read(side, ahead)  # type: ignore[method-assign]
        return True


class ForgetsBatches(Worker):
    """What was written of a batch is not known any more after a start."""

    def start(self) -> bool:
        if not super().start():
            return False
        for replays in self.comparison.retries.sides if self.comparison.retries else ():
            replays._queries.clear()
        return True


class TrustsItsClock(Worker):
    """The clock of its host is never held against that of the store."""

    def __init__(self, *ports: Any, **more: Any) -> None:
        super().__init__(*ports, **more)
        self._clock_skew.trouble = lambda: None  # type: ignore[method-assign]


class ForgetsTheCut(Worker):
    """Where it begins by the times of events is not known any more after a start."""

    def start(self) -> bool:
        if not super().start():
            return False
        if self._writer.sequence:
            self.intake.cut = None
        return True


class CountsOn(Worker):
    """A reset ends a comparison, but not its counters."""

    def __init__(self, ended: list[Sequence[Account]], *ports: Any, **more: Any) -> None:
        super().__init__(*ports, **more)
        self._ended = ended

    def begin_anew(self) -> bool:
        accounts = self.comparison.ledger.accounts
        if not super().begin_anew():
            return False
        self._ended.append(accounts)
        return True

    def start(self) -> bool:
        if not super().start():
            return False
        for ended in self._ended:
            for account, before in zip(self.comparison.ledger.accounts, ended, strict=True):
                account.consumed += before.consumed
                account.ignored += before.consumed
        self._ended.clear()
        return True


def _begins(head: bytes) -> bool:
    """Whether a comparison begins with this checkpoint."""
    return bool(decode(head).get("anew"))


class StaysFull(Worker):
    """A reset ends a comparison, but not that it has reached its limit."""

    def __init__(self, full: list[str], *ports: Any, **more: Any) -> None:
        super().__init__(*ports, **more)
        self._full = full

    def begin_anew(self) -> bool:
        reached = [hole.reason for hole in self.comparison.holes if "was reached" in hole.reason]
        if not super().begin_anew():
            return False
        self._full.extend(reached)
        return True

    def start(self) -> bool:
        if not super().start():
            return False
        for reason in self._full:
            self.comparison.overflow(reason.partition(" was reached")[0])
            self._tell()
        self._full.clear()
        return True


class KeepsDivergences(Worker):
    """A reset ends a comparison, but not the divergences that it found."""

    def _resume(self, stored: Stored) -> None:
        super()._resume(stored)
        if stored.sequence is not None and _begins(stored.head):
            self._reports.resume(stored.divergences, {}, {})


class KeepsReports(RedisStore):
    """What a reset has ended keeps its reports in the store."""

    def save(self, checkpoint: Checkpoint) -> None:
        super().save(checkpoint._replace(anew=checkpoint.anew and not _begins(checkpoint.head)))


class KeepingShelf(SimulatedShelf):
    """Its stores keep them."""

    kind = KeepsReports


class ForgetsWhereItBegan(Worker):
    """Where a reset has begun is not known any more after a start."""

    def _begin_at(self, resets: Resets) -> None:
        super()._begin_at(resets._replace(start=None))


class TakesItTwice(Worker):
    """A reset that was asked for is made once more, since nobody looks whether it was."""

    def __init__(self, made: list[PendingReset], *ports: Any, **more: Any) -> None:
        super().__init__(*ports, **more)
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


def _incautious(spec: Spec, ports: Ports, shard: Shard, _: Caution) -> Worker:
    """A worker that is never told where those before it fell."""
    return Worker(spec, ports, shard)


def commits_apart(seed: int) -> Failure | None:
    return simulate(seed, make=partial(CommitsApart, {}))


def reads_twice(seed: int) -> Failure | None:
    return simulate(seed, make=ReadsTwice)


def fences_itself(seed: int) -> Failure | None:
    unfenced = _without(redis_scripts._FENCE, instead="local owner = redis.call('GET', KEYS[1])\n")
    return simulate(seed, shelf=FencingShelf, alter=unfenced, storm=TAKEN_OVER)


def takes_whatever_comes(seed: int) -> Failure | None:
    return simulate(seed, alter=_without(redis_scripts._GUARD), storm=LATE)


def flips_without_a_look_at_the_sequence(seed: int) -> Failure | None:
    return simulate(seed, alter=_without(redis_scripts._GUARD, redis_scripts.FLIP), storm=LATE)


def flips_without_a_look_at_the_parts(seed: int) -> Failure | None:
    unseen = _without(redis_scripts._PRESENT, redis_scripts.FLIP, instead="local present = true\n")
    return simulate(seed, alter=unseen, storm=FALLS_BACK)


def says_it_before_it_is_saved(seed: int) -> Failure | None:
    return simulate(seed, make=SaysItBeforeItIsSaved)


def reports_before_it_saves(seed: int) -> Failure | None:
    return simulate(seed, make=ReportsBeforeItSaves)


def trusts_the_topics(seed: int) -> Failure | None:
    return simulate(seed, make=TrustsTheTopics)


def is_incautious(seed: int) -> Failure | None:
    return simulate(seed, make=_incautious)


def takes_its_word(seed: int) -> Failure | None:
    return simulate(seed, make=TakesItsWord)


def forgets_batches(seed: int) -> Failure | None:
    return simulate(seed, make=ForgetsBatches, storm=CRASHES)


def trusts_its_clock(seed: int) -> Failure | None:
    return simulate(seed, make=TrustsItsClock, storm=JUMPS)


def leaves_out_in_silence(seed: int) -> Failure | None:
    """What matchers fell over is left out, and nothing says so."""

    def passing(intake: Intake, gap: Gap) -> None:
        if gap.left_out:
            intake.positions[gap.side][gap.partition] = gap.available
        else:
            note_gap(intake, gap)

    note_gap = Intake._note_gap
    with patch.object(Intake, "_note_gap", passing):
        return simulate(seed)


def falls_for_ever(seed: int) -> Failure | None:
    """However often matchers fall over a batch, it is not left out."""
    with patch.object(Falls, "fell_over", lambda *_: False):
        return simulate(seed)


def counts_on(seed: int) -> Failure | None:
    return simulate(seed, make=partial(CountsOn, []))


def stays_full(seed: int) -> Failure | None:
    return simulate(seed, make=partial(StaysFull, []))


def keeps_reports(seed: int) -> Failure | None:
    return simulate(seed, make=KeepsDivergences, shelf=KeepingShelf)


def forgets_where_it_began(seed: int) -> Failure | None:
    return simulate(seed, make=ForgetsWhereItBegan)


def takes_it_twice(seed: int) -> Failure | None:
    return simulate(seed, make=partial(TakesItTwice, []))


def forgets_the_cut(seed: int) -> Failure | None:
    return simulate(seed, make=ForgetsTheCut)


ALL: tuple[tuple[Callable[[int], Failure | None], str], ...] = (
    (commits_apart, "consumed of|undisturbed"),
    (reads_twice, "consumed of|says DIVERGED"),
    (fences_itself, "took effect though|has no partner"),
    (takes_whatever_comes, "late write|_restore"),
    (flips_without_a_look_at_the_sequence, "late write|_restore"),
    (flips_without_a_look_at_the_parts, "has lost .*, a part of checkpoint"),
    (says_it_before_it_is_saved, "is in no checkpoint"),
    (reports_before_it_saves, "for good, which the store does not hold"),
    (trusts_the_topics, "is no hole|DIVERGED"),
    (takes_its_word, "says DIVERGED|undisturbed"),
    (forgets_batches, "says DIVERGED|undisturbed|a hole for nothing"),
    (trusts_its_clock, "a pass though a clock is"),
    (forgets_the_cut, "says DIVERGED|undisturbed|a hole for nothing|has no partner"),
    (leaves_out_in_silence, "consumed of|matchers fall over is no hole"),
    (falls_for_ever, "not settled"),
    (counts_on, "consumed of|undisturbed"),
    (stays_full, "was reached with"),
    (keeps_reports, "places: .*undisturbed"),
    (forgets_where_it_began, "consumed of|undisturbed|takes DIVERGED back"),
    (takes_it_twice, "more often than was asked for|though that was refused"),
    (is_incautious, "processes own a part|is no hole|nothing is said"),
    *IN_CORE,
)
"""Each with what the simulation says of it."""
