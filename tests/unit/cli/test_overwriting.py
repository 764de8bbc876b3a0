"""A file that is there already is overwritten only if that is wanted."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from twinstream.cli.asking.report import report
from twinstream.cli.commands.calibrate import calibrate
from twinstream.cli.commands.check import check
from twinstream.cli.shared.writing import may_write
from twinstream.errors import SettingsError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that somebody may still need."""
    path = tmp_path / "receipt.md"
    path.write_text("old")
    return path


COMMANDS: list[tuple[click.Command, str]] = [
    (report, "ads --output {file}"),
    (check, "spec.yaml --reference a --candidate b --report {file}"),
    (calibrate, "--reference a --candidate b --output {file}"),
]


@pytest.mark.parametrize(("command", "arguments"), COMMANDS)
def test_every_command_that_writes_a_file_spares_one_that_is_there(
    file: Path, command: click.Command, arguments: str
) -> None:
    result = CliRunner().invoke(command, arguments.format(file=file).split())
    assert isinstance(result.exception, SettingsError)
    assert str(result.exception) == (
        f"{file} already exists: name another file, or give --force to overwrite it"
    )


def test_nothing_is_asked_with_force_or_where_nothing_is_lost(file: Path, tmp_path: Path) -> None:
    may_write([file], force=True)
    (tmp_path / "empty.md").touch()
    may_write([tmp_path / "empty.md", tmp_path / "new.md", tmp_path], force=False)


@pytest.mark.parametrize(("said", "spared"), [(True, False), (False, True)])
def test_a_person_is_asked(file: Path, monkeypatch: pytest.MonkeyPatch, said: bool, spared: bool) -> None:
    terminal: Any = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(click, "confirm", lambda _question, **_: said)
    if spared:
        with pytest.raises(SettingsError, match=r"receipt\.md was not changed: name another file"):
            may_write([file], force=False)
    else:
        may_write([file], force=False)
