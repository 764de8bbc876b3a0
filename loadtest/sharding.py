"""What several matchers of one comparison are worth: one against two, over the same topics in the same run.

    python -m loadtest.sharding [--events 500000] [--shards 2] [--json FILE]

Each round runs the service's own worker loop alone, and then as many of them as asked for side by side, each
in a process of its own, until all is read. All wait for each other before they begin. Three ratios tell:

- *time*: how much sooner the last one is done. The broker, Redis and all that the machine does besides take
  part in it, so it needs a core for each matcher beside theirs;
- *work*: how much less processor time the busiest one takes than the one alone. It depends on little else,
  and is what the time comes to with cores enough;
- *on_these_cores*: what the time could come to here if nothing else ran and no core was ever idle. For either
  run that is the processor time of matchers and broker, divided over the cores, or that of the busiest
  matcher where this is more.

The processor times stand beside them, in microseconds an event.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import click

from deploy.embedded.stack import Stack
from loadtest.bench import PARTITIONS, SIDES, produce, spec_text
from loadtest.measuring import environment, spent_by, write_report
from loadtest.memory import MemoryPublisher
from twinstream.adapters.kafka.source import KafkaSource
from twinstream.bootstrap import make_worker
from twinstream.core.arrivals.sharding import Shard
from twinstream.core.events import Side
from twinstream.intake.falls import TRAIL_LENGTH
from twinstream.matcher.memory import collect_rarely
from twinstream.ports import Positions
from twinstream.processes.supervisor import StartArgs
from twinstream.settings import Settings
from twinstream.spec.load import loads

_spawn = multiprocessing.get_context("spawn")


def shard_loop(settings: dict[str, Any], text: str, number: int, start: Any, results: Any) -> None:
    """One worker, from when all are ready until it has read its share of both topics."""
    collect_rarely()
    chosen, spec = Settings(**settings), loads(text)
    topics = {Side.LEFT: spec.reference.topic, Side.RIGHT: spec.candidate.topic}
    source = KafkaSource(chosen.brokers, "bench", topics, {})
    ends = {side: topic.ends for side, topic in source.topics().items()}
    source.close()
    brief = StartArgs(f"shard-{number}", [0] * TRAIL_LENGTH, (), Shard(number, chosen.shards))
    worker = make_worker(chosen, spec, MemoryPublisher(), brief)
    while not worker.start():
        time.sleep(0.1)
    start.wait()
    began, spent = time.perf_counter(), time.process_time()
    while not _has_read(worker.intake.positions, ends):
        worker.step()
    results.put((time.perf_counter() - began, time.process_time() - spent, worker.comparison.matched))
    worker.stop()


def _has_read(positions: Positions, ends: Positions) -> bool:
    return all(at >= ends[side][partition] for side in Side for partition, at in positions[side].items())


def run(settings: dict[str, Any], text: str, events: int, broker: int) -> dict[str, float]:
    """All shards of a comparison at once: when the last one was done, and what they and the broker spent."""
    count = settings["shards"]
    start, results = _spawn.Barrier(count + 1), _spawn.Queue()
    processes = [
        _spawn.Process(target=shard_loop, args=(settings, text, number, start, results))
        for number in range(count)
    ]
    for process in processes:
        process.start()
    start.wait()
    began = spent_by(broker)
    found = [results.get(timeout=600) for _ in processes]
    by_broker = spent_by(broker) - began
    for process in processes:
        process.join()
    assert sum(matched for _, _, matched in found) == events, "the two topics are equal"
    busiest, matchers = max(one[1] for one in found), sum(one[1] for one in found)
    return {
        "seconds": max(one[0] for one in found),
        "busiest": busiest,
        "matchers": matchers,
        "broker": by_broker,
        "on_these_cores": max(busiest, (matchers + by_broker) / (os.cpu_count() or 1)),
    }


def measure(stack: Stack, events: int, order: str, shards: int, rounds: int) -> dict[str, Any]:
    """Fill the topics, then run the rounds."""
    topics = [f"sharding.{order}.{side}" for side in SIDES]
    for topic in topics:
        stack.kafka.create_topic(topic, partitions=PARTITIONS)
    produce(stack.kafka.brokers, topics, events, "all")
    common = {"brokers": stack.kafka.brokers, "redis": stack.redis.url}
    assert stack.kafka.process is not None, "the stack runs"
    broker = stack.kafka.process.process_id
    found: dict[int, list[dict[str, float]]] = {1: [], shards: []}
    for number in range(rounds):
        for count, runs in found.items():
            name = f"sharding-{order.replace('_', '-')}-{count}-{number}"
            text = spec_text(name, topics, order, "all") + "co_partitioned: true\n"
            runs.append(run({**common, "shards": count}, text, events, broker))

    def ratio(member: str) -> float:
        pairs = zip(found[1], found[shards], strict=True)
        return round(median(one[member] / several[member] for one, several in pairs), 2)

    return {
        "order": order,
        "events_a_side": events,
        "shards": shards,
        "events_per_second": {
            count: round(2 * events / median(one["seconds"] for one in runs)) for count, runs in found.items()
        },
        "processor_us_an_event": {
            count: {
                name: round(1e6 * median(one[name] for one in runs) / (2 * events), 2)
                for name in ("busiest", "matchers", "broker")
            }
            for count, runs in found.items()
        },
        "time": ratio("seconds"),
        "work": ratio("busiest"),
        "on_these_cores": ratio("on_these_cores"),
    }


@click.command(help=__doc__)
@click.option("--events", default=500_000, show_default=True, help="Events on each side.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--shards", default=2, show_default=True)
@click.option("--order", default="per_key", show_default=True, type=click.Choice(["per_key", "unordered"]))
@click.option(
    "--json", "file", type=click.Path(dir_okay=False), help="Write the report there, not to stdout."
)
def main(events: int, rounds: int, shards: int, order: str, file: str | None) -> None:
    """Measure, and write the report."""
    with tempfile.TemporaryDirectory(prefix="twinstream-sharding-") as folder, Stack(Path(folder)) as stack:
        result = measure(stack, events, order, shards, rounds)
    write_report({**environment(), "rounds": rounds, "result": result}, file)


if __name__ == "__main__":
    main()
