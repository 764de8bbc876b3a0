"""The processes of a run, the order in which they start and stop, and what it means when one of them ends."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from deploy.embedded import spark
from deploy.embedded.errors import EmbeddedError
from deploy.embedded.processes import LOOPBACK, Process, free_port
from deploy.embedded.stack import Stack, at_once

_ROOT = Path(__file__).parents[2]
_PIPELINES = _ROOT / "deploy" / "pipelines"
SPECS = [_PIPELINES / "specs" / "ads-views.yaml", _PIPELINES / "specs" / "ads-counts.yaml"]

INPUT, CONTROL = "ads.events", "ads.control"
_PARTITIONS = {
    INPUT: 2,
    "ads.views.reference": 2,
    "ads.views.candidate": 2,
    "ads.counts.reference": 2,
    "ads.counts.candidate": 2,
    CONTROL: 1,
}
_TOPIC_CONFIG = {"retention.bytes": str(1 << 30), "segment.bytes": str(1 << 26)}
"""A run that is left alone over night must not fill the disk: a gigabyte a partition is hours of events."""

_KILLED = 137
_SERVICE_STOP_SECONDS = 12.0
PIPELINE_STOP_SECONDS = 5.0
"""Their data are thrown away with the run: a micro-batch that is cut off harms nobody."""


class PartEndedError(Exception):
    """A part that has to run for the whole run has ended; the text says which and where its log is."""


class Parts:
    """All processes of one run, in one folder.

    Args:
        folder: where they keep their data and logs.
        rate: input events per second.
        fault: the bug to run the candidate with.
        tell: called with a sentence about each step.
        pipeline_stop_seconds: how long a Spark application may take to finish its micro-batch when it stops.
    """

    def __init__(
        self,
        folder: Path,
        *,
        rate: float,
        fault: str | None,
        tell: Callable[[str], None],
        pipeline_stop_seconds: float = PIPELINE_STOP_SECONDS,
    ) -> None:
        self.folder = folder
        self._rate = rate
        self._fault = fault
        self._tell = tell
        self._pipeline_stop_seconds = pipeline_stop_seconds
        self._stack = Stack(folder)
        self._port = free_port()
        self._service: Process | None = None
        self._jobs: list[Process] = []
        self._generator: Process | None = None

    @property
    def service(self) -> Process:
        """The service; to be asked for once `start` has returned."""
        assert self._service is not None, "the parts have been started"
        return self._service

    @property
    def candidate(self) -> Process:
        """The candidate's Spark application; to be asked for once `start` has returned."""
        return self._jobs[1]

    @property
    def address(self) -> str:
        """Where the service's page and API are."""
        return f"http://{LOOPBACK}:{self._port}"

    def start(self) -> None:
        """Start everything; return when all processes run, which is before Spark has written anything.

        Raises:
            EmbeddedError: a part cannot be started.
        """
        self._tell("starting Kafka and Redis")
        self._stack.start()
        self._tell(f"Kafka: {self._stack.kafka.brokers}   Redis: {self._stack.redis.url}")
        self._tell("creating topics, starting the service, both Spark versions and the generator")
        self._stack.kafka.create_topics(_PARTITIONS, config=_TOPIC_CONFIG)
        self._service = self._serve()
        self._service.start()
        fault = ["--fault", self._fault] if self._fault else []
        self._jobs = [self._job("reference", []), self._job("candidate", fault)]
        at_once(*[job.start for job in self._jobs])
        self._generator = self._generate()
        self._generator.start()

    def _serve(self) -> Process:
        program = shutil.which("twinstream", path=str(Path(sys.executable).parent))
        if program is None:
            raise EmbeddedError(
                "the command twinstream is not installed beside this Python: run `make setup`"
            )
        command = [program, "serve", *map(str, SPECS), "--bind", f"{LOOPBACK}:{self._port}"]
        command += ["--brokers", self._stack.kafka.brokers, "--redis", self._stack.redis.url]
        log = self.folder / "service.log"
        return Process("the service", command, log=log, grace_seconds=_SERVICE_STOP_SECONDS)

    def _job(self, version: str, more: list[str]) -> Process:
        arguments = ["--brokers", self._stack.kafka.brokers, "--input", INPUT]
        arguments += ["--views-topic", f"ads.views.{version}", "--counts-topic", f"ads.counts.{version}"]
        arguments += ["--control-topic", CONTROL, "--job-version", version]
        arguments += ["--checkpoint", str(self.folder / f"{version}-checkpoint")]
        return spark.submit(
            version,
            _PIPELINES / f"{version}.py",
            [*arguments, *more],
            folder=self.folder,
            conf_folder=_PIPELINES / "conf",
            grace_seconds=self._pipeline_stop_seconds,
        )

    def _generate(self) -> Process:
        command = [sys.executable, "-m", "loadtest.generator", "--brokers", self._stack.kafka.brokers]
        command += ["--topic", INPUT, "--rate", f"{self._rate:g}"]
        return Process("the generator", command, log=self.folder / "generator.log", directory=_ROOT)

    def check(self) -> None:
        """See whether all parts run; start the service again if somebody killed it.

        That is what a supervisor in production does, and after it the counts are what they would have been. A
        part that ends in any other way has a reason, and starting it again would hide it.

        Raises:
            PartEndedError: a part has ended.
        """
        for part in self._running():
            code = part.exit_code
            if code is None:
                continue
            if part is self._service and code == _KILLED:
                self._tell("the service was killed: starting it again, from its last checkpoint")
                part.restart()
                continue
            raise PartEndedError(f"{part.name} ended with exit code {code}; {part.where()}")

    def _running(self) -> list[Process]:
        servers = [self._stack.kafka.process, self._stack.redis.process]
        return [part for part in [*servers, self._service, *self._jobs, self._generator] if part is not None]

    def stop(self) -> None:
        """Stop what writes before what is written to, so that the logs end without errors; within bounds."""
        if self._generator is not None:
            self._generator.stop()
        for job in self._jobs:
            job.ask_to_stop()
        if self._service is not None:
            self._service.ask_to_stop()
        for part in [*self._jobs, self._service]:
            if part is not None:
                part.stop()
        self._stack.stop()
