"""A service on two topics of its own, as the tests of the running service start with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.service import ServiceProcess, Writer, spec_file
from tests.support.topics import KafkaTopics
from tests.support.waiting import eventually
from twinstream.core.events import Side


class Case(NamedTuple):
    """A running service, a writer to its two topics, and who has the topics in hand."""

    service: ServiceProcess
    write: Writer
    topics: KafkaTopics

    def passes_with(self, matched: int) -> None:
        """The service has matched so many pairs, and its gate passes."""
        passes_with(self.service, matched)


def passes_with(service: ServiceProcess, matched: int) -> None:
    """A service has matched so many pairs, and its gate passes."""
    eventually(lambda: service.get("")["matched"] == matched, seconds=60, what=f"{matched} pairs match")
    eventually(lambda: service.gate() == "pass", seconds=60, what="the gate passes")


@contextmanager
def running(service: ServiceProcess) -> Iterator[ServiceProcess]:
    """A service that is started, and stopped at the end of the block, however that ends."""
    service.start()
    try:
        yield service
    finally:
        service.stop()


@contextmanager
def serving(
    folder: Path,
    brokers: str,
    redis: str,
    topics: tuple[str, str],
    *,
    more: str = "",
    order: str = "{per_key: [k]}",
) -> Iterator[Case]:
    """A service that compares two topics, stopped at the end of the block."""
    service = ServiceProcess(spec_file(folder, f"on-{topics[0]}", *topics, more, order), brokers, redis)
    hand = KafkaTopics(brokers, dict(zip(Side, topics, strict=True)))
    with running(service):
        yield Case(service, Writer(brokers, *topics), hand)
