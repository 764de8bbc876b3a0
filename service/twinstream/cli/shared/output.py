"""Prints the results of commands, and maps each answer to an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click
import orjson
from rich.console import Console, RenderableType
from rich.text import Text

from twinstream.errors import SettingsError
from twinstream.explain.checks import judged
from twinstream.explain.picture import ASCII, UNICODE
from twinstream.explain.text import group_lines, tell_answer, tell_divergence
from twinstream.status.comparison import CheckStatus

EXIT_OF_VERDICT = {"EQUIVALENT": 0, "DIVERGED": 1, "PENDING": 3, "INCONCLUSIVE": 3}
EXIT_OF_ANSWER = {"pass": 0, "fail": 1, "undecided": 3}
"""By the answer of a gate."""
COLOUR = {
    "EQUIVALENT": "green", "pass": "green", "DIVERGED": "red", "fail": "red", "PENDING": "cyan",
    "INCONCLUSIVE": "yellow", "undecided": "yellow",
}  # fmt: skip
PIPE_WIDTH = 100
"""Columns if there is no terminal."""
WIDEST = 140
"""Lines longer than this are hard to read on any terminal."""
_CROSSING = r"[╳✕≠╲╱]|(?<=─)─+|─+(?=─)"


class Unreachable(click.ClickException):
    """The service did not answer."""


class Refused(click.ClickException):
    """The service refuses: one sentence without the usage of the command, which is not the problem."""


def print_json(value: Any) -> None:
    """Print exactly one JSON object, on one line."""
    _put(orjson.dumps(value) + b"\n")


def print_text(text: str) -> None:
    """Print a text unchanged."""
    _put(text.encode())


def print_rich(*parts: RenderableType, soft_wrap: bool = True, pipe_width: int = PIPE_WIDTH) -> None:
    """Print what rich can render; characters that the encoding of standard output lacks are escaped.

    `pipe_width` is the width if there is no terminal.
    """
    console, taken = Console(), io.BytesIO()
    paper = Console(
        file=io.TextIOWrapper(taken, console.encoding, "backslashreplace", write_through=True),
        force_terminal=console.is_terminal,
        width=console.width if console.is_terminal else pipe_width,
        highlight=False,
        soft_wrap=soft_wrap,
    )
    for part in parts:
        paper.print(part)
    _put(taken.getvalue())


def _put(text: bytes) -> None:
    """Write to standard output; a closed pipe does no harm, since the exit code tells the result."""
    try:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    except OSError as error:
        # Otherwise the buffered rest would be written at exit, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise SettingsError(f"the answer cannot be written: {error.strerror}") from None


def exit_of_answer(answer: Mapping[str, Any]) -> int:
    """The exit code of `check`: that of the verdict, if the checks of single sides do not make it worse."""
    found = judged([CheckStatus.model_validate(check) for check in answer.get("checks", ())])
    by_verdict = EXIT_OF_VERDICT[answer["verdict"]]
    if found is None or by_verdict == EXIT_OF_VERDICT["DIVERGED"]:
        return by_verdict
    return EXIT_OF_ANSWER[found.answer]


def print_answer(answer: Mapping[str, Any]) -> None:
    """Print the answer of `check`."""
    verdict = answer["verdict"]
    _print_told(tell_answer, answer, f"bold {COLOUR[verdict]}", len(verdict))


def print_divergences(reports: Iterable[Mapping[str, Any]]) -> None:
    """Print divergences, with an empty line between two."""
    for place, report in enumerate(reports):
        if place:
            print_text("\n")
        _print_told(tell_divergence, report, "bold", len(report["kind"]))


def print_groups(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Print a sentence for each group of divergences, and the ids of examples."""
    groups = [*found["groups"], *found["provisional_groups"]]
    for line, group in zip(group_lines(found), groups, strict=True):
        print_rich(Text(line))
        if group["examples"]:
            print_rich(Text(f"  for example {', '.join(group['examples'])}"))


def _print_told(tell: Callable[..., str], about: Mapping[str, Any], style: str, styled: int) -> None:
    """Print what is told of something, with a style for its first characters."""
    console = Console()
    width = min(console.width, WIDEST) if console.is_terminal else PIPE_WIDTH
    marks = UNICODE if console.encoding.lower().startswith("utf") else ASCII
    text = Text(tell(about, width, marks, wrapped=console.is_terminal))
    text.stylize(style, 0, styled)
    text.highlight_regex(r"^\d+\. \w+", "bold")
    text.highlight_regex(_CROSSING, "red")
    print_rich(text)  # Its lines are wrapped already.
