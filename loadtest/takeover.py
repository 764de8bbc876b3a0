"""How long a comparison is without an owner when one is lost, on real processes, Kafka and Redis.

    python -m loadtest.takeover [--rounds 5] [--json FILE] [--plot FILE]

Two services run the same comparison; one owns it, the other stands by. Then one of these happens:

- *matcher killed*: the owner's matcher process alone, by kill -9; its service starts another one;
- *service killed*: all processes of the owner, by kill -9, as when a host runs out of memory; the one that
  stands by takes over;
- *service frozen*: all processes of the owner, by SIGSTOP, which looks to everybody else as a loss of power
  does: nothing says that they are gone, so their lease of 10 seconds has to end.

What counts is the time from there until a service gives the first status of its own as the owner, and until
its gate passes again. Both are asked for every 20 ms.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Self

import click
import httpx
from matplotlib.figure import Figure
from rich.console import Console

from deploy.embedded.guard import descendants
from deploy.embedded.stack import Stack
from loadtest.bench import PARTITIONS, SIDES, produce, spec_text
from loadtest.measuring import environment, report_text
from twinstream.api.state.matchers import LOOP_FALLS

FOLDER = Path(".bench")
LOOK_SECONDS = 0.02
WAIT_SECONDS = 90.0
NAME = "takeover"
TARGET_SECONDS = 5.0
CASES = {"matcher killed": True, "service killed": True, "service frozen": False}
"""What happens, and whether the target is one for it."""

Times = dict[str, float]


class Service:
    """`twinstream serve` on the comparison; a context manager that kills it, however it is."""

    def __init__(self, spec: Path, stack: Stack, log: Path) -> None:
        command = [sys.executable, "-m", "twinstream.cli.main", "serve", str(spec), "--bind", "127.0.0.1:0"]
        servers = ["--brokers", stack.kafka.brokers, "--redis", stack.redis.url]
        with log.open("ab") as file:
            self._process = subprocess.Popen([*command, *servers], stdout=subprocess.PIPE, stderr=file)
        assert self._process.stdout is not None
        address = self._process.stdout.readline().decode().strip()
        self._comparison = f"{address}v1/comparisons/{NAME}"
        self._client = httpx.Client(trust_env=False)
        self.falls = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()
        self.signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def get(self, path: str = "") -> dict[str, Any]:
        """What it says of the comparison; empty where it says nothing."""
        with suppress(httpx.HTTPError):
            answer = self._client.get(self._comparison + path)
            if answer.is_success:
                return dict(answer.json())
        return {}

    def matchers(self) -> list[int]:
        """Its matcher processes."""
        return [pid for pid in descendants(self._process.pid) if b"spawn_main" in _command(pid)]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all of its processes, children first, so that none does anything about it."""
        if self._process.poll() is None:
            for pid in (*reversed(descendants(self._process.pid)), self._process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def owns(self, since: datetime) -> bool:
        """Whether its matcher has said after that time that it owns the comparison."""
        status = self.get()
        health = status.get("health", {})
        own = health.get("status") == "ok" and not health.get("standby")
        return own and datetime.fromisoformat(status["updated_at"]) > since

    def stands_by(self) -> bool:
        """Whether it says that another one owns the comparison."""
        return bool(self.get().get("health", {}).get("standby"))

    def passes(self) -> bool:
        """Whether its gate passes."""
        return self.get("/gate").get("answer") == "pass"


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def seconds_until(true: Callable[[], bool], what: str, since: float | None = None) -> float:
    """Seconds until something is true, from now or from a time of the monotonic clock."""
    began = time.monotonic() if since is None else since
    while not true():
        if time.monotonic() - began > WAIT_SECONDS:
            raise TimeoutError(f"not within {WAIT_SECONDS:g} s: {what}")
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - began


class Drill:
    """Two services of one comparison; the first one owns it."""

    def __init__(self, folder: Path, stack: Stack, open_services: ExitStack) -> None:
        self._folder, self._stack, self._open = folder, stack, open_services
        self._spec = folder / f"{NAME}.yaml"
        topics = [f"{NAME}.{side}" for side in SIDES]
        self._spec.write_text(
            spec_text(NAME, topics, "per_key", "all") + "evidence: {matched: 1, seconds: 0}\n"
        )
        for topic in topics:
            stack.kafka.create_topic(topic, partitions=PARTITIONS)
        produce(stack.kafka.brokers, topics, 10_000, "all")
        self._owner = self._start()
        seconds_until(self._owner.passes, "the owner passes")
        self._standby = self._start()

    def _start(self) -> Service:
        return self._open.enter_context(Service(self._spec, self._stack, self._folder / "service.log"))

    def run(self, case: str) -> Times:
        """Let it happen to the owner, and measure; afterwards there are two services again."""
        self._settle_down()
        if case == "matcher killed":
            return self._kill_matcher()
        return self._lose_owner(signal.SIGKILL if case == "service killed" else signal.SIGSTOP)

    def _settle_down(self) -> None:
        seconds_until(self._standby.stands_by, "the second stands by")
        seconds_until(self._owner.passes, "the owner passes")

    def _lose_owner(self, how: signal.Signals) -> Times:
        lost, heir = self._owner, self._standby
        lost.signal(how)
        times = self._measure([heir])
        lost.signal(signal.SIGKILL)
        self._standby = self._start()
        return times

    def _kill_matcher(self) -> Times:
        """Either service may own it afterwards: the one that lost its matcher starts another one.

        A service says that its matcher is in a crash loop, rightly, when that falls once more; so it goes.
        """
        if self._owner.falls == LOOP_FALLS - 1:
            self._lose_owner(signal.SIGKILL)
            self._settle_down()
        (matcher,) = self._owner.matchers()
        self._owner.falls += 1
        os.kill(matcher, signal.SIGKILL)
        return self._measure([self._owner, self._standby])

    def _measure(self, heirs: list[Service]) -> Times:
        """Wait for the first of some services to own the comparison: it is the owner from then on."""
        began, since = time.monotonic(), datetime.now(UTC)
        owner = seconds_until(lambda: any(each.owns(since) for each in heirs), "somebody owns it", began)
        heir = next(each for each in heirs if each.owns(since))
        gate = seconds_until(heir.passes, "its gate passes", began)
        if heir is self._standby:
            self._owner, self._standby = heir, self._owner
        return {"owner_seconds": round(owner, 2), "gate_seconds": round(gate, 2)}


def measure(rounds: int, cases: list[str]) -> dict[str, Any]:
    """All rounds of some cases."""
    with (
        tempfile.TemporaryDirectory(prefix="twinstream-takeover-") as folder,
        Stack(Path(folder)) as stack,
        ExitStack() as open_services,
    ):
        drill = Drill(Path(folder), stack, open_services)
        found = {case: [drill.run(case) for _ in range(rounds)] for case in cases}
    return {case: _summary(times, has_target=CASES[case]) for case, times in found.items()}


def _summary(times: list[Times], *, has_target: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"rounds": times}
    for name in ("owner_seconds", "gate_seconds"):
        values = [each[name] for each in times]
        row[name] = {"median": median(values), "most": max(values)}
    if has_target:
        row["meets"] = row["owner_seconds"]["most"] <= TARGET_SECONDS
    return row


def plot(result: dict[str, Any], file: str) -> None:
    """A dot for each round."""
    figure = Figure(figsize=(8, 4), dpi=110)
    panel = figure.subplots()
    for place, row in enumerate(result.values()):
        for name, marker in (("owner_seconds", "o"), ("gate_seconds", "x")):
            label = name.replace("_seconds", "") if place == 0 else None
            values = [each[name] for each in row["rounds"]]
            panel.plot(values, [place] * len(values), marker, color=f"C{marker == 'x':d}", label=label)
    panel.axvline(TARGET_SECONDS, color="grey", linewidth=0.8)
    panel.set(yticks=range(len(result)), yticklabels=list(result), xlabel="seconds without an owner")
    panel.set_xlim(left=0)
    panel.legend()
    figure.tight_layout()
    figure.savefig(file)


@click.command(help=__doc__)
@click.option("--rounds", default=5, show_default=True, help="Of each case.")
@click.option("--only", "cases", multiple=True, type=click.Choice(list(CASES)), help="Default: all.")
@click.option("--json", "file", default=str(FOLDER / "takeover.json"), show_default=True)
@click.option("--plot", "picture", default=str(FOLDER / "takeover.png"), show_default=True)
def main(rounds: int, cases: tuple[str, ...], file: str, picture: str) -> None:
    """Measure, and write the report and the plot."""
    for target in (file, picture):
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    result = measure(rounds, list(cases or CASES))
    report = {**environment(), "load": [load, os.getloadavg()[0]], "takeover": result}
    Path(file).write_bytes(report_text(report))
    for case, row in result.items():
        told = f"{case}: owner {row['owner_seconds']}, gate {row['gate_seconds']}"
        Console(stderr=True, soft_wrap=True).print(told)
    plot(result, picture)


if __name__ == "__main__":
    main()
