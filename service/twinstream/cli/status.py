"""`twinstream status`: what the service knows of its comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from twinstream.cli.client import Service, ask, service_option
from twinstream.cli.output import COLOUR, EXIT_OF_VERDICT, print_json, print_rich
from twinstream.spec.telling import explained_text

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


def on_trial(item: dict[str, Any]) -> Iterator[str]:
    """What is said of rules on trial beside a comparison, as sentences."""
    trial = item.get("trial")  # A service of an older version has none.
    if trial is None:
        return
    changes = ", ".join(trial["changes"])
    yield f"on trial ({changes}), {trial['state']}: {_verdict_of(trial)}{trial['reason']}"
    if trial["contrast"] is not None:
        yield f"on trial: {_compared(item, trial)}"
        yield f"on trial: {_contrasted(trial['contrast'])}"


def _verdict_of(trial: dict[str, Any]) -> str:
    return "" if trial["verdict"] is None else f"{trial['verdict']}. "


def _compared(item: dict[str, Any], trial: dict[str, Any]) -> str:
    """The counts of a trial, each with the difference to the comparison's."""
    return ", ".join(
        [
            f"matched {_with_change(trial['matched'], item['matched'])}",
            *(
                f"{state} {_with_change(_sum(trial, state), _sum(item, state))}"
                for state in ("ignored", "explained")
            ),
            f"divergences {_with_change(trial['divergences']['total'], item['divergences']['total'])}",
            f"{trial['time_share']:.0%} of the matcher's time",
        ]
    )


def _sum(status: dict[str, Any], state: str) -> int:
    """The events of both sides that became this."""
    return int(sum(status["accounts"][side][state] for side in ("reference", "candidate")))


def _with_change(count: int, live: int) -> str:
    return f"{count:,}" if count == live else f"{count:,} ({count - live:+,})"


def _contrasted(contrast: dict[str, Any]) -> str:
    """Which divergences the trial hides, and which it alone reports."""
    of_live, of_trial = contrast["of_live"], contrast["of_trial"]
    gone = of_live["hidden"] + of_live["explained"]
    rules = "".join(f", {count:,} by {rule}" for rule, count in contrast["hidden_by_rule"].items())
    hidden = f"{_kinds(contrast['hidden_by_kind'])}{rules}"
    new = _kinds(contrast["new_by_kind"])
    text = f"of {sum(of_live.values()):,} divergences it hides {gone:,}{hidden and f' ({hidden})'}"
    text += f", and it alone reports {of_trial['hidden'] + of_trial['explained']:,}{new and f' ({new})'}"
    untold = of_live["open"] + of_live["unknown"] + of_trial["open"] + of_trial["unknown"]
    return text + (f"; of {untold:,} nobody can tell yet" if untold else "")


def _kinds(by_kind: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in by_kind.items())


def _severity(code: int) -> int:
    return (0, 3, 1).index(code)


def _beside(item: dict[str, Any]) -> list[str]:
    return [*_explained(item), *_untested(item), *on_trial(item)]


def _untested(item: dict[str, Any]) -> list[str]:
    """What an EQUIVALENT does not rest on."""
    noted = item["coverage"].get("notes") if item["verdict"] == "EQUIVALENT" else None
    return [f"not put to the test: {'; '.join(noted)}"] if noted else []


def _explained(item: dict[str, Any]) -> list[str]:
    """What known differences have explained. A service of an older version does not say."""
    told = explained_text(item.get("explained_by_rule", {}))
    return [told] if told else []


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
        for reason in (item["reason"], *item["health"]["reasons"], *_beside(item))
    )
    print_rich(console, table, *reasons)
