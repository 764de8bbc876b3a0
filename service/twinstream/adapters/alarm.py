"""Asks Prometheus and Alertmanager over HTTP how they react to the metrics of a drill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import httpx

from twinstream.errors import SourceError, without_secrets

TIMEOUT_SECONDS = 5.0


class _Asked:
    """A server that is asked for JSON. Every method raises SourceError if it does not answer."""

    def __init__(self, what: str, address: str) -> None:
        self._address = address.rstrip("/")
        self.name = f"{what} at {without_secrets(self._address)}"
        self._http = httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False)

    def _ask(self, method: str, path: str, **given: Any) -> Any:
        try:
            answer = self._http.request(method, f"{self._address}{path}", **given)
            if answer.is_success:
                return answer.json()
        except httpx.InvalidURL:  # Its text may contain a part of a password.
            raise SourceError(f"{self.name} does not answer: that is no address of a server") from None
        except (httpx.HTTPError, ValueError) as error:
            raise SourceError(f"{self.name} does not answer: {error}") from None
        raise SourceError(f"{self.name} answers {path} with {answer.status_code}")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


class Prometheus(_Asked):
    """A Prometheus."""

    def __init__(self, address: str) -> None:
        super().__init__("Prometheus", address)

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


class AlertRoute(NamedTuple):
    """The route of an alert: its receivers, and the silences that hold it back."""

    receivers: Sequence[str]
    silences: Sequence[str]

    @property
    def text(self) -> str:
        """The route as text for people."""
        who = f"Alertmanager has it for {', '.join(self.receivers)}"
        return f"{who}, held back by silence {self.silences[0]}" if self.silences else who


class Alertmanager(_Asked):
    """An Alertmanager."""

    def __init__(self, address: str) -> None:
        super().__init__("Alertmanager", address)

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

    def routes(self, comparison: str) -> Mapping[str, AlertRoute]:
        """The routes of the alerts of a comparison, by name, as soon as they are known."""
        alerts = self._ask("GET", "/api/v2/alerts", params={"filter": f'comparison="{comparison}"'})
        return {
            alert["labels"]["alertname"]: AlertRoute(
                [receiver["name"] for receiver in alert["receivers"]], alert["status"]["silencedBy"]
            )
            for alert in alerts
            if alert["status"]["state"] != "unprocessed"
        }
