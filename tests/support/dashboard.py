"""The shipped Grafana dashboard: its panels and queries, with the variables filled in as Grafana does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parents[2] / "deploy" / "grafana" / "dashboards" / "twinstream.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text())


class Query(NamedTuple):
    """A query of a panel, or of an annotation: its title, and what Prometheus is asked."""

    title: str
    expression: str
    instant: bool


def panels() -> list[dict[str, Any]]:
    """All panels that show something."""
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> Iterator[Query]:
    """All queries of panels and annotations, as they are in the file."""
    for panel in panels():
        for target in panel["targets"]:
            yield Query(panel["title"], target["expr"], bool(target.get("instant")))
    for annotation in DASHBOARD["annotations"]["list"]:
        yield Query(annotation["name"], annotation["expr"], False)


def filled(expression: str, comparison: str) -> str:
    """A query for one comparison, over a window that has a few scrapes in it."""
    return expression.replace("$comparison", comparison).replace("$__rate_interval", "10s")
