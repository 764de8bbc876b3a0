"""A command that the tests fork says what the program says that a user starts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.commands import run_forked, run_started
from twinstream.cli.main import COMMANDS

CASES = Path(__file__).parent.parent / "cases"
ENVIRONMENT = {**os.environ, "COLUMNS": "100"}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_that_is_forked_says_what_one_says_that_is_started(name: str, tmp_path: Path) -> None:
    asked = [name, "--help"], tmp_path, ENVIRONMENT, b""
    forked = run_forked(*asked)
    assert forked == run_started(*asked)
    assert forked[1]


def test_a_mistake_is_refused_alike(tmp_path: Path) -> None:
    asked = ["check", "--no-such-option"], tmp_path, ENVIRONMENT, b""
    forked = run_forked(*asked)
    assert forked == run_started(*asked)
    assert (forked[0], forked[1]) == (2, b"")


@pytest.mark.parametrize(
    "case",
    ["absent-is-null", "kind-list-from-standard-input", "bad-key-missing-inside-barrier", "barrier-lost"],
)
def test_a_case_has_the_same_answer_from_both(case: str) -> None:
    told = json.loads((CASES / case / "expected.json").read_text(encoding="utf-8"))
    stdin = (CASES / case / told["stdin"]).read_bytes() if "stdin" in told else b""
    run = told["command"], CASES / case, ENVIRONMENT, stdin
    assert run_forked(*run) == run_started(*run)


def test_nothing_of_one_command_is_left_in_the_next(tmp_path: Path) -> None:
    first = {**ENVIRONMENT, "TWINSTREAM_SERVICE": "http://127.0.0.1:1"}
    second = {**ENVIRONMENT, "TWINSTREAM_SERVICE": "http://127.0.0.1:2"}
    told = [run_forked(["status"], tmp_path, environment, b"")[2] for environment in (first, second)]
    assert [b"127.0.0.1:1" in told[0], b"127.0.0.1:2" in told[1], b"127.0.0.1:1" in told[1]] == [
        True,
        True,
        False,
    ]
