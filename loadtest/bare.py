"""A bare loop: it consumes topics and reads each value. Every benchmark from Kafka on is a share of its rate.

    python -m loadtest.bare --brokers HOST:PORT --topic A --topic B --partitions 4 --events N
                            [--consumers 2] [--loaded]

It runs in a process of its own, and prints how long it took as JSON. The process is *fresh*: it has loaded
nothing but the client. A *loaded* one has the modules of the matcher in memory, which Python's collector goes
through again and again; so has every program of some size.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Sequence

import click
from confluent_kafka import Consumer, TopicPartition

STEADY_FROM = 0.1
"""The share of all events behind which a rate is measured: before, a run starts."""


def measured(
    brokers: str, topics: Sequence[str], partitions: int, events: int, *, consumers: int, loaded: bool
) -> dict[str, float]:
    """Run the loop in a process of its own; returns what it prints."""
    command = [sys.executable, "-m", "loadtest.bare", "--brokers", brokers]
    command += [part for topic in topics for part in ("--topic", topic)]
    command += ["--partitions", str(partitions), "--events", str(events), "--consumers", str(consumers)]
    done = subprocess.run([*command, *(["--loaded"] if loaded else [])], check=True, stdout=subprocess.PIPE)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def consumer(brokers: str, topics: Sequence[str], partitions: int) -> Consumer:
    """A consumer of all partitions of some topics, from their beginning."""
    made = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": "bench-bare",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 10,
            "isolation.level": "read_committed",
        }
    )
    made.assign([TopicPartition(topic, p, 0) for topic in topics for p in range(partitions)])
    return made


def read_all(consumers: Sequence[Consumer], events: int) -> dict[str, float]:
    """Read every value; returns the rate of the steady part."""
    before = _read(consumers, int(STEADY_FROM * events), 0)
    started = time.perf_counter()
    seen = _read(consumers, events, before)
    return {"rate": (seen - before) / (time.perf_counter() - started)}


def _read(consumers: Sequence[Consumer], events: int, seen: int) -> int:
    while seen < events:
        for one in consumers:
            for message in one.consume(1000, 0.05 / len(consumers)):
                message.value()
                seen += 1
    return seen


@click.command(help=__doc__)
@click.option("--brokers", required=True)
@click.option("--topic", "topics", multiple=True, required=True)
@click.option("--partitions", type=int, required=True)
@click.option("--events", type=int, required=True)
@click.option("--consumers", type=click.IntRange(1, 2), default=1, help="For all topics, or for each.")
@click.option("--loaded", is_flag=True, help="Load the modules of the matcher first.")
def main(
    brokers: str, topics: tuple[str, ...], partitions: int, events: int, consumers: int, *, loaded: bool
) -> None:
    """Measure, and print the result."""
    if loaded:
        importlib.import_module("twinstream.bootstrap")
    groups = [topics] if consumers == 1 else [(topic,) for topic in topics]
    made = [consumer(brokers, group, partitions) for group in groups]
    print(json.dumps(read_all(made, events)))
    for one in made:
        one.close()


if __name__ == "__main__":
    main()
