"""What must hold at every step, and how a run must end.

The truth of a pair of topics comes from `inputs.Truth`, the end from a plain single worker without any fault.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tests.simulation.comparisons import COPIED, LIMIT
from tests.simulation.differences import SOON_MS
from tests.simulation.ends import Outcome, look, outcome
from tests.simulation.eras import Eras
from tests.simulation.inputs import Input
from tests.simulation.streams import POISON
from twinstream.core.arrivals.sharding import Shard
from twinstream.core.events import Side
from twinstream.explain.divergence import NAMES
from twinstream.intake.clock_skew import APART_SECONDS
from twinstream.intake.falls import FallenStretch
from twinstream.matcher.shard_resets import AWAITS_REST, FOLLOWS
from twinstream.ports import Positions
from twinstream.processes.standby import RELAYED
from twinstream.status.common import Sides
from twinstream.status.comparison import (
    ComparisonStatus,
    DivergenceReport,
    Hole,
    Publication,
    Reset,
    ResetRefused,
    ShardStatus,
)

if TYPE_CHECKING:
    from tests.simulation.processes import Process
    from tests.simulation.services import Service
    from tests.simulation.world import World

STALE_SECONDS = 5.0
SLOWEST_SECONDS = 20.0
"""The longest that it takes to ask the store for the time, which may explain as much."""
_UNEQUAL_COPIES = "the copies of one barrier in"
"""What follows where a copy of a barrier is lost in one partition and not in another."""
_LOST_RANGE = re.compile(r"no longer has offsets? (?:[\d,]+–)?([\d,]+) of ")
_FELL = re.compile(r"the matcher fell \d+ times while it took offsets? (?:([\d,]+)–)?([\d,]+) of ")
_LIMIT_REACHED = f"limits.unmatched_events ({LIMIT}) was reached"
_NOT_READ_ON = "is not read on: unmatched events take more than half of a limit"
_TOGETHER = "all together"
_RESET_LOST = (
    "a reset was lost",
    "where shard ",
    "before the state in the store was lost, stretches that were not checked had been noted (1)",
)
"""And what is told of that where the store has lost it again."""
_STATE_LOST = "the state in the store was lost"


class Violation(AssertionError):  # noqa: N818 - no error of the program, a finding
    """Something that must hold does not."""


class Oracle:
    """Watches one run. `announced`: the shards that published a DIVERGED that the store holds.

    `topic_was_known`: the losses of the store when it held something and a topic was created anew.
    `left_out`: the records that any matcher leaves out.
    """

    def __init__(self, world: World) -> None:
        self._world, self._broker = world, world.broker
        self.eras = Eras(world.given, self.violated)
        self.left_out: set[FallenStretch] = set()
        self.announced: set[int] = set()
        self.losses = 0
        self.topic_was_known: int | None = None
        self._must_diverge: set[str] = set()
        self._heard: dict[tuple[Service, int], tuple[float, float]] = {}
        self._said: dict[tuple[object, ...], tuple[float, float]] = {}

    def violated(self, what: str) -> None:
        """End the run."""
        self._world.scheduler.note(f"VIOLATION: {what}")
        raise Violation(what)

    # -- the store -----------------------------------------------------------------------------------------

    def wrote(self, token: str, owner: str | None, *, older: bool) -> None:
        """A write took effect: it must be the owner's, and newer than what it replaces.

        `owner` was the last to take ownership. `older`: `token` had written what was there later than what is
        there now.
        """
        if owner not in (None, token):
            self.violated(f"a write of {token} took effect though {owner} had taken over")
        if older:
            self.violated(f"a late write of {token} took effect over a newer one")

    def counted(self, token: str, resets: int) -> None:
        """What is in effect knows of so many resets: with one more, nothing holds that was said before."""
        if self.eras.counted(resets):
            self._world.scheduler.note(f"  store: {token} has begun anew, for the {resets}. time")
            self.announced.clear()
            self._must_diverge.clear()
            self.topic_was_known = None

    def loaded(self, process: Process, resets: int) -> None:
        """What was announced before a process has loaded must be known to it, and how many resets."""
        self.eras.loaded(process.token, 0 if self.losses and not process.shard.whole else resets)
        self._must_diverge.discard(process.token)
        if process.shard.number in self.announced:
            self._must_diverge.add(process.token)

    def lost(self) -> None:
        """What was lost need not be known any more."""
        self.losses += 1
        self.eras.lost(self._world.server.resets())
        self.announced = {number for number in self.announced if self._held_as_diverged(number)}

    def _held_as_diverged(self, number: int) -> bool:
        """Whether a process that starts now would tell of a difference at once, as of one that was told."""
        return look(self._world, number)._schedule.hold_divergence

    # -- what is published ---------------------------------------------------------------------------------

    def published(self, process: Process, publication: Publication) -> None:
        """A process says something."""
        match publication:
            case ShardStatus(status=status) if RELAYED in status.health.reasons:
                self._check_relayed(process, status)
            case ShardStatus(status=status, waiting_for=waiting_for):
                self._check(process, status, follows=(waiting_for or "").startswith(FOLLOWS))
            case ComparisonStatus():
                self._check(process, publication)
            case DivergenceReport(provisional=False):
                self._check_final(process, publication)
            case Reset():
                self._world.scheduler.note(f"  {process.token} says {publication}")
                self.eras.begun_anew(process.matcher.service)

    def refused(self, process: Process, refusal: ResetRefused) -> None:
        """A process does not begin anew, though it was asked to."""
        self._world.scheduler.note(f"  {process.token} answers {refusal}")
        self.eras.refused(refusal)

    def _check(self, process: Process, status: ComparisonStatus, *, follows: bool = False) -> None:
        """A status holds. A shard that `follows` a reset, and says so, is not of the new comparison yet."""
        who = process.matcher.service, process.shard.number
        said = self._world.scheduler.now, abs(process.apart or 0.0)
        self._heard[who] = said
        self._said[process.shard.number, *_writing(status)] = said
        self._world.scheduler.note(f"  {process.token} says {_line(status)}")
        positions = _positions(status)
        if not (follows or waits(status)):
            self.eras.check(process.token, status)
        for side in Side:
            self._check_accounts(side, status, positions, whole=process.shard.whole)
        self._check_sums(status)
        if status.verdict == "DIVERGED":
            self._check_diverged(process, status, positions)
        elif process.token in self._must_diverge and not waits(status):
            self.violated(f"{process.token} takes DIVERGED back: {_line(status)}")
        if status.verdict == "EQUIVALENT" and process.shard.whole:
            self._check_equivalent(process.token, status, positions)

    def _check_relayed(self, process: Process, status: ComparisonStatus) -> None:
        """What one that stands by passes on is what an owner has said: it is as old as that."""
        who = process.matcher.service, process.shard.number
        said = self._said.get((process.shard.number, *_writing(status)))
        if said is None:
            self.violated(f"{process.token} passes on what no owner has said: {_line(status)}")
            return
        self._world.scheduler.note(f"  {process.token} passes on {_line(status)}")
        self._heard[who] = said

    def heard(self, service: Service) -> None:
        """All matchers of a service together say how things stand."""
        if service.shards == 1:
            return
        view = service.board.views()[0]
        status = view.status
        if not view.freshness.fresh or any(process.said is None for process in service.processes):
            return
        self._world.scheduler.note(f"  together they say {_line(status)}")
        if status.verdict == "EQUIVALENT":
            self._check_equivalent(_TOGETHER, status, _positions(status))

    def _check_accounts(
        self, side: Side, status: ComparisonStatus, positions: Positions, *, whole: bool
    ) -> None:
        account = _of(status.accounts, side).model_dump()
        consumed = account.pop("consumed")
        if sum(account.values()) != consumed or min(account.values()) < 0:
            self.violated(f"the accounts of {side.name} do not add up: {consumed} of {account}")
        given = self.eras.of(status)
        if whole and any(_LIMIT_REACHED in hole.reason for hole in status.holes):
            self._check_full(status)
        if not whole or self._broker.is_another or given is None:
            return
        truth = given.truth
        most = truth.written(side, positions[side])
        least = 0 if waits(status) else most - self._deleted(given, side, positions, status)
        if self._world.given.shards > 1:
            # With `now` each begins where it rests: that may be before where shard 0 does, as recorded.
            begins_apart = given.spec.start.at == "offsets"
            all_of_it = self._world.given.truth if begins_apart else truth
            most = all_of_it.written(side, self._broker.ends(side))
        if not least <= consumed <= most:
            self.violated(f"{side.name}: {consumed} consumed of {least} to {most} below {positions[side]}")

    def _check_full(self, status: ComparisonStatus) -> None:
        """No more can have waited than was read since the comparison has begun."""
        read = sum(status.events.model_dump().values())
        if read <= LIMIT:
            self.violated(f"a limit of {LIMIT} unmatched events was reached with {read}")

    def _deleted(self, given: Input, side: Side, positions: Positions, status: ComparisonStatus) -> int:
        """At most so many records may be unread below the positions, because they are gone.

        Or because they lie before the start: what is gone there is no hole.
        """
        start, first = given.spec.start.at, self._broker.first[side]
        if start == "input" or (start in ("event_time", "barrier") and self._broker.is_gone):
            return given.truth.written(side, positions[side])
        if not status.hole_count:
            return 0
        gone = {partition: min(first[partition], at) for partition, at in positions[side].items()}
        left_out = _left_out(side, status, given)
        if status.hole_count > len(status.holes):  # That of a stretch may be one of those not listed.
            stretches = (one for one in self.left_out if one.side is side)
            left_out = sum(given.truth.between(side, one.partition, one.first, one.last) for one in stretches)
        return given.truth.written(side, gone) + left_out

    def _check_final(self, process: Process, report: DivergenceReport) -> None:
        shelf = self._world.shelf("a look", self._world.server.copy().execute)
        shards = self._world.given.shards
        stored = (shelf.store(Shard(number, shards)).load() for number in range(shards))
        held = any(report.id in one.divergences for one in stored)
        ended = process.said is not None and process.said.reset_count < self.eras.stored
        if not held and not ended and process.losses_before == self.losses:
            self.violated(f"{process.token} reports {report.id} for good, which the store does not hold")

    def _check_diverged(self, process: Process, status: ComparisonStatus, positions: Positions) -> None:
        given, number = self.eras.of(status), process.shard.number
        # A shard tells the positions of its partitions only.
        read = positions if self._world.given.shards == 1 else self._broker.all_ends()
        by_order = given is not None and given.only_by_order and not self._broker.is_another
        if not self._world.given.faults or (given is not None and by_order and not given.truth.differ(read)):
            self.violated(f"{process.token} says DIVERGED, and what it has read may still become equivalent")
        if status.reset_count < self.eras.stored:
            return  # It does not know yet that it is over.
        self._must_diverge.add(process.token)
        if number in self.announced:
            return
        if self._held_as_diverged(number):
            self.announced.add(number)
        elif process.losses_before == self.losses:
            self.violated(f"{process.token} says DIVERGED, which is in no checkpoint")

    def _check_equivalent(self, who: str, status: ComparisonStatus, positions: Positions) -> None:
        given = self.eras.of(status)
        if self._broker.is_another or given is None:
            return  # What its offsets meant before is not known here, or where it has begun.
        truth = given.truth
        counts = given.all_count and not given.declared.explains_meanwhile(given.faults)
        if status.hole_count or (counts and truth.differ(positions)):
            self.violated(f"{who} says EQUIVALENT, and what it has read differs: {_line(status)}")
        for side in Side if given.all_count else ():
            settled = {int(p): offset for p, offset in _of(status.verified_up_to, side).items()}
            partners = truth.letters_below(side.other, self._broker.ends(side.other))
            if alone := truth.letters_below(side, settled) - partners:
                self.violated(f"{side.name} is called verified up to {settled}: {alone} has no partner")

    def asked(self, service: Service) -> None:
        """A release tool asks a service."""
        for view in service.board.views():
            self._check_sums(view.status)
            if view.gate.answer != "pass":
                continue
            unheard = float("-inf"), 0.0
            heard = [self._heard.get((service, shard), unheard) for shard in range(service.shards)]
            ages = [self._world.scheduler.now - at for at, _ in heard]
            if view.status.verdict != "EQUIVALENT" or max(ages) > STALE_SECONDS:
                self.violated(f"a pass for {_line(view.status)}, published {ages} s ago")
            if view.status.reset_count < self.eras.heard_of.get(service, 0):
                self.violated(f"a pass for what was before a reset: {_line(view.status)}")
            apart = max(apart for _, apart in heard)
            if apart > APART_SECONDS + SLOWEST_SECONDS:
                self.violated(f"a pass though a clock is {apart:g} s from that of the store")

    def _check_sums(self, status: ComparisonStatus) -> None:
        """Final differences are all that are in groups, and in bins of time; provisional ones come on top."""
        final = status.closed_divergences.total
        if (grouped := sum(group.count for group in status.groups)) != final:
            self.violated(f"groups count {grouped} of {final} differences")
        open_ones, total = sum(group.count for group in status.provisional_groups), status.divergences.total
        if open_ones != total - final:
            self.violated(f"provisional groups count {open_ones} of {total - final} differences")
        if (timed := sum(status.found.counts)) != final:
            self.violated(f"{timed} of {final} differences are counted by time")
        if status.counted.total < final or status.divergences.total < final:
            self.violated(f"{final} of {status.divergences.total}, and {status.counted.total} by first kind")

    # -- the end -------------------------------------------------------------------------------------------

    def unsettled(self, service: Service) -> str | None:
        """Why this is no end that the faults allow; None where it is one."""
        said = [process.said for process in service.processes if process.said is not None]
        if service.shards > 1 and said:
            said = [view.status for view in service.board.views()]
        begun = self.eras.of(max(said, key=attrgetter("reset_count"))) if said else None
        found = [self._unsettled(service, given) for given in ([begun] if begun else self.eras.all())]
        return None if None in found else found[0]

    def _unsettled(self, service: Service, given: Input) -> str | None:
        views = service.board.views()
        if not views or not views[0].freshness.fresh:
            return "nothing is said"
        view, calm = views[0], self.eras.calm(given)
        found = outcome(view.status, service.board.divergences(view.name).page(1000).items)
        never_rests = self._never_rests(view.status, given)
        if view.status.hole_count:
            unjustified = self._unjustified(view.status, given, calm)
            return unjustified if never_rests else unjustified or self._miscounted(view.status, given, calm)
        if never_rests or self._cannot_join(view.status, calm) or _waits_in_vain(given, view.status):
            return None
        if waits(view.status) and not (view.in_crash_loop and calm.verdict == "PENDING"):
            return None if self._no_safe_start(view.status) else f"it waits: {view.status.reason}"
        if lacking := self._lacking_hole(given):
            return lacking
        if not (given.declared.asks_for("duplicate") or given.declared.asks_for("extra")):
            found, calm = found.without_duplicates(), calm.without_duplicates()
        untold = self._untold_until_met(given, found, calm)
        if different := found.differences(
            calm, [name for name in self._told(given, calm) if name not in untold]
        ):
            return different
        if degraded := self._degraded(service):
            return degraded
        is_equal = calm.verdict == view.status.verdict == "EQUIVALENT"
        healthy = is_equal and view.status.health.status == "ok"
        if healthy and not any(view.status.unmatched.model_dump().values()) and view.gate.answer != "pass":
            return f"all is well, and the gate says {view.gate.answer}: {view.gate.reason}"
        return None

    def _never_rests(self, status: ComparisonStatus, given: Input) -> bool:
        """Whether a shard awaits a moment that does not come, since events have no partner: it says so.

        The record that was left out may lie before the start that it awaits.
        """
        lone = given.faults or self._world.given.poisoned or self._broker.is_gone
        return bool(lone) and AWAITS_REST.partition("(")[0] in (status.waiting_for or "")

    def _degraded(self, service: Service) -> str | None:
        """What is wrong with a matcher that the faults do not explain."""
        for process in service.processes:
            said = process.said
            if said is None or said.health.status == "ok" or _waits_for_a_side(said):
                continue
            lost = self._broker.is_gone and "no safe start" in said.health.reasons[0]
            if not (service.shards > 1 and lost):
                return f"it is degraded: {said.health.reasons}"
        return None

    def _lacking_hole(self, given: Input) -> str | None:
        """What must be a hole."""
        if given.poisoned:
            return "a record that matchers fall over is no hole"
        if given.compares_uneven and not self._broker.is_gone:
            return "a retry that has written something else is no hole"
        if self.topic_was_known == self.losses:
            return "a topic that was created anew while it was known is no hole"
        return None

    def _told(self, given: Input, calm: Outcome) -> list[str]:
        """What of an outcome depends on the topics alone.

        Which of two events changed places is told as one or the other, as the sides came in, and so is which
        copy stands for a barrier. How many copies stand for one depends on how the work is divided, and so
        does whether two events of a bag that have one identity are told as one that has changed. Whether the
        halves of one that moved are one depends on how long nothing was written between them. A shard has
        fewer events behind a lost copy, so a difference may stay provisional there. Whether a stray is told
        so depends on how much had come when a clock proved its first half. How many events before a start at
        the input are read depends on what both had said of it by then. And the id of one that has changed
        tells which half of it was found first.
        """
        moved = any(fault.fault in ("reorder", "move") for fault in given.faults) or given.order in COPIED
        left_out = {"verified_up_to", "reports", "places"} if moved or self._broker.is_another else set()
        if given is not self._world.given or given.limited or self._comes_in_halves(given):
            left_out.add("reports")
        if given.declared.rules and self._comes_in_halves(given):
            left_out.add("places")  # A half that a rule covered stays an example of it.
        if given.declared.rules and self._was_written_late(given):
            left_out |= {"verdict", "accounts", "by_kind", "reports", "places", "open"}
        if given.order in COPIED and given.shards > 1:
            left_out |= {"accounts", "open"}
        if given.spec.start.at == "input":
            left_out.add("accounts")
        strays = any(fault.fault == "stray" for fault in given.faults)
        if (given.shards > 1 or strays) and not given.only_by_order:
            left_out |= {"by_kind", "reports", "places"}
        return [name for name in vars(calm) if name not in left_out]

    @staticmethod
    def _untold_until_met(given: Input, found: Outcome, calm: Outcome) -> set[str]:
        """What is not known where the sides have met again in one of two readings alone.

        How the events of several partitions lie in a piece depends on how they came in, and so does whether a
        look at a part of the last epoch sees enough equal ones. The next epoch would tell.
        """
        if given.order not in COPIED or max(given.partitions) == 1 or found.open == calm.open:
            return set()
        return {"accounts", "open"} | ({"verdict", "by_kind"} if given.declared.rules else set())

    def _was_written_late(self, given: Input) -> bool:
        """Whether so much time passed before an event that moved was written that it may count as lost."""
        moves = (fault for fault in given.faults if fault.fault == "move")
        return any(self._broker.took(Side.RIGHT, one.begin, one.end) * 1000 >= SOON_MS for one in moves)

    @staticmethod
    def _comes_in_halves(given: Input) -> bool:
        """Whether a clock may prove one half of what has changed before the other has come."""
        return not given.only_by_order and any(fault.fault in ("field", "stray") for fault in given.faults)

    def _no_safe_start(self, status: ComparisonStatus) -> bool:
        """Whether records are gone that nobody remembers to have compared."""
        kept = self._world.server.has_begun() and self._world.given.shards == 1
        return self._broker.is_gone and "no safe start" in status.reason and not kept

    def _cannot_join(self, status: ComparisonStatus, calm: Outcome) -> bool:
        """Whether a shard finds no start, so that what another has waits for good: a doubt, no more.

        Or a difference that the other has found, which stands: what the first cannot read does not touch its
        partitions. No account is known then, since the part of the first is in none.
        """
        alone = self._broker.is_gone and "no safe start" in (status.waiting_for or "")
        if status.divergences.total:
            return alone and status.verdict == calm.verdict == "DIVERGED"
        return alone and status.verdict == "INCONCLUSIVE"

    def _may_be_unseen(self, given: Input) -> bool:
        """Whether there may be records that nobody has read, or reads again."""
        return self._broker.is_gone or self._broker.is_another or given.poisoned

    def _forgotten(self, reason: str) -> bool:
        """Whether something was known before the store lost it, and may not be found by reading again."""
        given = self._world.given
        may_be_missed = self._may_be_unseen(given) or not given.only_by_order
        may_be_missed = may_be_missed or given.limited  # Another reading need not reach the limit.
        of_offsets = _LOST_RANGE.search(reason) is not None
        return _STATE_LOST in reason and not of_offsets and self.losses > 0 and may_be_missed

    def _unjustified(self, status: ComparisonStatus, given: Input, calm: Outcome) -> str | None:
        """Why a hole was not to be; None where records are gone indeed."""
        for place, hole in enumerate(status.holes):
            if not _names_its_place(hole, status):
                return f"a hole that does not say where it is: {hole.reason}"
            if self._is_explained(hole, given):
                continue
            lost = _LOST_RANGE.search(hole.reason)
            follows = place or self._may_be_unseen(given)
            if (follows and _UNEQUAL_COPIES in hole.reason) or self._forgotten(hole.reason):
                continue
            if lost is None or hole.position is None:
                return f"a hole for nothing: {hole.reason}"
            side = Side.LEFT if hole.side == "reference" else Side.RIGHT
            if self._broker.first[side][hole.position.partition] <= int(lost[1].replace(",", "")):
                return f"a hole where nothing is gone: {hole.reason}"
        allowed = ("INCONCLUSIVE", "DIVERGED") if calm.verdict == "DIVERGED" else ("INCONCLUSIVE",)
        return None if status.verdict in allowed else f"{status.verdict} with a hole: {status.reason}"

    def _is_explained(self, hole: Hole, given: Input) -> bool:
        """Whether the input, or what happened, is a reason for a hole wherever it stands."""
        reasons = {
            "created anew": self._broker.is_another,
            # A part of what a retry has written is lost.
            "several times with different rows": (self._broker.is_gone or given.uneven or given.poisoned),
            _LIMIT_REACHED: given.limited,
            "since it has stopped comparing": given.limited,
            # A rule names copies, and something that was written is not known.
            "it may be a copy of an event": self._may_be_a_copy(given),
        }
        is_said = any(is_so and said in hole.reason for said, is_so in reasons.items())
        if is_said or self._is_poison(hole):
            return True
        # A shard that had not begun when the others were reset cannot tell that from a lost state.
        lost = self.losses > 0 or hole.reason.startswith("where shard ")
        return hole.reason.startswith(_RESET_LOST) and lost and self.eras.asked

    def _may_be_a_copy(self, given: Input) -> bool:
        """Whether the candidate may have written what it has more of before, unseen or elsewhere."""
        unseen = given.spec.start.at != "earliest" or self._may_be_unseen(given)
        return given.declared.asks_for("duplicate") and (unseen or given.partitions[Side.RIGHT] > 1)

    def _miscounted(self, status: ComparisonStatus, given: Input, calm: Outcome) -> str | None:
        """What is counted otherwise than records that are left out explain: none of them, all others once.

        Of a batch that one of several matchers leaves out the others count what is theirs. Where a topic was
        created anew, the offsets tell how many are left out at most. Where a limit may be reached, a side
        waits for the partners that are left out of the other.
        """
        others = [hole.reason for hole in status.holes if _fell_over(hole) is None]
        unknown = others or self.losses or self._broker.is_gone or given.limited
        if unknown or "accounts" not in self._told(given, calm):
            return None
        for side in Side:
            found, right = _of(status.accounts, side).consumed, calm.accounts[NAMES[side]]["consumed"]
            exact = given.shards == 1 and not self._broker.is_another
            most = found + _left_out(side, status, None if self._broker.is_another else given)
            if not (found <= right == most if exact else found <= right <= most):
                return f"{side.name}: consumed {found}, with what is left out {most}, undisturbed {right}"
        return None

    def _is_poison(self, hole: Hole) -> bool:
        """Whether it is of records that a matcher leaves out, and one of these kills matchers.

        Two services fall over other batches around it. The one that takes over from the other, behind that
        record, leaves out the rest of its own.
        """
        found = _fell_over(hole)
        if found is None or self._broker.is_another:
            return found is not None and self._world.given.poisoned
        assert hole.position is not None
        side = Side.LEFT if hole.side == "reference" else Side.RIGHT
        place = side, hole.position.partition
        rows = (row for row in self._world.given.rows[side] if row[0] == hole.position.partition)
        poison = [row[1] for row in rows if row.record == POISON]
        around = (
            one for one in self.left_out if one[:2] == place and one.first <= found[0] <= found[1] <= one.last
        )
        return any(one.first <= offset <= one.last for one in around for offset in poison)


def _fell_over(hole: Hole) -> tuple[int, int] | None:
    """The first and the last offset of what matchers fell over; None where this is another hole."""
    found = _FELL.search(hole.reason)
    if found is None:
        return None
    last = int(found[2].replace(",", ""))
    return last if found[1] is None else int(found[1].replace(",", "")), last


def _left_out(side: Side, status: ComparisonStatus, given: Input | None) -> int:
    """So many records of a side are left out, since matchers fell over them; offsets, without an input."""
    count = 0
    for hole in status.holes:
        found = _fell_over(hole)
        if found is None or hole.side != NAMES[side] or hole.position is None:
            continue
        partition, (first, last) = hole.position.partition, found
        if given is None:
            count += last + 1 - first
        else:
            count += given.truth.between(side, partition, first, last)
    return count


def _positions(status: ComparisonStatus) -> dict[Side, dict[int, int]]:
    return {side: {row.partition: row.position for row in _of(status.progress, side)} for side in Side}


def waits(status: ComparisonStatus) -> bool:
    """Whether it has not started to compare, and says so. A side is stalled also where it has."""
    reasons = [reason for reason in status.health.reasons if " is stalled: " not in reason]
    return status.verdict == "PENDING" and bool(reasons)


def _names_its_place(hole: Hole, status: ComparisonStatus) -> bool:
    """Whether the reason of a hole names side, topic and partition, where these are known."""
    if hole.side is None:
        return True
    version = getattr(status, hole.side)
    partition = "" if hole.position is None else f" partition {hole.position.partition}"
    return f"{version.topic}{partition} ({hole.side})" in hole.reason


def _waits_for_a_side(status: ComparisonStatus) -> bool:
    """Whether a side is stalled, and events of the other wait for it: two idle sides are healthy."""
    other = {"reference": Side.RIGHT, "candidate": Side.LEFT}
    return any(_of(status.unmatched, other[side]) for side in status.health.stalled)


def _waits_in_vain(given: Input, status: ComparisonStatus) -> bool:
    """Whether a side is not read on for lack of room, and says so."""
    return given.limited and any(_NOT_READ_ON in reason for reason in status.health.reasons)


def _writing(status: ComparisonStatus) -> tuple[object, ...]:
    return status.started_at, status.updated_at, status.checkpoint.sequence, status.events


def _of(sides: Sides[Any], side: Side) -> Any:
    return sides.reference if side is Side.LEFT else sides.candidate


def _line(status: ComparisonStatus) -> str:
    """A status in one line."""
    counts = f"{status.events.reference}/{status.events.candidate} read, {status.matched} matched"
    kinds = {kind: count for kind, count in status.divergences.by_kind.items() if count}
    reason = "" if status.verdict == "EQUIVALENT" else status.reason
    return f"{status.verdict} {counts} {kinds or ''} {reason}".rstrip()
