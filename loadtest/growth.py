"""Whether memory grows: that of a matcher and of its Redis, over a day's events as fast as they match.

    python -m loadtest.growth [--events 100000000] [--json FILE] [--plot FILE]

The service's own worker loop reads two generated topics (see `day`) with disorder, retries and a trickle of
differences, and saves to a real Redis. A hundred million events of both sides are a day of Kafka's time. The
clock of the worker is quick, so that it saves up to ten times a second, within the share of its time that it
may take for that. All along its resident memory and Redis' `used_memory` are taken down, into the report at
once, so that a run may be cut short.

Both go up and down with what waits and with the deltas of checkpoints. So what counts is each quarter's
median and peak, and the slope of a line through all samples behind the first quarter, in which fills up what
is bounded, like kept divergences. At the end the differences found must be those that were planted.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import linear_regression, median
from typing import Any

import click
import redis
from matplotlib.figure import Figure
from rich.console import Console

from deploy.embedded.redis_server import RedisServer
from loadtest import day
from loadtest.generated import NO_DISK, redis_figures, started_worker
from loadtest.measuring import apart, environment, report_text
from twinstream.core.events import Side
from twinstream.matcher.memory import resident_bytes
from twinstream.matcher.worker import Worker

PACE = 10.0
SAMPLES = 400
FOLDER = Path(".bench")
MIB = 2**20
MEASURES = {"matcher": "resident memory of the matcher", "redis": "used_memory of Redis"}

Sample = dict[str, float]


def watched(events: int, samples: int = SAMPLES, file: str | None = None) -> dict[str, Any]:
    """Run so many events through a worker, and take samples on the way, each into the file at once."""
    blocks = max(1, events // (2 * day.BLOCK))
    streams = {Side.LEFT: day.reference(blocks), Side.RIGHT: day.candidate(blocks)}
    taken: list[Sample] = []
    with (
        tempfile.TemporaryDirectory(prefix="twinstream-growth-") as folder,
        RedisServer(Path(folder), config=NO_DISK) as server,
        redis.Redis.from_url(server.url) as client,
    ):
        worker, source = started_worker(day.SPEC, streams, server.url, PACE)
        started, every, due = time.monotonic(), 2 * day.BLOCK * blocks / samples, 0.0
        while not source.over:
            worker.step()
            if source.delivered >= due:
                due += every
                taken.append(_sample(worker, client, source.delivered, time.monotonic() - started))
                _write(file, summary(taken))
        worker.beat()
        worker.stop()
        busy_ms = redis_figures(client)["busy_ms_at_most"]
    return {"redis_busy_ms_at_most": busy_ms, "outcome": _outcome(worker, blocks), **summary(taken)}


def _write(file: str | None, result: dict[str, Any]) -> None:
    if file is not None:
        Path(file).write_bytes(report_text({**environment(), "growth": result}))


def summary(taken: Sequence[Sample]) -> dict[str, Any]:
    """How memory went in these samples."""
    return {
        "events": taken[-1]["events"],
        "seconds": taken[-1]["seconds"],
        "saves": taken[-1]["saves"],
        "quarters": {name: quarters([sample[name] for sample in taken]) for name in MEASURES},
        "slope_mib_a_million_events": {name: slope(taken, name) for name in MEASURES},
        "samples": taken,
    }


def _sample(worker: Worker, client: Any, events: int, seconds: float) -> Sample:
    comparison = worker.comparison
    return {
        "events": events,
        "seconds": round(seconds, 1),
        "matcher": round(resident_bytes() / MIB, 2),
        "redis": round(redis_figures(client)["used_memory"] / MIB, 2),
        "unmatched": sum(comparison.unmatched(side) for side in Side),
        "divergences": comparison.differences.closed_by_kind.total(),
        "saves": int(client.hget("twinstream:{growth}:checkpoint", "sequence") or 0),
        "load": round(os.getloadavg()[0], 2),
    }


def _outcome(worker: Worker, blocks: int) -> dict[str, Any]:
    """What was found, held against what was planted."""
    comparison = worker.comparison
    found = dict(sorted(comparison.differences.closed_by_kind.items()))
    wanted = dict(sorted(day.planted(blocks).items()))
    assert not comparison.holes, comparison.holes
    return {
        "matched": comparison.matched,
        "replayed": sum(account.replayed for account in comparison.accounts),
        "found": found,
        "planted": wanted,
        "as_planted": found == wanted,
    }


def quarters(values: Sequence[float]) -> list[dict[str, float]]:
    """Median and peak of each quarter of a run."""
    bounds = [len(values) * number // 4 for number in range(5)]
    parts = [values[first:last] for first, last in pairwise(bounds)]
    return [{"median": median(part), "peak": max(part)} for part in parts if part]


def slope(samples: Sequence[Sample], name: str) -> float:
    """MiB by which something grows in a million events, behind the first quarter."""
    later = samples[len(samples) // 4 :]
    if len(later) < 2:
        return 0.0
    millions = [each["events"] / 1e6 for each in later]
    return round(linear_regression(millions, [each[name] for each in later]).slope, 4)


def print_quarters(result: dict[str, Any], say: Callable[[str], None]) -> None:
    """A few lines for people."""
    say(f"{result['events']:,} events in {result['seconds']:,} s, {result['saves']:,.0f} saves")
    for name, text in MEASURES.items():
        parts = ", ".join(f"{each['median']:.1f} ({each['peak']:.1f})" for each in result["quarters"][name])
        say(f"{text}, MiB by quarter, median (peak): {parts}; "
            f"{result['slope_mib_a_million_events'][name]:+.4f} in a million events")  # fmt: skip
    say(f"differences: {result['outcome']}")


def plot(result: dict[str, Any], file: str) -> None:
    """Both memories over the events."""
    figure = Figure(figsize=(10, 7), dpi=110)
    panels = figure.subplots(len(MEASURES), 1, sharex=True)
    millions = [sample["events"] / 1e6 for sample in result["samples"]]
    for panel, (name, text) in zip(panels, MEASURES.items(), strict=True):
        panel.plot(millions, [sample[name] for sample in result["samples"]], linewidth=0.8)
        panel.set(ylabel="MiB", title=text)
        panel.set_ylim(bottom=0)
        panel.grid(visible=True, alpha=0.2)
    panels[-1].set_xlabel("million events of both sides")
    figure.tight_layout()
    figure.savefig(file)


@click.command(help=__doc__)
@click.option("--events", default=100_000_000, show_default=True, help="Events of both sides.")
@click.option("--json", "file", default=str(FOLDER / "growth.json"), show_default=True)
@click.option("--plot", "picture", default=str(FOLDER / "growth.png"), show_default=True)
def main(events: int, file: str, picture: str) -> None:
    """Run it in a process of its own, so that its memory is; write the report and the plot."""
    for target in (file, picture):
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    result = apart(watched, events, SAMPLES, file)
    _write(file, result)
    print_quarters(result, Console(stderr=True, soft_wrap=True).print)
    plot(result, picture)


if __name__ == "__main__":
    main()
