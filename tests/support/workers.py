"""A worker on the shipped in-memory adapters, driven by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from pydantic import TypeAdapter

from loadtest.memory import (
    ManualClock,
    MemoryPublisher,
    MemoryRelay,
    MemorySource,
    MemoryStorage,
    MemoryStore,
)
from tests.support.saying import finish
from twinstream.api.state.board import Board
from twinstream.bootstrap import expectation
from twinstream.core.events import Side
from twinstream.explain.masking import fresh_secret
from twinstream.intake.falls import Caution
from twinstream.matcher.reset_commit import TAKE_SECONDS
from twinstream.matcher.schedule import RETRY_STORE_SECONDS
from twinstream.matcher.worker import Ports, Worker
from twinstream.ports import CheckpointStore, Clock
from twinstream.spec.file.model import Spec
from twinstream.spec.load import ComparisonFile, loads
from twinstream.status.common import Verdict
from twinstream.status.comparison import (
    ComparisonStatus,
    DivergenceReport,
    Publication,
    Reset,
    ResetRefused,
    ResetRequest,
    Withdrawn,
)

SPEC = """
version: 1
name: test
reference: {topic: test.reference}
candidate: {topic: test.candidate}
order: {per_key: [k]}
show: [k, n]
evidence: {matched: 1, seconds: 0}
"""
OUTCOME: TypeAdapter[Reset | ResetRefused] = TypeAdapter(Reset | ResetRefused)


@dataclass
class Bench:
    """Two topics, a store and a clock; workers may come and go, and the last that was started is at work.

    With a `store` all of them use that one, else each its own one on the storage.
    """

    spec: str = SPEC
    secret: bytes = field(default_factory=fresh_secret)
    source: MemorySource = field(default_factory=MemorySource)
    storage: MemoryStorage = field(default_factory=MemoryStorage)
    clock: ManualClock = field(default_factory=ManualClock)
    publisher: MemoryPublisher = field(default_factory=MemoryPublisher)
    caution: Caution | None = None
    store: MemoryStore | None = None
    workers: int = 0
    at_work: Worker | None = None

    def worker(self) -> Worker:
        """A new worker, as after a start of the process."""
        self.workers += 1
        ports = self.ports(self.store or MemoryStore(self.storage, f"worker-{self.workers}"))
        return Worker(loads(self.spec), ports, caution=self.caution)

    def ports(self, store: CheckpointStore) -> Ports:
        """The ports of a worker on this store."""
        relay = MemoryRelay(self.storage, f"worker-{self.workers}")
        secret, recall = lambda: self.secret, self.source.recall
        return Ports(self.source, store, relay, self.publisher, self.clock, secret, recall)

    def started(self) -> Worker:
        """A worker that owns the comparison."""
        self.at_work = self.worker()
        assert self.at_work.start(), self.status().reason
        return self.at_work

    def refused(self) -> ComparisonStatus:
        """The status of a worker that cannot start, and ends."""
        worker = self.worker()
        assert not worker.start()
        worker.stop()
        self.storage.lease = None
        assert self.status().verdict == "PENDING"
        return self.status()

    def restarted(self) -> Worker:
        """A worker after a crash of the one before, whose lease and provisional word are void."""
        self.storage.lease = None
        for report in self.reports().values():
            if report.provisional:
                self.publisher.publish(Withdrawn(id=report.id, comparison=report.comparison))
        return self.started()

    def reset(self, worker: Worker, request: ResetRequest) -> bool:
        """Ask for a reset, and have a worker look for it; returns whether it took effect at once."""
        self.clock.advance(TAKE_SECONDS)
        ask(self.storage, request)
        return worker.begin_anew()

    def write(self, side: Side, *events: tuple[object, int], at_ms: int = 0) -> None:
        """Write events (k, n) to a side."""
        for key, number in events:
            self.source.append(side, 0, orjson.dumps({"k": key, "n": number}), at_ms)

    def write_both(self, *events: tuple[object, int], at_ms: int = 0) -> None:
        """Write the same events to both sides."""
        for side in Side:
            self.write(side, *events, at_ms=at_ms)

    def finish(self, side: Side, batch: int, consumed: int | Mapping[int, int], **more: Any) -> None:
        """The version of a side says that it has finished a batch."""
        finish(self.source, side, batch, consumed, **more)

    def run(self, worker: Worker | None = None, *, steps: int = 3) -> ComparisonStatus:
        """Let a worker read on and beat, else the one at work; return its last status."""
        worker = worker or self.at_work or self.started()
        for _ in range(steps):
            worker.step()
        self.clock.advance(RETRY_STORE_SECONDS)
        worker.step()
        return self.status()

    def finds(
        self, verdict: Verdict, reason: str, worker: Worker | None = None, *, steps: int = 3
    ) -> ComparisonStatus:
        """Let a worker read on, which comes to a verdict, with this in its reason."""
        status = self.run(worker, steps=steps)
        assert status.verdict == verdict
        assert reason in status.reason
        return status

    def settled(self, worker: Worker | None = None) -> ComparisonStatus:
        """The status after two looks: the second knows that all was read."""
        self.run(worker)
        return self.run(worker)

    def status(self) -> ComparisonStatus:
        """The last status that was published."""
        return next(p for p in reversed(self.publisher.published) if isinstance(p, ComparisonStatus))

    def reports(self) -> dict[str, DivergenceReport]:
        """The last report of each divergence that was not withdrawn."""
        return shown(self.publisher.published)


def shown(published: Iterable[Publication]) -> dict[str, DivergenceReport]:
    """The last report of each divergence that was not withdrawn, by its id."""
    found: dict[str, DivergenceReport] = {}
    for publication in published:
        if isinstance(publication, DivergenceReport):
            found[publication.id] = publication
        elif isinstance(publication, Withdrawn):
            found.pop(publication.id, None)
    return found


def board_of(spec: Spec, clock: Clock, shards: int = 1) -> Board:
    """A board that expects a comparison, and has heard nothing."""
    board = Board(monotonic=clock.monotonic, now=clock.now)
    board.expect(expectation(ComparisonFile(spec, ""), shards))
    return board


def ask(storage: MemoryStorage, request: ResetRequest) -> None:
    """Leave a request for the owner."""
    text = request.model_dump_json().encode()
    assert MemoryRelay(storage, "").ask(text).request == text, "no other one waits"


def answers(storage: MemoryStorage) -> list[Reset | ResetRefused]:
    """What the owner has answered, the last one last."""
    return [OUTCOME.validate_json(text) for text in storage.answers.values()]
