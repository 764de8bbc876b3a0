"""Keeps a command from overwriting a file that somebody may still need.

It is asked about before the work begins: a terminal is asked, everything else needs `--force`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from twinstream.errors import SettingsError

force_option = click.option("--force", is_flag=True, help="Overwrite FILE if it is there.")


def may_write(files: Iterable[Path], *, force: bool) -> None:
    """Return if nothing is lost by writing these files, or if that is wanted.

    An empty file has nothing to lose. Raises SettingsError.
    """
    for file in files:
        try:
            if force or not (file.is_file() and file.stat().st_size):
                continue
        except OSError as error:
            raise SettingsError(f"{file} cannot be written: {error.strerror}") from None
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise SettingsError(f"{file} already exists: name another file, or give --force to overwrite it")
        if not click.confirm(f"{file} already exists. Overwrite it?", err=True):
            raise SettingsError(f"{file} was not changed: name another file")
