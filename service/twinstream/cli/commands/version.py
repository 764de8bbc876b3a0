"""`twinstream version`."""

from __future__ import annotations

from importlib.metadata import version as installed

import click

from twinstream.cli.shared.output import print_json


@click.command(
    help="""Print the version.

\b
  twinstream version
  twinstream version --json

Exit code: 0.
"""
)
@click.option("--json", "as_json", is_flag=True, help="Print it as one JSON object.")
def version(as_json: bool) -> None:
    """Print the version on standard output."""
    if as_json:
        print_json({"version": installed("twinstream")})
    else:
        click.echo(installed("twinstream"))
