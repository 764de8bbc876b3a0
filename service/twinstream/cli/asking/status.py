"""`twinstream status`: show the status of comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from twinstream.cli.shared.client import Service, ask, path_of, service_option
from twinstream.cli.shared.output import COLOUR, EXIT_OF_VERDICT, Refused, print_json, print_rich
from twinstream.explain.picture import printable
from twinstream.explain.reason import sure_text
from twinstream.explain.text import checks_lines, explained_text, group_lines, untested_text

HEADINGS = (
    *("comparison", "verdict", "health"),
    *("reference", "candidate", "matched", "unmatched", "divergences"),
)
PIPE_WIDTH = 200
"""Columns if the output is no terminal: enough for every heading."""


@click.command()
@click.argument("name", required=False)
@service_option
@click.option("--json", "as_json", is_flag=True, help="Print what the API answers, as one JSON object.")
def status(name: str | None, service: Service, as_json: bool) -> int:
    """Show what the service knows of its comparisons.

    \b
      twinstream status
      twinstream status ads-views --json

    NAME is that of a comparison: its gate is told, and its divergences are summed up in groups. Without it
    all are shown, trials (NAME~trial) among them.

    Exit codes: 0 equivalent · 1 diverged · 2 usage, no such comparison · 3 inconclusive or pending · 4 the
    service cannot be reached. Of several comparisons, one that diverged decides, then one that is
    inconclusive or pending; a trial never does.
    """
    answer = ask(service, "/comparisons", "items") if name is None else ask(service, path_of(name), "verdict")
    items: list[dict[str, Any]] = [answer] if name else answer["items"]
    if as_json:
        print_json(answer)
    else:
        groups, more = list(group_lines(answer)) if name else [], _contrasts(service, items, name)
        if name:
            more[name] = [*_gate(service, answer), *more.get(name, [])]
        _print(items, more, groups)
    judged = [item for item in items if name or not item.get("trial_of")]
    return max((EXIT_OF_VERDICT[item["verdict"]] for item in judged), key=(0, 3, 1).index, default=0)


def _gate(service: Service, item: dict[str, Any]) -> Iterator[str]:
    """What the gate of a comparison answers; a trial has none."""
    with suppress(Refused):
        found = ask(service, path_of(item["name"], "gate"), "answer", "reason")
        reason = "" if found["reason"] == item["reason"] else f": {found['reason']}"
        yield f"gate {found['answer']}{reason}"


def _contrasts(service: Service, items: list[dict[str, Any]], name: str | None) -> dict[str, list[str]]:
    """By comparison, sentences on what a trial beside it would change; none without a trial."""
    beside = [item["trial_of"] for item in items if item.get("trial_of")]  # None of an older service.
    if name is not None:
        beside = [] if beside else [name]
    return {live: list(_contrast(service, live)) for live in beside}


def _contrast(service: Service, name: str) -> Iterator[str]:
    try:
        found = ask(service, path_of(name, "trial"), "changes", "hidden", "alone")
    except Refused:
        return
    changes = ", ".join(found["changes"]) or "nothing"
    yield f"on trial as {found['name']} ({changes}): {found['verdict']}. {found['reason']}"
    hidden = found["hidden"]
    known = hidden["count"] + hidden["shared"] + hidden["open"] + hidden["unknown"]
    hides = f"of {known:,} divergences it hides {_numbers(hidden)}"
    yield f"on trial: {hides}; it alone reports {_numbers(found['alone'])}"
    yield from (f"on trial: {reason}" for reason in (*hidden["why"], *found["alone"]["why"]))


def _numbers(found: dict[str, Any]) -> str:
    """The number of divergences, by kind, and how many are unknown."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found["by_kind"].items())
    parts = [f"{found['count']:,}{kinds and f' ({kinds})'}"]
    parts += [f"{found[sort]:,} {sort}" for sort in ("open", "unknown") if found[sort]]
    return ", ".join(parts)


def _said(item: dict[str, Any]) -> Iterator[str]:
    """The sentences below the table. An older service does not report all that they tell of."""
    if item.get("trial_of"):
        yield f"trial of {item['trial_of']}, without a gate"
    yield from (item["reason"], *item["health"]["reasons"])
    if explained := explained_text(item):
        yield explained
    yield from checks_lines(item)
    if item["verdict"] == "EQUIVALENT" and (untested := untested_text(item)):
        yield untested


class Overview:
    """The comparisons as a table, or where that is too wide for the terminal as a few short lines each."""

    def __init__(self, items: Iterable[dict[str, Any]]) -> None:
        self._rows = [(item["name"], item["verdict"], *_cells(item)) for item in items]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What rich draws in the given width."""
        table = Table(*HEADINGS, box=None, pad_edge=False)
        for name, verdict, *cells in self._rows:
            table.add_row(name, _verdict(verdict), *cells)
        if Measurement.get(console, options.update(width=PIPE_WIDTH), table).maximum <= options.max_width:
            yield table
            return
        for name, verdict, health, *counts in self._rows:
            yield Text.assemble(name, "  ", _verdict(verdict), f"  {health}")
            told = [f"{heading} {count}" for heading, count in zip(HEADINGS[3:], counts, strict=True)]
            yield from (Text(f"  {line}") for line in (", ".join(told[:3]), *told[3:]))


def _print(items: list[dict[str, Any]], more: dict[str, list[str]], groups: list[str]) -> None:
    reasons = (
        Text(printable(f"{item['name']}: {reason}"))
        for item in items
        for reason in (*_said(item), *more.get(item["name"], ()))
    )
    print_rich(Overview(items), *reasons, *map(Text, groups), pipe_width=PIPE_WIDTH)


def _verdict(verdict: str) -> Text:
    return Text(verdict, style=f"bold {COLOUR[verdict]}")


def _cells(item: dict[str, Any]) -> tuple[str, ...]:
    """What stands under the headings behind the verdict."""
    events, unmatched = item["events"], item["unmatched"]
    return (
        item["health"]["status"],
        f"{events['reference']:,}",
        f"{events['candidate']:,}",
        f"{item['matched']:,}",
        f"{unmatched['reference']:,} / {unmatched['candidate']:,}",
        _divergences(item),
    )


def _divergences(item: dict[str, Any]) -> str:
    """How many there are; an older service does not tell how many of them are final."""
    total = item["divergences"]["total"]
    final = item.get("closed_divergences", item["divergences"])["total"]
    return sure_text(total, final) or f"{total:,}"
