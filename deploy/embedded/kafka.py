"""A real Kafka broker: one node that is broker and controller (KRaft), on a free loopback port."""

from __future__ import annotations

import base64
import os
import subprocess
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewTopic

from deploy.embedded import jars, prerequisites
from deploy.embedded.errors import EmbeddedError
from deploy.embedded.processes import LOOPBACK, Process, free_port, listens
from deploy.embedded.server import Server

_STOP_SECONDS = 10.0

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
# One node: nothing can be replicated.
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
# The internal topics of a broker with a handful of clients: 50 partitions each would only slow its start.
offsets.topic.num.partitions=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
# How long a broker that was killed counts as alive: its successor waits for that before it may register.
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
# A topic is created by whoever owns it, with its partitions and its configuration, or not at all.
auto.create.topics.enable=false
# Records may bear any time, also one that lies years back or ahead, and are not thrown away for it.
log.retention.ms=-1
log.message.timestamp.after.max.ms=9223372036854775807
"""

LEADING_SECONDS = 30.0
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]


class Kafka(Server):
    """One broker; see `Server`."""

    name = "Kafka"
    start_seconds = 90.0
    java_options: ClassVar[tuple[str, ...]] = (
        "-Xmx512m",
        "-XX:+UseSerialGC",  # on a small machine a collector's own threads only compete with the rest
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSZ",
    )

    @property
    def brokers(self) -> str:
        """The address for clients, `host:port`."""
        return f"{LOOPBACK}:{self.port}"

    def _java(self) -> list[str]:
        """Java with Kafka's jars, both made sure of."""
        java = prerequisites.ensure(prerequisites.JAVA)
        return [java, "-cp", os.pathsep.join(map(str, jars.ensure(jars.KAFKA)))]

    def _program(self) -> Process:
        java, *classpath = self._java()
        command = [
            java,
            *self.java_options,
            *classpath,
            "kafka.Kafka",
            str(self.folder / "server.properties"),
        ]
        return Process("Kafka", command, log=self.folder / "kafka.log", grace_seconds=_STOP_SECONDS)

    def _configure(self) -> int:
        port, properties, data = free_port(), self.folder / "server.properties", self.folder / "data"
        properties.write_text(
            _PROPERTIES.format(host=LOOPBACK, port=port, controller_port=free_port(), data=data),
            encoding="utf-8",
        )
        if not (data / "meta.properties").exists():
            self._format(properties, self._java())
        return port

    def _format(self, properties: Path, java: list[str]) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        command = [*java, "-XX:TieredStopAtLevel=1", "kafka.tools.StorageTool", "format"]
        # The id is one word with the option: it may begin with a hyphen.
        command += [f"--cluster-id={cluster}", "-c", str(properties)]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode != 0:
            said = done.stderr.strip()[-500:]
            raise EmbeddedError(f"Kafka's storage in {self.folder} cannot be formatted: {said}")

    def _answers(self) -> bool:
        if not listens(self.port):
            return False
        try:
            return bool(self._admin().list_topics(timeout=2.0).brokers)
        except KafkaException:
            return False

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.brokers, "log_level": 0})

    def create_topic(self, name: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Create one topic and return its name."""
        self.create_topics({name: partitions}, config=config)
        return name

    def create_topics(
        self, partitions: Mapping[str, int], *, config: Mapping[str, str] | None = None
    ) -> None:
        """Create topics, given as name and number of partitions, and return when the broker leads them all.

        Raises:
            EmbeddedError: one exists already, or the broker refuses it.
        """
        wanted = [NewTopic(name, count, 1, config=dict(config or {})) for name, count in partitions.items()]
        admin = self._admin()  # kept until all futures are done: they end with it
        for name, created in admin.create_topics(wanted, operation_timeout=30.0).items():
            try:
                created.result(timeout=30.0)
            except KafkaException as error:
                raise EmbeddedError(f"topic {name!r} cannot be created: {error.args[0].str()}") from error
        places = [
            TopicPartition(name, partition)
            for name, count in partitions.items()
            for partition in range(count)
        ]
        deadline = time.monotonic() + LEADING_SECONDS
        while not self._leads(admin, places):
            if time.monotonic() > deadline:
                raise EmbeddedError(f"the broker does not lead {', '.join(partitions)} after their creation")
            time.sleep(0.02)

    @staticmethod
    def _leads(admin: AdminClient, places: list[TopicPartition]) -> bool:
        """Whether the broker answers for partitions, which it does a moment after they are created."""
        wanted: dict[TopicPartition, OffsetSpec] = dict.fromkeys(places, _LATEST)
        answers = admin.list_offsets(wanted, request_timeout=5.0)
        try:
            for answer in answers.values():
                answer.result(timeout=5.0)
        except KafkaException:
            return False
        return True
