"""How fast the matcher is, as a share of a bare loop over the same topics in the same run.

    python -m loadtest.bench [--events 1000000] [--order per_key|unordered|total] [--keep hashes]
                             [--json FILE]

Two topics of keyed JSON events stand ready on the embedded broker. Each round measures, in processes of
their own:

a. *bare*: a loop that consumes both topics and reads each value, with one consumer for both or one for each,
   whichever is faster;
b. *matcher*: the service's own worker loop, with checkpoints to Redis and statuses published once a second.

The rate counts events of both sides. What counts is the ratio within one run: the rates alone depend on the
machine and on what else it does.
"""

from __future__ import annotations

import gc
import tempfile
import time
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import click
import orjson
from confluent_kafka import Consumer, Producer, TopicPartition
from rich.console import Console
from rich.table import Table

from deploy.embedded.stack import Stack
from loadtest.measuring import apart, environment, peak_mib, write_report
from loadtest.memory import MemoryPublisher
from twinstream.bootstrap import GC_THRESHOLD, make_worker
from twinstream.intake.falls import TRAIL_LENGTH
from twinstream.processes.supervisor import StartArgs
from twinstream.settings import Settings
from twinstream.spec.load import loads

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


def bare_loop(brokers: str, topics: list[str], partitions: int, events: int) -> dict[str, float]:
    """Consume all topics with one consumer and read every value."""
    return _read_all([_consumer(brokers, topics, partitions)], events)


def bare_loop_of_two(brokers: str, topics: list[str], partitions: int, events: int) -> dict[str, float]:
    """The same with a consumer for each topic, read in turn."""
    return _read_all([_consumer(brokers, [topic], partitions) for topic in topics], events)


def _consumer(brokers: str, topics: list[str], partitions: int) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": "bench-bare",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 10,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, p, 0) for topic in topics for p in range(partitions)])
    return consumer


def _read_all(consumers: list[Consumer], events: int) -> dict[str, float]:
    seen = 0
    started = time.perf_counter()
    while seen < events:
        for consumer in consumers:
            for message in consumer.consume(1000, 0.05 / len(consumers)):
                message.value()
                seen += 1
    elapsed = time.perf_counter() - started
    for consumer in consumers:
        consumer.close()
    return {"seconds": elapsed, "peak_mib": peak_mib()}


def matcher_loop(brokers: str, redis: str, spec_text: str, events: int) -> dict[str, float]:
    """The service's own worker, until every event is matched."""
    gc.set_threshold(GC_THRESHOLD, 50, 100)
    settings, brief = Settings(brokers=brokers, redis=redis), StartArgs("bench", [0] * TRAIL_LENGTH)
    worker = make_worker(settings, loads(spec_text), MemoryPublisher(), brief)
    assert worker.start(), "the comparison starts on an empty store"
    started = time.perf_counter()
    while worker.comparison.matched * 2 < events:
        worker.step()
        assert not worker.comparison.diverged, "the two topics are equal"
    elapsed = time.perf_counter() - started
    peak_unmatched = worker.intake.max_unmatched
    worker.stop()
    return {"seconds": elapsed, "peak_mib": peak_mib(), "peak_unmatched": peak_unmatched}


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
    results: dict[str, list[dict[str, float]]] = {"bare": [], "matcher": []}
    for number in range(rounds):
        one = apart(bare_loop, brokers, topics, partitions, 2 * events)
        two = apart(bare_loop_of_two, brokers, topics, partitions, 2 * events)
        results["bare"].append(min(one, two, key=lambda result: result["seconds"]))
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
    rates = {name: [2 * events / run["seconds"] for run in runs] for name, runs in results.items()}
    ratios = [matcher / bare for bare, matcher in zip(rates["bare"], rates["matcher"], strict=True)]
    return {
        "order": order,
        "equality": equality,
        "events_a_side": events,
        "event_bytes": round(event_bytes, 1),
        "bare_events_per_second": round(median(rates["bare"])),
        "matcher_events_per_second": round(median(rates["matcher"])),
        "ratio": round(median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "bare_peak_mib": round(max(run["peak_mib"] for run in results["bare"])),
        "matcher_peak_mib": round(max(run["peak_mib"] for run in results["matcher"])),
        "matcher_peak_unmatched": max(run["peak_unmatched"] for run in results["matcher"]),
    }


def print_table(rows: list[dict[str, Any]]) -> None:
    """The rows on standard error."""
    table = Table(title="Kafka to verdict, events of both sides per second")
    for heading in ("order", "compared", "bare", "matcher", "ratio", "peak MiB", "peak unmatched"):
        table.add_column(heading, justify="left" if heading in ("order", "compared") else "right")
    for row in rows:
        table.add_row(
            row["order"],
            {"all": "all fields", "ignore": "all but one field"}[row["equality"]],
            f"{row['bare_events_per_second']:,}",
            f"{row['matcher_events_per_second']:,}",
            f"{row['ratio']:.2f}",
            f"{row['matcher_peak_mib']:,}",
            f"{row['matcher_peak_unmatched']:,}",
        )
    Console(stderr=True).print(table)


@click.command(help=__doc__)
@click.option("--events", default=1_000_000, show_default=True, help="Events on each side.")
@click.option("--rounds", default=3, show_default=True)
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
