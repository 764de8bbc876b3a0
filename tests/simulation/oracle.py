"""What must hold at every step, and how a run must end.

The truth of a pair of topics comes from `inputs.Truth`, the end from a plain single worker without any fault.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.simulation.broker import Broker, SimulatedSource
from tests.simulation.inputs import COPIED, Input
from tests.simulation.scheduler import Scheduler
from tests.simulation.store import Server
from twinstream.adapters.memory import ManualClock, MemoryPublisher
from twinstream.core.events import Side
from twinstream.ports import Positions, Store
from twinstream.runtime.worker import Worker
from twinstream.status import ComparisonStatus, DivergenceReport, Publication, Sides, Withdrawn

if TYPE_CHECKING:
    from tests.simulation.processes import Process, Service
    from tests.simulation.world import World

STALE_SECONDS = 5.0
_UNEQUAL_COPIES = "the copies of one barrier in several partitions are not equal"
"""What follows where a copy of a barrier is lost in one partition and not in another."""
_LOST_RANGE = re.compile(r"offsets (\d+) to (\d+) (?:of partition \d+ )?any more")
_STATE_LOST = "the state in the store was lost"


class Violation(AssertionError):  # noqa: N818 - no error of the program, a finding
    """Something that must hold does not."""


@dataclass(frozen=True)
class Outcome:
    """How a comparison ended; `reports` are the divergences that are shown, by id."""

    verdict: str
    accounts: dict[str, Any]
    by_kind: dict[str, int]
    verified_up_to: dict[str, Any]
    suspicions: int
    reports: dict[str, str]

    def differences(self, other: Outcome, told: Sequence[str]) -> str:
        """What is not the same, in one line."""
        mine, others = vars(self), vars(other)
        return "; ".join(
            f"{name}: {mine[name]}, undisturbed {others[name]}" for name in told if mine[name] != others[name]
        )


def outcome(status: ComparisonStatus, reports: dict[str, str]) -> Outcome:
    """The part of a status that does not depend on when anything happened."""
    return Outcome(
        status.verdict,
        status.accounts.model_dump(),
        {kind: count for kind, count in status.divergences.by_kind.items() if count},
        status.verified_up_to.model_dump(),
        status.suspicions,
        reports,
    )


def undisturbed(given: Input) -> Outcome:
    """How a single worker ends that nothing happens to."""
    scheduler, publisher, clock = Scheduler(0), MemoryPublisher(), ManualClock()
    broker = Broker(scheduler, given)
    for side in Side:
        broker.produce(side, len(given.rows[side]))
    store = Server(scheduler, _Nobody()).client("calm")
    worker = Worker(given.spec, SimulatedSource(scheduler, broker, fickle=False), store, publisher, clock)
    assert worker.start()
    for _ in range(4):
        worker.step()
        clock.advance(5)
    worker.stop()
    reports: dict[str, str] = {}
    for publication in publisher.published:
        if isinstance(publication, DivergenceReport):
            reports[publication.id] = publication.kind
        elif isinstance(publication, Withdrawn):
            reports.pop(publication.id, None)
    last = publisher.published[-1]
    assert isinstance(last, ComparisonStatus)
    return outcome(last, reports)


class Oracle:
    """Watches one run. `announced`: a DIVERGED was published that the store holds, and has not lost since."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.announced = False
        self.losses = 0
        self._must_diverge: set[str] = set()
        self._heard_at: dict[str, float] = {}

    def violated(self, what: str) -> None:
        """End the run."""
        self._world.scheduler.note(f"VIOLATION: {what}")
        raise Violation(what)

    # -- the store -----------------------------------------------------------------------------------------

    def wrote(self, token: str, owner: str | None, *, older: bool) -> None:
        """A write took effect: it must be the owner's, and newer than what it replaces."""
        if owner not in (None, token):
            self.violated(f"a write of {token} took effect though {owner} had taken over")
        if older:
            self.violated(f"a late write of {token} took effect over a newer one")

    def loaded(self, token: str) -> None:
        """What was announced before a process has loaded must be known to it."""
        self._must_diverge.discard(token)
        if self.announced:
            self._must_diverge.add(token)

    def lost(self, what: str) -> None:  # noqa: ARG002
        """What was lost need not be known any more."""
        self.losses += 1
        self.announced = self._held_as_diverged()

    def _held_as_diverged(self) -> bool:
        """Whether a process that starts now would know of a difference."""
        worker = look(self._world)
        return worker.comparison.diverged

    # -- what is published ---------------------------------------------------------------------------------

    def published(self, process: Process, publication: Publication) -> None:
        """A process says something."""
        if isinstance(publication, ComparisonStatus):
            self._heard_at[process.token] = self._world.scheduler.now
            self._world.scheduler.note(f"  {process.token} says {_line(publication)}")
            self._check(process, publication)
        elif isinstance(publication, DivergenceReport) and not publication.provisional:
            self._check_final(process, publication)

    def _check(self, process: Process, status: ComparisonStatus) -> None:
        positions = {
            side: {row.partition: row.position for row in _of(status.progress, side)} for side in Side
        }
        for side in Side:
            self._check_accounts(side, status, positions)
        if status.verdict == "DIVERGED":
            self._check_diverged(process, positions)
        elif process.token in self._must_diverge and not waits(status):
            self.violated(f"{process.token} takes DIVERGED back: {_line(status)}")
        if status.verdict == "EQUIVALENT":
            self._check_equivalent(process, status, positions)

    def _check_accounts(self, side: Side, status: ComparisonStatus, positions: Positions) -> None:
        account = _of(status.accounts, side).model_dump()
        consumed = account.pop("consumed")
        if sum(account.values()) != consumed or min(account.values()) < 0:
            self.violated(f"the accounts of {side.name} do not add up: {consumed} of {account}")
        truth, first = self._world.given.truth, self._world.broker.first[side]
        most = truth.written(side, positions[side])
        least = 0 if waits(status) else most - self._deleted(side, positions, status, first)
        if not least <= consumed <= most:
            self.violated(f"{side.name}: {consumed} consumed of {least} to {most} below {positions[side]}")

    def _deleted(
        self, side: Side, positions: Positions, status: ComparisonStatus, first: dict[int, int]
    ) -> int:
        """At most so many records may be unread below the positions, because they are gone."""
        if not status.hole_count:
            return 0
        gone = {partition: min(first[partition], at) for partition, at in positions[side].items()}
        return self._world.given.truth.written(side, gone)

    def _check_final(self, process: Process, report: DivergenceReport) -> None:
        stored = self._world.server.copy().load().divergences
        if report.id not in stored and process.losses_before == self.losses:
            self.violated(f"{process.token} reports {report.id} for good, which the store does not hold")

    def _check_diverged(self, process: Process, positions: Positions) -> None:
        given = self._world.given
        if not given.faults or (given.only_by_order and not given.truth.differ(positions)):
            self.violated(f"{process.token} says DIVERGED, and what it has read may still become equivalent")
        self._must_diverge.add(process.token)
        if self.announced:
            return
        self.announced = self._held_as_diverged()
        if not self.announced and process.losses_before == self.losses:
            self.violated(f"{process.token} says DIVERGED, which is in no checkpoint")

    def _check_equivalent(self, process: Process, status: ComparisonStatus, positions: Positions) -> None:
        truth = self._world.given.truth
        if status.hole_count or (self._world.given.all_count and truth.differ(positions)):
            self.violated(f"{process.token} says EQUIVALENT, and what it has read differs: {_line(status)}")
        for side in Side if self._world.given.all_count else ():
            settled = {int(p): offset for p, offset in _of(status.verified_up_to, side).items()}
            partners = truth.letters_below(side.other, positions[side.other])
            if alone := truth.letters_below(side, settled) - partners:
                self.violated(f"{side.name} is called verified up to {settled}: {alone} has no partner")

    def asked(self, service: Service) -> None:
        """A release tool asks a service."""
        for view in service.board.views():
            process = service.process
            if view.answer != "pass":
                continue
            age = self._world.scheduler.now - self._heard_at[process.token] if process else None
            if view.status.verdict != "EQUIVALENT" or age is None or age > STALE_SECONDS:
                self.violated(f"a pass for {_line(view.status)}, published {age} s ago")

    # -- the end -------------------------------------------------------------------------------------------

    def unsettled(self, service: Service, calm: Outcome) -> str | None:
        """Why this is no end that the faults allow; None where it is one."""
        views = service.board.views()
        if not views or not views[0].is_fresh:
            return "nothing is said"
        view = views[0]
        shown = service.board.divergences(view.name).page(1000).items
        reports = {report.id: report.kind for report in shown}
        found = outcome(view.status, reports)
        if view.status.hole_count:
            return self._unjustified(view.status, calm)
        if waits(view.status):
            return None if self._no_safe_start(view.status) else f"it waits: {view.status.reason}"
        if different := found.differences(calm, self._told(calm)):
            return different
        said = service.process.said if service.process else None
        if said is not None and said.health.status != "ok" and "stalled" not in said.health.reasons[0]:
            return f"it is degraded: {said.health.reasons}"
        healthy = calm.verdict == "EQUIVALENT" and view.status.health.status == "ok"
        if healthy and not any(view.status.unmatched.model_dump().values()) and view.answer != "pass":
            return f"all is well, and the gate says {view.answer}: {view.gate.reason}"
        return None

    def _told(self, calm: Outcome) -> list[str]:
        """What of an outcome depends on the topics alone.

        Which of two events changed places is told as one or the other, as the sides came in, and so is which
        copy stands for a barrier. Whether time has proven a difference depends on how batches were cut.
        """
        given = self._world.given
        moved = any(fault.startswith("reorder") for fault in given.faults) or given.order in COPIED
        if given.faults and not given.only_by_order and given.order not in COPIED:
            return []
        return [name for name in vars(calm) if not (moved and name in ("verified_up_to", "reports"))]

    def _no_safe_start(self, status: ComparisonStatus) -> bool:
        """Whether records are gone that nobody remembers to have compared."""
        gone = any(first for firsts in self._world.broker.first.values() for first in firsts.values())
        return gone and "no safe start" in status.reason and not self._world.server.holds_something()

    def _forgotten(self, reason: str) -> bool:
        """Whether something was known before the store lost it, and may not be found by reading again."""
        gone = any(first for firsts in self._world.broker.first.values() for first in firsts.values())
        by_time = not self._world.given.only_by_order
        return _STATE_LOST in reason and "offsets" not in reason and self.losses > 0 and (gone or by_time)

    def _unjustified(self, status: ComparisonStatus, calm: Outcome) -> str | None:
        """Why a hole was not to be; None where records are gone indeed."""
        for place, hole in enumerate(status.holes):
            lost = _LOST_RANGE.search(hole.reason)
            if (place and _UNEQUAL_COPIES in hole.reason) or self._forgotten(hole.reason):
                continue
            if lost is None or hole.position is None:
                return f"a hole for nothing: {hole.reason}"
            side = Side.LEFT if hole.side == "reference" else Side.RIGHT
            if self._world.broker.first[side][hole.position.partition] <= int(lost[2]):
                return f"a hole where nothing is gone: {hole.reason}"
        allowed = ("INCONCLUSIVE", "DIVERGED") if calm.verdict == "DIVERGED" else ("INCONCLUSIVE",)
        return None if status.verdict in allowed else f"{status.verdict} with a hole: {status.reason}"


def look(world: World) -> Worker:
    """A worker that starts from what the store holds now, and changes nothing."""
    store: Store = world.server.copy()
    source = SimulatedSource(Scheduler(0), world.broker, fickle=False, steady=True)
    worker = Worker(world.given.spec, source, store, MemoryPublisher(), ManualClock())
    worker.start()
    return worker


class _Nobody:
    def wrote(self, token: str, owner: str | None, *, older: bool) -> None:
        pass

    def loaded(self, token: str) -> None:
        pass

    def lost(self, what: str) -> None:
        pass


def waits(status: ComparisonStatus) -> bool:
    """Whether it has not started to compare, and says so."""
    return status.verdict == "PENDING" and status.health.status == "degraded"


def _of(sides: Sides[Any], side: Side) -> Any:
    return sides.reference if side is Side.LEFT else sides.candidate


def _line(status: ComparisonStatus) -> str:
    """A status in one line."""
    counts = f"{status.events.reference}/{status.events.candidate} read, {status.matched} matched"
    kinds = {kind: count for kind, count in status.divergences.by_kind.items() if count}
    reason = "" if status.verdict == "EQUIVALENT" else status.reason
    return f"{status.verdict} {counts} {kinds or ''} {reason}".rstrip()
