"""A real Prometheus scrapes the running service: the dashboard has its answers, and the alerts fire."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from deploy.embedded import prerequisites
from deploy.embedded.kafka import Kafka
from tests.support.dashboard import filled, queries
from tests.support.marks import whole_product
from tests.support.prometheus import Prometheus, prometheus
from tests.support.service import ServiceProcess, Writer, spec_file
from tests.support.stack import MakeTopic
from tests.support.tools import run
from tests.support.waiting import eventually

pytestmark = whole_product(seconds=300)
NAME = "watched"
NOT_A_NUMBER_IS_RIGHT = {"Wait for the partner"}
"""Quantiles of a stretch in which nothing was matched."""


class Watched(NamedTuple):
    service: ServiceProcess
    writer: Writer
    prometheus: Prometheus


@pytest.fixture
def watched(kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path) -> Iterator[Watched]:
    """A service with a comparison of two topics with two partitions, and a Prometheus that scrapes it."""
    reference, candidate = topic(partitions=2), topic(partitions=2)
    spec = spec_file(tmp_path, NAME, reference, candidate, "overdue: {clock: arrival, after: 600s}\n")
    service = ServiceProcess(spec, kafka.brokers, redis_url)
    service.start()
    try:
        with prometheus(tmp_path / "prometheus", service.address) as server:
            yield Watched(service, Writer(kafka.brokers, reference, candidate), server)
    finally:
        service.stop()


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


def test_every_query_of_the_dashboard_has_an_answer_and_a_difference_fires_its_alert(
    watched: Watched,
) -> None:
    service, writer, server = watched
    began = time.time()
    writer.both(range(1000))
    service.await_events(1000)
    eventually(lambda: service.gate() == "pass", seconds=30, what="the gate passes")
    writer.both(range(1000, 1100))
    # Where the log begins is known ten seconds after the matcher has begun to read.
    begins = f'twinstream_log_start_offset{{comparison="{NAME}"}} == 0'
    eventually(lambda: scraped(server, begins), seconds=60, what="the log start is known and scraped")
    assert server.firing() == set()

    writer.reference(3, 5000)
    writer.both(range(2000, 2400))  # enough equal events of the key to close what differs
    diverged = f'twinstream_divergences_total{{comparison="{NAME}"}} > 0'
    eventually(lambda: scraped(server, diverged), seconds=60, what="the difference is counted and scraped")
    eventually(
        lambda: "TwinstreamDiverged" in server.firing(), seconds=30, what="the alert on a difference fires"
    )

    for query in queries():
        text = filled(query.expression, NAME)
        found = server.query(text) if query.instant else server.since(began, text)
        assert found, f"no data for {query.title}: {text}"
        if query.title not in NOT_A_NUMBER_IS_RIGHT:
            assert any(not math.isnan(value) for value in numbers(found)), f"no number for {query.title}"
    assert [rule["name"] for rule in server.rules() if rule["health"] != "ok"] == []
    verdicts = server.query(f'twinstream_verdict{{comparison="{NAME}"}} == 1')
    assert [sample["metric"]["verdict"] for sample in verdicts] == ["DIVERGED"]


def test_the_exposition_of_the_running_service_pleases_promtool(watched: Watched) -> None:
    service, writer, _ = watched
    writer.both(range(100))
    service.await_events(100)
    assert (
        run(
            prerequisites.PROMTOOL,
            "check",
            "metrics",
            text=httpx.get(f"{service.address}/metrics", trust_env=False).text,
        )
        == ""
    )


def test_an_alert_outlives_the_service_that_gave_reason_for_it(watched: Watched) -> None:
    service, writer, server = watched
    writer.both(range(100))
    writer.reference(3, 5000)
    writer.both(range(200, 300))
    fires = {"TwinstreamDiverged"}
    eventually(lambda: server.firing() == fires, seconds=60, what="the alert on a difference fires")
    service.kill()
    down = f'twinstream_verdict{{comparison="{NAME}"}}'
    eventually(lambda: not scraped(server, down), seconds=30, what="the service is not scraped any more")
    assert server.firing() == fires
