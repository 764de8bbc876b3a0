"""What a matcher has saved, moved to shards by key and back, says what a matcher that stayed says."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from loadtest.memory import (
    ManualClock,
    MemoryPublisher,
    MemoryRelay,
    MemorySource,
    MemoryStorage,
    MemoryStore,
)
from tests.support.searching import EXAMPLES, PROFILE
from tests.support.streams import HEAD
from twinstream.api.state.merging import merged
from twinstream.bootstrap import expectation
from twinstream.checkpoints.moving import divided_checkpoint, joined_checkpoint
from twinstream.core.arrivals.sharding import KeyShard
from twinstream.core.events import Side
from twinstream.matcher.worker import Ports, Worker
from twinstream.ports import EMPTY, Batch, Passed, Stored
from twinstream.processes.standby import Bulletin
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.addresses import Addresses
from twinstream.spec.load import ComparisonFile, loads
from twinstream.status.comparison import ComparisonStatus, DivergenceReport

SEEDS = EXAMPLES[PROFILE] // 8
EVIDENCE = "evidence: {matched: 1, seconds: 0}"
CLOSE = "identity: [k]\nequality: {tolerance: {v: {abs: 1}}}"
ORDERS = {
    "per_key": "{per_key: [k]}",
    "unordered": "unordered",
    "named": "unordered\nidentity: [k, n]",
    "changed": "{per_key: [k]}\nidentity: [k, n]",
    "bags": "{by_key: [k], inner: unordered}\nidentity: [k]",
    "days": "{by_key: [k], inner: {barrier: day, inner: unordered}}",
    "branches": "{by_key: [k], inner: {parallel: {d: {kinds: [day], order: total}, "
    "r: {kinds: [ride], order: unordered}}}}",
    "rules": "{dependent: [{pair: [ride, ride], same: [k]}, {pair: [day, ride], same: [k]}]}",
    "close": "{by_key: [k], inner: unordered}\n" + CLOSE,
    "close_days": "{by_key: [k], inner: {barrier: day, inner: unordered}}\n" + CLOSE,
    "times": "{per_key: [k]}\noverdue: {clock: event_time, field: n, unit: s, after: 600s, proves: true}",
}
KINDS = "kinds: {day: {where: {type: day}}, ride: {}}"
Written = tuple[Side, int, bytes]
"""The side, partition and record of an event."""


def streams(rng: random.Random) -> list[Written]:
    """Two streams with faults, as they are read: each key in one partition, which is another on each side."""
    size = rng.choice([20, 100, 300, 500])
    keys = rng.choice([1, 2, 3, 8])
    events = [
        {
            "k": rng.randrange(keys),
            "n": n,
            "v": rng.randrange(3),
            "type": "ride" if rng.random() < 0.9 else "day",
        }
        for n in range(size)
    ]
    if rng.random() < 0.5:
        for event in events:
            event["n"] //= 10
    other = [dict(event) for event in events]
    for _ in range(rng.choice([0, 1, 3, 6, 12])):
        place = rng.randrange(len(other))
        fault = rng.choice(["drop", "copy", "change", "much", "near", "far", "far", "far"])
        event = other.pop(place)
        to = {"near": place + rng.randrange(-5, 6), "far": rng.randrange(len(other) + 1)}.get(fault, place)
        event |= {"change": {"v": event["v"] + 1}, "much": {"v": 9}}.get(fault, {})
        if fault != "drop":
            other[max(to, 0) : max(to, 0)] = [event, dict(event)] if fault == "copy" else [event]
    for _ in range(rng.choice([0, 0, 1, 4])):
        place = rng.randrange(len(other))
        some = other[place : place + 15]
        rng.shuffle(some)
        other[place : place + 15] = some
    queues = {Side.LEFT: events, Side.RIGHT: other}
    found: list[Written] = []
    lead = rng.choice([0.5, 0.5, 0.2, 0.9])
    while any(queues.values()):
        side = Side.LEFT if rng.random() < lead else Side.RIGHT
        if not queues[side]:
            side = side.other
        some = rng.randrange(1, 8)
        taken, queues[side] = queues[side][:some], queues[side][some:]
        found += [(side, event["k"] % (3 - side), json.dumps(event).encode()) for event in taken]
    return found


class Fleet:
    """The workers of a comparison: one, or as many as there are shards."""

    def __init__(self, text: str, source: MemorySource) -> None:
        self.file = ComparisonFile(loads(text), text)
        self.spec, self.source, self.clock = self.file.spec, source, ManualClock()
        self.codec = Codec(self.spec)
        self.positions = {side: dict.fromkeys(range(3), 0) for side in Side}
        self.begin([EMPTY])

    def begin(self, saved: list[Stored]) -> None:
        """Start a worker on each state."""
        self.storages, self.workers = [], []
        self.addresses = Addresses(self.codec, len(saved))
        for number, stored in enumerate(saved):
            storage = MemoryStorage()
            storage.stored, storage.clock = stored, lambda: self.clock.now().timestamp()
            ports = Ports(
                self.source.reader(),
                MemoryStore(storage, "one"),
                MemoryRelay(storage, "one"),
                MemoryPublisher(),
                self.clock,
                lambda: b"x" * 32,
            )
            worker = Worker(self.spec, ports, KeyShard(number, len(saved)))
            assert worker.start()
            self.storages.append(storage)
            self.workers.append(worker)

    def move(self, shards: int) -> None:
        for worker in self.workers:
            worker.stop()
        whole = joined_checkpoint([storage.stored for storage in self.storages])
        self.begin(divided_checkpoint(whole, self.addresses_of(shards), shards))

    def addresses_of(self, shards: int) -> Any:
        return Addresses(self.codec, shards).of_stored

    def feed(self, written: list[Written], at_ms: int) -> None:
        """Write some events, and hand them on."""
        for side in Side:
            for partition in range(3 - side):
                records = [record for of, at, record in written if (of, at) == (side, partition)]
                if records:
                    self._deal(side, partition, records, at_ms)
        self.settle()

    def _deal(self, side: Side, partition: int, records: list[bytes], at_ms: int) -> None:
        first = self.positions[side][partition]
        position = self.positions[side][partition] = first + len(records)
        for record in records:
            self.source.append(side, partition, record, at_ms)
        homes = self.addresses.of(records, side)
        for number, worker in enumerate(self.workers):
            own = [place for place, home in enumerate(homes) if home == number]
            if own:
                columns = [[records[at] for at in own], [first + at for at in own], [at_ms] * len(own)]
                worker.feed(side, [Batch(side, partition, *columns)])
            worker.feed(side, [Passed(side, partition, position, at_ms)])

    def settle(self) -> None:
        self.clock.advance(2)
        for worker in self.workers:
            worker.settle()

    def status(self) -> ComparisonStatus:
        said = {
            number: Bulletin.model_validate_json(storage.bulletin[1]).said
            for number, storage in enumerate(self.storages)
            if storage.bulletin is not None
        }
        assert len(said) == len(self.workers)
        if len(said) == 1:
            return said[0].status
        return merged(expectation(self.file, len(said)), said, self.clock.now())

    def answer(self) -> dict[str, Any]:
        """What must be the same however it was moved."""
        status = self.status()
        reports = [
            DivergenceReport.model_validate_json(report)
            for storage in self.storages
            for report in storage.stored.divergences.values()
        ]
        told = {"events", "matched", "unmatched", "accounts", "divergences", "closed_divergences"}
        told |= {"verified_up_to", "started_at"}
        return {
            **status.model_dump(include=told),
            "holes": len(status.holes),
            "evidence": status.coverage.matched_by_kind,
            "found": sum(status.found.counts) == status.counted.total,
            "groups": sum(group.count for group in status.groups) == status.closed_divergences.total,
            "reports": Counter((one.id, one.kind, one.tainted) for one in reports),
        }


def followed(text: str, written: list[Written], moves: dict[int, int], rng: random.Random) -> Any:
    """The answers at the end, and back in one matcher; each shard has an arrival clock of its own."""
    fleet, at = Fleet(text, MemorySource(partitions=3)), 0
    while at < len(written):
        size = rng.randrange(1, 40)
        for place, shards in moves.items():
            if at <= place < at + size:
                fleet.move(shards)
        fleet.feed(written[at : at + size], 100 * at)
        at += size
    fleet.settle()
    fleet.settle()
    away = fleet.answer()
    fleet.move(1)
    fleet.settle()
    fleet.settle()
    return away, fleet.answer(), (fleet.status().verdict, fleet.status().suspicions)


@pytest.mark.parametrize("order", ORDERS)
def test_a_matcher_moved_to_shards_and_back_says_what_one_that_stayed_says(order: str) -> None:
    text = f"{HEAD}order: {ORDERS[order]}\n{KINDS}\n{EVIDENCE}\n"
    first = random.SystemRandom().randrange(1 << 30)
    for seed in range(first, first + SEEDS):
        rng = random.Random(seed)
        written = streams(rng)
        moves = {rng.randrange(len(written)): rng.randrange(1, 6) for _ in range(rng.randrange(1, 4))}
        stayed, moved = (followed(text, written, to, random.Random(seed)) for to in ({}, moves))
        assert moved == stayed, f"seed {seed}, moves {moves}"
