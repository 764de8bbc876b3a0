"""`twinstream version`."""

from __future__ import annotations

from importlib.metadata import version as installed

import click


@click.command(help="Print the version.")
def version() -> None:
    """Print the version on standard output."""
    click.echo(installed("twinstream"))
