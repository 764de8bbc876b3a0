"""A service on two topics of its own, as the tests of the running service start with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from deploy.embedded.kafka import Kafka
from tests.support.service import ServiceProcess, Writer, spec_file
from tests.support.stack import MakeTopic

NOTHING = {"reference": 0, "candidate": 0}
"""Of a status: no event waits for its partner."""


class Case(NamedTuple):
    """A running service, and a writer to its two topics."""

    service: ServiceProcess
    write: Writer

    def passes(self, numbers: range) -> None:
        """With these events on both sides, and all before them, the gate passes."""
        self.write.both(numbers)
        self.service.passes_with(numbers.stop)


@contextmanager
def serving(
    folder: Path,
    brokers: str,
    redis: str,
    topics: tuple[str, str],
    *options: str,
    more: str = "",
    order: str = "{per_key: [k]}",
) -> Iterator[Case]:
    """A service that compares two topics, stopped at the end of the block."""
    spec = spec_file(folder, f"on-{topics[0]}", *topics, more, order)
    with ServiceProcess(spec, brokers, redis, *options) as service:
        yield Case(service, Writer(brokers, *topics))


class Serve(Protocol):
    """Starts a service on two new topics of the shared servers, which is stopped after the test."""

    def __call__(self, *options: str, partitions: int = 1, **more: str) -> Case: ...


@pytest.fixture
def serve(kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(*options: str, partitions: int = 1, **more: Any) -> Case:
            topics = topic(partitions=partitions), topic(partitions=partitions)
            return stack.enter_context(serving(tmp_path, kafka.brokers, redis_url, topics, *options, **more))

        yield start


class Place(NamedTuple):
    """Two topics and a writer to them, and where services may run that compare them."""

    folder: Path
    brokers: str
    redis: str
    topics: tuple[str, str]
    write: Writer
    more: str

    def service(self, name: str, *options: str, redis: str = "") -> ServiceProcess:
        """A service with a folder of its own, as on a host of its own; its state may be in another Redis."""
        folder = self.folder / name
        folder.mkdir()
        spec = spec_file(folder, "shared", *self.topics, more=self.more)
        return ServiceProcess(spec, self.brokers, redis or self.redis, *options)


MakePlace = Callable[[int, str], Place]


@pytest.fixture
def place_of(kafka: Kafka, redis_url: str, topic: MakeTopic, tmp_path: Path) -> MakePlace:
    """Makes two topics of so many partitions, for a comparison file with these lines more."""

    def make(partitions: int, more: str) -> Place:
        topics = topic(partitions=partitions), topic(partitions=partitions)
        return Place(tmp_path, kafka.brokers, redis_url, topics, Writer(kafka.brokers, *topics), more)

    return make
