"""How `twinstream status` fits a terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from twinstream.cli.asking.status import HEADINGS, Overview

LARGE = 2_345_678_901


def item(name: str, count: int) -> dict[str, Any]:
    """A comparison as the service tells of it."""
    both = {"reference": count, "candidate": count}
    return {
        "name": name,
        "verdict": "INCONCLUSIVE",
        "health": {"status": "degraded"},
        "events": both,
        "matched": count,
        "unmatched": both,
        "divergences": {"total": count},
        "closed_divergences": {"total": min(count, LARGE - 1)},
    }


def lines(width: int, *items: dict[str, Any]) -> list[str]:
    paper = io.StringIO()
    Console(file=paper, width=width, soft_wrap=True, highlight=False).print(Overview(items))
    return [line.rstrip() for line in paper.getvalue().splitlines()]


def test_a_table_that_fits_is_a_table() -> None:
    heading, row = lines(100, item("ads", 7))
    assert heading.split() == list(HEADINGS)
    assert row.split() == ["ads", "INCONCLUSIVE", "degraded", "7", "7", "7", "7", "/", "7", "7"]


@pytest.mark.parametrize("width", [80, 100])
def test_large_numbers_and_long_names_fit_narrow_terminals(width: int) -> None:
    told = lines(width, item("ads", 7), item("a-long-name-of-a-comparison~trial", LARGE))
    assert max(map(len, told)) <= width
    assert told[4:] == [
        "a-long-name-of-a-comparison~trial  INCONCLUSIVE  degraded",
        "  reference 2,345,678,901, candidate 2,345,678,901, matched 2,345,678,901",
        "  unmatched 2,345,678,901 / 2,345,678,901",
        "  divergences 2,345,678,900 final, 1 provisional",
    ]


def test_a_wide_terminal_has_the_table() -> None:
    assert len(lines(200, item("a-long-name-of-a-comparison~trial", LARGE))) == 2
