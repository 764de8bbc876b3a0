"""`twinstream gate`: ask whether the release may go on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import click
from rich.text import Text

from twinstream.cli.shared.client import Service, ask, path_of, service_option
from twinstream.cli.shared.output import COLOUR, EXIT_OF_ANSWER, Unreachable, print_json, print_rich
from twinstream.cli.shared.polling import span, wait_until_decided, waiting_line
from twinstream.explain.picture import printable
from twinstream.settings import time_of

LEAST_POLL = timedelta(milliseconds=100)
"""The gate does not change faster, and each request costs the service."""


def _poll(context: click.Context, option: click.Parameter, given: str) -> timedelta:
    poll = span(context, option, given)
    if poll is None or poll < LEAST_POLL:
        raise click.BadParameter("it must be at least 100ms")
    return poll


def _said(_context: click.Context, option: click.Parameter, given: str | None) -> str | None:
    """Refuse an empty value: it comes from an unset variable, and must not mean that anything will do."""
    if given == "":
        raise click.BadParameter(f"it is empty; name {option.metavar}, or leave the option out")
    return given


def _since(context: click.Context, option: click.Parameter, given: str | None) -> str | None:
    said = _said(context, option, given)
    if said is not None and time_of(said) is None:
        raise click.BadParameter(f"{said!r} is not a time with a zone; write it like 2026-03-01T14:02:00Z")
    return said


@click.command()
@click.argument("name")
@click.option(
    "--wait",
    metavar="DURATION",
    callback=span,
    help="Wait this long for pass or fail: 90s, 30m, 2h; without a unit, seconds.",
)
@click.option(
    "--poll",
    default="5s",
    show_default=True,
    metavar="DURATION",
    callback=_poll,
    help="Ask this often while waiting.",
)
@click.option("--min-matched", type=click.IntRange(min=0), help="A pass needs N matched pairs.")
@click.option(
    "--candidate", metavar="VERSION", callback=_said, help="The version that the candidate must be of."
)
@click.option(
    "--since", metavar="TIME", callback=_since, help="A pass must rest on events written from then on."
)
@click.option(
    "--spec-digest", metavar="DIGEST", callback=_said, help="The comparison file that the answer must be of."
)
@service_option
@click.option("--json", "as_json", is_flag=True, help="Print the gate's answer as one JSON object.")
def gate(
    name: str, service: Service, wait: timedelta | None, poll: timedelta, as_json: bool, **scope: Any
) -> int:
    """Ask the service whether a release may go on.

    \b
      twinstream gate ads-views && kubectl rollout resume deployment/ads
      twinstream gate ads-views --wait 30m --min-matched 100000 --candidate 1.9.0
      twinstream gate ads-views --wait 30m --since 2026-03-01T14:02:00Z

    NAME is that of a comparison. It prints pass, fail or undecided, and why. Treat undecided as "do not
    release": something is not known. With --wait it asks again until the answer is pass or fail, also while
    the service cannot be reached.

    Exit codes: 0 pass · 1 fail · 2 usage, no such comparison · 3 undecided, with --wait all the time · 4 the
    service cannot be reached, with --wait all the time.
    """
    asked = urlencode({key: value for key, value in scope.items() if value is not None})
    path = path_of(name, "gate") + (f"?{asked}" if asked else "")
    with waiting_line(name) as tell:
        answer = wait_until_decided(lambda: _answer(service, path, name), wait or timedelta(0), poll, tell)
    if as_json:
        print_json(answer)
    else:
        told = Text.assemble(
            (answer["answer"], f"bold {COLOUR[answer['answer']]}"), printable(f" {answer['reason']}")
        )
        steps = [Text(printable(f"- {step}")) for step in answer["to_decide"].splitlines()]
        print_rich(told, *steps)
    return EXIT_OF_ANSWER[answer["answer"]]


def _answer(service: Service, path: str, name: str) -> dict[str, Any]:
    """The answer of the gate of this comparison, and of no other."""
    answer = ask(service, path, "comparison", "answer", "undecided", "reason", "to_decide")
    if answer["comparison"] != name or answer["answer"] not in EXIT_OF_ANSWER:
        raise Unreachable(f"the service at {service} has not answered for {name}")
    return answer
