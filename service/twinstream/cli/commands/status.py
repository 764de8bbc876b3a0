"""`twinstream status`: show the status of comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from twinstream.cli.shared.client import Service, ask, service_option
from twinstream.cli.shared.output import COLOUR, EXIT_OF_VERDICT, Refused, print_json, print_rich
from twinstream.explain.text import explained_text

PIPE_WIDTH = 200
"""Columns if the output is no terminal: enough for every heading."""


@click.command(
    help="""Show what the service knows of its comparisons.

\b
  twinstream status
  twinstream status ads-views --json

NAME is that of a comparison; without it all are shown, trials (NAME~trial) among them.

Exit codes: 0 equivalent · 1 diverged · 2 usage, no such comparison · 3 inconclusive or pending · 4 the
service cannot be reached. Of several comparisons, one that diverged decides, then one that is inconclusive or
pending; a trial never does.
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
        _print(items, _contrasts(service, items, name))
    judged = [item for item in items if name or not item.get("trial_of")]
    return max((EXIT_OF_VERDICT[item["verdict"]] for item in judged), key=_severity, default=0)


def _contrasts(service: Service, items: list[dict[str, Any]], name: str | None) -> dict[str, list[str]]:
    """By comparison, sentences on what a trial beside it would change; none without a trial."""
    beside = [item["trial_of"] for item in items if item.get("trial_of")]  # None of an older service.
    if name is not None:
        beside = [] if beside else [name]
    return {live: list(_contrast(service, live)) for live in beside}


def _contrast(service: Service, name: str) -> Iterator[str]:
    try:
        found = ask(service, f"/comparisons/{name}/trial")
    except Refused:
        return
    changes = ", ".join(found["changes"]) or "nothing"
    yield f"on trial as {found['name']} ({changes}): {found['verdict']}. {found['reason']}"
    yield f"on trial: {_hidden(found['hidden'])}; {_alone(found['alone'])}"
    yield from (f"on trial: {reason}" for reason in (*found["hidden"]["why"], *found["alone"]["why"]))


def _hidden(found: dict[str, Any]) -> str:
    known = found["count"] + found["shared"] + found["open"] + found["unknown"]
    return f"of {known:,} divergences it hides {_numbers(found)}"


def _alone(found: dict[str, Any]) -> str:
    return f"it alone reports {_numbers(found)}"


def _numbers(found: dict[str, Any]) -> str:
    """The number of divergences, by kind, and how many are unknown."""
    kinds = _kinds(found["by_kind"])
    parts = [f"{found['count']:,}{kinds and f' ({kinds})'}"]
    parts += [f"{found[sort]:,} {sort}" for sort in ("open", "unknown") if found[sort]]
    return ", ".join(parts)


def _kinds(by_kind: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in by_kind.items())


def _severity(code: int) -> int:
    return (0, 3, 1).index(code)


def _marked(item: dict[str, Any]) -> list[str]:
    return [f"trial of {item['trial_of']}, without a gate"] if item.get("trial_of") else []


def _beside(item: dict[str, Any]) -> list[str]:
    return [*_explained(item), *_untested(item)]


def _untested(item: dict[str, Any]) -> list[str]:
    """The untested aspects of an EQUIVALENT."""
    noted = item["coverage"].get("notes") if item["verdict"] == "EQUIVALENT" else None
    return [f"not put to the test: {'; '.join(noted)}"] if noted else []


def _explained(item: dict[str, Any]) -> list[str]:
    """The differences that known differences have explained. An older service does not report them."""
    told = explained_text(item.get("explained_by_rule", {}))
    return [told] if told else []


def _print(items: list[dict[str, Any]], contrasts: dict[str, list[str]]) -> None:
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
        for reason in (
            *_marked(item),
            item["reason"],
            *item["health"]["reasons"],
            *_beside(item),
            *contrasts.get(item["name"], ()),
        )
    )
    print_rich(console, table, *reasons)
