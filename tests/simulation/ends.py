"""How a comparison ends, and how it stands for one that starts now; both by a plain single worker.

The end of a run is held against that of a single worker that nothing happens to, which has the bugs of the
product, too. So that is held against what is true by definition (`surprises`): whether there are differences,
what they are called, and whether they are known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loadtest.memory import ManualClock, MemoryPublisher, MemoryRelay, MemoryStorage, MemoryStore
from tests.simulation.broker import Broker, SimulatedSource
from tests.simulation.inputs import Input
from tests.simulation.line import SimulatedShelf
from tests.simulation.processes import mask_secret
from tests.simulation.scheduler import Scheduler
from tests.support.workers import shown
from twinstream.core.arrivals.sharding import Shard
from twinstream.core.events import Side
from twinstream.matcher.worker import Ports, Worker
from twinstream.processes.shards import ShardStore
from twinstream.status.comparison import ComparisonStatus, DivergenceReport

if TYPE_CHECKING:
    from tests.simulation.world import World


@dataclass(frozen=True)
class Outcome:
    """How a comparison ended; the divergences that are shown by id, as `reports`, and by `places`.

    An id tells of the comparison file, and so it is not that of one which has another start in its file.
    `open`: one of them may still be called otherwise.
    """

    verdict: str
    accounts: dict[str, Any]
    by_kind: dict[str, int]
    verified_up_to: dict[str, Any]
    suspicions: int
    reports: dict[str, str]
    places: dict[str, str]
    open: bool

    def without_duplicates(self) -> Outcome:
        """The outcome with duplicates called extra: what is a copy may hang on which match is remembered."""
        kinds = Counter(self.by_kind)
        kinds["extra"] += kinds.pop("duplicate", 0)
        return replace(
            self, by_kind=dict(+kinds), reports=_called_extra(self.reports), places=_called_extra(self.places)
        )

    def differences(self, other: Outcome, told: Sequence[str]) -> str:
        """What is not the same, in one line."""
        mine, others = vars(self), vars(other)
        return "; ".join(
            f"{name}: {mine[name]}, undisturbed {others[name]}" for name in told if mine[name] != others[name]
        )


def _called_extra(kinds: dict[str, str]) -> dict[str, str]:
    return {of: "extra" if kind == "duplicate" else kind for of, kind in kinds.items()}


def outcome(status: ComparisonStatus, shown: Collection[DivergenceReport]) -> Outcome:
    """The part of a status that does not depend on when anything happened."""
    return Outcome(
        status.verdict,
        status.accounts.model_dump(),
        {kind: count for kind, count in status.divergences.by_kind.items() if count},
        status.verified_up_to.model_dump(),
        status.suspicions,
        {report.id: report.kind for report in shown},
        {report.positions.model_dump_json(): report.kind for report in shown},
        any(report.provisional for report in shown),
    )


def undisturbed(given: Input) -> Outcome:
    """How a single worker ends that nothing happens to."""
    scheduler, publisher, clock = Scheduler(0), MemoryPublisher(), ManualClock()
    broker = Broker(scheduler, given)
    for side in Side:
        broker.produce(side, len(given.rows[side]))
    source, storage = SimulatedSource(scheduler, broker, fickle=False), MemoryStorage()
    store, relay = MemoryStore(storage, "calm"), MemoryRelay(storage, "calm")
    worker = Worker(given.unlimited, Ports(source, store, relay, publisher, clock, mask_secret))
    assert worker.start()
    for _ in range(4):
        worker.step()
        clock.advance(30)
    worker.stop()
    last = publisher.published[-1]
    assert isinstance(last, ComparisonStatus)
    return outcome(last, shown(publisher.published).values())


def surprises(given: Input, calm: Outcome) -> Iterator[str]:
    """What is not as the faults of the input say, in the end of a worker to which nothing happened."""
    declared, told = given.declared, ", ".join(map(str, given.faults)) or "no fault"
    if given.uneven:
        return
    if not any(map(declared.names, given.faults)):
        yield from _as_equal(calm)
    may_be = Counter(name for fault in given.faults for name in declared.names(fault))
    if more := Counter(calm.by_kind) - may_be:
        yield f"{dict(more)} is told of {told}"
    explained = sum(of["explained"] for of in calm.accounts.values())
    if explained and not declared.may_explain(given.faults):
        yield f"{explained} events of {told} are explained by rules that do not fit"
    in_dispute = calm.verdict == "INCONCLUSIVE" and calm.open and declared.rules
    if (
        calm.verdict != "DIVERGED"
        and not in_dispute
        and given.all_count
        and given.only_by_order
        and _differs(given)
    ):
        yield f"{calm.verdict}, and {told} makes the topics differ"
    if calm.verdict == "DIVERGED" and declared.must_explain(given.faults):
        yield f"DIVERGED by what is known: {told}"


def _as_equal(calm: Outcome) -> Iterator[str]:
    """What is not as where both topics are equal; where they have nothing in common, nothing is known."""
    matched = any(of["matched"] for of in calm.accounts.values())
    waiting = any(of["unmatched"] for of in calm.accounts.values())
    if waiting or calm.verdict != ("EQUIVALENT" if matched else "PENDING"):
        yield f"{calm.verdict} of equal topics: {calm.accounts}"


def _differs(given: Input) -> bool:
    everything = {side: dict.fromkeys(range(given.partitions[side]), 1 << 60) for side in Side}
    return given.truth.differ(everything)


def look(world: World, number: int) -> Worker:
    """A worker that starts from what the store holds now, and changes nothing."""
    shelf = SimulatedShelf(world.server.copy().execute, world.given.spec.name, "a look")
    shard = Shard(number, world.given.shards)
    source = SimulatedSource(Scheduler(0), world.broker, fickle=False, steady=True)
    store, relay = ShardStore(shelf, shard), MemoryRelay(MemoryStorage(), "a look")
    ports = Ports(source, store, relay, MemoryPublisher(), ManualClock(), mask_secret)
    worker = Worker(world.given.spec, ports, shard)
    worker.start()
    return worker
