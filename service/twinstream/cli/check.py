"""`twinstream check`: compare two recorded outputs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

import click
import orjson
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from twinstream.adapters.jsonl import INTERLEAVINGS, read_pair, read_trace
from twinstream.cli.output import EXIT_OF_VERDICT, print_answer
from twinstream.errors import SettingsError
from twinstream.ports import Line
from twinstream.runtime.offline import check as run_check
from twinstream.spec.load import load

PROGRESS_EVERY = 5000


@click.command(
    help="""Compare two recorded outputs, or a trace of both.

\b
  twinstream check spec.yaml --reference old.jsonl --candidate new.jsonl
  twinstream check spec.yaml --trace both.jsonl --json

A line of --reference and --candidate is an event's value. A line of --trace is
{"side": "reference", "value": {…}} or {"side": "reference", "end": true}. `-` is standard input, .gz is read.
"""
)
@click.argument("spec", type=click.Path())
@click.option("--reference", type=click.Path(), help="The reference's output, one value a line.")
@click.option("--candidate", type=click.Path(), help="The candidate's output, one value a line.")
@click.option("--trace", type=click.Path(), help="Both outputs in one file, as they came.")
@click.option("--interleave", type=click.Choice(INTERLEAVINGS), default="alternate", show_default=True)
@click.option("--open", "open_ended", is_flag=True, help="The streams go on after the input.")
@click.option("--allow-empty", is_flag=True, help="Two empty outputs are equivalent.")
@click.option("--require-evidence", is_flag=True, help="Ask for the evidence that the spec wants.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def check(spec: str, as_json: bool, **options: Any) -> int:
    """Run the comparison and print its answer; the exit code is the verdict's."""
    comparison = load(spec)
    answer = run_check(
        comparison,
        _with_progress(_lines(options)),
        open_ended=options["open_ended"],
        allow_empty=options["allow_empty"],
        evidence=options["require_evidence"],
    )
    if as_json:
        sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
    else:
        print_answer(answer)
    return EXIT_OF_VERDICT[answer["verdict"]]


def _lines(options: dict[str, Any]) -> Iterable[Line]:
    trace, reference, candidate = options["trace"], options["reference"], options["candidate"]
    if trace is not None and reference is None and candidate is None:
        return read_trace(trace)
    if trace is None and reference is not None and candidate is not None:
        if reference == candidate == "-":
            raise SettingsError("--reference and --candidate cannot both be standard input")
        return read_pair(reference, candidate, options["interleave"])
    raise SettingsError("give --reference and --candidate, or --trace alone")


def _with_progress(lines: Iterable[Line]) -> Iterator[Line]:
    """The same lines, counted on a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield from lines
        return
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} events"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("events", total=None)
        for count, line in enumerate(lines):
            if count % PROGRESS_EVERY == 0:
                progress.update(task, completed=count)
            yield line
