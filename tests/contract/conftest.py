"""The shelves that keep the laws of stores and relays: real ones, one on a simulated Redis, one in memory."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.simulation.line import SimulatedShelf
from tests.simulation.redis_server import SimulatedRedis
from tests.support.redis_cluster import ADDRESS, REAL
from twinstream.adapters.memory import MemoryShelf
from twinstream.adapters.redis.shelf import RedisShelf
from twinstream.core.arrivals.sharding import WHOLE
from twinstream.ports import Shelf

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
