"""The parts of a run of `detection`: broker, generator, both versions of the pipeline, and the service."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka import Consumer, Message, TopicPartition

from deploy.embedded import spark
from deploy.embedded.kafka import Kafka
from deploy.embedded.processes import LOOPBACK, Process, free_port
from deploy.embedded.stack import Stack
from loadtest.ad_events import AdEvents
from loadtest.schedule import Schedule
from loadtest.spark.losses import Batch, Place, View
from twinstream.spec.decode.control import control_record
from twinstream.spec.decode.headers import INPUT

ROOT = Path(__file__).parents[2]
PIPELINES = ROOT / "deploy" / "pipelines"
LOSSY = Path(__file__).with_name("lossy.py")
EVENTS, CONTROL = "events", "control"
SIDES = ("reference", "candidate")
PARTITIONS = 2
CLOCKS = {
    "input": "{{clock: input}}",
    "event_time": "{{clock: event_time, field: event_time, after: {after}s}}",
    "arrival": "{{clock: arrival, after: {arrival_after}s}}",
}
SPEC = """
version: 1
name: {name}
reference: {{topic: reference, version: reference}}
candidate: {{topic: candidate, version: candidate}}
control: control
order: unordered
show: [campaign_id, ad_id, event_time]
overdue: {overdue}
duplicates: {{policy: replays}}
evidence: {{matched: 1000, seconds: 0}}
limits: {{lead: 10m}}
"""
STATUS_SECONDS = 1.0
"""How often the service publishes."""
WAIT_SECONDS = 180.0
"""How long a comparison may take to pass for the first time, and a loss to be found once it is overdue."""
STOP_SECONDS = 20.0

Result = dict[str, Any]


@dataclass(frozen=True)
class Input:
    """The input of a run: so many events a second, with these times."""

    rate: float
    seed: int
    start_ms: int
    speed: float = 1.0

    def events(self) -> AdEvents:
        """The events, as the generator makes them."""
        return AdEvents(self.seed, self.start_ms, Schedule(self.rate), speed=self.speed)

    def arguments(self) -> list[str]:
        """The arguments of the generator."""
        numbers = {"rate": self.rate, "seed": self.seed, "start-time": self.start_ms, "speed": self.speed}
        return [f"--{name}={number:.16g}" for name, number in numbers.items()]


class Asked:
    """The service, asked for its three comparisons."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def statuses(self) -> dict[str, Result]:
        """The status of each comparison, by its clock; none while the service does not answer."""
        return {clock: found for clock in CLOCKS if (found := self._get(clock)) is not None}

    def divergences(self, clock: str) -> list[Result]:
        """The newest divergences."""
        return self._items(clock, "/divergences?limit=500")

    def overdue(self, clock: str) -> list[Result]:
        """The events that are overdue."""
        return self._items(clock, "/unmatched?overdue=true&limit=500")

    def passes(self) -> bool:
        """Whether the gates of all pass."""
        gates = [self._get(clock, "/gate") for clock in CLOCKS]
        return all(gate is not None and gate["answer"] == "pass" for gate in gates)

    def _items(self, clock: str, path: str) -> list[Result]:
        return list((self._get(clock, path) or {"items": []})["items"])

    def _get(self, clock: str, path: str = "") -> Result | None:
        with suppress(httpx.HTTPError):
            answer = self._client.get(f"/v1/comparisons/{comparison(clock)}{path}")
            if answer.is_success:
                return dict(answer.json())
        return None


def comparison(clock: str) -> str:
    """The name of the comparison on a clock."""
    return f"views-{clock.replace('_', '-')}"


@dataclass(frozen=True)
class Running:
    """A run: the broker, its parts, and the service."""

    kafka: Kafka
    parts: list[Process]
    asked: Asked

    def check(self) -> None:
        """See that all parts run. Raises RuntimeError."""
        for part in self.parts:
            if not part.running:
                raise RuntimeError(f"{part.name} ended; {part.where()}")

    def wait(self, true: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until something is true. Raises TimeoutError."""
        until = time.monotonic() + seconds
        while not true():
            self.check()
            if time.monotonic() > until:
                raise TimeoutError(f"not within {seconds:g} s: {what}")
            time.sleep(STATUS_SECONDS)


@contextmanager
def running(folder: Path, after: float, given: Input, lost: list[View]) -> Iterator[Running]:
    """Everything runs, and is stopped at the end, writers first."""
    folder.mkdir()
    with ExitStack() as open_parts:
        stack = open_parts.enter_context(Stack(folder))
        topics = dict.fromkeys((EVENTS, *SIDES), PARTITIONS)
        stack.kafka.create_topics({**topics, CONTROL: 1})
        port = free_port()
        parts = [service(folder, stack, port, after, given.speed)]
        parts += [job(side, folder, stack.kafka.brokers, lost) for side in SIDES]
        parts.append(generator(folder, stack.kafka.brokers, given))
        for part in parts:
            open_parts.enter_context(part)
        client = httpx.Client(base_url=f"http://{LOOPBACK}:{port}", timeout=5.0, trust_env=False)
        yield Running(stack.kafka, parts, Asked(open_parts.enter_context(client)))


def service(folder: Path, stack: Stack, port: int, after: float, speed: float) -> Process:
    """`twinstream serve` of three comparisons."""
    files = []
    for clock, form in CLOCKS.items():
        overdue = form.format(after=f"{after:g}", arrival_after=f"{after / speed:g}")
        files.append(folder / f"{clock}.yaml")
        files[-1].write_text(SPEC.format(name=comparison(clock), overdue=overdue), encoding="utf-8")
    command = [sys.executable, "-m", "twinstream.cli.main", "serve", *map(str, files)]
    command += ["--bind", f"{LOOPBACK}:{port}"]
    command += ["--brokers", stack.kafka.brokers, "--redis", stack.redis.url]
    return Process("the service", command, log=folder / "service.log", grace_seconds=STOP_SECONDS)


def job(version: str, folder: Path, brokers: str, lost: list[View]) -> Process:
    """One version of the pipeline; the candidate loses what it is told to lose."""
    script, more, modules = PIPELINES / f"{version}.py", [], ["ads_job.py", "ads_faults.py", "candidate.py"]
    if lost and version == "candidate":
        file = folder / "lost.json"
        file.write_text(json.dumps(lost), encoding="utf-8")
        script, more = LOSSY, ["--lost", str(file)]
    arguments = ["--brokers", brokers, "--input", EVENTS, "--views-topic", version]
    arguments += ["--control-topic", CONTROL, "--job-version", version]
    arguments += ["--checkpoint", str(folder / f"{version}-checkpoint")]
    return spark.submit(
        version,
        script,
        [*arguments, *more],
        folder=folder,
        conf={"spark.submit.pyFiles": ",".join(str(PIPELINES / name) for name in modules)},
        conf_folder=PIPELINES / "conf",
        grace_seconds=STOP_SECONDS,
    )


def generator(folder: Path, brokers: str, given: Input) -> Process:
    """What writes the input."""
    command = [sys.executable, "-m", "loadtest.generator", "--brokers", brokers, "--topic", EVENTS]
    log = folder / "generator.log"
    return Process("the generator", [*command, *given.arguments()], log=log, directory=ROOT)


def view_of(value: Any) -> View:
    """A view by its value, as the service shows it; one that names none has no ad."""
    shown = value if isinstance(value, dict) else {}
    return str(shown.get("ad_id", "")), int(shown.get("event_time", 0))


def control_records(kafka: Kafka) -> dict[str, list[Batch]]:
    """The batches of each version, by their control records."""
    batches: dict[str, list[Batch]] = {side: [] for side in SIDES}
    for message in records(kafka, CONTROL, partitions=1):
        record = control_record(message.value())
        batches[record.version].append(Batch(message.timestamp()[1] / 1000, record.consumed.get(EVENTS, {})))
    return batches


def input_places(kafka: Kafka, lost: set[View]) -> dict[View, Place]:
    """The input record of each lost event, as the reference names it."""
    places = {}
    for message in records(kafka, "reference", partitions=PARTITIONS):
        view = view_of(json.loads(message.value() or b""))
        if view in lost:
            place = dict(message.headers() or [])[INPUT]
            assert isinstance(place, bytes)
            _, partition, offset = place.decode().rsplit(":", 2)
            places[view] = (int(partition), int(offset))
    return places


def records(kafka: Kafka, topic: str, *, partitions: int) -> Iterator[Message]:
    """All records of a topic, partition by partition."""
    settings = {"bootstrap.servers": kafka.brokers, "group.id": "reads", "log_level": 0}
    with closing(Consumer(settings)) as consumer:
        for partition in range(partitions):
            place = TopicPartition(topic, partition, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=10)
            consumer.assign([place])
            at = 0
            while at < end:
                for message in consumer.consume(1000, timeout=1.0):
                    at = (message.offset() or 0) + 1
                    yield message
