"""How soon a lost event is found, by the clock of `overdue`, and that an honest hour raises no alarm.

    python -m loadtest.spark.detection [--minutes 10] [--losses 20] [--after 60] [--only losses|honest]
                                       [--json FILE]

The two versions of the advertising job run on Spark and write their views to Kafka by `KafkaSink`. One
service compares the two topics three times, as a bag, in which nothing but a clock tells that an event is
missing:

- *input*: `{clock: input}`, by the control records of the sink;
- *event_time*: `{clock: event_time, field: event_time, after: 60s}`;
- *arrival*: `{clock: arrival, after: 60s}`.

**losses**: the candidate loses single views, at random moments of so many minutes. The seconds of a loss
count from the control record of the batch in which the candidate should have written it (Kafka's time) to
the first answer of the service that names the event, as a divergence or as an overdue one. It is asked for
all of them every 0.2 s, and publishes about once a second. The *batches* are those that the candidate has
finished in between. Until the reference has written the event nobody can miss it: `partner_after` are the
seconds until then, below 0 if it was first.

**honest**: both versions are right, and the times of the events run six times as fast as the clock, so that
ten minutes are an hour of them. The pipelines are as slow as ever, so they lag six times as much. The time
that counts on *arrival* is Kafka's, which nothing makes faster; so there `after` is a sixth. The number of
divergences, suspicions and holes has to be 0, and so has that of looks (one a second) at which health is not
`ok`. They count from the moment at which all three comparisons pass for the first time.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from loadtest.measuring import environment, write_report
from loadtest.spark.losses import Finding, View, chosen, row, summary
from loadtest.spark.parts import (
    CLOCKS,
    STATUS_SECONDS,
    WAIT_SECONDS,
    Asked,
    Input,
    Result,
    control_records,
    input_places,
    running,
    view_of,
)

PHASES = ("losses", "honest")
SPEED = 6.0
"""An hour in ten minutes."""
LEAD_SECONDS = 45.0
"""Before the first loss: Spark starts, and catches up."""
LOOK_SECONDS = 0.2


# -- losses ------------------------------------------------------------------------------------------------


class Watch:
    """What the service has told of lost events, by clock, and of others."""

    def __init__(self, asked: Asked, lost: list[View]) -> None:
        self._asked, self._lost = asked, set(lost)
        self._found: dict[str, dict[View, Finding]] = {clock: {} for clock in CLOCKS}

    def look(self) -> None:
        """Ask for all comparisons."""
        for clock, found in self._found.items():
            told = [(view_of(item["reference"]), item["kind"]) for item in self._asked.divergences(clock)]
            told += [(view_of(item["value"]), "suspicion") for item in self._asked.overdue(clock)]
            if any(view not in found for view, _ in told):
                at, verdict = time.time(), self._asked.statuses()[clock]["verdict"]
                for view, kind in told:
                    found.setdefault(view, Finding(at, kind, verdict))

    def found(self, clock: str) -> dict[View, Finding]:
        """All events that were told of on a clock."""
        return self._found[clock]

    def others(self, clock: str) -> Counter[str]:
        """The events that were told of, and not lost, by what they were called."""
        return Counter(found.kind for view, found in self._found[clock].items() if view not in self._lost)

    @property
    def complete(self) -> bool:
        """Whether each clock has found all that was lost."""
        return all(found.keys() >= self._lost for found in self._found.values())


def losses(folder: Path, minutes: float, count: int, after: float, rate: float, seed: int) -> Result:
    """Lose events, and see when they are found."""
    given = Input(rate, seed, time.time_ns() // 1_000_000)
    first = int(LEAD_SECONDS * rate)
    lost = chosen(given.events(), first, first + int(minutes * 60 * rate), count, seed)
    with running(folder, after, given, lost) as run:
        watch = Watch(run.asked, lost)
        until = time.monotonic() + LEAD_SECONDS + 60 * minutes + after + WAIT_SECONDS
        while not watch.complete and time.monotonic() < until:
            run.check()
            watch.look()
            time.sleep(LOOK_SECONDS)
        batches, places = control_records(run.kafka), input_places(run.kafka, set(lost))
    lossy, other = batches["candidate"], batches["reference"]
    rows = {
        clock: [row(places[view], watch.found(clock).get(view), lossy, other) for view in lost]
        for clock in CLOCKS
    }
    return {
        "minutes": minutes,
        "seed": seed,
        "after": after,
        "batch_seconds": round((lossy[-1].at - lossy[0].at) / (len(lossy) - 1), 2),
        "clocks": {clock: {**summary(rows[clock]), "others": dict(watch.others(clock))} for clock in CLOCKS},
    }


# -- the honest hour ---------------------------------------------------------------------------------------


class Calm:
    """What an honest run has shown, by clock: at most so many of each, and the looks that were not well."""

    def __init__(self) -> None:
        self.looks = 0
        self.most: dict[str, Counter[str]] = {clock: Counter() for clock in CLOCKS}
        self.unhealthy: dict[str, Counter[str]] = {clock: Counter() for clock in CLOCKS}
        self.verdicts: dict[str, Counter[str]] = {clock: Counter() for clock in CLOCKS}

    def note(self, statuses: dict[str, Result]) -> None:
        """Take in one look."""
        self.looks += 1
        for clock, status in statuses.items():
            counts = {"divergences": status["divergences"]["total"], "suspicions": status["suspicions"]}
            for name, count in {**counts, "holes": status["hole_count"]}.items():
                self.most[clock][name] = max(self.most[clock][name], count)
            self.verdicts[clock][status["verdict"]] += 1
            if status["health"]["status"] != "ok":
                self.unhealthy[clock]["; ".join(status["health"]["reasons"])] += 1

    def report(self, clock: str) -> Result:
        """What was seen of one clock."""
        return {
            **self.most[clock],
            "unhealthy": self.unhealthy[clock].total(),
            "reasons": dict(self.unhealthy[clock]),
            "verdicts": dict(self.verdicts[clock]),
        }


def honest(folder: Path, minutes: float, after: float, rate: float, seed: int) -> Result:
    """Run both versions as they are, with event times that are faster than the clock."""
    seconds = 60 * minutes
    start_ms = time.time_ns() // 1_000_000 - int(SPEED * (seconds + WAIT_SECONDS) * 1000)
    calm = Calm()
    with running(folder, after, Input(rate, seed, start_ms, SPEED), []) as run:
        run.wait(run.asked.passes, "all three comparisons pass")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            run.check()
            calm.note(run.asked.statuses())
            time.sleep(STATUS_SECONDS)
        matched = {clock: status["matched"] for clock, status in run.asked.statuses().items()}
    return {
        "minutes": minutes,
        "event_minutes": minutes * SPEED,
        "after": {"event_time": after, "arrival": after / SPEED},
        "looks": calm.looks,
        "clocks": {clock: {**calm.report(clock), "matched": matched[clock]} for clock in CLOCKS},
    }


# -- the report --------------------------------------------------------------------------------------------


def print_losses(result: Result) -> None:
    """The losses on standard error."""
    table = Table(title="How soon a lost event is found")
    for heading in ("clock", "found as", "verdict", "median s", "90 %", "most", "median batches", "most"):
        table.add_column(heading)
    table.add_column("within two batches")
    for clock, found in result["clocks"].items():
        seconds, batches = found["seconds"], found["batches"]
        named = [
            ", ".join(f"{count} {name}" for name, count in found[words].items())
            for words in ("found", "verdicts")
        ]
        numbers = [seconds.get(name, "") for name in ("median", "p90", "most")]
        numbers += [batches.get(name, "") for name in ("median", "most")]
        within = f"{found['within_two_batches']} of {found['lost']}"
        table.add_row(clock, *named, *map(str, numbers), within)
    Console(stderr=True, width=130).print(table)


def print_honest(result: Result) -> None:
    """The honest hour on standard error."""
    table = Table(title=f"{result['event_minutes']:g} honest minutes in {result['minutes']:g}")
    names = ("matched", "divergences", "suspicions", "holes", "unhealthy")
    for heading in ("clock", *names):
        table.add_column(heading)
    for clock, found in result["clocks"].items():
        table.add_row(clock, *(f"{found[name]:,}" for name in names))
    Console(stderr=True, width=130).print(table)


@click.command(help=__doc__)
@click.option("--minutes", default=10.0, show_default=True, help="Of the losses, and of the honest run.")
@click.option("--losses", "count", default=20, show_default=True, help="Events that are lost.")
@click.option("--after", default=60.0, show_default=True, help="Of the clocks that wait, in seconds.")
@click.option("--rate", default=300.0, show_default=True, help="Input events per second; a third are views.")
@click.option("--seed", default=1, show_default=True)
@click.option("--only", "phases", multiple=True, type=click.Choice(PHASES), help="Default: both.")
@click.option(
    "--json", "file", type=click.Path(dir_okay=False), help="Write the report there, not to stdout."
)
def main(
    minutes: float,
    count: int,
    after: float,
    rate: float,
    seed: int,
    phases: tuple[str, ...],
    file: str | None,
) -> None:
    """Measure, print the tables, and write the report."""
    report: Result = {**environment(), "load": [os.getloadavg()[0]]}
    with tempfile.TemporaryDirectory(prefix="twinstream-detection-") as name:
        folder = Path(name)
        if "losses" in (phases or PHASES):
            report["losses"] = losses(folder / "losses", minutes, count, after, rate, seed)
            print_losses(report["losses"])
        if "honest" in (phases or PHASES):
            report["honest"] = honest(folder / "honest", minutes, after, rate, seed)
            print_honest(report["honest"])
    report["load"].append(os.getloadavg()[0])
    write_report(report, file)


if __name__ == "__main__":
    main()
