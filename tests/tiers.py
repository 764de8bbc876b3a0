"""``python -m tests.tiers change|nightly``: the tests of each change, or all, as several runs of pytest.

Tests that wait for servers, browsers and processes run apart from those that compute, and each of their
processes has servers of its own. What no step names runs with those that compute: no folder is forgotten.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from typing import NamedTuple

WAITING = ("tests/e2e", "tests/integration", "tests/case_studies", "tests/contract")
"""Folders with tests that wait, the longest first: what is begun last keeps the others waiting least."""
PER_CORE = 2
"""So many tests that wait run at once for each core: one alone leaves more than half of it free."""


class Step(NamedTuple):
    """One run of pytest."""

    name: str
    processes: int
    arguments: tuple[str, ...]

    def command(self, *more: str) -> list[str]:
        """What runs it."""
        return [sys.executable, "-m", "pytest", "-n", str(self.processes), *self.arguments, *more]


def steps(cores: int) -> tuple[Step, ...]:
    """All runs, the quick ones first.

    Of tests that compute, a process that has none left takes some from the others. Those that wait go to
    processes by the file, in order, since those of one file share servers.
    """
    computing = ("--dist", "worksteal", *(f"--ignore={folder}" for folder in WAITING))
    waiting = ("--dist", "loadfile", "--no-loadscope-reorder", *WAITING)
    return Step("computing", cores, computing), Step("waiting", cores * PER_CORE, waiting)


def main() -> int:
    """Run all steps, also behind one that failed; 1 when any failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.tiers", description=__doc__)
    parser.add_argument("tier", choices=("change", "nightly"))
    parser.add_argument("--step", choices=[step.name for step in steps(1)], help="this one only")
    options = parser.parse_args()
    selected = ("-m", "not nightly") if options.tier == "change" else ()
    environment = {"HYPOTHESIS_PROFILE": options.tier, **os.environ}
    # Hundreds of processes are started: what they are made of is compiled once, and not by each.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if options.tier == "nightly":
        environment = {"TWINSTREAM_COMMANDS": "started", **environment}
    closing: list[str] = []
    failed = False
    for step in steps(len(os.sched_getaffinity(0))):
        if options.step in (None, step.name):
            begun = time.monotonic()
            code, last = _run(step.command(*selected), environment)
            closing.append(f"{step.name}, {time.monotonic() - begun:.0f} s: {last}")
            failed = failed or code != 0
    print("\n".join(closing), flush=True)
    return int(failed)


def _run(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Exit code and last line of a run, whose output is passed on as it comes."""
    print(f"$ {shlex.join(command)}", flush=True)
    last = ""
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return run.returncode, last


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
