"""The service as a real process on real servers, driven from outside as its users do."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import httpx
import orjson
from confluent_kafka import Producer

from tests.support import forking
from tests.support.commands import COMMAND, is_started
from tests.support.processes import marked, new_mark
from tests.support.waiting import eventually
from twinstream.core.events import Side

SPEC = """
version: 1
name: {name}
reference: {{topic: {reference}}}
candidate: {{topic: {candidate}}}
order: {order}
show: [k, n]
evidence: {{matched: 1, seconds: 0}}
"""


def spec_file(
    folder: Path, name: str, reference: str, candidate: str, more: str = "", order: str = "{per_key: [k]}"
) -> Path:
    """A comparison file for events with a key `k` and a number `n`."""
    file = folder / f"{name}.yaml"
    file.write_text(SPEC.format(name=name, reference=reference, candidate=candidate, order=order) + more)
    return file


WEB = httpx.Client(trust_env=False, timeout=30, limits=httpx.Limits(max_keepalive_connections=0))
"""Asks on a new connection each time. A new client each time would read all certificates first, which costs
ten times as much as the question, and tests ask twenty times a second."""


class ServiceProcess:
    """`twinstream serve` on one comparison, also as a context manager. It may be started again and again.

    `environment` is what its processes have besides that of the tests.
    """

    def __init__(
        self,
        spec: Path,
        brokers: str,
        redis: str,
        *options: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = [
            *(str(COMMAND), "serve", str(spec)),
            *("--brokers", brokers, "--redis", redis, "--bind", "127.0.0.1:0", *options),
        ]
        self.spec = spec
        self.servers = brokers, redis
        self._name = spec.stem
        self._log = spec.with_suffix(".log")
        self._mark = new_mark()
        self._environment = {**(environment or {}), **self._mark}

    def another(self, *options: str) -> ServiceProcess:
        """One more service for the same comparison."""
        return ServiceProcess(self.spec, *self.servers, *options)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Stop it if it runs, also if it is frozen."""
        if hasattr(self, "process") and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.stop()

    def start(self) -> None:
        """Start the process, and return when it serves."""
        self.process: subprocess.Popen[bytes] | forking.Forked
        environment = {**os.environ, **self._environment}
        if is_started(self._environment):
            with self._log.open("ab") as log:
                self.process = subprocess.Popen(
                    self._command, stdout=subprocess.PIPE, stderr=log, env=environment
                )
        else:
            self.process = forking.serve(self._command, environment, self._log)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().decode().strip().removesuffix("readyz").rstrip("/")
        assert self.address, self.log()
        eventually(self._serves, seconds=30, what="the service answers")

    def _serves(self) -> bool:
        try:
            return WEB.get(f"{self.address}/healthz").is_success
        except httpx.HTTPError:
            return False

    def get(self, path: str) -> Any:
        """The JSON answer to a GET below the comparison."""
        url = f"{self.address}/v1/comparisons/{self._name}{path}"
        return WEB.get(url).raise_for_status().json()

    def asked(self, path: str) -> dict[str, Any]:
        """The same of a service that may be away at any time; empty where there is no answer."""
        try:
            answer: dict[str, Any] = self.get(path)
        except httpx.HTTPError:
            return {}
        return answer

    def reset(self, start: Any = "now", seconds: float = 60) -> httpx.Response:
        """Ask for a reset of the comparison; a start of None is that of the file."""
        body = {"reason": "the candidate is mended", "by": "ann", "start": start}
        url = f"{self.address}/v1/comparisons/{self._name}/reset"
        return WEB.post(url, json=body, timeout=seconds)

    def ready(self) -> bool:
        """Whether it says that it is ready."""
        return WEB.get(f"{self.address}/readyz").is_success

    def gate(self) -> str:
        """The gate's answer."""
        return str(self.get("/gate")["answer"])

    def answers(self, answer: str, seconds: float = 60) -> None:
        """The gate comes to give this answer."""
        what = f"the gate answers {answer}"
        eventually(lambda: self.gate() == answer, seconds=seconds, what=what)

    def says(self, true: Callable[[dict[str, Any]], bool], what: str, seconds: float = 60) -> dict[str, Any]:
        """The status once something is true of it, which stands in `what`."""

        def status() -> dict[str, Any]:
            found = self.asked("")
            return found if found and true(found) else {}

        return eventually(status, seconds=seconds, what=f"{what}; log: {self.log()[-1000:]}")

    def shows(self, seconds: float = 60, **members: Any) -> dict[str, Any]:
        """The status once these members of it have these values."""
        what = f"the status shows {members}"
        return self.says(lambda status: members.items() <= status.items(), what, seconds)

    def passes_with(self, matched: int) -> None:
        """It comes to have matched so many pairs, and its gate passes."""
        self.shows(matched=matched)
        self.answers("pass")

    def divergences(self) -> list[dict[str, Any]]:
        """What differs."""
        found: list[dict[str, Any]] = self.get("/divergences?limit=100")["items"]
        return found

    def kill(self) -> None:
        """Kill the service with -9, as a machine does that runs out of memory."""
        self.process.kill()
        self._end()

    def stop(self) -> int:
        """Stop it as an operator does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self) -> int:
        code = self.process.wait(timeout=40)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def matchers(self) -> list[int]:
        """The process ids of its matchers."""
        return [pid for pid, command in marked(self._mark).items() if "spawn_main" in command]

    def family(self) -> dict[int, str]:
        """All living processes that came of it."""
        return marked(self._mark)

    def log(self) -> str:
        """What it wrote to standard error so far."""
        return self._log.read_text()


class Writer:
    """Writes events (k, n) to both topics of a comparison."""

    def __init__(self, brokers: str, reference: str, candidate: str) -> None:
        self._topics = (reference, candidate)
        self._producer = Producer({"bootstrap.servers": brokers, "message.timeout.ms": 60_000})

    def both(self, numbers: range, *, keys: int = 10) -> None:
        """The same events on both sides."""
        for number in numbers:
            for topic in self._topics:
                self._write(topic, number % keys, number)
        self.flush()

    def side(self, side: Side, numbers: range) -> None:
        """Events of ten keys on one side only."""
        for number in numbers:
            self._write(self._topics[side], number % 10, number)
        self.flush()

    def reference(self, key: int, number: int) -> None:
        """One event on the reference only."""
        self._write(self._topics[0], key, number)

    def candidate(self, key: int, number: int) -> None:
        """One event on the candidate only."""
        self._write(self._topics[1], key, number)

    def flush(self) -> None:
        """Return when Kafka has everything."""
        assert self._producer.flush(60) == 0, "Kafka took everything"

    def _write(self, topic: str, key: int, number: int) -> None:
        self._producer.poll(0)
        self._producer.produce(topic, orjson.dumps({"k": key, "n": number}), str(key).encode())
