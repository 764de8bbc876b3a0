"""`twinstream lint`: report what a comparison file amounts to, before anything is compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import click
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from twinstream.cli.shared.output import print_json, print_rich
from twinstream.cli.shared.topics import kafka_options, reaching_kafka
from twinstream.settings import Settings
from twinstream.spec.file.model import Spec
from twinstream.spec.lint.cautions import Note
from twinstream.spec.lint.lint import Cost, LintReport, PairDependence
from twinstream.spec.lint.lint import lint as lint_spec
from twinstream.spec.lint.topics import facts, hints, refusals
from twinstream.spec.load import load


@click.command()
@click.argument("spec", type=click.Path())
@kafka_options(", to look at the topics.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as one JSON object.")
def lint(spec: str, kafka: Settings | None, as_json: bool) -> int:
    """Show what a comparison file amounts to, and what is doubtful in it.

    \b
      twinstream lint spec.yaml
      twinstream lint spec.yaml --brokers localhost:9092 --json

    SPEC is a comparison file. It prints which kinds of events may not change places, what the matcher does
    for an event of each kind and about how long that takes, whether several matchers can share the work, and
    every warning. With --brokers or --config it also asks Kafka for the topics, says what it found, and
    refuses what cannot work: a topic that is missing or compacted, or has more partitions than the order
    allows.

    Exit codes: 0 usable, perhaps with warnings · 2 usage, bad comparison file, or refused · 4 Kafka cannot be
    reached.
    """
    comparison = load(spec)
    report = lint_spec(comparison, datetime.now(UTC).date())
    if kafka is not None:
        report = _with_topics(report, comparison, kafka)
    if as_json:
        print_json(report.to_dict())
    else:
        _print(report)
    return 2 if report.refused else 0


def _with_topics(report: LintReport, spec: Spec, kafka: Settings) -> LintReport:
    from twinstream.adapters.kafka.watch import describe

    names = tuple(filter(None, (spec.reference.topic, spec.candidate.topic, spec.followed)))
    with reaching_kafka():
        topics = describe(kafka.brokers, names, kafka.kafka)
    warnings = (*report.warnings, *hints(spec, topics))
    refused = tuple(refusals(spec, topics))
    return replace(report, topics=tuple(facts(spec, topics)), refused=refused, warnings=warnings)


# -- for people --------------------------------------------------------------------------------------------


def _print(report: LintReport) -> None:
    parts: list[RenderableType] = [
        Text(f"{report.name}: compared {report.order}"),
        _heading("Which events must keep their order"),
        _matrix(report.kinds, report.matrix),
        _heading("Work for each event"),
        _costs(report.costs),
        _heading("Shards"),
        Padding(Text(report.division.text), (0, 0, 0, 2)),
    ]
    if report.checks:
        parts += [_heading("Checks of each side"), _notes(report.checks, "")]
    if report.topics:
        fit = "They do not fit: see Refused." if report.refused else "They fit this comparison."
        parts += [_heading("Topics in Kafka"), _notes(report.topics, ""), Text(f"  {fit}")]
    if report.warnings:
        parts += [_heading("Warnings"), _notes(report.warnings, "yellow")]
    if report.refused:
        parts += [_heading("Refused"), _notes(report.refused, "red")]
    print_rich(*parts, soft_wrap=False)


def _heading(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _matrix(kinds: Iterable[str], pairs: Iterable[PairDependence]) -> Table:
    """The matrix of kinds; below the diagonal it would repeat itself."""
    names = list(kinds)
    found = {(pair.first, pair.second): pair.when for pair in pairs}
    table = Table("", *(Column(Text(name)) for name in names), box=SIMPLE_HEAD, pad_edge=False)
    for name in names:
        cells = [found.get((name, other), "") for other in names]
        table.add_row(Text(name), *(Text(cell, style="dim" if cell == "never" else "") for cell in cells))
    return table


def _costs(costs: Iterable[Cost]) -> Table:
    time = Column("time", justify="right", no_wrap=True)
    table = Table("kind", "per event", time, box=SIMPLE_HEAD, pad_edge=False)
    for cost in costs:
        spent = "grows with unmatched" if cost.nanoseconds is None else f"{cost.nanoseconds / 1000:.1f} µs"
        table.add_row(Text(cost.kind), Text("; ".join(step.meaning for step in cost.steps)), Text(spent))
    return table


def _notes(notes: Iterable[Note], style: str) -> Table:
    key = Column(no_wrap=True)
    table = Table(key, Column(), box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for note in notes:
        table.add_row(Text(f"  {note.key}", style=style), Text(note.text))
    return table
