"""What the chart renders is started as the cluster would start it, as far as that goes without a cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
import yaml

from deploy.embedded.kafka import Kafka
from deploy.embedded.processes import free_port
from tests.support.commands import COMMAND
from tests.support.helm import Manifest, container, one, pod, render
from tests.support.marks import one_a_change, whole_product
from tests.support.processes import new_mark
from tests.support.service import WEB, spec_file
from tests.support.stack import MakeTopic
from tests.support.waiting import eventually
from twinstream.settings import load

pytestmark = whole_product()

TOKEN = "only-for-this-test-and-long-enough"
SECRET = "kafka: {sasl.password: quiet}\n"


class Pod:
    """The container of a rendered role, run as a process with its volumes in a folder."""

    def __init__(
        self, manifests: list[Manifest], role: str, folder: Path, secrets: dict[str, dict[str, str]]
    ) -> None:
        self._container = container(manifests, role)
        self._folder = folder
        self._port = str(free_port())  # 8080 is this machine's, and maybe taken
        files = one(manifests, "ConfigMap")
        texts = {files["metadata"]["name"]: files["data"], **secrets}
        sources = {volume["name"]: _source(volume) for volume in pod(manifests, role)["spec"]["volumes"]}
        for mount in self._container["volumeMounts"]:
            target = folder / mount["mountPath"].lstrip("/")
            target.mkdir(parents=True)
            for name, text in texts.get(sources[mount["name"]], {}).items():
                (target / name).write_text(text)
        self.environment = {
            entry["name"]: self._here(entry["value"]) for entry in self._container["env"] if "value" in entry
        }

    def _here(self, text: str) -> str:
        """The same with paths and port of this machine."""
        return text.replace("/etc/twinstream", f"{self._folder}/etc/twinstream").replace(
            ":8080", f":{self._port}"
        )

    @property
    def arguments(self) -> list[str]:
        return [self._here(argument) for argument in self._container["args"]]

    def __enter__(self) -> Self:
        environment = {**os.environ, **self.environment, **new_mark()}
        with (self._folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [COMMAND, *self.arguments], env=environment, stdout=log, stderr=log
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def becomes_ready(self) -> None:
        """All its probes come to pass."""
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            eventually(partial(self.passes, probe), seconds=60, what=f"{probe}: {self.log()}")

    def passes(self, probe: str) -> bool:
        """Whether a probe passes; asked or run as it stands in the manifest."""
        if "httpGet" in self._container[probe]:
            return self.asked(self._container[probe]["httpGet"]["path"]) == 200
        command = [self._here(word) for word in self._container[probe]["exec"]["command"]]
        seconds = self._container[probe]["timeoutSeconds"]
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(command, env=environment, capture_output=True, timeout=seconds * 4, check=False)
        return done.returncode == 0

    def asked(self, path: str, **headers: str) -> int:
        """The status that a path answers with, from outside of the pod; 0 where nobody listens."""
        try:
            return self.get(path, **headers).status_code
        except httpx.TransportError:
            return 0

    def get(self, path: str, **headers: str) -> httpx.Response:
        """The answer to a path, from outside of the pod."""
        return WEB.get(f"http://127.0.0.1:{self._port}{path}", headers=headers, timeout=5)

    def log(self) -> str:
        return (self._folder / "log").read_text()


def _source(volume: dict[str, Any]) -> str:
    """The name of the object that a volume shows."""
    return str(volume.get("configMap", {}).get("name") or volume.get("secret", {}).get("secretName"))


@pytest.fixture
def values(kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path) -> dict[str, Any]:
    """The least that the chart wants, for one comparison."""
    return {
        "comparisons": {"canary": spec_file(tmp_path, "canary", topic(), topic()).read_text()},
        "kafka": {"brokers": kafka.brokers, "properties": {"client.id": "canary"}},
        "redis": {"url": redis_url},
    }


@pytest.mark.parametrize("role", ["api", "matcher"])
def test_a_rendered_pod_starts_passes_its_probes_and_stops_in_time(
    values: dict[str, Any], tmp_path: Path, role: str
) -> None:
    manifests = render(values)
    running = Pod(manifests, role, tmp_path / "pod", {})
    assert not running.passes("livenessProbe")
    with running:
        running.becomes_ready()
        running.process.send_signal(signal.SIGTERM)
        grace = pod(manifests, role)["spec"]["terminationGracePeriodSeconds"]
        assert running.process.wait(grace) == 0, running.log()


def test_a_rendered_pod_that_shows_spark_jobs_starts_and_passes_its_probes_without_redis(
    values: dict[str, Any], tmp_path: Path
) -> None:
    del values["redis"]
    spark = {"enabled": True, "results": "results", "checkpoint": "s3a://state"}
    with Pod(render({**values, "shards": 32, "spark": spark}), "api", tmp_path / "pod", {}) as running:
        running.becomes_ready()
        told = running.get("/v1/comparisons/canary").json()
        assert "start the Spark job" in json.dumps(told)


@pytest.mark.parametrize("role", one_a_change(["api", "matcher"]))
def test_a_rendered_pod_with_tokens_is_scraped_with_one_and_refuses_others(
    values: dict[str, Any], tmp_path: Path, role: str
) -> None:
    opened = {
        "access": {"tokenSecret": {"name": "access", "key": "tokens"}, "basePath": "/twinstream"},
        "serviceMonitor": {"enabled": True, "tokenSecret": {"name": "scrape", "key": "token"}},
    }
    manifests = render({**values, **opened})
    secrets = {"access": {"tokens": f"read prometheus {TOKEN}\n"}}
    (endpoint,) = one(manifests, "ServiceMonitor")["spec"]["endpoints"]
    with Pod(manifests, role, tmp_path / "pod", secrets) as running:
        running.becomes_ready()
        assert running.asked(endpoint["path"]) == 401
        assert running.asked(endpoint["path"], authorization=f"Bearer {TOKEN}") == 200


def test_what_is_rendered_are_settings_and_secret_ones_join_the_others(tmp_path: Path) -> None:
    given = {
        "comparisons": {"ads": "version: 1\n"},
        "kafka": {
            "brokers": "one:9093,two:9093",
            "properties": {
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": "/etc/twinstream/kafka/ca.pem",
            },
            "existingSecret": {"name": "login", "key": "more.yaml"},
            "filesSecret": "files",
        },
        "redis": {"url": "redis://redis:6379/0"},
        "masking": {"existingSecret": {"name": "masking", "key": "key"}},
        "access": {
            "tokenSecret": {"name": "access", "key": "tokens"},
            "tlsSecret": "tls",
            "basePath": "/twinstream",
        },
        "memoryLimit": "3GiB",
        "shards": 4,
        "readFrom": "latest",
    }
    rendered = Pod(
        render(given),
        "matcher",
        tmp_path,
        {
            "login": {"more.yaml": SECRET},
            "files": {"ca.pem": "CERTIFICATE"},
            "masking": {"key": "KEY OF MASKED VALUES"},
            "access": {"tokens": "TOKENS"},
            "tls": {"tls.crt": "CERTIFICATE OF THE SERVICE", "tls.key": "KEY"},
        },
    )
    assert "--role=matcher" in rendered.arguments
    (config,) = (word.removeprefix("--config=") for word in rendered.arguments if "--config=" in word)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in rendered.environment.items():
            patch.setenv(name, value)
        settings = load({}, config)
    assert [
        Path(str(path)).read_text()
        for path in (settings.token_file, settings.tls_cert, settings.tls_key, settings.mask_key_file)
    ] == ["TOKENS", "CERTIFICATE OF THE SERVICE", "KEY", "KEY OF MASKED VALUES"]
    assert settings.base_path == "/twinstream"
    authority = Path(str(settings.kafka.pop("ssl.ca.location")))
    assert authority.read_text() == "CERTIFICATE"
    assert settings.kafka == {"security.protocol": "SASL_SSL", **yaml.safe_load(SECRET)["kafka"]}
    assert settings.brokers == "one:9093,two:9093"
    assert settings.memory_limit == 3 << 30
    assert (settings.shards, settings.read_from) == (4, "latest")
