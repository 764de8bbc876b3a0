"""The reference pages list every setting, every path of the HTTP interface and every command; no others."""

from __future__ import annotations

import json
import re
from pathlib import Path

from twinstream.cli.commands.serve import serve
from twinstream.cli.main import COMMANDS
from twinstream.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "reference"
FLAGS_ALONE = {"--config", "--trial"}
"""Flags of `serve` that are no setting."""
NOT_DESCRIBED = {"/", "/docs", "/openapi.json"}
"""Paths that the description of the interface leaves out: pages, and itself."""


def _rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the rows below a heading, header and rule left out."""
    text = (REFERENCE / page).read_text(encoding="utf-8").split(f"# {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines if not line.startswith("| ---")][1:]


def _named(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


def test_every_setting_is_listed_with_its_flag_and_variable() -> None:
    rows = [line for row in _rows("settings.md", "Settings of the service") for line in row]
    named = set().union(*map(_named, rows))
    assert {f"TWINSTREAM_{name.upper()}" for name in Settings.model_fields} == {
        name for name in named if name.startswith("TWINSTREAM_")
    }
    assert set(Settings.model_fields) <= named
    flags = {option for parameter in serve.params for option in parameter.opts if option.startswith("--")}
    assert {name for name in named if name.startswith("--")} == flags - FLAGS_ALONE


def test_every_path_is_listed() -> None:
    described = json.loads((DOCS / "openapi.json").read_text(encoding="utf-8"))["paths"]
    cells = [_named(row[0]) for row in _rows("http.md", "HTTP interface")]
    listed = {name.removeprefix("POST ") for cell in cells for name in cell}
    assert {path.replace("{identifier}", "{id}") for path in described} == listed - NOT_DESCRIBED


def test_every_command_is_listed_with_its_exit_codes() -> None:
    text = (REFERENCE / "settings.md").read_text(encoding="utf-8").split("\n## Exit codes\n")[1]
    assert set(COMMANDS) - {"version"} <= _named(text)
    codes = [row[0] for row in _rows("settings.md", "Exit codes")]
    assert [code for code in codes if code.isdigit()] == ["0", "1", "2", "3", "4"] * 2
