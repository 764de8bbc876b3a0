"""Metrics of the API process itself: the requests that it answers, and its use of the machine."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics

DURATION_EDGES_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""From an answer out of memory to one that no release tool waits for."""


class HttpMeter:
    """Counts answers (an `api.traffic.Traffic`); used from one thread."""

    def __init__(self, registry: CollectorRegistry) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._requests = Counter(
            "twinstream_http_requests",
            "HTTP requests answered, or whose answer has begun.",
            ("route", "method", "code"),
            registry=registry,
        )
        self._duration = Histogram(
            "twinstream_http_request_duration_seconds",
            "From an HTTP request to the beginning of its answer.",
            ("route", "method"),
            buckets=DURATION_EDGES_SECONDS,
            registry=registry,
        )

    def expect(self, route: str, method: str, code: int) -> None:
        """Start a series at 0 for a possible answer."""
        self._requests.labels(route, method, str(code))
        self._duration.labels(route, method)

    def answered(self, route: str, method: str, code: int, seconds: float) -> None:
        """Count a request that was answered, or whose answer has begun, after so many seconds."""
        self._requests.labels(route, method, str(code)).inc()
        self._duration.labels(route, method).observe(seconds)


def measure_process(registry: CollectorRegistry) -> None:
    """Report the resources of this process in `registry`: processor time, memory, open files."""
    ProcessCollector(namespace="twinstream", registry=registry)
