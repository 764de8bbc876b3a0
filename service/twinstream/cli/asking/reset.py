"""`twinstream reset`: reset a comparison."""

from __future__ import annotations

import getpass
from typing import Any

import click

from twinstream.cli.shared.client import Service, ask, path_of, service_option
from twinstream.cli.shared.output import print_json
from twinstream.spec.file.source import read_source

TIMEOUT_SECONDS = 45.0
"""A matcher may wait until a reset is possible, and for a slow store."""


def _start(_context: click.Context, _option: click.Parameter, text: str | None) -> Any:
    """Read a word, or a mapping as in the comparison file."""
    if text is None:
        return None
    return read_source(text, "--start").data if text.startswith("{") else text


def _told(value: Any) -> str:
    """A part of a start: offsets by partition as ``0:200 1:600``."""
    if not isinstance(value, dict):
        return f"{value}"
    return " ".join(f"{partition}:{offset}" for partition, offset in value.items())


@click.command()
@click.argument("name")
@click.option("--reason", required=True, help="Why; it is recorded and shown.")
@click.option("--start", callback=_start, help="Where to start, instead of the file's `start`.")
@click.option("--by", default=getpass.getuser, help="Who, for the record; by default the name of the user.")
@service_option
@click.option("--json", "as_json", is_flag=True, help="Print the record of the reset as one JSON object.")
def reset(name: str, reason: str, start: Any, by: str, service: Service, as_json: bool) -> int:
    """Reset a comparison: forget what was found so far, start again, and record the reset.

    \b
      twinstream reset ads-views --reason "1.9.1 deployed"
      twinstream reset ads-views --reason "1.9.1 deployed" --start now
      twinstream reset ads-views --reason gap --start '{at: event_time, field: ts, from: 2026-03-01T00:00:00Z}'

    NAME is that of a comparison. It starts as its file says, or at --start: `now`, or any `start` of a
    comparison file. `now` is where both sides have been read to, at a moment at which no event is unmatched;
    the service waits for such a moment, up to ten seconds.

    Exit codes: 0 it was reset · 2 usage, no such comparison, it cannot be · 4 the service cannot be
    reached, or does not know whether it was done.
    """  # noqa: E501
    body = {"reason": reason, "by": by, **({} if start is None else {"start": start})}
    path = path_of(name, "reset")
    found = ask(service, path, "before", "start", body=body, timeout_seconds=TIMEOUT_SECONDS)
    if as_json:
        print_json(found)
        return 0
    before, begins = (
        found["before"],
        ", ".join(f"{key} {_told(value)}" for key, value in found["start"].items()),
    )
    click.echo(f"{name} was reset; it starts {begins}")
    counts = " and ".join(
        f"{count:,} {noun}{'' if count == 1 else 's'}"
        for count, noun in ((before["matched"], "pair"), (before["divergences"], "divergence"))
    )
    click.echo(f"before: {before['verdict']} with {counts}")
    return 0
