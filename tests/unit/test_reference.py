"""The reference pages list every setting, every request over HTTP and every command; no others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

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


def _operations() -> dict[tuple[str, str], dict[str, Any]]:
    """By method and path, what the description says of a request."""
    paths = json.loads((DOCS / "openapi.json").read_text(encoding="utf-8"))["paths"]
    return {
        (method.upper(), path.replace("{identifier}", "{id}")): described
        for path, operations in paths.items()
        for method, described in operations.items()
    }


def _requests() -> dict[tuple[str, str], str]:
    """By method and path, the section of the reference."""
    parts = re.split(r"^### (.+)$", (REFERENCE / "http.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], (text.split("\n## ")[0] for text in parts[2::2]), strict=True))
    return {
        (method, path): text
        for heading, text in sections.items()
        for methods, _, path in (heading.rpartition(" "),)
        for method in methods.split(", ")
    }


def _sentence(text: str, begin: str) -> str:
    """The paragraph that begins with a word; empty if there is none."""
    return next((part for part in text.split("\n\n") if part.lstrip().startswith(begin)), "")


def test_every_request_is_described_with_its_parameters_and_statuses_and_no_other_is() -> None:
    described = {
        request: (
            {one["name"] for one in operation.get("parameters", ()) if one["in"] != "path"},
            {int(status) for status in operation["responses"]},
        )
        for request, operation in _operations().items()
    }
    assert {
        request: (
            {name for name in _named(_sentence(text, "Parameters:")) if re.fullmatch(r"[a-z_-]{2,}", name)},
            {int(status) for status in re.findall(r"\d{3}", _sentence(text, "Statuses:"))},
        )
        for request, text in _requests().items()
    } == described


def test_every_request_has_an_example_and_is_in_the_table() -> None:
    table = {name for row in _rows("http.md", "HTTP interface") for name in _named(row[0])}
    listed = {
        (method, path)
        for methods, _, path in (name.rpartition(" ") for name in table)
        for method in methods.split(", ")
    }
    assert listed == {*_requests(), *(("GET", page) for page in NOT_DESCRIBED)}
    for (_, path), text in _requests().items():
        example, shown = text.split("```sh\n")[1].split("```\n\n```", maxsplit=1)
        pattern = re.escape(path).replace(r"\{name\}", "orders").replace(r"\{id\}", r"\S+")
        assert re.search(rf"localhost:8080{pattern}(?![\w/.])", example), path
        assert shown.split("```")[0].split("\n", maxsplit=1)[1].strip(), path


def test_every_command_is_listed_with_its_exit_codes() -> None:
    text = (REFERENCE / "settings.md").read_text(encoding="utf-8").split("\n## Exit codes\n")[1]
    assert set(COMMANDS) - {"version"} <= _named(text)
    codes = [row[0] for row in _rows("settings.md", "Exit codes")]
    assert [code for code in codes if code.isdigit()] == ["0", "1", "2", "3", "4"] * 2
