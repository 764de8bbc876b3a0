"""Each promise under a fault names a test that exists, and each drill is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PROMISES = (TESTS.parent / "docs" / "promises.md").read_text(encoding="utf-8")
ROWS = [line for line in PROMISES.splitlines() if line.startswith("| ") and "::" in line]


def _tests(file: str) -> list[str]:
    """The tests of a file below `tests/`."""
    return re.findall(r"^def (test_\w+)", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("::")[1].strip("`| "))
def test_a_promise_names_a_test_that_exists(row: str) -> None:
    *_, last = (cell.strip() for cell in row.strip("|").split(" | "))
    file, test = last.strip("`| ").split("::")
    assert test in _tests(file)


def test_every_row_of_a_table_is_a_promise() -> None:
    tables = [line for line in PROMISES.splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(tables) - 2 * tables.count("| --- | --- | --- | --- |")
    assert all(len(row.split(" | ")) == 4 for row in ROWS)


def test_every_drill_is_in_the_table() -> None:
    assert set(_tests("e2e/test_drills.py")) == set(re.findall(r"e2e/test_drills\.py::(test_\w+)", PROMISES))
