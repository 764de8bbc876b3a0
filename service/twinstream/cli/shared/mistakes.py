"""Says what is wrong with a command line: usage where it helps, then one sentence behind one prefix.

A name that nobody knows comes with the one that was probably meant: the nearest by letters, or the only one
that begins so. Leading dashes are not compared, since all options share them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

import click

from twinstream.errors import SpecError, TwinstreamError
from twinstream.spec.file.values import nearest

PREFIX = "twinstream: "
"""Begins every error of the command line."""


def complain(error: click.ClickException | TwinstreamError) -> None:
    """Print an error on standard error: a wrong use of a command behind how it is used, all faults of a file.

    Each fault has a line of its own. Click's printing would go past `streams` where the encoding is ASCII.
    """
    if not isinstance(error, click.ClickException):
        for fault in error.faults if isinstance(error, SpecError) else [error]:
            print(f"{PREFIX}{fault}", file=sys.stderr)
        return
    if isinstance(error, click.UsageError) and error.ctx is not None:
        print(error.ctx.get_usage(), file=sys.stderr)
        print(f"Try '{error.ctx.command_path} --help' for help.\n", file=sys.stderr)
    told = _no_option(error) if isinstance(error, click.NoSuchOption) else error.format_message()
    print(f"{PREFIX}{told}", file=sys.stderr)


def meant(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant by an unknown one; None if none is near.

    >>> meant("--refrence", ["--reference", "--require-evidence"]), meant("diverg", ["divergences", "drill"])
    ('--reference', 'divergences')
    >>> meant("--redis", ["--brokers", "--json"]) is None
    True
    """
    bare = {one.lstrip("-"): one for one in known}
    begun = [one for one in bare if one.startswith(name.lstrip("-"))]
    return bare.get(begun[0] if len(begun) == 1 else nearest(name.lstrip("-"), bare) or "")


def no_command(name: str, known: Mapping[str, object]) -> str:
    """The sentence about an unknown command."""
    near = meant(name, known)
    return f"Unknown command '{name}'. " + (
        f"Did you mean '{near}'?" if near else f"Commands are {', '.join(known)}."
    )


def _no_option(error: click.NoSuchOption) -> str:
    """The sentence about an unknown option; of the group, a command may have been meant (`--version`)."""
    known: list[str] = []
    if error.ctx is not None:
        command = error.ctx.command
        known = [option for param in command.params for option in param.opts if option.startswith("--")]
        known += command.list_commands(error.ctx) if isinstance(command, click.Group) else []
    near = meant(error.option_name, known)
    return f"Unknown option '{error.option_name}'." + (f" Did you mean '{near}'?" if near else "")
