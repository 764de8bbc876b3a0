"""What rules on trial cost the matcher: its own loop without a trial and with one, over the same topics.

    python -m loadtest.trial [--events 300000] [--rounds 3] [--json FILE]

All records stand ready, which is when a trial costs most: the matcher never waits. Each round runs both, in
processes of their own, and two ratios within a round tell: how the *rate* falls, and how much more processor
time the *work* takes, which depends less on what else the machine does. The comparison reads all fields; the
trial does likewise but for the evidence that it asks for (*like*), or leaves one out, which needs another
decoding (*other*).
"""

from __future__ import annotations

import gc
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import click

from deploy.embedded.stack import Stack
from loadtest.bench import PARTITIONS, SIDES, produce, spec_text
from loadtest.measuring import apart, environment, peak_mib, write_report
from twinstream.adapters.memory import MemoryPublisher
from twinstream.bootstrap import GC_THRESHOLD, make_worker
from twinstream.runtime.falls import TRAIL_LENGTH
from twinstream.runtime.supervisor import Brief
from twinstream.settings import Settings
from twinstream.spec.load import loads
from twinstream.status import ComparisonStatus

TRIALS = {
    "none": None,
    "like": "evidence: {matched: 7}\n",
    "other": "equality: {ignore: [country]}\n",
}


def matcher_loop(brokers: str, redis: str, text: str, trial: str | None, events: int) -> dict[str, Any]:
    """The service's own worker, until every event is matched."""
    gc.set_threshold(GC_THRESHOLD, 50, 100)
    settings, brief = Settings(brokers=brokers, redis=redis), Brief("bench", [0] * TRAIL_LENGTH)
    publisher, tried = MemoryPublisher(), None if trial is None else loads(trial)
    worker = make_worker(settings, loads(text), publisher, brief, tried)
    assert worker.start(), "the comparison starts on an empty store"
    started, spent_before = time.perf_counter(), time.process_time()
    while worker.comparison.matched * 2 < events:
        worker.step()
    elapsed, spent = time.perf_counter() - started, time.process_time() - spent_before
    worker.stop()
    said = next(one for one in reversed(publisher.published) if isinstance(one, ComparisonStatus))
    assert said.trial is None or said.trial.matched * 2 == events, "the trial has matched all, too"
    return {"seconds": elapsed, "cpu_seconds": spent, "peak_mib": peak_mib()}


def measure(stack: Stack, events: int, rounds: int) -> list[dict[str, Any]]:
    """Fill the topics, then run the rounds; a row for each trial."""
    topics = [f"bench.trial.{side}" for side in SIDES]
    brokers, redis = stack.kafka.brokers, stack.redis.url
    for topic in topics:
        stack.kafka.create_topic(topic, partitions=PARTITIONS)
    produce(brokers, topics, events, "all")
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in TRIALS}
    for number in range(rounds):
        for name, change in TRIALS.items():
            text = spec_text(f"bench-trial-{name}-{number}", topics, "per_key", "all")
            trial = None if change is None else text.replace("equality: {}\n", "") + change
            runs[name].append(apart(matcher_loop, brokers, redis, text, trial, 2 * events))
    return [_row(name, runs[name], runs["none"], events) for name in TRIALS]


def _row(name: str, runs: list[dict[str, Any]], without: list[dict[str, Any]], events: int) -> dict[str, Any]:
    pairs = list(zip(without, runs, strict=True))
    rates = [plain["seconds"] / run["seconds"] for plain, run in pairs]
    work = [run["cpu_seconds"] / plain["cpu_seconds"] for plain, run in pairs]
    return {
        "trial": name,
        "events_per_second": round(median(2 * events / run["seconds"] for run in runs)),
        "rate": round(median(rates), 3),
        "rates": [round(ratio, 3) for ratio in rates],
        "work": round(median(work), 3),
        "works": [round(ratio, 3) for ratio in work],
        "peak_mib": round(max(run["peak_mib"] for run in runs)),
    }


@click.command(help=__doc__)
@click.option("--events", default=300_000, show_default=True, help="Events on each side.")
@click.option("--rounds", default=3, show_default=True)
@click.option(
    "--json", "file", type=click.Path(dir_okay=False), help="Write the report there, not to stdout."
)
def main(events: int, rounds: int, file: str | None) -> None:
    """Measure, and write the report."""
    with tempfile.TemporaryDirectory(prefix="twinstream-bench-") as folder, Stack(Path(folder)) as stack:
        rows = measure(stack, events, rounds)
    write_report({**environment(), "events_a_side": events, "rounds": rounds, "results": rows}, file)


if __name__ == "__main__":
    main()
