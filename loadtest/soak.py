"""An honest pair over ten minutes, with two restarts of the service and a long outage of the candidate.

    python -m loadtest.soak [--minutes 10] [--rate 500]

An honest pair must never diverge: not while the service restarts, cleanly or killed, and not while the
candidate is away and catches up. Every second the verdicts are looked at; one DIVERGED ends the run with exit
code 1. At the end both comparisons must be EQUIVALENT. The report is one JSON object.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import orjson

from deploy.demo.parts import Parts
from deploy.demo.service import Service, UnreachableError
from deploy.embedded import jars

LOOK_SECONDS = 1.0
BATCH_STOP_SECONDS = 40.0
"""A job that is cut off in a batch writes it again, which is a true duplicate: it may finish."""
SETTLE_SECONDS = 120.0


class Diverged(Exception):  # noqa: N818 - a result, not an error
    """An honest pair was called different."""


class Soak:
    """One run: the parts, and what was seen of their verdicts."""

    def __init__(self, parts: Parts, service: Service) -> None:
        self._parts, self._service = parts, service
        self._began = time.monotonic()
        self.seen: Counter[str] = Counter()
        self.last: dict[str, dict[str, Any]] = {}

    def tell(self, text: str) -> None:
        """A line on standard error with the time since the beginning."""
        click.echo(f"[{time.monotonic() - self._began:6.1f} s] {text}", err=True)

    def watch(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Look at the verdicts for some time, or until something is true. Raises Diverged."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not until():
            time.sleep(LOOK_SECONDS)
            self._look()

    def _look(self) -> None:
        try:
            looks = self._service.look()
        except UnreachableError:
            self.seen["unreachable"] += 1
            return
        for look in looks:
            verdict = str(look.gate["verdict"])
            self.last[look.name] = {**look.status, "gate": look.gate}
            self.seen[f"{look.name} {verdict} {look.gate['answer']}"] += 1
            if verdict == "DIVERGED":
                found = self._service.divergence(look.name)
                raise Diverged(f"{look.name}: {look.gate['reason']} {found}")

    def equivalent(self) -> bool:
        """Whether both comparisons pass."""
        return len(self.last) > 1 and all(each["gate"]["answer"] == "pass" for each in self.last.values())

    def run(self, minutes: float) -> None:
        """The whole course. Raises Diverged."""
        unit = minutes * 60 / 10
        self.watch(SETTLE_SECONDS, self.equivalent)
        self.tell("both pass; restarting the service cleanly")
        self._parts.service.stop()
        self._parts.service.restart()
        self.watch(unit)
        self.tell("stopping the candidate")
        self._parts.candidate.stop()
        self.watch(3 * unit)
        self.tell("starting the candidate again")
        self._parts.candidate.restart()
        self.watch(2 * unit)
        self.tell("killing the service, and starting it again")
        self._parts.service.kill()
        self._parts.service.restart()
        self.watch(3 * unit)
        self.watch(SETTLE_SECONDS, self.equivalent)

    def report(self) -> dict[str, Any]:
        """What was seen, and how it ended."""
        members = ("verdict", "reason", "events", "matched", "max_unmatched", "divergences", "suspicions")
        ends = {name: {member: each[member] for member in members} for name, each in self.last.items()}
        return {"seconds": round(time.monotonic() - self._began), "looks": dict(self.seen), "end": ends}


@click.command(help=__doc__)
@click.option("--minutes", default=10.0, show_default=True)
@click.option("--rate", default=500.0, show_default=True, help="Input events per second.")
def main(minutes: float, rate: float) -> None:
    """Run the course, print the report, and exit with 0 only if the pair passed."""
    jars.ensure(jars.KAFKA)
    jars.ensure(jars.SPARK)
    with tempfile.TemporaryDirectory(prefix="twinstream-soak-") as folder:
        told = lambda text: click.echo(text, err=True)  # noqa: E731
        parts = Parts(
            Path(folder), rate=rate, fault=None, tell=told, pipeline_stop_seconds=BATCH_STOP_SECONDS
        )
        try:
            parts.start()
            with Service(parts.address) as service:
                soak = Soak(parts, service)
                sys.exit(_course(soak, minutes))
        finally:
            parts.stop()


def _course(soak: Soak, minutes: float) -> int:
    try:
        soak.run(minutes)
        passed = soak.equivalent()
    except Diverged as found:
        soak.tell(str(found))
        passed = False
    sys.stdout.buffer.write(
        orjson.dumps(soak.report(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    )
    return 0 if passed else 1


if __name__ == "__main__":
    main()
