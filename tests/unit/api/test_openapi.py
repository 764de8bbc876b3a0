"""The description of the HTTP interface says what the application does, and the committed one is current."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from twinstream.api.app import create_app
from twinstream.api.openapi import main
from twinstream.api.state.board import Board

COMMITTED = Path(__file__).parents[3] / "docs" / "openapi.json"


@pytest.fixture
def app() -> FastAPI:
    return create_app(Board(), lambda: (b"", ""))


def test_the_committed_description_is_the_one_that_the_command_writes(tmp_path: Path) -> None:
    main(str(tmp_path / "openapi.json"))
    assert (tmp_path / "openapi.json").read_bytes() == COMMITTED.read_bytes(), "run `make pages`"


def responses(app: FastAPI) -> list[tuple[str, str, dict[str, Any]]]:
    """The path, the code and the description of every answer."""
    return [
        (path, code, response)
        for path, operations in app.openapi()["paths"].items()
        for operation in operations.values()
        for code, response in operation["responses"].items()
    ]


def test_every_error_is_described_as_a_problem_document(app: FastAPI) -> None:
    errors = [response for _, code, response in responses(app) if code >= "400"]
    assert errors
    assert {tuple(error["content"]) for error in errors} == {("application/problem+json",)}


def test_what_takes_a_body_says_that_it_may_be_too_large(app: FastAPI) -> None:
    operations = [one for path in app.openapi()["paths"].values() for one in path.values()]
    taking = [one["responses"] for one in operations if "requestBody" in one]
    assert len(taking) == 2
    assert all("413" in responses for responses in taking)


def test_what_may_be_asked_of_a_comparison_says_that_there_may_be_none(app: FastAPI) -> None:
    paths = {path for path, _, _ in responses(app) if "{name}" in path}
    assert len(paths) >= 10
    assert paths == {path for path, code, _ in responses(app) if code == "404" and "{name}" in path}
