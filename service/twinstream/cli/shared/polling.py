"""Waits for the gate to decide, on behalf of a release pipeline.

`undecided` may become `pass` or `fail`, and an unreachable service may come back, so both are asked again;
any other error (no such comparison, a bad token) is permanent and ends the waiting at once. The service is
asked once more when the time is over, so that an answer which came meanwhile is not missed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from twinstream.cli.shared.output import Unreachable
from twinstream.spec.file.values import duration

GateBody = Mapping[str, Any]
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")

TellWait = Callable[[str, float], None]
"""Shows the reasons why the gate is undecided, and how many seconds are left."""


def span(_context: click.Context, _option: click.Parameter, given: str | None) -> timedelta | None:
    """The duration in an option; None if the option is not given.

    It is written as in a comparison file: with a unit, or as a number of seconds. Raises BadParameter.
    """
    try:
        return None if given is None else duration(f"{given}s" if _NUMBER.fullmatch(given) else given)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def wait_until_decided(
    ask: Callable[[], GateBody],
    wait: timedelta,
    poll: timedelta,
    tell: TellWait,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> GateBody:
    """The first decided answer, or the last answer if none is decided within `wait`.

    Raises Unreachable if the service never answered; any other error of `ask` is raised at once.
    """
    end = clock() + wait.total_seconds()
    last: GateBody | None = None
    while True:
        try:
            last = ask()
        except Unreachable as error:
            left, hindrance = end - clock(), error.message
            if left <= 0 and last is None:
                raise
        else:
            if not last["undecided"]:
                return last
            left, hindrance = end - clock(), str(last["reason"])
        if left <= 0 and last is not None:
            return last  # An answer is better than an error.
        tell(hindrance, left)
        sleep(min(poll.total_seconds(), left))


@contextmanager
def waiting_line(name: str) -> Iterator[TellWait]:
    """Keeps one line up to date on standard error; writes nothing if that is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _hindrance, _left: None
        return
    with console.status(Text(f"asking about {name}")) as line:
        yield lambda hindrance, left: line.update(_said(name, hindrance, left))


def _said(name: str, hindrance: str, left: float) -> Text:
    minutes, seconds = divmod(round(left), 60)
    text = Text(f"{name} is undecided, {minutes}:{seconds:02} left: {hindrance}", no_wrap=True)
    text.overflow = "ellipsis"
    return text
