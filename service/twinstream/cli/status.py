"""`twinstream status`: what the service knows of its comparisons."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from twinstream.cli.client import Service, ask, service_option
from twinstream.cli.output import COLOUR, EXIT_OF_VERDICT, print_json, print_rich

PIPE_WIDTH = 200
"""Columns where nobody looks: enough for every heading."""


@click.command(
    help="""Show what the service knows of its comparisons.

\b
  twinstream status
  twinstream status ads-views --json

NAME is that of a comparison; without it all are shown.

Exit codes: 0 equivalent · 1 diverged · 2 usage, no such comparison · 3 inconclusive or pending · 4 the
service cannot be reached. Of several comparisons, one that diverged decides, then one that is inconclusive or
pending.
"""
)
@click.argument("name", required=False)
@service_option
@click.option("--json", "as_json", is_flag=True, help="Print what the API answers, as one JSON object.")
def status(name: str | None, service: Service, as_json: bool) -> int:
    """Print one comparison or all."""
    answer = ask(service, f"/comparisons/{name}" if name else "/comparisons")
    items: list[dict[str, Any]] = [answer] if name else answer["items"]
    if as_json:
        print_json(answer)
    else:
        _print(items)
    return max((EXIT_OF_VERDICT[item["verdict"]] for item in items), key=_severity, default=0)


def _severity(code: int) -> int:
    return (0, 3, 1).index(code)


def _print(items: list[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in (
        "comparison",
        "verdict",
        "health",
        "reference",
        "candidate",
        "matched",
        "unmatched",
        "divergences",
    ):
        table.add_column(heading)
    for item in items:
        events, unmatched = item["events"], item["unmatched"]
        table.add_row(
            item["name"],
            Text(item["verdict"], style=f"bold {COLOUR[item['verdict']]}"),
            item["health"]["status"],
            f"{events['reference']:,}",
            f"{events['candidate']:,}",
            f"{item['matched']:,}",
            f"{unmatched['reference']:,} / {unmatched['candidate']:,}",
            f"{item['divergences']['total']:,}",
        )
    console = Console(soft_wrap=True)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    reasons = (
        Text(f"{item['name']}: {reason}")
        for item in items
        for reason in (item["reason"], *item["health"]["reasons"])
    )
    print_rich(console, table, *reasons)
