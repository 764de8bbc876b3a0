"""`python -m deploy.demo`: run the main job on this machine, and say all the time what is found."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from deploy.demo.display import Display
from deploy.demo.folder import RunFolder
from deploy.demo.outcome import result
from deploy.demo.parts import PartEndedError, Parts
from deploy.demo.service import Look, Service, UnreachableError
from deploy.embedded import jars
from deploy.embedded.errors import EmbeddedError

FAULTS = ("drop", "duplicate", "field", "reorder", "stall")

_LOOK_SECONDS = 0.5
_FIRST_ANSWER_SECONDS = 120.0
_FIRST_EVENTS_SECONDS = 180.0
"""Bounds on what takes seconds on an idle machine: past them something is broken, not slow."""

_EPILOG = """\
exit codes of a bounded run (--duration): 0 pass, 1 fail, 3 undecided, the worst of all comparisons;
4 the service cannot be reached or a part of the run ended; 2 usage.
Without --duration the run goes on until Ctrl-C, which is its normal end (exit code 0).
"""


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; a mistake in it ends the process with exit code 2."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.demo",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--fault", choices=FAULTS, help="a bug to run the candidate with")
    parser.add_argument("--rate", type=_positive, default=500.0, help="input events per second (%(default)g)")
    parser.add_argument(
        "--duration", type=_positive, help="end after this many seconds with both versions writing"
    )
    parser.add_argument("--json", action="store_true", help="print one object at the end, all else on stderr")
    return parser.parse_args(argv)


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text!r}")
    return number


@dataclass
class _Run:
    """One run: its parts, its service, and the last that was heard of it."""

    parts: Parts
    service: Service
    display: Display
    looks: list[Look] = field(default_factory=list)
    reachable: bool = False
    _told: dict[str, str] = field(default_factory=dict)

    def follow_until_answering(self) -> None:
        """Wait for the service, then say where it is."""
        self._until(lambda: self.reachable, _FIRST_ANSWER_SECONDS, "the service did not answer")
        self.display.tell(f"the page: {self.parts.address}/", style="bold")
        self.display.tell("waiting for both Spark versions to write their first events")

    def follow_until_writing(self) -> None:
        """Wait until both versions of every pair write, or at least one pair; counts close a window first."""
        self._until(
            lambda: any(look.writing for look in self.looks),
            _FIRST_EVENTS_SECONDS,
            "the two Spark versions did not both write",
        )
        self.display.tell("both versions are writing; the lines below say: reference | candidate")

    def follow(self, seconds: float | None) -> None:
        """Show the state for some time, or for ever."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while deadline is None or time.monotonic() < deadline:
            self._step()
        self._told.clear()  # the last word on each comparison, also where it has not changed for long
        self._look()

    def _until(self, reached: Callable[[], bool], seconds: float, failure: str) -> None:
        deadline = time.monotonic() + seconds
        while not reached():
            if time.monotonic() > deadline:
                reasons = "".join(f"; {look.name}: {look.gate['reason']}" for look in self.looks)
                raise PartEndedError(
                    f"{failure} within {seconds:g} s; the logs are in {self.parts.folder}{reasons}"
                )
            self._step()

    def _step(self) -> None:
        time.sleep(_LOOK_SECONDS)
        self.parts.check()
        self._look()

    def _look(self) -> None:
        try:
            self.looks = self.service.look()
            self.reachable = True
            self._tell_changes()
        except UnreachableError as unreachable:
            if self.reachable:
                self.display.tell(str(unreachable), style="yellow")
            self.reachable = False
        self.display.show(self.looks)

    def _tell_changes(self) -> None:
        for look in self.looks:
            told = f"{look.gate['verdict']}, {look.gate['answer']}"
            state = f"{told} {look.status['health']['status']}"
            if self._told.get(look.name) != state:
                self._told[look.name] = state
                self.display.tell(f"{look.name} is {told}: {look.gate['reason']}", style="bold")
                self._tell_difference(look.name)

    def _tell_difference(self, name: str) -> None:
        difference = self.service.divergence(name)
        if difference:
            self.display.tell(f"{name}: {difference}", style="red")


class _Ended(BaseException):
    """Somebody wants the run to end: Ctrl-C, SIGTERM, or the process that started us is gone."""


_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _end(*_: object) -> None:
    _ignore_signals()
    raise _Ended


def _ignore_signals() -> None:
    """Being asked to end once is enough: what follows is bounded, and must not be cut short."""
    for number in _ENDING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _end_with_parent() -> None:
    """End the run when the process that started it has gone, however it went."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _go(run: _Run, duration: float | None) -> None:
    """Start everything and follow it to its end, then stop everything, whatever happened."""
    try:
        for pom in (jars.KAFKA, jars.SPARK):
            jars.ensure(pom, tell=run.display.tell)
        run.parts.start()
        run.follow_until_answering()
        run.follow_until_writing()
        run.follow(duration)
    finally:
        _ignore_signals()
        run.display.tell("stopping everything")
        run.parts.stop()
        run.display.tell("stopped")


def _demo(options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Make one run; return its result, and whether it was asked to end before its time."""
    asked, error = False, None
    with Display(to_stderr=options.json) as display, RunFolder() as folder:
        parts = Parts(folder.path, rate=options.rate, fault=options.fault, tell=display.tell)
        with Service(parts.address) as service:
            run = _Run(parts, service, display)
            try:
                _go(run, options.duration)
            except _Ended:
                asked = True
            except (EmbeddedError, PartEndedError) as failure:
                error = str(failure)
                folder.keep_logs = True
    return result(run.looks, reachable=run.reachable, error=error), asked


def main() -> int:
    """Run the demo; the exit code is that of the table in the help."""
    options = arguments()
    for number in _ENDING_SIGNALS:
        signal.signal(number, _end)
    _end_with_parent()
    outcome, asked = _demo(options)
    if options.json:
        print(json.dumps(outcome, indent=2))
    if "error" in outcome:
        print(f"error: {outcome['error']}", file=sys.stderr)
    normal_end = asked and options.duration is None and "error" not in outcome
    return 0 if normal_end else int(outcome["exit_code"])


if __name__ == "__main__":
    sys.exit(main())
