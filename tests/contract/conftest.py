"""The shelves and sources that keep the laws: real ones, those in memory, shelves on a simulated Redis."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer

from deploy.embedded.kafka import Kafka
from loadtest.memory import MemoryShelf, MemorySource
from tests.simulation.line import SimulatedShelf
from tests.simulation.redis_server import SimulatedRedis
from tests.support.redis_cluster import ADDRESS, REAL
from tests.support.stack import MakeTopic
from tests.support.topics import KafkaTopics
from twinstream.adapters.kafka.source import KafkaSource
from twinstream.adapters.redis.shelf import RedisShelf
from twinstream.core.arrivals.sharding import WHOLE
from twinstream.core.events import Side
from twinstream.ports import Recalling, Shelf

OpenShelf = Callable[[str], Shelf]
"""Opens the stores and relays of one comparison for the process with this token."""


@pytest.fixture(params=["memory", "simulated", *REAL])
def open_shelf(request: pytest.FixtureRequest) -> Iterator[OpenShelf]:
    name = f"contract-{uuid.uuid4().hex[:8]}"
    memory, server = MemoryShelf(), SimulatedRedis(time.monotonic, time.time)
    memory.storage(WHOLE).clock = time.time
    opened: list[Shelf] = []

    def opens(token: str) -> Shelf:
        match request.param:
            case "memory":
                shelf: Shelf = memory.owned_by(token)
            case "simulated":
                shelf = SimulatedShelf(server.execute, name, token)
            case real:
                shelf = RedisShelf(request.getfixturevalue(ADDRESS[real]), name, token)
        opened.append(shelf)
        return shelf

    yield opens
    for shelf in opened:
        shelf.close()


ANY_TIME = {f"message.timestamp.{way}.max.ms": str(2**63 - 1) for way in ("after", "before")}
"""Of a topic: it takes records of any time."""


class OnKafka:
    """Two new topics on real Kafka, who has them and a control topic in hand, and sources on them."""

    def __init__(
        self, kafka: Kafka, make: MakeTopic, partitions: int = 1, control: str = "", **config: Any
    ) -> None:
        self.brokers, self._control, self.opened = kafka.brokers, control or None, list[KafkaSource]()
        self.topics = {side: make(partitions=partitions, config=ANY_TIME) for side in Side}
        self.hand = KafkaTopics(kafka.brokers, self.topics)
        self.of_control = KafkaTopics(kafka.brokers, {Side.LEFT: control})
        self.producer = Producer({"bootstrap.servers": kafka.brokers, **config})

    def write(self, *records: bytes | None, side: Side = Side.LEFT, **more: Any) -> None:
        """Records for one side, the reference if it is not said."""
        for record in records:
            self.producer.produce(self.topics[side], record, **more)
        self.producer.flush()

    def say(self, record: bytes | None) -> None:
        """Write a control record."""
        self.of_control.append(Side.LEFT, 0, record)

    def source(self, settings: dict[str, str | int | bool] | None = None, **more: Any) -> KafkaSource:
        """A source that is closed after the test."""
        options = {"control": self._control, **more}
        self.opened.append(KafkaSource(self.brokers, "contract", self.topics, settings or {}, **options))
        return self.opened[-1]


Make = Callable[..., OnKafka]


@pytest.fixture
def on_kafka(kafka: Kafka, topic: MakeTopic) -> Iterator[Make]:
    """Makes topics of so many partitions; `config` is the producer's."""
    made: list[OnKafka] = []

    def make(partitions: int = 1, control: str = "", **config: Any) -> OnKafka:
        made.append(OnKafka(kafka, topic, partitions, control, **config))
        return made[-1]

    yield make
    for source in [source for one in made for source in one.opened]:
        source.close()


class Opened(NamedTuple):
    """A source, who has both topics in hand, and who writes to the control topic."""

    source: Recalling
    topics: KafkaTopics | MemorySource
    say: Callable[[bytes | None], None]


OpenSource = Callable[..., Opened]
"""Opens a source of two new topics of so many partitions, which looks at them after so many seconds."""


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.requires_kafka)])
def open_source(request: pytest.FixtureRequest) -> OpenSource:
    def opens(partitions: int = 1, look_seconds: float = 10.0) -> Opened:
        if request.param == "memory":
            memory = MemorySource(partitions)
            return Opened(memory, memory, memory.say)
        make: Make = request.getfixturevalue("on_kafka")
        made = make(partitions, request.getfixturevalue("topic")())
        return Opened(made.source(look_seconds=look_seconds), made.hand, made.say)

    return opens
