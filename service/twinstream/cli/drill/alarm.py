"""The way of a drill's alarm beyond its own service: Prometheus, which scrapes it, and Alertmanager.

Both are asked for only, but for two things that the drill leaves there while it lasts: the address of its
service in a file that Prometheus reads, and a silence that holds its alerts back from whoever is on call.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from twinstream.adapters.alarm import Alertmanager, Prometheus
from twinstream.drill.shadow import ExpectedSign
from twinstream.drill.signals import ALERTS, series
from twinstream.errors import SettingsError
from twinstream.spec.drills import Names

ASK_SECONDS = 1.0
"""Between two questions to Prometheus and Alertmanager, which do nothing more often."""
SILENCE = timedelta(hours=2, minutes=30)
"""Beyond the hour after which a comparison that is gone is told of."""


class Alarm:
    """Those outside who are asked during a drill; either may be missing. `page` lets the alert through."""

    def __init__(self, names: Names, prometheus: str | None, alertmanager: str | None, *, page: bool) -> None:
        self._names, self._page = names, page
        self._prometheus = None if prometheus is None else Prometheus(prometheus)
        self._alertmanager = None if alertmanager is None else Alertmanager(alertmanager)
        self._asked_at = float("-inf")
        self._last: dict[str, Any] = {}

    @property
    def asked(self) -> tuple[bool, bool]:
        """Whether Prometheus is asked, and Alertmanager."""
        return self._prometheus is not None, self._alertmanager is not None

    def check(self, expectation: ExpectedSign) -> list[str]:
        """What is not shown, since nobody is asked for it.

        Raises SettingsError where somebody might be woken who was not to be, or what cannot come would be
        waited for.
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
        """Have Prometheus scrape the drill's service while the block runs: `file` names it there."""
        if file is None:
            yield
            return
        place = urlsplit(address)
        host = socket.gethostname() if place.hostname in {"0.0.0.0", "::"} else place.hostname
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
        """Hold the drill's alerts back; the id of the silence, None where nothing is to be held back."""
        if self._alertmanager is None or self._page:
            return None
        return self._alertmanager.silence(self._names.comparison, SILENCE)

    def look(self, expectation: ExpectedSign) -> dict[str, Any]:
        """What is said there now, as members of a `Look`; they are asked once a second."""
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
            said["scraped"] = self._prometheus.has(f"{series(expectation, comparison)} >= 1")
            said["alerts"] = self._prometheus.alerts(comparison)
        if self._alertmanager is not None:
            routes = self._alertmanager.routes(comparison)
            said["routed"] = {name: route.text for name, route in routes.items()}
        return said
