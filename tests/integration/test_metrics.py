"""What Prometheus gets from the service: well formed, complete from the first scrape on, and bounded."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from deploy.embedded import prerequisites
from tests.support.server import Served, served
from tests.support.statuses import NAME, diverged, expectation
from tests.support.tools import run
from tests.support.waiting import eventually
from twinstream.api.http.traffic import HttpMeter
from twinstream.api.metrics import MatcherCollector, StatusCollector, exposition, measure_process
from twinstream.api.state.board import Board

LABELS = {
    "comparison", "side", "topic", "partition", "kind", "fields", "reason", "verdict", "state",
    "route", "method", "code",
}  # fmt: skip
BY_THE_FORMAT = {"le"}
"""What all programs name it by; one series a process."""
GATE = "/v1/comparisons/{name}/gate"


@pytest.fixture
def service() -> Iterator[Served]:
    board, registry = Board(stale_after_seconds=60), CollectorRegistry()
    for collector in (MatcherCollector(board.views), StatusCollector(board.views)):
        registry.register(collector)
    measure_process(registry)
    with served(board, exposition(registry), traffic=HttpMeter(registry)) as service:
        service.call(lambda: board.expect(expectation()))
        yield service


def scraped(http: httpx.Client) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """All series by name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(http.get("/metrics").text)
        for sample in family.samples
    }


def requests(http: httpx.Client, route: str, code: int, method: str = "GET") -> float | None:
    """How many requests were counted so; None where there is no such series."""
    labels = frozenset({"route": route, "method": method, "code": str(code)}.items())
    return scraped(http).get(("twinstream_http_requests_total", labels))


def test_series_please_promtool_and_have_the_prefix_and_only_the_labels_that_are_declared(
    service: Served, http: httpx.Client
) -> None:
    service.publish(diverged())
    http.get("/v1/comparisons")
    text = http.get("/metrics").text
    assert run(prerequisites.PROMTOOL, "check", "metrics", text=text) == ""
    bad = text.replace("twinstream_matched_total", "twinstream_matched")
    with pytest.raises(AssertionError, match="counter metrics should have"):
        run(prerequisites.PROMTOOL, "check", "metrics", text=bad)
    for name, labels in scraped(http):
        assert name.startswith("twinstream_")
        assert {label for label, _ in labels} <= LABELS | BY_THE_FORMAT, name


def test_what_the_api_may_answer_is_there_at_0_before_anybody_has_asked(http: httpx.Client) -> None:
    series = scraped(http)
    at_zero = {labels for (name, labels), value in series.items() if name.endswith("requests_total")}
    assert len(at_zero) > 20
    assert {series["twinstream_http_requests_total", labels] for labels in at_zero} == {0}
    routes = {dict(labels)["route"] for labels in at_zero}
    assert {"/", "/healthz", "/metrics", GATE, "/v1/events", "/static", "other"} <= routes
    assert requests(http, "/readyz", 503) == 0
    assert requests(http, "/v1/comparisons", 500) == 0


def test_requests_count_by_route_with_the_time_they_take_whatever_is_asked_for(http: httpx.Client) -> None:
    http.get("/healthz")
    took = frozenset({"route": "/healthz", "method": "GET"}.items())
    assert scraped(http)["twinstream_http_request_duration_seconds_count", took] == 1
    before = scraped(http).keys()
    for name in (NAME, NAME, "nobody-knows", "a/b/c", "%00", "x" * 2000):
        http.get(f"/v1/comparisons/{name}")
    http.get("/no/such/path")
    http.get("/static/page.css")
    http.get("/static/nothing-of-that-name")
    http.request("BREW", "/healthz")
    assert requests(http, "/v1/comparisons/{name}", 200) == 2
    assert requests(http, "/v1/comparisons/{name}", 404) >= 2
    assert requests(http, "/static", 200) == 1
    assert requests(http, "other", 404) >= 1
    assert requests(http, "/healthz", 405, "other") == 1
    fresh = {labels for name, labels in scraped(http).keys() - before if name.endswith("requests_total")}
    assert len(fresh) <= 3
    assert not any("nobody-knows" in text or "xxx" in text for labels in fresh for _, text in labels)


def test_an_event_stream_counts_when_it_opens(http: httpx.Client) -> None:
    with http.stream("GET", "/v1/events") as stream:
        assert stream.status_code == 200
        eventually(lambda: requests(http, "/v1/events", 200) == 1, what="the open stream is counted")


def test_a_failure_of_the_api_counts_as_500(service: Served, http: httpx.Client) -> None:
    service.board.bodies = lambda: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    assert httpx.get(f"{service.url}/v1/comparisons", trust_env=False).status_code == 500
    del service.board.bodies  # type: ignore[misc]
    assert requests(http, "/v1/comparisons", 500) == 1


def test_the_process_of_the_api_says_what_it_takes(http: httpx.Client) -> None:
    series = scraped(http)
    assert series["twinstream_process_resident_memory_bytes", frozenset()] > 1_000_000
    for name in ("cpu_seconds_total", "open_fds", "max_fds", "start_time_seconds", "virtual_memory_bytes"):
        assert (f"twinstream_process_{name}", frozenset()) in series
