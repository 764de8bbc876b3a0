"""How fast the matcher is, as a share of a bare loop over the same topics in the same run.

    python -m loadtest.bench [--events 1000000] [--order per_key|unordered|total] [--keep hashes]
                             [--json FILE]

Two topics of keyed JSON events stand ready on the embedded broker. Each round measures, in processes of
their own:

a. *bare*: a loop that consumes both topics and reads each value (see `bare`), with one consumer for both or
   one for each, whichever is faster; once in a *fresh* process, and once in a *loaded* one;
b. *matcher*: the service's own worker loop, with checkpoints to Redis and statuses published once a second.

A rate counts events of both sides, in the steady part of a run: behind the first tenth. The start stands
apart: from an empty process to the first record of both sides. What counts are the ratios within one round:
the rates alone depend on the machine and on what else it does.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any

import click
import orjson
from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from deploy.embedded.stack import Stack
from loadtest.bare import STEADY_FROM, measured
from loadtest.measuring import apart, environment, peak_mib, write_report
from loadtest.memory import MemoryPublisher
from twinstream.bootstrap import make_worker
from twinstream.intake.falls import TRAIL_LENGTH
from twinstream.matcher.memory import collect_rarely
from twinstream.processes.supervisor import StartArgs
from twinstream.settings import Settings
from twinstream.spec.load import loads

START_SECONDS = 30
PARTITIONS = 4
KEYS = 1000
SIDES = ("reference", "candidate")
ORDERS = {"per_key": "{per_key: [ad_id]}", "unordered": "unordered", "total": "total"}
EQUALITIES = {"all": "{}", "ignore": "{ignore: [processed_at]}"}


def event(number: int, side: str, equality: str) -> tuple[bytes, bytes]:
    """Key and value of the n-th event: about 150 bytes of JSON, as Spark's ``to_json`` writes it."""
    ad = f"ad-{number % KEYS:04d}-7f3c9a51"
    value: dict[str, Any] = {
        "campaign_id": f"campaign-{number % 100:03d}-2b1e",
        "ad_id": ad,
        "event_time": f"2026-01-01T00:00:{number // 1000 % 60:02d}.{number % 1000:03d}Z",
        "sequence": number,
        "country": "NL",
    }
    if equality == "ignore":
        value["processed_at"] = f"{side}-{number}"
    return ad.encode(), orjson.dumps(value)


def produce(brokers: str, topics: list[str], events: int, equality: str) -> int:
    """Fill both topics side by side, as pipelines do that run at one time; the bytes of their values."""
    producer = Producer(
        {
            "bootstrap.servers": brokers,
            "partitioner": "murmur2_random",
            "linger.ms": 50,
            "batch.size": 500_000,
            "queue.buffering.max.messages": 1_000_000,
            "enable.idempotence": True,
        }
    )
    size = 0
    for number in range(events):
        for topic, side in zip(topics, SIDES, strict=True):
            key, value = event(number, side, equality)
            size += len(value)
            _send(producer, topic, key, value)
        if number % 5_000 == 0:
            producer.poll(0)
    assert producer.flush(300) == 0, "Kafka took everything"
    return size


def _send(producer: Producer, topic: str, key: bytes, value: bytes) -> None:
    while True:
        try:
            producer.produce(topic, value, key)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def matcher_loop(brokers: str, redis: str, spec_text: str, events: int) -> dict[str, float]:
    """The service's own worker, until every event is matched."""
    collect_rarely()
    settings, brief = Settings(brokers=brokers, redis=redis), StartArgs("bench", [0] * TRAIL_LENGTH)
    publisher = MemoryPublisher()
    worker = make_worker(settings, loads(spec_text), publisher, brief)
    started = time.perf_counter()
    while not worker.start():  # As the service does, while the broker takes what was written.
        assert time.perf_counter() < started + START_SECONDS, publisher.published[-1]
    while not all(worker.intake.newest_ms.values()):
        worker.step()
    start_seconds = time.perf_counter() - started
    while worker.comparison.matched * 2 < STEADY_FROM * events:
        worker.step()
    steady, before = time.perf_counter(), worker.comparison.matched
    while worker.comparison.matched * 2 < events:
        worker.step()
        assert not worker.comparison.diverged, "the two topics are equal"
    rate = 2 * (worker.comparison.matched - before) / (time.perf_counter() - steady)
    peak_unmatched = worker.intake.max_unmatched
    worker.stop()
    return {
        "start_seconds": start_seconds,
        "rate": rate,
        "peak_mib": peak_mib(),
        "peak_unmatched": peak_unmatched,
    }


def measure(
    stack: Stack, events: int, order: str, equality: str, rounds: int, keep: str = "records"
) -> dict[str, Any]:
    """Fill the topics, then run the rounds."""
    partitions = 1 if order == "total" else PARTITIONS
    topics = [f"bench.{order}.{equality}.{side}" for side in SIDES]
    brokers, redis = stack.kafka.brokers, stack.redis.url
    for topic in topics:
        stack.kafka.create_topic(topic, partitions=partitions)
    size = produce(brokers, topics, events, equality)
    results: dict[str, list[dict[str, float]]] = {"fresh": [], "loaded": [], "matcher": []}
    for number in range(rounds):
        for name in ("fresh", "loaded"):
            bare = partial(measured, brokers, topics, partitions, 2 * events, loaded=name == "loaded")
            results[name].append(max(bare(consumers=1), bare(consumers=2), key=itemgetter("rate")))
        spec = spec_text(f"bench-{order.replace('_', '-')}-{equality}-{number}", topics, order, equality)
        spec += f"keep: {keep}\n"
        results["matcher"].append(apart(matcher_loop, brokers, redis, spec, 2 * events))
    return _summary(results, events, order, equality, size / (2 * events))


def spec_text(name: str, topics: list[str], order: str, equality: str) -> str:
    """The comparison file of two topics."""
    return (
        f"version: 1\nname: {name}\nreference: {{topic: {topics[0]}}}\ncandidate: {{topic: {topics[1]}}}\n"
        f"order: {ORDERS[order]}\nequality: {EQUALITIES[equality]}\n"
    )


def _summary(
    results: dict[str, list[dict[str, float]]], events: int, order: str, equality: str, event_bytes: float
) -> dict[str, Any]:
    rates = {name: [run["rate"] for run in runs] for name, runs in results.items()}
    ratios = {
        name: [matcher / bare for bare, matcher in zip(rates[name], rates["matcher"], strict=True)]
        for name in ("fresh", "loaded")
    }
    return {
        "order": order,
        "equality": equality,
        "events_a_side": events,
        "event_bytes": round(event_bytes, 1),
        "events_per_second": {name: round(median(found)) for name, found in rates.items()},
        "ratio": {name: round(median(found), 3) for name, found in ratios.items()},
        "ratios": {name: [round(ratio, 3) for ratio in found] for name, found in ratios.items()},
        "start_seconds": round(median(run["start_seconds"] for run in results["matcher"]), 3),
        "matcher_peak_mib": round(max(run["peak_mib"] for run in results["matcher"])),
        "matcher_peak_unmatched": max(run["peak_unmatched"] for run in results["matcher"]),
    }


def print_table(rows: list[dict[str, Any]]) -> None:
    """The rows on standard error."""
    table = Table(title="Kafka to verdict, events of both sides per second")
    rates = ("bare, fresh", "bare, loaded", "matcher", "of fresh", "of loaded")
    for heading in ("order", "compared", *rates, "start, s", "peak MiB", "peak unmatched"):
        table.add_column(heading, justify="left" if heading in ("order", "compared") else "right")
    for row in rows:
        table.add_row(
            row["order"],
            {"all": "all fields", "ignore": "all but one field"}[row["equality"]],
            *(f"{row['events_per_second'][name]:,}" for name in ("fresh", "loaded", "matcher")),
            *(f"{row['ratio'][name]:.2f}" for name in ("fresh", "loaded")),
            f"{row['start_seconds']:.2f}",
            f"{row['matcher_peak_mib']:,}",
            f"{row['matcher_peak_unmatched']:,}",
        )
    Console(stderr=True, width=120).print(table)


@click.command(help=__doc__)
@click.option("--events", default=1_000_000, show_default=True, help="Events on each side.")
@click.option("--rounds", default=5, show_default=True)
@click.option(
    "--order", "orders", multiple=True, type=click.Choice(list(ORDERS)), help="Default: per_key, unordered."
)
@click.option("--equality", "equalities", multiple=True, type=click.Choice(list(EQUALITIES)))
@click.option("--keep", default="records", type=click.Choice(["records", "hashes"]))
@click.option(
    "--json", "file", type=click.Path(dir_okay=False), help="Write the report there, not to stdout."
)
def main(
    events: int,
    rounds: int,
    orders: tuple[str, ...],
    equalities: tuple[str, ...],
    keep: str,
    file: str | None,
) -> None:
    """Measure, print the table, and write the report."""
    cases = product(equalities or EQUALITIES, orders or ("per_key", "unordered"))
    with tempfile.TemporaryDirectory(prefix="twinstream-bench-") as folder, Stack(Path(folder)) as stack:
        rows = [measure(stack, events, order, equality, rounds, keep) for equality, order in cases]
    print_table(rows)
    write_report({**environment(), "rounds": rounds, "keep": keep, "results": rows}, file)


if __name__ == "__main__":
    main()
