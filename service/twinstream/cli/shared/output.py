"""What commands print, and the exit code of each answer."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from typing import Any

import click
import orjson
from rich.console import Console, RenderableType
from rich.text import Text

from twinstream.explain.picture import ASCII, UNICODE, Strokes
from twinstream.explain.text import tell_answer, tell_divergence

EXIT_OF_VERDICT = {"EQUIVALENT": 0, "DIVERGED": 1, "PENDING": 3, "INCONCLUSIVE": 3}
EXIT_OF_ANSWER = {"pass": 0, "fail": 1, "undecided": 3}
COLOUR = {
    "EQUIVALENT": "green", "pass": "green", "DIVERGED": "red", "fail": "red", "PENDING": "cyan",
    "INCONCLUSIVE": "yellow", "undecided": "yellow",
}  # fmt: skip
PIPE_WIDTH = 100
"""Columns of a picture where nobody's terminal sets them."""
WIDEST = 140
"""Lines longer than this are hard to read on any terminal."""
_CROSSING = r"[╳✕≠╲╱]|(?<=─)─+|─+(?=─)"


class Unreachable(click.ClickException):
    """The service did not answer."""


class Refused(click.ClickException):
    """The service says that it cannot be: one sentence, since how the command is used is not in question."""


def print_json(value: Any) -> None:
    """Exactly one JSON object, on a line."""
    _put(orjson.dumps(value) + b"\n")


def print_text(text: str) -> None:
    """A text as it stands."""
    _put(text.encode())


def print_rich(console: Console, *parts: RenderableType) -> None:
    """Print what rich can render, as `console` would; characters that its encoding lacks are escaped."""
    taken = io.BytesIO()
    paper = Console(
        file=io.TextIOWrapper(taken, console.encoding, "backslashreplace", write_through=True),
        force_terminal=console.is_terminal,
        width=console.width,
        highlight=False,
        soft_wrap=console.soft_wrap,
    )
    for part in parts:
        paper.print(part)
    _put(taken.getvalue())


def _put(text: bytes) -> None:
    """Write to standard output: the exit code says what was found, so that nobody reads it does no harm."""
    try:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    except OSError as error:
        # What is still in the buffer would be written at the end, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise click.UsageError(f"the answer cannot be written: {error.strerror}") from None


def print_answer(answer: Mapping[str, Any]) -> None:
    """The answer of `check`."""
    console = _console()
    verdict = answer["verdict"]
    told = tell_answer(answer, _width(console), _marks(console), wrapped=console.is_terminal)
    _print(console, told, f"bold {COLOUR[verdict]}", len(verdict))


def print_divergence(report: Mapping[str, Any]) -> None:
    """One divergence."""
    console = _console()
    told = tell_divergence(report, _width(console), _marks(console), wrapped=console.is_terminal)
    _print(console, told, "bold", len(report["kind"]))


def _print(console: Console, told: str, style: str, styled: int) -> None:
    """Print a text whose first characters have a style."""
    text = Text(told)
    text.stylize(style, 0, styled)
    text.highlight_regex(r"^\d+\. \w+", "bold")
    text.highlight_regex(_CROSSING, "red")
    print_rich(console, text)


def _console() -> Console:
    """Standard output, which takes lines as they are: they have their width already."""
    return Console(highlight=False, soft_wrap=True)


def _width(console: Console) -> int:
    return min(console.width, WIDEST) if console.is_terminal else PIPE_WIDTH


def _marks(console: Console) -> Strokes:
    return UNICODE if console.encoding.lower().startswith("utf") else ASCII
