"""In-memory versions of everything the runtime needs, for tests of this package and of its users."""

from __future__ import annotations

from twinstream.adapters.clocks import ManualClock
from twinstream.adapters.memory.source import MemorySource
from twinstream.adapters.memory.store import (
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
