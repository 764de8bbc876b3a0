"""A real Prometheus with the shipped configuration and rules, and a real Alertmanager with the example."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
import yaml

from deploy.embedded import prerequisites
from deploy.embedded.processes import LOOPBACK, Process, free_port, listens

STEP_SECONDS = 1
SHIPPED = Path(__file__).parents[2] / "deploy" / "prometheus"
ALERTMANAGER = SHIPPED.with_name("alertmanager") / "alertmanager.yml"


class Prometheus:
    """One that scrapes the service at an address, and those beside it, and evaluates once a second.

    It is a context manager. Its alerts go to that Alertmanager, else nowhere.
    """

    def __init__(
        self, folder: Path, service: str, alertmanager: str | None = None, beside: Sequence[str] = ()
    ) -> None:
        port = free_port()
        targets = [urlsplit(address).netloc for address in (service, *beside)]
        self.url = f"http://{LOOPBACK}:{port}"
        folder.mkdir()
        config = folder / "prometheus.yml"
        config.write_text(yaml.safe_dump(_config(targets, alertmanager)))
        self._http = httpx.Client(base_url=self.url, timeout=20, trust_env=False)
        self.process = Process(
            "Prometheus",
            [
                prerequisites.ensure(prerequisites.PROMETHEUS),
                *(f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"),
                f"--web.listen-address={LOOPBACK}:{port}",
            ],
            log=folder / "prometheus.log",
        )

    def ready(self) -> bool:
        """Whether it serves queries."""
        try:
            return self._http.get("/-/ready").is_success
        except httpx.HTTPError:
            return False

    def __enter__(self) -> Self:
        self.process.start()
        self.process.wait_until_ready(self.ready, seconds=30)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()
        self._http.close()

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of a query now; it must be one that Prometheus takes."""
        return self._result("/api/v1/query", query=expression)

    def since(self, start: float, expression: str) -> list[dict[str, Any]]:
        """The series of a query from a time on, as a graph asks for them; the last step is not before now."""
        end = time.time() + STEP_SECONDS
        return self._result("/api/v1/query_range", query=expression, start=start, end=end, step=STEP_SECONDS)

    def rules(self) -> list[dict[str, Any]]:
        """All rules with how their last evaluation went."""
        groups = self._data("/api/v1/rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def firing(self) -> set[str]:
        """The names of the alerts that fire."""
        return {str(sample["metric"]["alertname"]) for sample in self.query('ALERTS{alertstate="firing"}')}

    def _result(self, path: str, **parameters: str | float) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = self._data(path, **parameters)["result"]
        return result

    def _data(self, path: str, **parameters: str | float) -> Any:
        answer = self._http.get(path, params=parameters).json()
        assert answer["status"] == "success", f"{parameters}: {answer}"
        assert not answer.get("warnings"), f"{parameters}: {answer}"
        return answer["data"]


@contextmanager
def alertmanager(folder: Path) -> Iterator[str]:
    """The address of an Alertmanager with the example; nobody listens where it sends."""
    port = free_port()
    command = [
        prerequisites.ensure(prerequisites.ALERTMANAGER),
        *(f"--config.file={ALERTMANAGER}", f"--storage.path={folder / 'alerts'}"),
        *(f"--web.listen-address={LOOPBACK}:{port}", "--cluster.listen-address="),
    ]
    with Process("Alertmanager", command, log=folder / "alertmanager.log") as process:
        process.wait_until_ready(lambda: listens(port), seconds=30)
        yield f"http://{LOOPBACK}:{port}"


def _config(targets: Sequence[str], alertmanager: str | None) -> dict[str, Any]:
    """The shipped configuration for services and an Alertmanager at other addresses, and quicker."""
    config: dict[str, Any] = yaml.safe_load((SHIPPED / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(SHIPPED / pattern) for pattern in config["rule_files"]]
    if alertmanager is None:
        del config["alerting"]
    else:
        place = urlsplit(alertmanager).netloc
        config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [place]}]}]}
    (job,) = config["scrape_configs"]
    job["static_configs"] = [{"targets": list(targets)}]
    return config
