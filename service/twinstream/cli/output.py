"""What commands print for people, and the exit code of each answer."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.text import Text

EXIT_OF_VERDICT = {"EQUIVALENT": 0, "DIVERGED": 1, "PENDING": 3, "INCONCLUSIVE": 3}
EXIT_OF_ANSWER = {"pass": 0, "fail": 1, "undecided": 3}
COLOUR = {
    "EQUIVALENT": "green", "pass": "green", "DIVERGED": "red", "fail": "red", "PENDING": "cyan",
    "INCONCLUSIVE": "yellow", "undecided": "yellow",
}  # fmt: skip
SHOWN = 10


class Unreachable(click.ClickException):
    """The service did not answer."""


def print_answer(answer: dict[str, Any]) -> None:
    """The answer of `check` in a few lines."""
    console = Console(highlight=False, soft_wrap=True)
    verdict = answer["verdict"]
    console.print(Text(verdict, style=f"bold {COLOUR[verdict]}"), Text(answer["reason"]))
    events, unmatched = answer["events"], answer["unmatched"]
    console.print(
        f"events: reference {events['reference']:,}, candidate {events['candidate']:,}; "
        f"matched {answer['matched']:,} pairs; "
        f"unmatched: reference {unmatched['reference']:,}, candidate {unmatched['candidate']:,}"
    )
    for example in answer["examples"][:SHOWN]:
        console.print(Text(f"- {example['kind']}: {example['text']}"))
    more = answer["divergences"]["total"] - min(SHOWN, len(answer["examples"]))
    if more > 0:
        console.print(f"- and {more:,} more; see them with --json")
