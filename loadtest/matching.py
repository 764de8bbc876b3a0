"""How long matching alone takes, in memory, by index structure and by number of unmatched events.

    python -m loadtest.matching [--quick] [--only NAME]... [--json FILE] [--plot FILE]

For each scenario (see `matching_scenarios`) the left stream runs ahead of the right one by a *drift*, the
number of events that stay unmatched. Both streams are fed in turn, in runs of 1,000 decoded events, to the
comparison as the service does: what is measured is `Comparison.known` and `feed`, with accounts and the
memory of recent matches, but no reading, decoding or explaining. So between drift and drift + 1,000 events
are unmatched. Forms are made before, those of each side from bytes of its own; the garbage collector is set
as in the service.

A time is the processor time of one event of either side: the median of the rounds, and the smallest. How fast
the machine was just then tells the *yardstick*, one turn of a plain loop before each round: times of two runs
compare only where that is about the same. Beside the times stand the targets, and the plain matcher of the
paper (see `plain_pairwise`) at the drifts that it can bear, fed event by event. Memory is what a process
grows by while so many events become unmatched, less their bytes.

For orientation, the authors' matcher in Java, with 1,000 keys, took for an event of a keyed order 0.43 µs at
drift 10, 0.42 at 100, 3.1 at 1,000 and 45 at 10,000; of a bag 0.33, 0.44, 2.8 and 49; of a total order 2.0 at
10 and 66 at 100 (on other hardware).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, cast

import click
from rich.console import Console

from loadtest.matching_report import plot, print_tables
from loadtest.matching_scenarios import MORE_US, PHASE, SCENARIOS, Partners, Scenario, Stream
from loadtest.measuring import apart, environment, peak_mib, report_text, yardstick_ns
from loadtest.plain_pairwise import Pairwise
from twinstream.core.arrivals.run import Run
from twinstream.core.comparison import Comparison
from twinstream.core.events import Form, Side
from twinstream.matcher.memory import collect_rarely, resident_bytes
from twinstream.spec.codec.codec import Codec
from twinstream.spec.compile.compile import rules_of
from twinstream.spec.load import loads

RUN = 1000
DRIFTS = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
RUNS_A_LOOK = 200
"""A matcher looks at all unmatched events once a second."""
PLAIN_DRIFTS = (10, 100, 1_000, 10_000)
PLAIN_PAIRS = 1_000_000
"""Pairs of events that one measurement of the plain matcher may look at."""
KEYS = (1, 100_000)
PARTNERS: tuple[Partners, ...] = ("fifo", "random")
SMALL = 10_000
"""Up to so many unmatched events the time of an event has a target."""
MEMORY_BYTES = 300
PUBLISHED_JAVA_US = {
    "keyed": {10: 0.43, 100: 0.42, 1_000: 3.1, 10_000: 45.0},
    "bag": {10: 0.33, 100: 0.44, 1_000: 2.8, 10_000: 49.0},
    "total": {10: 2.0, 100: 66.0},
}
"""Microseconds an event of the matcher of DiffStream's authors, with 1,000 keys, by drift."""
FOLDER = Path(".bench")


# -- preparing ---------------------------------------------------------------------------------------------


def new_comparison(scenario: Scenario) -> Comparison:
    """An empty comparison of a scenario."""
    spec = loads(scenario.spec)
    return Comparison(rules_of(spec, Codec(spec)))


def forms_of(codec: Codec, contents: list[bytes]) -> list[Form]:
    """The forms of one run. Forms of the other side are made by a codec of its own, from its own bytes."""
    forms, refused = codec.forms(contents)
    assert not refused, "every event is one of the comparison"
    return forms


Taken = tuple[list[bytes], Run]
"""A run with its records, by which twins are looked up."""


def runs(stream: Stream, numbers: list[int] | range) -> Iterator[Taken]:
    """Runs of the events of those numbers."""
    codec = Codec(loads(stream.scenario.spec))
    for start in range(0, len(numbers), RUN):
        some = numbers[start : start + RUN]
        records = [stream.item(number).content for number in some]
        forms = forms_of(codec, records)
        places = list(range(start, start + len(some)))
        yield records, Run(forms, 0, places, [1_700_000_000_000 + place for place in places], 0.0)


# -- measuring ---------------------------------------------------------------------------------------------


def measure_matching(
    name: str, keys: int, partners: Partners, drift: int, rounds: int, length: int
) -> dict[str, Any]:
    """Nanoseconds an event in each round of `length` runs of both sides, with `drift` events unmatched."""
    scenario = SCENARIOS[name]
    stream = Stream(scenario, keys, scenario.phase(partners, drift))
    count = rounds * length * RUN
    comparison = new_comparison(scenario)
    ahead = list(runs(stream, range(drift)))
    left = list(runs(stream, range(drift, drift + count)))
    right = list(runs(stream, stream.right(count, drift, partners)))
    _freeze()
    for run in ahead:
        feed(comparison, Side.LEFT, run)
    turns, times = [], []
    for start in range(0, rounds * length, length):
        turns.append(yardstick_ns())
        times.append(_round(comparison, left, right, slice(start, start + length)))
    _check(comparison, drift, count)
    return _summary(times, 2 * length * RUN) | {"yardstick_ns": turns}


def _summary(seconds: list[float], events: int) -> dict[str, Any]:
    """Nanoseconds an event, from the seconds of rounds of so many events."""
    each = [round(1e9 * one / events, 1) for one in seconds]
    return {"median_ns": median(each), "least_ns": min(each), "rounds_ns": each}


def _freeze() -> None:
    """Collect as the service does, and keep what was prepared out of it."""
    collect_rarely()
    gc.collect()
    gc.freeze()


def feed(comparison: Comparison, side: Side, taken: Taken) -> None:
    """Feed a run as the service does: with the forms that are known, and the twins of its records."""
    records, run = taken
    known = comparison.known(side, run.partition, records)
    if known.forms is not None and all(known.forms):
        run = run._replace(forms=cast("Sequence[Form]", known.forms))
    comparison.feed(side, run._replace(twins=known.twins))


def _round(comparison: Comparison, left: list[Taken], right: list[Taken], part: slice) -> float:
    started = time.process_time()
    for ours, theirs in zip(left[part], right[part], strict=True):
        feed(comparison, Side.LEFT, ours)
        feed(comparison, Side.RIGHT, theirs)
    return time.process_time() - started


def _check(comparison: Comparison, drift: int, matched: int) -> None:
    """That what was measured is what was meant."""
    assert not comparison.diverged, "the two streams are equivalent"
    assert not comparison.holes, "all of it was compared"
    assert comparison.matched == matched, "every event of the right found its partner"
    assert [comparison.unmatched(side) for side in Side] == [drift, 0], "the left side is ahead"


def measure_plain(name: str, keys: int, drifts: Sequence[int], rounds: int) -> dict[int, Any]:
    """The same for the plain matcher, first in, first out, by drift."""
    scenario = SCENARIOS[name]
    stream = Stream(scenario, keys, PHASE)
    return {drift: _measure_plain(scenario, stream, drift, rounds) for drift in drifts}


def _measure_plain(scenario: Scenario, stream: Stream, drift: int, rounds: int) -> dict[str, Any]:
    events = max(20, min(2_000, PLAIN_PAIRS // drift // rounds))
    items = [stream.item(number) for number in range(drift + rounds * events)]
    twins = [stream.item(number) for number in range(rounds * events)]
    matcher = Pairwise(scenario.dependent)
    matcher.unmatched[0].extend(items[:drift])
    times = []
    for start in range(0, rounds * events, events):
        started = time.process_time()
        for number in range(start, start + events):
            matcher.feed(0, items[drift + number])
            matcher.feed(1, twins[number])
        times.append(time.process_time() - started)
    assert not matcher.diverged, "the two streams are equivalent"
    assert len(matcher.unmatched[0]) == drift, "every event of the right found its partner"
    return _summary(times, 2 * events)


def measure_memory(name: str, keys: int, drift: int) -> dict[str, Any]:
    """Bytes by which an unmatched event lets the process grow, beyond its record, and the peak of it all."""
    scenario = SCENARIOS[name]
    stream = Stream(scenario, keys, scenario.phase("fifo", drift))
    comparison = new_comparison(scenario)
    _freeze()
    before = resident_bytes()
    payload = 0
    for number, (records, run) in enumerate(runs(stream, range(drift))):
        payload += sum(map(len, records))
        comparison.feed(Side.LEFT, run)
        if number % RUNS_A_LOOK == 0:
            comparison.settle()
    gc.collect()
    grown = resident_bytes() - before
    return {
        "bytes_beyond_payload": round((grown - payload) / drift),
        "payload_bytes": round(payload / drift),
        "peak_rss_mib": round(peak_mib()),
    }


# -- all of it ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Effort:
    """How much to measure: `length` runs of both sides in each round, and drifts up to `most`."""

    rounds: int
    length: int
    most: int

    @property
    def drifts(self) -> list[int]:
        """The numbers of unmatched events to measure at."""
        return [drift for drift in DRIFTS if drift <= self.most]


def measure_all(names: Sequence[str], effort: Effort, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """One row for each scenario, number of keys and order of partners."""
    for name, keys, partners in product(names, KEYS, PARTNERS):
        if SCENARIOS[name].allows(partners, keys):
            say(f"{name}, {keys:,} keys, {partners}")
            yield _row(name, keys, partners, effort)


def _row(name: str, keys: int, partners: Partners, effort: Effort) -> dict[str, Any]:
    scenario = SCENARIOS[name]
    row: dict[str, Any] = {
        "scenario": name,
        "order": scenario.order,
        "keys": keys,
        "partners": partners,
        "rules": scenario.rules,
        "target_ns": 1000 * scenario.target_us,
        "by_drift": {
            drift: apart(measure_matching, name, keys, partners, drift, effort.rounds, effort.length)
            for drift in effort.drifts
        },
    }
    if partners == "fifo":
        row["memory"] = apart(measure_memory, name, keys, max(effort.most, 100_000))
        drifts = [drift for drift in PLAIN_DRIFTS if drift <= effort.most]
        row["plain"] = apart(measure_plain, name, keys, drifts, effort.rounds)
    return row | {"meets": verdicts(row, scenario.times)}


def verdicts(row: dict[str, Any], times: float | None) -> dict[str, bool]:
    """Which targets the medians of a row meet."""
    medians = {drift: found["median_ns"] for drift, found in row["by_drift"].items()}
    small = max(ns for drift, ns in medians.items() if drift <= SMALL)
    meets = {"time": small <= row["target_ns"]}
    if max(medians) == max(DRIFTS):
        allowed = medians[10] * times if times else medians[10] + 1000 * MORE_US
        meets["growth"] = medians[max(DRIFTS)] <= allowed
    if "memory" in row:
        meets["memory"] = row["memory"]["bytes_beyond_payload"] <= MEMORY_BYTES
    return meets


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Fewer rounds, and up to 10,000 unmatched events only.")
@click.option("--only", "names", multiple=True, type=click.Choice(list(SCENARIOS)), help="Default: all.")
@click.option("--json", "file", default=str(FOLDER / "matching.json"), show_default=True)
@click.option("--plot", "picture", default=str(FOLDER / "matching.png"), show_default=True)
def main(quick: bool, names: tuple[str, ...], file: str, picture: str) -> None:
    """Measure, print the tables, and write the report and the plot; the report grows row by row."""
    effort = Effort(3, 10, SMALL) if quick else Effort(7, 25, max(DRIFTS))
    for target in (file, picture):
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    settings = {"run": RUN, "rounds": effort.rounds, "runs_a_round": effort.length}
    rows: list[dict[str, Any]] = []
    report = {**environment(), **settings, "published_java_us": PUBLISHED_JAVA_US, "results": rows}
    for row in measure_all(names or tuple(SCENARIOS), effort, Console(stderr=True).print):
        rows.append(row)
        Path(file).write_bytes(report_text(report))
    print_tables(rows)
    plot(rows, picture)


if __name__ == "__main__":
    main()
