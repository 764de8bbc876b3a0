"""Writes the files of commands: verdict receipts as Markdown or JSON, and none that somebody may still need.

An existing file is asked about before the work begins: a terminal is asked, everything else needs `--force`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from twinstream.errors import SettingsError
from twinstream.explain.receipts.markdown import markdown
from twinstream.explain.receipts.receipt import Receipt

_MARKDOWN, _JSON = {".md", ".markdown"}, {".json"}

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


def files_callback(
    _context: click.Context, option: click.Parameter, given: Sequence[str]
) -> tuple[Path, ...]:
    """The files of an option; their names and folders are checked before any work."""
    files = tuple(map(Path, given))
    for file in files:
        if file.suffix.lower() not in _MARKDOWN | _JSON:
            raise SettingsError(
                f"{option.opts[0]} {file}: the name ends with .md for Markdown, or with .json"
            )
        if not file.parent.is_dir():
            raise SettingsError(f"{option.opts[0]} {file}: there is no folder {file.parent}")
    return files


def write_receipt(receipt: Receipt, files: Sequence[Path]) -> None:
    """Write a receipt to some files. Raises SettingsError if one cannot be written."""
    for file in files:
        is_text = file.suffix.lower() in _MARKDOWN
        content = markdown(receipt) if is_text else f"{receipt.model_dump_json(indent=2)}\n"
        try:
            file.write_text(content, encoding="utf-8")
        except OSError as error:
            raise SettingsError(f"{file} cannot be written: {error.strerror}") from None
