"""Runs the service of a drill: a process that serves one comparison with the code that serves all.

It ends with the drill, however that ends: the kernel sends it SIGTERM. Its log goes to a file.
"""

from __future__ import annotations

import os
import signal
import ssl
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
import orjson
from prometheus_client.parser import text_string_to_metric_families

from twinstream.drill.signals import MetricSamples
from twinstream.errors import SettingsError, SourceError, TwinstreamError, told_of_connection
from twinstream.processes.child import die_with_parent, spawn, start_child
from twinstream.settings import Settings
from twinstream.spec.file.model import Spec
from twinstream.spec.load import ComparisonFile

START_SECONDS = 30.0
STOP_SECONDS = 30.0
TIMEOUT_SECONDS = 5.0
_PREFIX = "twinstream_"
_LABELS = ("verdict", "state", "kind", "side")
"""At most one of these labels besides `comparison`, in all metrics that a drill reads."""


class ShadowService:
    """The service while the block runs. `token` is one that may read, if the service needs tokens.

    Raises SettingsError and SourceError if it does not start to serve.
    """

    def __init__(self, settings: Settings, spec: Spec, log: Path, token: str | None) -> None:
        self._name, self._log = spec.name, log
        self._pipe, theirs = spawn.Pipe()
        self._process = start_child(_serve, (settings, spec, str(log), theirs))
        theirs.close()
        self._http = httpx.Client(
            trust_env=False,
            verify=_trusting(settings),
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
        )

    def __enter__(self) -> ShadowService:
        try:
            self.address = self._told()
            self._get("/healthz", START_SECONDS)  # It listens already, and answers as soon as it serves.
        except BaseException:
            self.__exit__()
            raise
        return self

    def _told(self) -> str:
        """The address that it serves at."""
        try:
            if self._pipe.poll(START_SECONDS):
                kind, text = self._pipe.recv()
                if kind == "serves":
                    return str(text).rstrip("/")
                raise SettingsError(f"the drill's own service cannot start: {text}")
        except EOFError:
            pass
        raise SourceError(f"the drill's own service did not come to serve: {self._last_words()}")

    def _last_words(self) -> str:
        with suppress(OSError, IndexError):
            return self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1]
        return "it said nothing"

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._http.close()
        self._process.terminate()
        self._process.join(STOP_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def get(self, path: str = "") -> Any:
        """The JSON answer about the comparison. Raises SourceError."""
        return orjson.loads(self._get(f"/v1/comparisons/{self._name}{path}"))

    def samples(self) -> MetricSamples:
        """The metrics of the comparison. Raises SourceError."""
        found: dict[tuple[str, str], float] = {}
        for family in text_string_to_metric_families(self._get("/metrics").decode()):
            for sample in family.samples:
                if sample.labels.get("comparison") == self._name:
                    label = next((sample.labels[name] for name in _LABELS if name in sample.labels), "")
                    found[sample.name.removeprefix(_PREFIX), label] = sample.value
        return found

    def _get(self, path: str, timeout_seconds: float = TIMEOUT_SECONDS) -> bytes:
        try:
            answer = self._http.get(f"{self.address}{path}", timeout=timeout_seconds)
        except httpx.HTTPError as error:
            said = "" if self._process.is_alive() else f"; it ended: {self._last_words()}"
            told = f"{told_of_connection(error)}{said}"
            raise SourceError(f"the drill's own service does not answer: {told}") from None
        if not answer.is_success:
            raise SourceError(f"the drill's own service answers {path} with {answer.status_code}")
        return answer.content


def _trusting(settings: Settings) -> ssl.SSLContext | bool:
    """Trust any certificate: only our own process can answer at that address, whatever name it is for."""
    if settings.tls_cert is None:
        return True
    context = ssl.create_default_context(cafile=settings.tls_cert)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


# -- in the process of the service -------------------------------------------------------------------------


def _serve(settings: Settings, spec: Spec, log: str, pipe: Connection) -> None:
    from twinstream import bootstrap

    die_with_parent(signal.SIGTERM)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 2)

    def tell(text: str, kind: str = "serves") -> None:
        with suppress(OSError):
            pipe.send((kind, text))

    try:
        bootstrap.serve(settings, [ComparisonFile(spec, "")], tell)
    except TwinstreamError as error:
        tell(str(error), "refused")
