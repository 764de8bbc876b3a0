"""A broker, a store and a clock in memory, for what runs a matcher without them: tests and benchmarks."""

from __future__ import annotations

from loadtest.memory.clock import ManualClock
from loadtest.memory.source import MemorySource
from loadtest.memory.store import (
    MemoryRelay,
    MemoryShelf,
    MemoryStorage,
    MemoryStore,
    OwnedShelf,
)
from twinstream.status.comparison import Publication

__all__ = [
    "ManualClock",
    "MemoryPublisher",
    "MemoryRelay",
    "MemoryShelf",
    "MemorySource",
    "MemoryStorage",
    "MemoryStore",
    "OwnedShelf",
]


class MemoryPublisher:
    """Keeps all publications in order, each with the time at which its content was true, if given."""

    def __init__(self) -> None:
        self.published: list[Publication] = []
        self.made_at: list[float | None] = []

    def publish(self, publication: Publication, made_at: float | None = None) -> None:
        """Keep it."""
        self.published.append(publication)
        self.made_at.append(made_at)
