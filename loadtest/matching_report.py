"""The tables and the plot of the benchmark of matching."""

from __future__ import annotations

from statistics import median
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

Row = dict[str, Any]


def print_tables(rows: list[Row]) -> None:
    """Times, then the plain matcher and memory, on standard output."""
    console = Console(width=None if Console().is_terminal else 160)
    console.print(_times(rows))
    console.print(_plain([row for row in rows if "plain" in row]))
    turns = [turn for row in rows for found in row["by_drift"].values() for turn in found["yardstick_ns"]]
    console.print(f"yardstick: {min(turns)} to {max(turns)} ns, median {median(turns)}")


def _times(rows: list[Row]) -> Table:
    drifts = list(rows[0]["by_drift"])
    table = _table("Nanoseconds an event by unmatched events: median (least)", ["order", "keys", "partners"])
    for heading in (*(f"{drift:,}" for drift in drifts), "target", "time", "growth"):
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [_cell(row["by_drift"][drift]) for drift in drifts]
        meets = row["meets"]
        table.add_row(
            *_head(row),
            row["partners"],
            *cells,
            f"{row['target_ns']:,.0f}",
            _mark(meets.get("time")),
            _mark(meets.get("growth")),
        )
    return table


def _plain(rows: list[Row]) -> Table:
    drifts = list(rows[0]["plain"])
    table = _table(
        "The plain matcher, as a multiple of ours; memory of an unmatched event", ["order", "keys"]
    )
    for heading in (*(f"{drift:,}" for drift in drifts), "bytes + payload", "memory", "peak MiB"):
        table.add_column(heading, justify="right")
    for row in rows:
        memory = row["memory"]
        table.add_row(
            *_head(row),
            *(f"{ratio(row, drift):,.2g}" for drift in drifts),
            f"{memory['bytes_beyond_payload']:,} + {memory['payload_bytes']}",
            _mark(row["meets"]["memory"]),
            f"{memory['peak_rss_mib']:,}",
        )
    return table


def ratio(row: Row, drift: int) -> float:
    """How many times as long as ours the plain matcher takes."""
    plain: float = row["plain"][drift]["median_ns"]
    return plain / float(row["by_drift"][drift]["median_ns"])


def _table(title: str, headings: list[str]) -> Table:
    table = Table(title=title)
    for heading in headings:
        table.add_column(heading)
    return table


def _head(row: Row) -> tuple[str, str]:
    return row["scenario"], f"{row['keys']:,}"


def _cell(found: Row) -> str:
    return f"{found['median_ns']:,.0f} ({found['least_ns']:,.0f})"


def _mark(meets: bool | None) -> str:
    return {None: "", True: "met", False: "MISSED"}[meets]


def plot(rows: list[Row], file: str) -> None:
    """Time by unmatched events, a line for each order; a panel for each number of keys."""
    sets = sorted({row["keys"] for row in rows})
    figure = Figure(figsize=(8 * len(sets), 7), dpi=110)
    panels = figure.subplots(1, len(sets), sharey=True, squeeze=False)
    for keys, panel in zip(sets, panels[0], strict=True):
        _draw(panel, [row for row in rows if row["keys"] == keys])
        panel.set_title(f"{keys:,} key{'s' if keys > 1 else ''}")
    figure.suptitle("Matching alone: median time of an event by unmatched events (plain matcher dotted)")
    figure.tight_layout()
    figure.savefig(file)


def _draw(panel: Any, rows: list[Row]) -> None:
    names = list(dict.fromkeys(row["scenario"] for row in rows))
    for row in rows:
        color = f"C{names.index(row['scenario']) % 10}"
        style = {"fifo": "-", "random": "--"}[row["partners"]]
        label = f"{row['scenario']}{', random' if row['partners'] == 'random' else ''}"
        _line(panel, row["by_drift"], color, style, label)
        if "plain" in row:
            _line(panel, row["plain"], color, ":", None)
    panel.axhline(1.0, color="grey", linewidth=0.8)
    panel.set(xscale="log", yscale="log", xlabel="unmatched events", ylabel="µs an event")
    panel.grid(True, which="both", alpha=0.2)
    panel.legend(fontsize="x-small", ncols=2)


def _line(panel: Any, found: dict[int, Row], color: str, style: str, label: str | None) -> None:
    times = [found[drift]["median_ns"] / 1000 for drift in found]
    panel.plot(list(found), times, style, color=color, label=label, marker="." if label else None)
