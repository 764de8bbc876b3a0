"""A real Prometheus scrapes the running service: the dashboard has its answers, and the alerts fire."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from deploy.embedded import prerequisites
from tests.support.cases import Serve
from tests.support.dashboard import filled, queries
from tests.support.marks import whole_product
from tests.support.prometheus import Prometheus
from tests.support.service import WEB
from tests.support.tools import run
from tests.support.waiting import eventually

pytestmark = whole_product(seconds=300)
NOT_A_NUMBER_IS_RIGHT = {"Wait for the partner"}
"""Quantiles of a stretch in which nothing was matched."""


def numbers(result: list[dict[str, Any]]) -> list[float]:
    """All values of an answer."""
    return [
        float(text)
        for series in result
        for _, text in (series["values"] if "values" in series else [series["value"]])
    ]


def scraped(server: Prometheus, expression: str) -> bool:
    """Whether an expression holds for a series that Prometheus has now."""
    return bool(server.query(expression))


def test_every_query_of_the_dashboard_has_an_answer_a_difference_fires_its_alert_and_promtool_is_pleased(
    serve: Serve, tmp_path: Path
) -> None:
    more = "overdue: {clock: arrival, after: 600s}\nchecks: [{id: numbered, not_null: [n]}]\n"
    service, writer = serve(partitions=2, more=more)
    name, began = service.spec.stem, time.time()
    with Prometheus(tmp_path / "prometheus", service.address) as server:
        writer.both(range(1000))
        service.passes_with(1000)
        writer.both(range(1000, 1100))
        # Where the log begins is known ten seconds after the matcher has begun to read.
        begins = f'twinstream_log_start_offset{{comparison="{name}"}} == 0'
        eventually(lambda: scraped(server, begins), seconds=60, what="the log start is known and scraped")
        assert server.firing() == set()

        writer.reference(3, 5000)
        writer.both(range(2000, 2400))  # enough equal events of the key to close what differs
        diverged = f'twinstream_divergences_total{{comparison="{name}"}} > 0'
        eventually(
            lambda: scraped(server, diverged), seconds=60, what="the difference is counted and scraped"
        )
        eventually(lambda: "TwinstreamDiverged" in server.firing(), what="the alert on a difference fires")
        (fired,) = (alert for rule in server.rules() for alert in rule.get("alerts", ()))
        assert fired["annotations"]["description"].startswith("DIVERGED: 1 missing. A difference is proven")
        exposed = WEB.get(f"{service.address}/metrics").text
        assert run(prerequisites.PROMTOOL, "check", "metrics", text=exposed) == ""
        for query in queries():
            text = filled(query.expression, name)
            found = server.query(text) if query.instant else server.since(began, text)
            assert found, f"no data for {query.title}: {text}"
            if query.title not in NOT_A_NUMBER_IS_RIGHT:
                assert any(not math.isnan(value) for value in numbers(found)), f"no number for {query.title}"
        assert [rule["name"] for rule in server.rules() if rule["health"] != "ok"] == []
        verdicts = server.query(f'twinstream_verdict{{comparison="{name}"}} == 1')
        assert [sample["metric"]["verdict"] for sample in verdicts] == ["DIVERGED"]
