"""What saving costs the whole loop of a matcher, by how many events wait all the time.

    python -m loadtest.overhead [--held 1000 --held 100000 --held 1000000] [--json FILE] [--plot FILE]

The service's own worker loop reads two generated topics of JSON events of about 150 bytes, and saves to a
real Redis. So many events of the reference wait for the candidate from the beginning to the end. Two things
are measured:

- *share*: how much of the throughput is lost to saving. Equal events come on both sides as fast as they can
  be taken. The same run is made twice, each in a process of its own: with all that happens once a second as
  shipped, and on a clock that makes it happen once a minute. The share is that of processor time, which tells
  more than that of the clock where others use the machine; that is given, too.
- *stop*: how long the loop stands still at most while it is given so many changes a second: half of them are
  events that come and stay, half are partners of those that have waited for longest. It runs until it has
  saved often enough to have gone over everything that waits once more (see `checkpoints/plan.py`).

Redis tells itself how long its longest command kept it busy in all of that.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import click
import redis
from matplotlib.figure import Figure
from rich.console import Console

from deploy.embedded.redis_server import RedisServer
from loadtest.generated import NO_DISK, PARTITIONS, START_MS, Stream, redis_figures, started_worker
from loadtest.measuring import apart, environment, report_text, yardstick_ns
from twinstream.core.events import Side
from twinstream.ports import Batch

SPEC = """
version: 1
name: overhead
reference: {topic: reference}
candidate: {topic: candidate}
order: {per_key: [ad_id]}
"""
BATCH = 1000
HELD = (1_000, 100_000, 1_000_000)
SLOW = 1 / 60
"""The pace of a clock on which what happens once a second happens once a minute."""
FOLDER = Path(".bench")
TARGETS = {"share": 0.05, "stop_ms": 100.0, "redis_busy_ms": 50.0}

Result = dict[str, Any]


def record(number: int) -> bytes:
    """Event `number`, of a key that only few others have."""
    return (
        b'{"ad_id":"%016x","campaign":"%08x","event_time":%d,"fare":%d,"user":"%016x","page":"%06x","kind":"view"}'
        % (number * 11400714819323198485 % 2**64, number % 1000, START_MS + number // 30, number % 9973,
           number * 7046029254386353131 % 2**64, number % 10**6)
    )  # fmt: skip


def batches(side: Side, numbers: Iterator[range], offsets: list[int]) -> Stream:
    """The events of some numbers, a batch for each partition in turn; an empty range is nothing just now."""
    for some in numbers:
        if not some:
            yield None
        for partition in range(PARTITIONS):
            own = range(some.start + (partition - some.start) % PARTITIONS, some.stop, PARTITIONS)
            if own:
                first = offsets[partition]
                offsets[partition] += len(own)
                times = [START_MS + some.start // 30] * len(own)
                yield Batch(side, partition, list(map(record, own)), range(first, offsets[partition]), times)


class Feed:
    """What both sides wrote: `held` events of the reference, then as `ask` says."""

    def __init__(self, held: int) -> None:
        self.held = held
        self._next = {Side.LEFT: held, Side.RIGHT: 0}
        self._given = dict(self._next)

    def streams(self) -> dict[Side, Stream]:
        """The batches of both sides."""
        return {side: batches(side, self._numbers(side), [0] * PARTITIONS) for side in Side}

    @property
    def asked(self) -> int:
        """How many events were asked for and have not been written yet."""
        return sum(self._next[side] - self._given[side] for side in Side)

    def ask(self, side: Side, events: int) -> None:
        """Have a side write so many more events."""
        self._next[side] += events

    def begin_pairs(self) -> None:
        """From now on both write the same events, and those held stay without partners."""
        self._next[Side.RIGHT] = self._given[Side.RIGHT] = self._next[Side.LEFT]

    def _numbers(self, side: Side) -> Iterator[range]:
        if side is Side.LEFT:
            for first in range(0, self.held, PARTITIONS * BATCH):
                yield range(first, min(first + PARTITIONS * BATCH, self.held))
        while True:
            some = range(self._given[side], self._next[side])
            self._given[side] = self._next[side]
            yield some


class Running:
    """A worker on a Redis of its own that holds so many events; a context manager."""

    def __init__(self, held: int, pace: float) -> None:
        self.feed, self._pace = Feed(held), pace

    def __enter__(self) -> Running:
        self._folder = tempfile.TemporaryDirectory(prefix="twinstream-overhead-")
        self._server = RedisServer(Path(self._folder.name), config=NO_DISK)
        self._server.start()
        self.client = redis.Redis.from_url(self._server.url)
        self.worker, self.source = started_worker(SPEC, self.feed.streams(), self._server.url, self._pace)
        while self.worker.comparison.unmatched(Side.LEFT) < self.feed.held:
            self.worker.step()
        if self._pace == 1.0:
            self._save_what_waits()
        return self

    def _save_what_waits(self) -> None:
        """Have two saves come and go: the first ones hold all that waits, and put the next off for long."""
        saves = self.saves
        while self.saves < saves + 2:
            for side in Side:
                self.feed.ask(side, 1)
            self.take_all()
            time.sleep(0.01)

    def __exit__(self, *error: object) -> None:
        self.worker.stop()
        self.client.close()
        self._server.stop()
        self._folder.cleanup()

    @property
    def saves(self) -> int:
        """How many checkpoints there were."""
        return int(self.client.hget("twinstream:{overhead}:checkpoint", "sequence") or 0)

    def take_all(self) -> None:
        """Let the worker take what was asked for."""
        wanted = self.source.delivered + self.feed.asked
        while self.source.delivered < wanted:
            self.worker.step()


def throughput(held: int, seconds: float, pace: float) -> Result:
    """Pairs as fast as they can be taken: the seconds that an event takes, of the processor and the clock."""
    with Running(held, pace) as running:
        running.feed.begin_pairs()
        comparison = running.worker.comparison
        saves, pairs, matched = running.saves, 0, comparison.matched
        began, spent = time.perf_counter(), time.process_time()
        while time.perf_counter() - began < seconds:
            for side in Side:
                running.feed.ask(side, PARTITIONS * BATCH)
            running.take_all()
            pairs += PARTITIONS * BATCH
        spent, took = time.process_time() - spent, time.perf_counter() - began
        assert (comparison.matched - matched, comparison.unmatched(Side.LEFT)) == (pairs, held), (
            "they wait all the time"
        )
        return {
            "events": 2 * pairs,
            "cpu_ns": 1e9 * spent / (2 * pairs),
            "clock_ns": 1e9 * took / (2 * pairs),
            "saves_a_second": round((running.saves - saves) / took, 2),
            "redis_busy_ms": redis_figures(running.client)["busy_ms_at_most"],
        }


def stops(held: int, seconds: float, changes: int) -> Result:
    """How long one round of the loop took at most, with so many changes a second."""
    with Running(held, 1.0) as running:
        saves, portion = running.saves, changes // 100
        running.client.slowlog_reset()
        longest: list[float] = []
        cpu: list[float] = []
        began, given = time.perf_counter(), 0
        while (now := time.perf_counter() - began) < seconds:
            if given < now * 50:  # fifty portions of each side a second
                given += 1
                for side in Side:
                    running.feed.ask(side, portion)
            started, spent = time.perf_counter(), time.process_time()
            running.worker.step()
            longest.append(time.perf_counter() - started)
            cpu.append(time.process_time() - spent)
        waiting = running.worker.comparison.unmatched(Side.LEFT)
        return {
            "waiting_at_the_end": waiting,
            "stop_ms": round(1000 * max(longest), 1),
            "stop_cpu_ms": round(1000 * max(cpu), 1),
            "stops_ms": [round(1000 * each, 1) for each in sorted(longest, reverse=True)[:10]],
            "changes_a_second": round(2 * portion * given / seconds),
            "saves_a_second": round((running.saves - saves) / seconds, 2),
            "redis_busy_ms": redis_figures(running.client)["busy_ms_at_most"],
        }


def measure(held: int, seconds: float, rounds: int, changes: int, stop_seconds: float) -> Result:
    """All of it for one number of events that wait."""
    saved, unsaved = [], []
    for _ in range(rounds):
        saved.append(apart(throughput, held, seconds, 1.0))
        unsaved.append(apart(throughput, held, seconds, SLOW))

    def share(name: str) -> float:
        pairs = zip(saved, unsaved, strict=True)
        shares: list[float] = [1 - without[name] / with_[name] for with_, without in pairs]
        return round(median(shares), 4)

    stop = apart(stops, held, stop_seconds, changes)
    busy = max(run["redis_busy_ms"] for run in (*saved, stop))
    return {
        "held": held,
        "share": share("cpu_ns"),
        "share_of_clock": share("clock_ns"),
        "saves_a_second": median(run["saves_a_second"] for run in saved),
        "redis_busy_ms": busy,
        "stop": stop,
        "rounds": {"saved": saved, "unsaved": unsaved},
        "meets": {
            "share": share("cpu_ns") <= TARGETS["share"],
            "stop": stop["stop_ms"] <= TARGETS["stop_ms"],
            "redis": busy <= TARGETS["redis_busy_ms"],
        },
        "load": round(os.getloadavg()[0], 2),
        "yardstick_ns": yardstick_ns(),
    }


def plot(rows: list[Result], file: str) -> None:
    """Share and longest stop by what waits, with their targets."""
    figure = Figure(figsize=(10, 4), dpi=110)
    share, stop = figure.subplots(1, 2)
    held = [row["held"] for row in rows]
    share.plot(held, [100 * row["share"] for row in rows], "o-")
    share.axhline(100 * TARGETS["share"], color="grey", linewidth=0.8)
    share.set(xscale="log", xlabel="events that wait", ylabel="% of the throughput lost")
    stop.plot(held, [row["stop"]["stop_ms"] for row in rows], "o-")
    stop.axhline(TARGETS["stop_ms"], color="grey", linewidth=0.8)
    stop.set(xscale="log", xlabel="events that wait", ylabel="longest stop, ms")
    for panel in (share, stop):
        panel.set_ylim(bottom=0)
        panel.grid(visible=True, alpha=0.2)
    figure.tight_layout()
    figure.savefig(file)


@click.command(help=__doc__)
@click.option("--held", multiple=True, type=int, help="Events that wait. Default: 1000, 100000, 1000000.")
@click.option("--seconds", default=20.0, show_default=True, help="Of each run for the share.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--changes", default=10_000, show_default=True, help="A second, while stops are measured.")
@click.option("--stop-seconds", default=150.0, show_default=True, help="Of the run for the stops.")
@click.option("--json", "file", default=str(FOLDER / "overhead.json"), show_default=True)
@click.option("--plot", "picture", default=str(FOLDER / "overhead.png"), show_default=True)
def main(
    held: tuple[int, ...],
    seconds: float,
    rounds: int,
    changes: int,
    stop_seconds: float,
    file: str,
    picture: str,
) -> None:
    """Measure, and write the report, which grows row by row, and the plot."""
    rows: list[Result] = []
    for target in (file, picture):
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    say = Console(stderr=True, soft_wrap=True).print
    for number in held or HELD:
        rows.append(measure(number, seconds, rounds, changes, stop_seconds))
        row = rows[-1]
        say(f"{number:,} wait: {row['share']:.1%} lost ({row['share_of_clock']:.1%} of the clock), "
            f"{row['saves_a_second']} saves a second; stop {row['stop']['stop_ms']} ms, "
            f"Redis busy {row['redis_busy_ms']} ms")  # fmt: skip
        Path(file).write_bytes(report_text({**environment(), "targets": TARGETS, "results": rows}))
    plot(rows, picture)


if __name__ == "__main__":
    main()
