"""A command that the tests fork says what the program says that a user starts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.commands import run_forked, run_started
from tests.support.marks import one_a_change
from twinstream.cli.main import COMMANDS

CASES = Path(__file__).parent.parent / "cases"
ENVIRONMENT = {**os.environ, "COLUMNS": "100"}


@pytest.mark.parametrize(
    "command", one_a_change(["check --no-such-option", *(f"{name} --help" for name in COMMANDS)])
)
def test_a_command_that_is_forked_says_what_one_says_that_is_started(command: str, tmp_path: Path) -> None:
    asked = command.split(), tmp_path, ENVIRONMENT, b""
    code, out, err = run_forked(*asked)
    assert (code, out, err) == run_started(*asked)
    assert (code, bool(out)) == ((0, True) if "--help" in command else (2, False))


NAMED = ["absent-is-null", "kind-list-from-standard-input", "bad-key-missing-inside-barrier", "barrier-lost"]


@pytest.mark.parametrize("case", NAMED)
def test_a_case_has_the_same_answer_from_both(case: str) -> None:
    told = json.loads((CASES / case / "expected.json").read_text(encoding="utf-8"))
    stdin = (CASES / case / told["stdin"]).read_bytes() if "stdin" in told else b""
    run = told["command"], CASES / case, ENVIRONMENT, stdin
    assert run_forked(*run) == run_started(*run)


def test_nothing_of_one_command_is_left_in_the_next(tmp_path: Path) -> None:
    first = {**ENVIRONMENT, "TWINSTREAM_SERVICE": "http://127.0.0.1:1"}
    second = {**ENVIRONMENT, "TWINSTREAM_SERVICE": "http://127.0.0.1:2"}
    one, other = (run_forked(["status"], tmp_path, environment, b"")[2] for environment in (first, second))
    assert b"127.0.0.1:1" in one
    assert b"127.0.0.1:2" in other
    assert b"127.0.0.1:1" not in other
