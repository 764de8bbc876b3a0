"""What a checkpoint costs: a matcher's state with many waiting events, to Redis and back, step by step.

    .venv/bin/python -m loadtest.checkpoints [--events 1000000] [--keep hashes]

The events wait on one side: records of about 150 bytes of JSON, over four partitions. `intake` is to decode
them, and to look for partners. A delta of 10,000 more follows, and one that takes part in a sweep. `survey`
is the look at everything before each save. The server is a real one, without disk. Seconds are those of the
processor (`_cpu`), or of the clock where Redis takes part.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import redis

from deploy.embedded.redis_server import RedisServer
from loadtest.generated import NO_DISK, PARTITIONS, START_MS, redis_figures
from loadtest.measuring import apart, environment, peak_mib, report_text, yardstick_ns
from twinstream.adapters.clocks import SystemClock
from twinstream.adapters.redis.store import RedisStore
from twinstream.checkpoints.format import decode, encode
from twinstream.checkpoints.plan import SWEPT_EVENTS
from twinstream.core.comparison import Comparison
from twinstream.core.events import Side
from twinstream.core.state import snapshot
from twinstream.core.state.merge import merged
from twinstream.core.state.restore import restore
from twinstream.explain.coverage import SeenEvents
from twinstream.intake.intake import Intake
from twinstream.matcher.memory import collect_rarely
from twinstream.ports import Batch, Checkpoint
from twinstream.spec.codec.digests import codec_of
from twinstream.spec.compile.compile import rules_of
from twinstream.spec.load import loads

SPEC = """
version: 1
name: checkpoints
reference: {topic: reference}
candidate: {topic: candidate}
order: {per_key: [ad_id]}
"""
DELTA = 10_000
BATCH = 1000

Result = TypeVar("Result")


def _record(rng: random.Random, number: int) -> bytes:
    return (
        b'{"ad_id":"%016x","campaign":"%08x","event_time":%d,"fare":%d,"user":"%016x","page":"%06x","kind":"view"}'
        % (rng.getrandbits(64), number % 1000, START_MS + number // 30, rng.randrange(10_000),
           rng.getrandbits(64), rng.randrange(10**6))
    )  # fmt: skip


def _feed(intake: Intake, rng: random.Random, first: int, events: int) -> None:
    """Let the reference write these events, in batches of a partition as from Kafka."""
    for start in range(first, first + events, PARTITIONS * BATCH):
        for partition in range(PARTITIONS):
            numbers = range(start + partition, min(start + PARTITIONS * BATCH, first + events), PARTITIONS)
            records = [_record(rng, number) for number in numbers]
            offsets = [number // PARTITIONS for number in numbers]
            timestamps = [START_MS + number // 30 for number in numbers]
            intake.take(Batch(Side.LEFT, partition, records, offsets, timestamps))


class _Steps:
    """Takes down what each step of a measurement needs."""

    def __init__(self) -> None:
        self.row: dict[str, Any] = {}

    def cpu(self, name: str, work: Callable[[], Result]) -> Result:
        """Do it, and note the seconds of the processor."""
        return self._timed(f"{name}_cpu", time.process_time, work)

    def clock(self, name: str, work: Callable[[], Result]) -> Result:
        """Do it, and note the seconds of the clock."""
        return self._timed(name, time.perf_counter, work)

    def _timed(self, name: str, now: Callable[[], float], work: Callable[[], Result]) -> Result:
        started = now()
        result = work()
        self.row[name] = round(now() - started, 3)
        return result


def measured(events: int, keep: str) -> dict[str, Any]:
    """What each step needs."""
    collect_rarely()  # as in a matcher
    rng = random.Random(1)
    spec = loads(f"{SPEC}keep: {keep}\n")
    codec = codec_of(spec)
    comparison = Comparison(rules_of(spec, codec))
    intake = Intake(codec, comparison, SystemClock(), 0, SeenEvents(spec, codec))
    intake.begin({side: dict.fromkeys(range(PARTITIONS), 0) for side in Side})
    steps, empty_mib = _Steps(), peak_mib()
    steps.cpu("intake", lambda: _feed(intake, rng, 0, events))
    before_mib = peak_mib()
    with (
        tempfile.TemporaryDirectory() as folder,
        RedisServer(Path(folder), config=NO_DISK) as server,
    ):
        store = RedisStore(server.url, spec.name)
        store.acquire()
        base = steps.cpu("base_snapshot", lambda: snapshot.snapshot(comparison))
        body = steps.cpu("base_encode", lambda: encode(base))
        peak = round(peak_mib() - before_mib)
        steps.clock("base_save", lambda: store.save(Checkpoint(1, None, b"", body, {})))
        _feed(intake, rng, events, DELTA)
        delta = steps.cpu("delta_snapshot", lambda: snapshot.delta(comparison))
        change = steps.cpu("delta_encode", lambda: encode(delta))
        steps.clock("delta_save", lambda: store.save(Checkpoint(2, 1, b"", change, {})))
        steps.cpu("sweep_begin", lambda: snapshot.begin_sweep(comparison))
        _feed(intake, rng, events + DELTA, DELTA)
        steps.cpu("survey", lambda: comparison.survey((True, True)))
        sweep = snapshot.Sweep(SWEPT_EVENTS, first=True)
        swept = steps.cpu("swept_delta_snapshot", lambda: snapshot.delta(comparison, sweep))
        steps.cpu("swept_delta_encode", lambda: encode(swept))
        stored = steps.clock("load", store.load)
        base, delta = steps.cpu("decode", lambda: [decode(part) for part in stored.bodies])
        whole = steps.cpu("merge", lambda: merged(base, [delta]))
        fresh = Comparison(rules_of(spec, codec))
        steps.cpu("restore", lambda: restore(fresh, whole, codec.form_again, 0.0))
        return {
            "events": events,
            "keep": keep,
            "memory_bytes_an_event": round((before_mib - empty_mib) * 2**20 / events),
            **steps.row,
            "payload_bytes_an_event": round(sum(map(len, base["held"][0]["records"])) / events, 1),
            "stored_bytes_an_event": round(len(body) / events, 1),
            "delta_bytes": len(change),
            "redis_memory_bytes": store.memory_bytes(),
            "redis_blocked_ms_at_most": _longest_ms(server.url),
            "base_peak_mib": peak,
            "yardstick_ns": yardstick_ns(),
        }


def _longest_ms(url: str) -> float:
    """How long the longest command kept the server from all others; 0 for less than a millisecond."""
    with redis.Redis.from_url(url) as client:
        return redis_figures(client)["busy_ms_at_most"]


def main() -> None:
    """Measure in a process of its own, so that its memory is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--keep", choices=("records", "hashes"), default="records")
    asked = parser.parse_args()
    report = {"environment": environment(), "checkpoint": apart(measured, asked.events, asked.keep)}
    sys.stdout.buffer.write(report_text(report))


if __name__ == "__main__":
    main()
