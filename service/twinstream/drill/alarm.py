"""Asks Prometheus and Alertmanager how they react to the metrics of a drill.

Both are only read, with two exceptions that last as long as the drill: the address of its service in a file
that Prometheus reads, and a silence that keeps its alerts from people on call.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson

from twinstream.drill.shadow import ExpectedSign
from twinstream.drill.signals import ALERTS, series
from twinstream.errors import SettingsError, SourceError, told_of_connection, without_secrets
from twinstream.spec.drills import Names

TIMEOUT_SECONDS = 5.0
ASK_SECONDS = 1.0
"""The time between two questions to Prometheus and Alertmanager, which do nothing more often."""
SILENCE = timedelta(hours=2, minutes=30)
"""Longer than the hour after which an alert reports a missing comparison."""


class _Asked:
    """A server that is asked for JSON. Every method raises SourceError if it does not answer."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")
        self.name = f"{type(self).__name__} at {without_secrets(self._address)}"
        self._http = httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False)

    def _ask(self, method: str, path: str, **given: Any) -> Any:
        try:
            answer = self._http.request(method, f"{self._address}{path}", **given)
            if answer.is_success:
                return answer.json()
        except httpx.InvalidURL:  # Its text may contain a part of a password.
            raise SourceError(f"{self.name} does not answer: that is not the address of a server") from None
        except (httpx.HTTPError, ValueError) as error:
            raise SourceError(f"{self.name} does not answer: {told_of_connection(error)}") from None
        raise SourceError(f"{self.name} answers {path} with {answer.status_code}")


class Prometheus(_Asked):
    """A Prometheus."""

    def has(self, expression: str) -> bool:
        """Whether a query has a result now."""
        answer = self._ask("GET", "/api/v1/query", params={"query": expression})
        return bool(answer["data"]["result"])

    def alerts(self, comparison: str) -> dict[str, str]:
        """The alerts of a comparison by name, each `pending` or `firing`."""
        answer = self._ask("GET", "/api/v1/alerts")
        return {
            alert["labels"]["alertname"]: alert["state"]
            for alert in answer["data"]["alerts"]
            if alert["labels"].get("comparison") == comparison
        }

    def has_rule(self, name: str) -> bool:
        """Whether an alerting rule of this name is loaded and can be evaluated."""
        groups = self._ask("GET", "/api/v1/rules", params={"type": "alert"})["data"]["groups"]
        rules = (rule for group in groups for rule in group["rules"])
        return any(rule["name"] == name and rule["health"] != "err" for rule in rules)

    def alertmanagers(self) -> Sequence[str]:
        """The addresses of the Alertmanagers that it sends alerts to."""
        active = self._ask("GET", "/api/v1/alertmanagers")["data"]["activeAlertmanagers"]
        return [one["url"] for one in active]


class Alertmanager(_Asked):
    """An Alertmanager."""

    def silence(self, comparison: str, lasting: timedelta) -> str:
        """Silence all alerts of a comparison for a time; returns the id of the silence."""
        now = datetime.now(UTC)
        body = {
            "matchers": [{"name": "comparison", "value": comparison, "isRegex": False, "isEqual": True}],
            "startsAt": now.isoformat(),
            "endsAt": (now + lasting).isoformat(),
            "createdBy": "twinstream drill",
            "comment": f"a drill: {comparison} compares a copy into which a difference was planted",
        }
        return str(self._ask("POST", "/api/v2/silences", json=body)["silenceID"])

    def routes(self, comparison: str) -> Mapping[str, str]:
        """The routes of the alerts of a comparison as texts, by name, as soon as they are known."""
        alerts = self._ask("GET", "/api/v2/alerts", params={"filter": f'comparison="{comparison}"'})
        return {
            alert["labels"]["alertname"]: _route_text(alert)
            for alert in alerts
            if alert["status"]["state"] != "unprocessed"
        }


def _route_text(alert: Mapping[str, Any]) -> str:
    """The receivers of an alert, and the silence that holds it back."""
    who = f"Alertmanager has it for {', '.join(receiver['name'] for receiver in alert['receivers'])}"
    silences = alert["status"]["silencedBy"]
    return f"{who}, held back by silence {silences[0]}" if silences else who


class Alarm:
    """The outside servers that a drill asks; either may be missing. `page` lets the alert through."""

    def __init__(self, names: Names, prometheus: str | None, alertmanager: str | None, *, page: bool) -> None:
        self._names, self._page = names, page
        self._prometheus = None if prometheus is None else Prometheus(prometheus)
        self._alertmanager = None if alertmanager is None else Alertmanager(alertmanager)
        self._asked_at = float("-inf")
        self._last: dict[str, Any] = {}

    @property
    def asked(self) -> tuple[bool, bool]:
        """Whether Prometheus is asked, and whether Alertmanager."""
        return self._prometheus is not None, self._alertmanager is not None

    def check(self, expectation: ExpectedSign) -> list[str]:
        """The signals that the drill does not show, since their server is not asked.

        Raises SettingsError if somebody might be paged unintentionally, or if the drill would wait for a
        signal that cannot come.
        """
        prometheus, name = self._prometheus, ALERTS[expectation]
        not_exercised = []
        if prometheus is None:
            not_exercised.append(
                "the alert: give --prometheus, and --scrape-file or --bind so that it scrapes the drill"
            )
        elif not prometheus.has_rule(name):
            raise SettingsError(
                f"{prometheus.name} has no rule {name} that it can evaluate: load the rules "
                "of deploy/prometheus/rules"
            )
        elif self._alertmanager is None and not self._page and (sent := prometheus.alertmanagers()):
            place = urlsplit(sent[0]).netloc
            raise SettingsError(
                f"Prometheus sends alerts to {place}, so this drill may wake somebody: give --alertmanager, "
                "where it is then held back by a silence, or --page to let it through"
            )
        if self._alertmanager is None:
            not_exercised.append("the route of the alert: give --alertmanager")
        return [*not_exercised, "whether a person is reached: Alertmanager's receivers end there"]

    @contextmanager
    def scraped(self, address: str, file: Path | None) -> Iterator[None]:
        """Make Prometheus scrape the drill's service while the block runs: `file` names the service there."""
        if file is None:
            yield
            return
        place = urlsplit(address)
        host = str(place.hostname)
        if host in {"0.0.0.0", "::"}:
            host = socket.gethostname()
        elif ":" in host:
            host = f"[{host}]"
        written = file.with_name(f".{file.name}.{self._names.identifier}")
        try:
            written.write_bytes(orjson.dumps([{"targets": [f"{host}:{place.port}"]}]))
            written.replace(file)
        except OSError as error:
            raise SettingsError(f"--scrape-file {file} cannot be written: {error.strerror}") from None
        try:
            yield
        finally:
            with suppress(OSError):
                file.unlink()

    def silence(self) -> str | None:
        """Silence the drill's alerts; returns the id of the silence, None if there is nothing to silence."""
        if self._alertmanager is None or self._page:
            return None
        return self._alertmanager.silence(self._names.comparison, SILENCE)

    def look(self, expectation: ExpectedSign) -> dict[str, Any]:
        """The present answers of both, as members of a `SignalState`; they are asked once a second."""
        if time.monotonic() - self._asked_at >= ASK_SECONDS:
            self._asked_at = time.monotonic()
            self._last = self._ask(expectation)
        return self._last

    def _ask(self, expectation: ExpectedSign) -> dict[str, Any]:
        comparison, said = self._names.comparison, dict[str, Any]()
        if self._prometheus is not None:
            said["live"] = self._prometheus.has(
                f'twinstream_status_fresh{{comparison="{self._names.live}"}} == 1'
            )
            said["scraped"] = self._prometheus.has(f"{series(expectation, comparison=comparison)} >= 1")
            said["alerts"] = self._prometheus.alerts(comparison)
        if self._alertmanager is not None:
            said["routed"] = self._alertmanager.routes(comparison)
        return said
